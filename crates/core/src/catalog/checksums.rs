//! Checksum lists: what `sha256sum` and its kin write.
//!
//! Two forms: `HEX  name` (`HEX *name` for binary mode) and the BSD form `SHA256 (name) = HEX`.
//! The first does not name its algorithm; the number of digits does: 32 MD5, 40 SHA-1, 64
//! SHA-256, 128 SHA-512. SHA-224 (56) and SHA-384 (96) are known by it and not supported. BLAKE3
//! also has 64 digits, so such lists need the BSD form (`b3sum --tag`).
//!
//! A backslash before either form says that `\\`, `\n` and `\r` in the name stand for a backslash, a
//! line feed and a carriage return. No name of an output holds those: they are percent-encoded
//! in it, as in names from directory listings.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use url::Url;

use super::names::{excerpt, relative_name, storable};
use super::spec::{Digest, DigestAlgorithm, FileSpec, as_directory};
use crate::{Error, ErrorKind, Result};

/// The files of a checksum list, each at its name below `base`, which is a directory with or
/// without a `/` at its end.
///
/// # Errors
/// `Usage`, with the line number and the text at fault.
pub fn parse(text: &str, base: &Url) -> Result<Vec<FileSpec>> {
    entries(text, base).collect()
}

/// Its files and mistakes, line by line.
pub(crate) fn entries(text: &str, base: &Url) -> impl Iterator<Item = Result<FileSpec>> {
    let base = as_directory(base);
    super::lines(text).map(move |(number, line)| {
        read_line(line, &base).map_err(|error| error.prefixed(&format!("line {number}")))
    })
}

/// Whether `line` has the form of a checksum list.
pub(super) fn is_entry(line: &str) -> bool {
    split(line).is_some()
}

fn read_line(line: &str, base: &Url) -> Result<FileSpec> {
    let Some((algorithm, hex, given)) = split(line) else {
        let line =
            format!("{} is neither \"HEX  name\" nor \"SHA256 (name) = HEX\"", excerpt(line));
        return Err(Error::new(ErrorKind::Usage, line));
    };
    let digest = Digest::from_hex(algorithm.parse()?, hex)?;
    let (literal, name) = if line.starts_with(ESCAPE) {
        let literal = unescaped(given)?;
        let name = storable(&literal);
        (Cow::Owned(literal), relative_name(&name)?)
    } else {
        (Cow::Borrowed(given), relative_name(given)?)
    };
    let spec = FileSpec::with_name(below(base, &literal), name)?;
    Ok(FileSpec { digest: Some(digest), ..spec })
}

/// What GNU coreutils and b3sum write before a line whose name holds escapes, and within it.
const ESCAPE: char = '\\';

/// The name that `given`, of a line with escapes, stands for.
fn unescaped(given: &str) -> Result<String> {
    let mut name = String::with_capacity(given.len());
    let mut chars = given.chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            ESCAPE => match chars.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('r') => '\r',
                _ => return Err(wrong_escape(given)),
            },
            c => c,
        });
    }
    Ok(name)
}

fn wrong_escape(given: &str) -> Error {
    let line = format!(
        "a backslash begins the line, and one in its name {} is not followed by \\, n or r",
        excerpt(given)
    );
    Error::new(ErrorKind::Usage, line)
}

/// The algorithm's name, the digits and the file's name as it is written.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.strip_prefix(ESCAPE).unwrap_or(line);
    split_plain(line).or_else(|| split_bsd(line))
}

fn split_plain(line: &str) -> Option<(&str, &str, &str)> {
    let (hex, rest) = line.split_once(' ')?;
    let algorithm = match hex.len() {
        32 => DigestAlgorithm::Md5.name(),
        40 => DigestAlgorithm::Sha1.name(),
        64 => DigestAlgorithm::Sha256.name(),
        128 => DigestAlgorithm::Sha512.name(),
        // Known for what they are, so that it can be said that they are not supported.
        56 => "sha-224",
        96 => "sha-384",
        _ => return None,
    };
    let name = rest.strip_prefix([' ', '*']).unwrap_or(rest);
    is_hex(hex).then_some((algorithm, hex, name))
}

fn split_bsd(line: &str) -> Option<(&str, &str, &str)> {
    let (algorithm, rest) = line.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let (algorithm, hex) = (algorithm.trim(), rest.trim_start().strip_prefix('=')?.trim());
    let is_word = algorithm.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_word && !algorithm.is_empty() && is_hex(hex)).then_some((algorithm, hex, name))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What a URL would lose or take for something else in a literal path: line feeds are dropped, a
/// backslash is taken for a slash. The rest is encoded when the path is set.
const NOT_LITERAL: &AsciiSet = &CONTROLS.add(b'%').add(b'\\');

