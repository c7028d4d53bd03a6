//! Manifests: a list of files as JSON, with all that is known about them.
//!
//! ```json
//! {
//!   "base": "https://example.org/data/",
//!   "files": [
//!     {
//!       "url": "a.bin",
//!       "name": "set/a.bin",
//!       "size": 1048576,
//!       "digest": "sha-256=15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
//!       "mirrors": ["https://mirror.example/a.bin"],
//!       "headers": {"Authorization": "Bearer 1234"}
//!     }
//!   ]
//! }
//! ```
//!
//! | field | |
//! |---|---|
//! | `base` | directory that relative URLs are resolved against (RFC 3986, section 5), with or without `/` at its end; optional |
//! | `files[].url` | absolute, or relative to `base` |
//! | `files[].name` | relative output path with `/` between its parts; by default the last part of the URL's path |
//! | `files[].size` | exact size in bytes; optional |
//! | `files[].digest` | `ALGORITHM=HEX`, see [`Digest::parse`]; optional |
//! | `files[].mirrors` | further URLs of the same bytes, absolute or relative to `base`; optional |
//! | `files[].headers` | request headers for this file alone, by name; optional |
//!
//! Any other field is an error, so that a misspelt one does not go unnoticed.

use std::collections::BTreeMap;

use serde::Deserialize;
use url::Url;

use super::names::{self, relative_name};
use super::spec::{Digest, FileSpec, as_directory, parse_header, parse_url};
use super::tell_apart;
use crate::{Error, ErrorKind, Result};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    base: Option<String>,
    files: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: String,
    name: Option<String>,
    size: Option<u64>,
    digest: Option<String>,
    #[serde(default)]
    mirrors: Vec<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// The files of a manifest. `base` stands in where the manifest has no `base` of its own.
///
/// # Errors
/// `Usage`, with the entry's index from 0 and the field at fault, e.g. `manifest: files[3].size`.
pub fn parse(text: &str, base: Option<&Url>) -> Result<Vec<FileSpec>> {
    let manifest = read(text)?;
    let base = match manifest.base {
        Some(own) => Some(parse_url(&own, None).map_err(|error| error.prefixed("manifest: base"))?),
        None => base.cloned(),
    };
    let base = base.as_ref().map(as_directory);
    let is_by_url = |(index, entry): (usize, &Entry)| entry.name.is_none().then_some(index);
    let by_url: Vec<usize> = manifest.files.iter().enumerate().filter_map(is_by_url).collect();
    let files = manifest.files.into_iter().enumerate();
    let files = files.map(|(index, entry)| entry.resolve(index, base.as_ref()));
    let mut files = files.collect::<Result<Vec<FileSpec>>>()?;
    tell_apart(&mut files, &by_url);
    Ok(files)
}

fn read(text: &str) -> Result<Manifest> {
    let mut json = serde_json::Deserializer::from_str(text);
    let manifest = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        // A dot stands for the whole manifest, a question mark for an unfinished part.
        let path = error.path().to_string();
        let line = match path.trim_end_matches(['.', '?']) {
            "" => format!("manifest: {}", error.inner()),
            path => format!("manifest: {path}: {}", error.inner()),
        };
        Error::new(ErrorKind::Usage, line)
    })?;
    json.end().map_err(|error| Error::new(ErrorKind::Usage, format!("manifest: {error}")))?;
    Ok(manifest)
}

