//! Where file lists come from.
//!
//! Every parser here is pure: text in, [`FileSpec`]s out. Each refuses a malformed list as a
//! whole, with the line or entry at fault, and gives only names that are safe to join to a
//! directory. [`collapse`] joins the lists of a run into one.

mod alike;
pub mod checksums;
pub mod input_file;
pub mod listing;
pub mod manifest;
pub mod metalink;
mod names;
mod spec;
mod walk;

use url::Url;

use crate::{Error, ErrorKind, Result};

pub(crate) use alike::tell_apart;
pub use listing::ListingEntry;
pub use names::{collapse, relative_name};
pub(crate) use spec::check_scheme;
pub use spec::{Digest, DigestAlgorithm, FileSpec, Pieces};
pub use walk::{Globs, ListingPage, WalkOptions, Walked, walk};

/// The files of a list whose form is told from its text: a JSON manifest ([`manifest`]) begins
/// with `{`, a Metalink ([`metalink`]) with `<`, a checksum list ([`checksums`]) with a digest, and
/// everything else is a list of URLs ([`input_file`]). `base` is the directory that the names of a checksum list and the relative
/// URLs of a manifest are resolved against.
///
/// # Errors
/// `Usage`: the list is malformed, or it is a checksum list and there is no `base`.
pub fn parse_list(text: &str, base: Option<&Url>) -> Result<Vec<FileSpec>> {
    let text = without_byte_order_mark(text);
    if text.trim_start().starts_with('{') {
        return manifest::parse(text, base);
    }
    if text.trim_start().starts_with('<') {
        return metalink::parse(text);
    }
    if text.trim_start().starts_with('[') {
        let message =
            "a manifest is an object that has its files under \"files\": {\"files\": [...]}";
        return Err(Error::new(ErrorKind::Usage, message));
    }
    let is_checksums = lines(text).next().is_some_and(|(_, line)| checksums::is_entry(line));
    match (is_checksums, base) {
        (true, Some(base)) => checksums::parse(text, base),
        (true, None) => Err(Error::new(
            ErrorKind::Usage,
            "a checksum list holds no URLs: say where its files are with `base-url`",
        )),
        (false, _) => input_file::parse(text),
    }
}

/// The lines that say something, with their numbers from 1: neither blank nor a `#` comment.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    without_byte_order_mark(text).lines().enumerate().filter_map(|(index, line)| {
        let said = line.trim();
        (!said.is_empty() && !said.starts_with('#')).then_some((index + 1, line))
    })
}

fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";

    fn base() -> Url {
        "http://h/d/".parse().unwrap()
    }

    #[test]
    fn each_form_of_list_is_told_from_its_text() {
        for text in [
            "\u{feff} {\"files\":[{\"url\":\"http://h/d/x\"}]}".to_owned(),
            format!("\u{feff}# made by us\r\n\r\n{HEX}  x\r\n"),
            format!("SHA256 (x) = {HEX}\n"),
            format!("\\{HEX}  x\n"),
            "\u{feff}# made by us\r\n\r\nhttp://h/d/x\r\n".to_owned(),
        ] {
            let specs = parse_list(&text, Some(&base())).unwrap();
            assert_eq!(specs.len(), 1, "{text}");
            assert_eq!(specs[0].url.as_str(), "http://h/d/x", "{text}");
            assert_eq!(specs[0].name, "x", "{text}");
        }
    }

    #[test]
    fn a_checksum_list_needs_a_base() {
        let error = parse_list(&format!("{HEX}  x"), None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("`base-url`"));
    }

    #[test]
    fn a_list_of_digests_that_are_not_supported_is_none_of_urls() {
        let error = parse_list(&format!("{}  x", "5a".repeat(48)), Some(&base())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let expected =
            "line 1: \"sha-384\" is no digest algorithm that is supported; those are md5,";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    #[test]
    fn an_empty_list_has_no_files() {
        for text in ["", "\u{feff}", "\r\n \n# nothing\n"] {
            assert_eq!(parse_list(text, None).unwrap(), []);
        }
    }

    #[test]
    fn a_web_page_given_as_a_list_is_refused() {
        for page in ["<!DOCTYPE html>\n<p>Not found", "<html><body>Not found</body></html>"] {
            let error = parse_list(page, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().starts_with("metalink: "), "{error}");
        }
    }

    #[test]
    fn a_bare_array_is_told_from_a_manifest() {
        let error = parse_list("[{\"url\": \"http://h/x\"}]", None).unwrap_err();
        assert!(error.to_string().contains("under \"files\""), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_safe_names_or_an_error(
            text in "(?s).{0,200}",
            lines in proptest::collection::vec(
                "(http://h/|[0-9a-f]{32}  | out=| dir=|SHA256 \\(|\\{\"files\":\\[|\t)(\\PC|[./%\\\\]){0,20}",
                0..4,
            ),
        ) {
            for text in [text, lines.join("\n")] {
                for spec in parse_list(&text, Some(&base())).unwrap_or_default() {
                    names::tests::assert_safe(&spec.name);
                }
            }
        }
    }
}