/// The URL of the file `name` below the directory `base`.
fn below(base: &Url, name: &str) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    let parts = name.split('/').filter(|part| *part != ".");
    let parts: Vec<String> =
        parts.map(|part| utf8_percent_encode(part, NOT_LITERAL).to_string()).collect();
    url.set_path(&format!("{}{}", base.path(), parts.join("/")));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA256: &str = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";
    const MD5: &str = "25f9e794323b453885f5181f1b624d0b";

    fn read(text: &str) -> Vec<FileSpec> {
        parse(text, &"http://h/d?x=1".parse().unwrap()).unwrap()
    }

    fn refusal(text: &str) -> String {
        let error = parse(text, &"http://h/d/".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    }

    #[test]
    fn every_form_gives_url_name_and_digest() {
        for (line, digest) in [
            (format!("{SHA256}  a/b.txt"), format!("sha-256={SHA256}")),
            (format!("{SHA256} *a/b.txt"), format!("sha-256={SHA256}")),
            (format!("{SHA256} a/b.txt"), format!("sha-256={SHA256}")),
            (format!("{MD5}  ./a/b.txt"), format!("md5={MD5}")),
            (format!("{MD5}  a/./b.txt/."), format!("md5={MD5}")),
            (format!("SHA256 (a/b.txt) = {SHA256}"), format!("sha-256={SHA256}")),
            (format!("SHA256(a/b.txt)= {SHA256}"), format!("sha-256={SHA256}")),
            (format!("BLAKE3 (a/b.txt) = {SHA256}"), format!("blake3={SHA256}")),
        ] {
            let specs = read(&format!("# list\r\n{line}\r\n\r\n"));
            assert_eq!(specs.len(), 1);
            assert_eq!(specs[0].url.as_str(), "http://h/d/a/b.txt", "{line}");
            assert_eq!(specs[0].name, "a/b.txt");
            assert_eq!(specs[0].digest.as_ref().unwrap().to_string(), digest);
        }
    }

    #[test]
    fn names_are_literal_and_become_encoded_urls() {
        for (name, path) in [
            ("100% sure?.txt", "100%25%20sure%3F.txt"),
            ("a#b.txt", "a%23b.txt"),
            ("%2e%2e%2fx", "%252e%252e%252fx"),
            (" lead", "%20lead"),
            ("trail ", "trail%20"),
            ("(x) = (y)", "(x)%20=%20(y)"),
            ("http://x", ""),
        ] {
            let plain = format!("{SHA256}  {name}");
            let bsd = format!("SHA256 ({name}) = {SHA256}");
            for line in [plain, bsd] {
                if path.is_empty() {
                    assert!(refusal(&line).contains("can't be an output name"), "{line}");
                } else {
                    assert_eq!(read(&line)[0].name, name, "{line}");
                    assert_eq!(read(&line)[0].url.as_str(), format!("http://h/d/{path}"), "{line}");
                }
            }
        }
    }

    #[test]
    fn names_that_gnu_coreutils_escapes_are_those_that_listings_have() {
        for (escaped, name) in [
            ("new\\nline.txt", "new%0Aline.txt"),
            ("sub/back\\\\slash", "sub/back%5Cslash"),
            ("\\r\\\\n", "%0D%5Cn"),
            (".\\n.", ".%0A."),
        ] {
            for line in [
                format!("\\{SHA256}  {escaped}"),
                format!("\\{SHA256} *{escaped}"),
                format!("\\SHA256 ({escaped}) = {SHA256}"),
            ] {
                let specs = read(&format!("{line}\n{MD5}  plain"));
                assert_eq!(specs[0].name, name, "{line}");
                assert_eq!(specs[0].url.as_str(), format!("http://h/d/{name}"), "{line}");
                assert_eq!(specs[1].name, "plain");
            }
        }
    }

    #[test]
    fn errors_name_the_line() {
        for (line, message) in [
            (format!("{SHA256}  ../x"), "line 2: \"../x\" can't be an output name"),
            (format!("{SHA256}  a\\nb"), "line 2: \"a\\\\nb\" can't be an output name"),
            (format!("\\{SHA256}  a\\tb"), "line 2: a backslash begins the line"),
            (format!("\\{SHA256}  a\\"), "line 2: a backslash begins the line"),
            (format!("\\{SHA256}  ../a\\nb"), "line 2: \"../a%0Ab\" can't be an output name"),
            ("12  x".to_owned(), "line 2: \"12  x\" is neither"),
            (SHA256.to_owned(), "line 2: \"15e2"),
            (
                format!("SHA384 (x) = {SHA256}"),
                "line 2: \"SHA384\" is no digest algorithm that is supported; those are md5, sha-1,",
            ),
            (format!("{}  x", "5a".repeat(28)), "line 2: \"sha-224\" is no digest algorithm that"),
            (format!("{}  x", "5a".repeat(48)), "line 2: \"sha-384\" is no digest algorithm that"),
            (format!("SHA1 (x) = {SHA256}"), "line 2: \"15e2"),
        ] {
            let refused = refusal(&format!("{MD5}  ok\n{line}"));
            assert!(refused.starts_with(message), "{refused}");
        }
    }

    #[test]
    fn urls_are_not_taken_for_checksums() {
        for line in ["http://h/(x)=ab", "http://h/a b", "", "deadbeef  x", " SHA256"] {
            assert!(!is_entry(line), "{line}");
        }
    }
}