impl Entry {
    fn resolve(self, index: usize, base: Option<&Url>) -> Result<FileSpec> {
        let at = |field: &str| {
            let prefix = format!("manifest: files[{index}].{field}");
            move |error: Error| error.prefixed(&prefix)
        };
        let url = parse_url(&self.url, base).map_err(at("url"))?;
        let name = match &self.name {
            Some(name) => relative_name(name).map_err(at("name"))?,
            None => names::from_url(&url).map_err(at("url"))?,
        };
        let digest = self.digest.as_deref().map(Digest::parse).transpose().map_err(at("digest"))?;
        let mirrors = self.mirrors.iter().map(|mirror| parse_url(mirror, base));
        let headers = self.headers.iter().map(|(name, value)| parse_header(name, value));
        let spec = FileSpec::with_name(url, name).map_err(at("url"))?;
        Ok(FileSpec {
            size: self.size,
            digest,
            mirrors: mirrors.collect::<Result<_>>().map_err(at("mirrors"))?,
            headers: headers.collect::<Result<_>>().map_err(at("headers"))?,
            ..spec
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_read_and_relative_urls_resolve() {
        let text = r#"{"base": "https://h/data", "files": [
            {"url": "a%20b.bin", "name": "set/a.bin", "size": 9, "digest": "crc32c=e3069283",
             "mirrors": ["https://m/a", "../a"], "headers": {"X-B": "2", "X-A": "1"}},
            {"url": "https://other/c"}, {"url": "/d?e#f"}]}"#;
        let specs = parse(text, None).unwrap();
        let urls: Vec<&str> = specs.iter().map(|spec| spec.url.as_str()).collect();
        assert_eq!(urls, ["https://h/data/a%20b.bin", "https://other/c", "https://h/d?e"]);
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["set/a.bin", "c", "d"]);
        assert_eq!(specs[0].size, Some(9));
        assert_eq!(specs[0].digest.as_ref().unwrap().to_string(), "crc32c=e3069283");
        let mirrors: Vec<&str> = specs[0].mirrors.iter().map(Url::as_str).collect();
        assert_eq!(mirrors, ["https://m/a", "https://h/a"]);
        let headers = [("X-A", "1"), ("X-B", "2")];
        assert_eq!(specs[0].headers, headers.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }

    #[test]
    fn the_given_base_stands_in_and_the_own_one_wins() {
        let given: Url = "http://given/x".parse().unwrap();
        let first = |text: &str| parse(text, Some(&given)).unwrap().remove(0).url.to_string();
        assert_eq!(first(r#"{"files":[{"url":"a"}]}"#), "http://given/x/a");
        assert_eq!(first(r#"{"base":"http://own","files":[{"url":"a"}]}"#), "http://own/a");
    }

    #[test]
    fn errors_name_the_entry_and_the_field() {
        let second = |entry: &str| format!(r#"{{"files":[{{"url":"http://h/a"}},{entry}]}}"#);
        for (text, message) in [
            (second(r#"{"url":"b"}"#), "manifest: files[1].url: \"b\" is no URL"),
            (second(r#"{"url":"ftp://h/b"}"#), "manifest: files[1].url: ftp://h/b: only http"),
            (second(r#"{"url":"http://h/b","name":"../b"}"#), "manifest: files[1].name: \"../b\""),
            (second(r#"{"url":"http://h/b","size":-1}"#), "manifest: files[1].size: invalid value"),
            (second(r#"{"url":"http://h/b","size":"1"}"#), "manifest: files[1].size: invalid type"),
            (
                second(r#"{"url":"http://h/b","digest":"md5=0"}"#),
                "manifest: files[1].digest: \"0\"",
            ),
            (
                second(r#"{"url":"http://h/b","mirrors":["x"]}"#),
                "manifest: files[1].mirrors: \"x\"",
            ),
            (second(r#"{"url":"http://h/b","mirrors":[1]}"#), "manifest: files[1].mirrors[0]: inv"),
            (second(r#"{"url":"http://h/b","headers":{"a b":"c"}}"#), "manifest: files[1].headers"),
            (second(r#"{"url":"http://h/b","sise":1}"#), "manifest: files[1].sise: unknown field"),
            (second(r"{}"), "manifest: files[1]: missing field `url`"),
            (r#"{"base":"x","files":[]}"#.to_owned(), "manifest: base: \"x\" is no URL"),
            (r#"{"file":[]}"#.to_owned(), "manifest: file: unknown field `file`"),
            (r#"{"files":[]} x"#.to_owned(), "manifest: trailing characters"),
            ("{".to_owned(), "manifest: EOF"),
            (r#"{"files":[{"url""#.to_owned(), "manifest: files[0]: EOF"),
        ] {
            let error = parse(&text, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().starts_with(message), "{text} gave: {error}");
        }
    }
}
