//! Lists of URLs, as `-i` takes them.
//!
//! One file a line; further URLs on the line, TAB-separated, are mirrors of it. Indented lines
//! after it are options of that file, as aria2 has them:
//!
//! ```text
//! # a comment
//! https://example.org/a.iso<TAB>https://mirror.example/a.iso
//!   out=image.iso
//!   dir=images
//!   checksum=sha-256=15e2…b225
//!   header=Authorization: Bearer 1234
//! ```
//!
//! `dir` and `out` are relative to the directory of the run. Without `out` a file has the name in which its URL ends;
//! where several URLs end in the same, with what tells them apart: their queries, or more of their paths. `header` may stand several times; of
//! the other options the last one counts. Blank lines, `#` comments, CRLF and a byte-order mark
//! are skipped.

use url::Url;

use super::names::{self, relative_name};
use super::spec::{Digest, FileSpec, parse_header, parse_url};
use super::tell_apart;
use crate::connection::without_userinfo;
use crate::{Error, ErrorKind, Result};

/// The files of a list of URLs.
///
/// # Errors
/// `Usage`, with the line number and the text at fault.
pub fn parse(text: &str) -> Result<Vec<FileSpec>> {
    let mut files = Vec::new();
    let mut by_url = Vec::new();
    let mut finish = |entry: Entry| {
        if entry.out.is_none() {
            by_url.push(files.len());
        }
        files.push(entry.finish()?);
        Ok(())
    };
    let mut last: Option<Entry> = None;
    for (number, line) in super::lines(text) {
        let at_line = |error| at_line(number, error);
        if line.starts_with([' ', '\t']) {
            read_option(last.as_mut(), line.trim()).map_err(at_line)?;
        } else {
            let next = read_urls(number, line).map_err(at_line)?;
            last.replace(next).map_or(Ok(()), &mut finish)?;
        }
    }
    last.map_or(Ok(()), finish)?;
    tell_apart(&mut files, &by_url);
    Ok(files)
}

/// A list that [`parse`] reads as `files`, without user names, passwords and headers. What queries hold stays, signatures
/// and tokens too: without them these are other URLs.
pub fn write(files: &[FileSpec]) -> String {
    let mut list = String::new();
    for file in files {
        let places = std::iter::once(&file.url).chain(&file.mirrors).map(without_userinfo);
        list += &places.map(String::from).collect::<Vec<_>>().join("\t");
        list.push('\n');
        // A name that no line can hold follows from the URL again, or not.
        if !file.name.contains(char::is_control) {
            list.extend(["  out=", &file.name, "\n"]);
        }
        if let Some(digest) = &file.digest {
            list.extend(["  checksum=", &digest.to_string(), "\n"]);
        }
    }
    list
}

fn at_line(number: usize, error: Error) -> Error {
    error.prefixed(&format!("line {number}"))
}

/// One file as far as its lines are read.
struct Entry {
    line: usize,
    url: Url,
    mirrors: Vec<Url>,
    out: Option<String>,
    dir: Option<String>,
    digest: Option<Digest>,
    headers: Vec<(String, String)>,
}

fn read_urls(line: usize, text: &str) -> Result<Entry> {
    let mut urls = text.split('\t').map(str::trim).filter(|url| !url.is_empty());
    // Most lines hold none, and lists may be long.
    if text.contains(' ')
        && let Some(urls) = urls.clone().find(|url| holds_another(url))
    {
        let line = format!(
            "{}: URLs with a space between them: give each file a line, and separate mirrors of it by TAB",
            names::excerpt(urls)
        );
        return Err(Error::new(ErrorKind::Usage, line));
    }
    let url = parse_url(urls.next().unwrap_or_default(), None)?;
    let mirrors = urls.map(|url| parse_url(url, None)).collect::<Result<_>>()?;
    Ok(Entry { line, url, mirrors, out: None, dir: None, digest: None, headers: Vec::new() })
}

/// Whether another URL follows after a space, which `url` would have to encode.
fn holds_another(url: &str) -> bool {
    url.split_ascii_whitespace().skip(1).any(|next| {
        let scheme = next.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        matches!(scheme.as_deref(), Some("http" | "https"))
    })
}

fn read_option(entry: Option<&mut Entry>, option: &str) -> Result<()> {
    let usage = |line: String| Error::new(ErrorKind::Usage, line);
    let shown = names::excerpt(option);
    let Some(entry) = entry else {
        let line = format!("{shown} is indented, so it is an option, but no URL is before it");
        return Err(usage(line));
    };
    match option.split_once('=').map(|(key, value)| (key.trim_end(), value.trim_start())) {
        Some(("out", value)) => entry.out = Some(relative_name(value)?),
        Some(("dir", value)) => entry.dir = Some(relative_name(value.trim_end_matches('/'))?),
        Some(("checksum", value)) => entry.digest = Some(Digest::parse(value)?),
        Some(("header", value)) => {
            let (name, value) = value
                .split_once(':')
                .ok_or_else(|| usage("write a header as header=Name: value".to_owned()))?;
            entry.headers.push(parse_header(name, value)?);
        }
        _ => {
            let line = format!(
                "{shown} is indented, so it is an option; known are out=, dir=, checksum=, header="
            );
            return Err(usage(line));
        }
    }
    Ok(())
}

