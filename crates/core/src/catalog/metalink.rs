//! Metalink 4 (RFC 5854): files with their mirrors, sizes and digests, as XML.
//!
//! Of each file its `name`, `size`, `hash`, `pieces` and `url` count. Mirrors are asked in the order of
//! their `priority`, 1 first, and those without one last. Of several digests the best is checked: see
//! [`Digest`]. URLs of other schemes than http and https are left out, as is what says where things are
//! in other ways (`metaurl`).

use std::num::NonZeroU64;

use serde::Deserialize;

use super::names::relative_name;
use super::spec::{Digest, DigestAlgorithm, FileSpec, Pieces, parse_url};
use crate::{Error, ErrorKind, Result};

#[derive(Deserialize)]
struct Metalink {
    #[serde(rename = "file", default)]
    files: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "@name")]
    name: String,
    size: Option<String>,
    #[serde(rename = "hash", default)]
    hashes: Vec<Hash>,
    #[serde(rename = "pieces", default)]
    pieces: Vec<Parts>,
    #[serde(rename = "url", default)]
    urls: Vec<Place>,
}

#[derive(Deserialize)]
struct Hash {
    #[serde(rename = "@type")]
    algorithm: Option<String>,
    #[serde(rename = "$text", default)]
    hex: String,
}

#[derive(Deserialize)]
struct Parts {
    #[serde(rename = "@length")]
    length: String,
    #[serde(rename = "@type")]
    algorithm: String,
    #[serde(rename = "hash", default)]
    hashes: Vec<Hash>,
}

#[derive(Deserialize)]
struct Place {
    #[serde(rename = "@priority")]
    priority: Option<String>,
    #[serde(rename = "$text", default)]
    url: String,
}

/// The files of a Metalink.
///
/// # Errors
/// `Usage`, with the file at fault: malformed XML, no file, a name that leads elsewhere, a file without
/// an http URL, digests that are none.
pub fn parse(text: &str) -> Result<Vec<FileSpec>> {
    let metalink: Metalink =
        quick_xml::de::from_str(text).map_err(|error| usage(format!("metalink: {error}")))?;
    if metalink.files.is_empty() {
        return Err(usage("metalink: it names no file; only version 4 is understood (RFC 5854)"));
    }
    let files = metalink.files.into_iter().enumerate();
    files.map(|(index, entry)| entry.resolve().map_err(|error| at(index, error))).collect()
}

fn usage(line: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, line)
}

fn at(index: usize, error: Error) -> Error {
    error.prefixed(&format!("metalink: file {}", index + 1))
}

impl Entry {
    fn resolve(mut self) -> Result<FileSpec> {
        let name = relative_name(&self.name)?;
        let priority = |place: &Place| {
            let stated = place.priority.as_deref().and_then(|text| text.trim().parse().ok());
            stated.unwrap_or(u32::MAX)
        };
        self.urls.sort_by_key(priority);
        let is_http = |place: &&Place| {
            let scheme = place.url.trim().split(':').next().unwrap_or_default();
            ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        };
        let places = self.urls.iter().filter(is_http);
        let mut urls =
            places.map(|place| parse_url(place.url.trim(), None)).collect::<Result<Vec<_>>>()?;
        if urls.is_empty() {
            return Err(usage(format!("{name} has no http or https URL")));
        }
        let url = urls.remove(0);
        let size = match &self.size {
            None => None,
            Some(text) => {
                let size = text.trim().parse().map_err(|_| usage(format!("{text:?} is no size")));
                Some(size?)
            }
        };
        let digests = self.hashes.iter().filter_map(|hash| {
            let algorithm = hash.algorithm.as_deref()?.parse().ok()?;
            Some(Digest::from_hex(algorithm, hash.hex.trim()))
        });
        let digest = Digest::best(digests.collect::<Result<Vec<_>>>()?);
        let pieces = self.pieces.into_iter().filter_map(Parts::read).collect::<Result<Vec<_>>>()?;
        let pieces = pieces.into_iter().next();
        if let Some(pieces) = &pieces {
            let count = size.map(|size: u64| size.div_ceil(pieces.length.get()));
            if count != Some(pieces.digests.len() as u64) {
                return Err(usage(format!("the pieces of {name} do not go with its size")));
            }
        }
        let spec = FileSpec::with_name(url, name)?;
        Ok(FileSpec { size, digest, pieces, mirrors: urls, ..spec })
    }
}

