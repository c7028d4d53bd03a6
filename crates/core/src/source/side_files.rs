//! Digests that lie beside files: `SHA256SUMS` for a directory, `NAME.sha256` for one file.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::StreamExt;
use pelton_algos::limits::Jitter;
use percent_encoding::percent_decode_str;
use url::Url;

use super::{Reader, SIZE_REQUESTS};
use crate::catalog::{Digest, DigestAlgorithm, FileSpec, Walked, checksums};
use crate::connection::{GetRequest, shown};
use crate::{ErrorKind, Result, fetch};

/// The list of a directory's digests, by the name that most publishers give it.
const SUMS: &str = "SHA256SUMS";
/// What the name of one file's digest has more than that of the file.
const SUFFIX: &str = ".sha256";

impl Reader<'_> {
    /// Gives the files of which nothing else tells the digest those that lie beside them. A list that is
    /// there and can't be read is a failure of the run, which leaves the files alone.
    pub(super) async fn read_side_files(&self, found: &mut Walked) {
        let wanting = found.files.iter().filter(|file| !file.is_verifiable());
        // The list of a directory is asked for as the first of its files is.
        let mut lists = BTreeMap::new();
        for file in wanting {
            if let Some(url) = beside(&file.url, SUMS) {
                lists.entry(url).or_insert(file);
            }
        }
        let mut digests = HashMap::new();
        for (url, list) in self.side_files(lists).await {
            match list.and_then(|list| entries(&url, list.as_deref().unwrap_or_default())) {
                Ok(entries) => digests.extend(entries),
                Err(error) => found.failed.push((url, error)),
            }
        }
        let listed: HashSet<&Url> = found.files.iter().map(|file| &file.url).collect();
        // A listing shows whether there is one.
        let may_exist = |url: &Url| found.root.is_none() || listed.contains(url);
        let wanting = found.files.iter().filter(|file| !file.is_verifiable());
        let wanting = wanting.filter(|file| !digests.contains_key(&path(&file.url)));
        let of_one_file = wanting.filter_map(|file| Some((of_one(&file.url)?, file)));
        let of_one_file = of_one_file.filter(|(url, _)| may_exist(url));
        let mut texts = HashMap::new();
        for (url, text) in self.side_files(of_one_file).await {
            match text {
                Ok(text) => drop(texts.insert(url, text.unwrap_or_default())),
                Err(error) => found.failed.push((url, error)),
            }
        }
        for file in found.files.iter_mut().filter(|file| !file.is_verifiable()) {
            let alone = || first_digest(texts.get(&of_one(&file.url)?)?);
            file.digest = digests.get(&path(&file.url)).cloned().or_else(alone);
        }
    }

    /// The texts at these URLs, each asked for as its file is; `None` for one that is not there.
    async fn side_files(
        &self,
        urls: impl IntoIterator<Item = (Url, &FileSpec)>,
    ) -> Vec<(Url, Result<Option<String>>)> {
        let jitter = RefCell::new(Jitter::new(0));
        let asked = urls.into_iter().map(async |(url, file)| {
            let mut request = GetRequest::new(url.clone());
            request.home = Some(file.url.clone());
            request.headers = fetch::headers(file);
            let text = match self.page(request, &jitter).await {
                // Some servers have a page for people in the place of every missing file.
                Ok(page) if page.content_type.as_deref().is_some_and(|t| t.contains("html")) => {
                    Ok(None)
                }
                Ok(page) => Ok(Some(String::from_utf8_lossy(&page.body).into_owned())),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Auth) => {
                    Ok(None)
                }
                Err(error) => Err(error),
            };
            (url, text)
        });
        futures_util::stream::iter(asked).buffered(SIZE_REQUESTS).collect().await
    }
}

/// What is at `name` in the directory of `url`.
fn beside(url: &Url, name: &str) -> Option<Url> {
    url.join(name).ok()
}

/// Where the digest of the one file at `url` lies.
fn of_one(url: &Url) -> Option<Url> {
    let name = url.path().rsplit('/').next()?;
    // A name with a colon would be taken for a scheme.
    beside(url, &format!("./{name}{SUFFIX}"))
}

/// Where a file is, however its URL is written.
fn path(url: &Url) -> (String, Vec<u8>) {
    (url.origin().ascii_serialization(), percent_decode_str(url.path()).collect())
}

type Known = ((String, Vec<u8>), Digest);

/// The digests of the list at `url` by the paths of their files.
fn entries(url: &Url, list: &str) -> Result<Vec<Known>> {
    let directory = url.join(".").unwrap_or_else(|_| url.clone());
    let files = checksums::parse(list, &directory).map_err(|error| error.prefixed(&shown(url)))?;
    Ok(files.into_iter().filter_map(|file| Some((path(&file.url), file.digest?))).collect())
}

/// The digest in a file of one: as `sha256sum` writes it, or its digits alone.
fn first_digest(text: &str) -> Option<Digest> {
    let word = text.split_whitespace().next()?;
    Digest::from_hex(DigestAlgorithm::Sha256, word).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn side_files_are_in_the_directory_of_their_file() {
        let file = url("http://h/d/a%20b:c?x=1");
        assert_eq!(beside(&file, SUMS).unwrap().as_str(), "http://h/d/SHA256SUMS");
        assert_eq!(of_one(&file).unwrap().as_str(), "http://h/d/a%20b:c.sha256");
    }

    #[test]
    fn entries_are_found_however_urls_are_written() {
        let list = url("http://h/d/SHA256SUMS");
        let found = entries(&list, &format!("{HEX}  sub/a b")).unwrap();
        assert_eq!(found[0].0, path(&url("http://h/d/sub/%61%20b")));
        let error = entries(&list, "nonsense").unwrap_err();
        assert!(error.to_string().starts_with("http://h/d/SHA256SUMS: line 1:"), "{error}");
    }

    #[test]
    fn a_digest_alone_or_with_its_name() {
        for text in [HEX.to_owned(), format!("{HEX}  a\n"), format!("\n {HEX} *a")] {
            assert!(first_digest(&text).is_some(), "{text}");
        }
        assert!(first_digest("not found").is_none() && first_digest("").is_none());
    }
}