impl Entry {
    fn finish(self) -> Result<FileSpec> {
        let spec = self.name().and_then(|name| FileSpec::with_name(self.url, name));
        let spec = spec.map_err(|error| at_line(self.line, error))?;
        Ok(FileSpec { digest: self.digest, mirrors: self.mirrors, headers: self.headers, ..spec })
    }

    fn name(&self) -> Result<String> {
        let file = match &self.out {
            Some(out) => out.clone(),
            None => names::from_url(&self.url)?,
        };
        Ok(match &self.dir {
            Some(dir) => format!("{dir}/{file}"),
            None => file,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let error = parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    }

    #[test]
    fn a_list_that_is_written_is_read_again_without_secrets() {
        let digest = format!("sha-256={}", "ab".repeat(32));
        let text = format!(
            "https://me:secret@h/a?x=1&X-Amz-Signature=ab\thttps://m/a\n out=sub/b c.bin\n checksum={digest}\n \
             header=Cookie: secret\nhttps://h/plain\n"
        );
        let files = parse(&text).unwrap();
        let written = write(&files);
        assert!(!written.contains("secret"), "{written}");
        let again = parse(&written).unwrap();
        assert_eq!(again.len(), 2);
        assert_eq!(again[0].url.as_str(), "https://h/a?x=1&X-Amz-Signature=ab");
        assert_eq!(again[0].headers, []);
        for (one, other) in files.iter().zip(&again) {
            assert_eq!((&one.name, &one.digest), (&other.name, &other.digest));
            assert_eq!(one.mirrors, other.mirrors);
        }
    }

    #[test]
    fn a_plain_list_with_everything_to_skip() {
        let text = "\u{feff}http://h/a\r\n\r\n# c\r\n  # indented c\r\nhttp://h/b \r\n\n";
        let specs = parse(text).unwrap();
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(specs[1].url.as_str(), "http://h/b");
    }

    #[test]
    fn a_space_in_a_url_is_a_part_of_it() {
        let specs = parse("http://h/a b?from=http://h/c d").unwrap();
        assert_eq!(specs[0].url.as_str(), "http://h/a%20b?from=http://h/c%20d");
    }

    #[test]
    fn aria2_entries_with_mirrors_and_options() {
        let text = "http://h/a.iso\thttp://m/1\t\thttps://m/2 \n\
                    \tout=sub/image.iso\n  dir=images/\n checksum=sha-1=f7c3bc1d808e04732adf679965ccc34ca7ae3441\n \
                    header=X-A: b: c\n header = X-D:e\nhttp://h/b\n dir=./x\n";
        let specs = parse(text).unwrap();
        assert_eq!(specs.len(), 2);
        assert_eq!(specs[0].name, "images/sub/image.iso");
        let mirrors: Vec<&str> = specs[0].mirrors.iter().map(Url::as_str).collect();
        assert_eq!(mirrors, ["http://m/1", "https://m/2"]);
        let digest = specs[0].digest.as_ref().unwrap().to_string();
        assert_eq!(digest, "sha-1=f7c3bc1d808e04732adf679965ccc34ca7ae3441");
        let headers = [("X-A", "b: c"), ("X-D", "e")];
        assert_eq!(specs[0].headers, headers.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert_eq!(specs[1].name, "x/b");
        assert!(specs[1].headers.is_empty() && specs[1].digest.is_none());
    }

    #[test]
    fn errors_name_the_line_and_the_text() {
        for (text, line) in [
            ("http://h/a\n\nexample.org/b", "line 3: \"example.org/b\" is no URL"),
            ("http://h/a\tnonsense", "line 1: \"nonsense\" is no URL"),
            ("# c\nhttp://\u{7}[/", "line 2: \"http://\\u{7}[/\" is no URL"),
            ("ftp://h/a", "line 1: ftp://h/a: only http and https"),
            ("http://h/a HTTPS://h/b", "line 1: \"http://h/a HTTPS://h/b\": URLs with a space"),
            ("http://h/a\n  split=5", "line 2: \"split=5\" is indented"),
            ("http://h/a\n  http://h/b?x=1", "line 2: \"http://h/b?x=1\" is indented"),
            ("  out=x", "line 1: \"out=x\" is indented, so it is an option, but no URL"),
            ("http://h/a\n out=../x", "line 2: \"../x\" can't be an output name"),
            ("http://h/a\n out=", "line 2: \"\" can't be an output name"),
            ("http://h/a\n dir=/etc", "line 2: \"/etc\" can't be an output name"),
            ("http://h/a\n checksum=sha-256=12", "line 2: \"12\" is no sha-256 digest"),
            ("http://h/a\n header=X", "line 2: write a header as"),
            ("http://h/a\n header=X Y: z", "line 2: \"X Y\" is no header name"),
            ("http://h/a\n header=X: a\u{1}b", "line 2: the value of header X"),
        ] {
            let refused = refusal(text);
            assert!(refused.starts_with(line), "{text:?} gave: {refused}");
        }
    }

    #[test]
    fn a_name_that_only_the_whole_entry_shows_is_refused_at_its_first_line() {
        let text = format!("http://h/a\nhttp://h/{}\n dir=x", "y".repeat(300));
        assert!(refusal(&text).starts_with("line 2: http://h/yyy"));
        assert_eq!(parse(&format!("{text}\n out=short")).unwrap()[1].name, "x/short");
    }

    #[test]
    fn a_long_line_is_cut_in_the_error() {
        assert!(refusal(&"x".repeat(100_000)).len() < 300);
    }
}