impl Parts {
    /// `None` for an algorithm that is not known.
    fn read(self) -> Option<Result<Pieces>> {
        let algorithm: DigestAlgorithm = self.algorithm.parse().ok()?;
        let Ok(length) = self.length.trim().parse::<NonZeroU64>() else {
            return Some(Err(usage(format!("{:?} is no length of pieces", self.length))));
        };
        let digests = self.hashes.iter().map(|hash| Digest::from_hex(algorithm, hash.hex.trim()));
        let digests = digests.map(|digest| Ok(digest?.value)).collect::<Result<_>>();
        Some(digests.map(|digests| Pieces { algorithm, length, digests }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: &str = "25f9e794323b453885f5181f1b624d0b";
    const SHA256: &str = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";

    fn metalink(files: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><published>2009</published>{files}</metalink>"
        )
    }

    fn refusal(files: &str) -> String {
        let error = parse(&metalink(files)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        error.to_string()
    }

    #[test]
    fn everything_that_counts_is_read() {
        let files = format!(
            "<file name=\"set/a.iso\"><size> 9 </size><identity>A &amp; B</identity>
               <url location=\"de\" priority=\"2\">http://m2/a?x=1&amp;y=2</url>
               <hash type=\"md5\">{MD5}</hash>
               <url>http://last/a</url>
               <metaurl mediatype=\"torrent\">http://t/a.torrent</metaurl>
               <url priority=\"1\"> https://m1/a </url>
               <url priority=\"1\">ftp://f/a</url>
               <hash type=\"sha-256\">{SHA256}</hash>
               <hash type=\"sha-384\">00</hash>
               <pieces length=\"5\" type=\"md5\"><hash>{MD5}</hash><hash>{MD5}</hash></pieces>
             </file><file name=\"b\"><url>http://h/b</url></file>"
        );
        let specs = parse(&metalink(&files)).unwrap();
        assert_eq!(specs.len(), 2);
        let first = &specs[0];
        assert_eq!((first.name.as_str(), first.size), ("set/a.iso", Some(9)));
        assert_eq!(first.url.as_str(), "https://m1/a");
        let mirrors: Vec<&str> = first.mirrors.iter().map(url::Url::as_str).collect();
        assert_eq!(mirrors, ["http://m2/a?x=1&y=2", "http://last/a"]);
        assert_eq!(first.digest.as_ref().unwrap().to_string(), format!("sha-256={SHA256}"));
        let pieces = first.pieces.as_ref().unwrap();
        assert_eq!(pieces.of(9).map(|(range, _)| range).collect::<Vec<_>>(), [0..5, 5..9]);
        assert!(specs[1].pieces.is_none() && specs[1].digest.is_none());
    }

    #[test]
    fn errors_name_the_file() {
        let url = "<url>http://h/a</url>";
        for (files, message) in [
            (format!("<file name=\"../a\">{url}</file>"), "metalink: file 1: \"../a\" can't be"),
            (format!("<file name=\"/a\">{url}</file>"), "metalink: file 1: \"/a\" can't be"),
            ("<file name=\"a\"/>".to_owned(), "metalink: file 1: a has no http"),
            ("<file name=\"a\"><url>ftp://h/a</url></file>".to_owned(), "metalink: file 1: a has"),
            (
                format!("<file name=\"a\">{url}<hash type=\"md5\">12</hash></file>"),
                "metalink: file 1: \"12\" is no md5 digest",
            ),
            (
                format!("<file name=\"a\">{url}<size>-1</size></file>"),
                "metalink: file 1: \"-1\" is no size",
            ),
            (
                format!(
                    "<file name=\"a\">{url}<size>9</size>\
                     <pieces length=\"5\" type=\"md5\"><hash>{MD5}</hash></pieces></file>"
                ),
                "metalink: file 1: the pieces of a do not go with its size",
            ),
            (
                format!("<file name=\"a\">{url}<pieces length=\"0\" type=\"md5\"/></file>"),
                "metalink: file 1: \"0\" is no length of pieces",
            ),
            ("<files><file name=\"a\"/></files>".to_owned(), "metalink: it names no file"),
            ("<file>".to_owned(), "metalink: "),
        ] {
            let refused = refusal(&files);
            assert!(refused.starts_with(message), "{refused}");
        }
    }

    #[test]
    fn entities_are_not_expanded() {
        let bomb = "<!DOCTYPE metalink [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>";
        let text = format!("{bomb}{}", metalink("<file name=\"&b;\"><url>http://h/a</url></file>"));
        assert!(parse(&text).is_err());
    }
}
