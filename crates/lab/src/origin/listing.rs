//! Directory listings in the form of nginx's autoindex.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::SystemTime;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::content::VirtualFile;

/// Characters that can't stand in a path (RFC 3986, section 3.3), and `:`, with which a relative
/// reference would begin with a scheme.
pub(super) const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b':');

/// nginx cuts names to this many characters and ends them with `..>`.
const NAME_WIDTH: usize = 50;

/// The page for `directory`, which ends in `/`; nothing when no file lies below it.
pub(super) fn page(directory: &str, files: &BTreeMap<String, VirtualFile>) -> Option<String> {
    let mut directories = BTreeSet::new();
    let mut plain = Vec::new();
    for (path, file) in files.range(directory.to_owned()..) {
        let Some(rest) = path.strip_prefix(directory) else {
            break;
        };
        match rest.split_once('/') {
            Some((name, _)) => drop(directories.insert(name)),
            None => plain.push((rest, file)),
        }
    }
    if directories.is_empty() && plain.is_empty() {
        return None;
    }
    let title = escape(directory);
    let mut page = format!(
        "<html>\r\n<head><title>Index of {title}</title></head>\r\n<body>\r\n<h1>Index of {title}</h1><hr><pre><a href=\"../\">../</a>\r\n"
    );
    for name in directories {
        entry(&mut page, &format!("{name}/"), SystemTime::UNIX_EPOCH, "-");
    }
    for (name, file) in plain {
        entry(&mut page, name, file.modified(), &file.size.to_string());
    }
    page.push_str("</pre><hr></body>\r\n</html>\r\n");
    Some(page)
}

fn entry(page: &mut String, name: &str, modified: SystemTime, size: &str) {
    let href = utf8_percent_encode(name, PATH);
    let length = name.chars().count();
    let (shown, padding) = if length > NAME_WIDTH {
        (format!("{}..>", name.chars().take(NAME_WIDTH - 3).collect::<String>()), 0)
    } else {
        (name.to_owned(), NAME_WIDTH - length)
    };
    let _ = write!(
        page,
        "<a href=\"{href}\">{}</a>{:padding$} {} {size:>19}\r\n",
        escape(&shown),
        "",
        date(modified),
    );
}

/// `06-Nov-1994 08:49`, from the `Sun, 06 Nov 1994 08:49:37 GMT` of HTTP.
fn date(at: SystemTime) -> String {
    let http = httpdate::fmt_http_date(at);
    let fields: Vec<&str> = http.split([' ', ':']).collect();
    match fields[..] {
        [_, day, month, year, hour, minute, ..] => format!("{day}-{month}-{year} {hour}:{minute}"),
        _ => http,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> BTreeMap<String, VirtualFile> {
        paths.iter().map(|path| ((*path).to_owned(), VirtualFile::new(*path, 1234, 0))).collect()
    }

    #[test]
    fn one_level_with_directories_first() {
        let page = page("/d/", &files(&["/d/b.bin", "/d/a/x", "/d/a/y", "/e/z", "/da"])).unwrap();
        let hrefs: Vec<&str> =
            page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(hrefs, ["../", "a/", "b.bin"]);
        assert!(page.contains("01-Jan-2024 00:00                1234\r\n"), "{page}");
    }

    #[test]
    fn names_are_escaped_twice_and_cut() {
        let long = format!("/{}", "n".repeat(60));
        let page = page("/", &files(&["/a b&<c>:ä.bin", &long])).unwrap();
        assert!(
            page.contains("href=\"a%20b&%3Cc%3E%3A%C3%A4.bin\">a b&amp;&lt;c&gt;:ä.bin</a>"),
            "{page}"
        );
        assert!(page.contains(&format!(">{}..&gt;</a>", "n".repeat(47))), "{page}");
    }

    #[test]
    fn no_files_no_directory() {
        assert_eq!(page("/x/", &files(&["/d/a"])), None);
    }
}
