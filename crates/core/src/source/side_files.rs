//! Digests that lie beside files: `SHA256SUMS` for a directory, `NAME.sha256` for one file.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::StreamExt;
use pelton_algos::retries::Jitter;
use percent_encoding::percent_decode_str;
use url::Url;

use super::{Reader, SIZE_REQUESTS};
use crate::catalog::{Digest, DigestAlgorithm, FileSpec, ListingPage, Walked, checksums};
use crate::connection::{GetRequest, shown};
use crate::{Error, ErrorKind, Result, fetch};

/// The list of a directory's digests, by the name that most publishers give it.
const SUMS: &str = "SHA256SUMS";
/// What the name of one file's digest has more than that of the file.
const SUFFIX: &str = ".sha256";

impl Reader<'_> {
    /// Gives the files of which nothing else tells the digest those that lie beside them. What is there
    /// and holds no digests is told, and the files go on without it. What the server fails to give is a
    /// failure of the run, which leaves the files alone.
    pub(super) async fn read_side_files(&self, found: &mut Walked) {
        let wanting = found.files.iter().filter(|file| !file.is_verifiable());
        // The list of a directory is asked for as the first of its files is.
        let mut lists = BTreeMap::new();
        for file in wanting {
            if let Some(url) = beside(&file.url, SUMS) {
                lists.entry(url).or_insert(file);
            }
        }
        let lists = self.side_files(lists).await;
        let mut answers = Answers::default();
        let mut digests = HashMap::new();
        for (url, text) in answers.texts(lists) {
            let (known, unusable) = entries(&url, &text);
            digests.extend(known);
            answers.warnings.extend(unusable.map(|reason| (url, reason)));
        }
        let listed: HashSet<&Url> = found.files.iter().map(|file| &file.url).collect();
        // A listing shows whether there is one.
        let may_exist = |url: &Url| found.root.is_none() || listed.contains(url);
        let wanting = found.files.iter().filter(|file| !file.is_verifiable());
        let wanting = wanting.filter(|file| !digests.contains_key(&path(&file.url)));
        let of_one_file = wanting.filter_map(|file| Some((of_one(&file.url)?, file)));
        let of_one_file = of_one_file.filter(|(url, _)| may_exist(url));
        let of_one_file = self.side_files(of_one_file).await;
        let mut alone = HashMap::new();
        for (url, text) in answers.texts(of_one_file) {
            if let Some(digest) = first_digest(&text) {
                alone.insert(url, digest);
            } else {
                let reason = format!("{}: it holds no SHA-256 digest", shown(&url));
                answers.warnings.push((url, reason));
            }
        }
        for file in found.files.iter_mut().filter(|file| !file.is_verifiable()) {
            let alone = || alone.get(&of_one(&file.url)?).cloned();
            file.digest = digests.get(&path(&file.url)).cloned().or_else(alone);
        }
        answers.tell(found);
    }

    /// What is at these URLs, each asked for as its file is.
    async fn side_files(
        &self,
        urls: impl IntoIterator<Item = (Url, &FileSpec)>,
    ) -> Vec<(Url, Result<SideFile>)> {
        let jitter = RefCell::new(Jitter::new(0));
        let asked = urls.into_iter().map(async |(url, file)| {
            let mut request = GetRequest::new(url.clone());
            request.home = Some(file.url.clone());
            request.headers = fetch::headers(file);
            let answer = match self.page(request, &jitter).await {
                Ok(page) => Ok(SideFile::of(&page)),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Auth) => {
                    Ok(SideFile::Missing)
                }
                Err(error) => Err(error),
            };
            (url, answer)
        });
        futures_util::stream::iter(asked).buffered(SIZE_REQUESTS).collect().await
    }
}

/// What is where digests may lie.
#[derive(Debug, PartialEq, Eq)]
enum SideFile {
    Missing,
    /// Some servers have a page for people in the place of every missing file.
    PageForPeople,
    Text(String),
}

impl SideFile {
    fn of(page: &ListingPage) -> Self {
        let says_so =
            page.content_type.as_ref().is_some_and(|t| t.to_ascii_lowercase().contains("html"));
        let text = String::from_utf8_lossy(&page.body);
        if says_so || text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
            return Self::PageForPeople;
        }
        Self::Text(text.into_owned())
    }
}

/// What was answered in the place of digests.
#[derive(Debug, Default)]
struct Answers {
    warnings: Vec<(Url, String)>,
    failed: Vec<(Url, Error)>,
    pages: Vec<Url>,
}

impl Answers {
    /// Those that may hold digests. The others are kept.
    fn texts(&mut self, answers: Vec<(Url, Result<SideFile>)>) -> Vec<(Url, String)> {
        let mut texts = Vec::new();
        for (url, answer) in answers {
            match answer {
                Ok(SideFile::Text(text)) => texts.push((url, text)),
                Ok(SideFile::PageForPeople) => self.pages.push(url),
                Ok(SideFile::Missing) => {}
                Err(error) => self.failed.push((url, error)),
            }
        }
        texts
    }

    /// Says what was of no use. A server with a page for everything has one for each file: that is said
    /// once.
    fn tell(mut self, found: &mut Walked) {
        let others = self.pages.len().saturating_sub(1);
        if let Some(first) = self.pages.into_iter().next() {
            let others = if others > 0 { format!(" (as at {others} more)") } else { String::new() };
            let reason = format!(
                "{}: a page for people and no list of digests{others}: what it is to hold is not checked",
                shown(&first)
            );
            self.warnings.push((first, reason));
        }
        found.warnings.append(&mut self.warnings);
        found.failed.append(&mut self.failed);
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

/// The digests of the list at `url` by the paths of their files, and what of it is of no use.
fn entries(url: &Url, list: &str) -> (Vec<Known>, Option<String>) {
    let directory = url.join(".").unwrap_or_else(|_| url.clone());
    let (mut known, mut mistakes) = (Vec::new(), Vec::new());
    for entry in checksums::entries(list, &directory) {
        match entry {
            Ok(file) => known.extend(file.digest.map(|digest| (path(&file.url), digest))),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    let unusable = mistakes.first().map(|first| {
        let lines = mistakes.len();
        let none = if known.is_empty() { "no usable digest" } else { "not all of it is usable" };
        format!("{}: {none}: {lines} of its lines can't be read, first {first}", shown(url))
    });
    (known, unusable)
}

/// The digest in a file of one: as `sha256sum` writes it, or its digits alone.
fn first_digest(text: &str) -> Option<Digest> {
    let word = text.split_whitespace().next()?;
    // Before a name with escapes there is a backslash.
    let hex = word.strip_prefix('\\').unwrap_or(word);
    Digest::from_hex(DigestAlgorithm::Sha256, hex).ok()
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
        let (found, unusable) = entries(&list, &format!("{HEX}  sub/a b"));
        assert_eq!(found[0].0, path(&url("http://h/d/sub/%61%20b")));
        assert_eq!(unusable, None);
    }

    #[test]
    fn of_a_list_with_mistakes_the_rest_counts_and_they_are_told() {
        let list = url("http://h/d/SHA256SUMS");
        let signed = format!("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{HEX}  a\n");
        let (found, unusable) = entries(&list, &signed);
        assert_eq!(found.len(), 1);
        let told = unusable.unwrap();
        assert!(told.starts_with("http://h/d/SHA256SUMS: not all of it is usable: 2 of"), "{told}");
        let (found, unusable) = entries(&list, "nonsense");
        assert!(found.is_empty());
        let told = unusable.unwrap();
        assert!(told.contains("no usable digest") && told.contains("line 1: "), "{told}");
    }

    #[test]
    fn pages_for_people_are_told_by_their_type_or_their_text() {
        for (content_type, body, is_page) in [
            (Some("text/html; charset=utf-8"), HEX, true),
            (Some("Text/HTML"), HEX, true),
            (Some("application/xhtml+xml"), HEX, true),
            (Some("text/plain"), "\u{feff} \n<!DOCTYPE html>", true),
            (None, "<html>", true),
            (Some("text/plain"), HEX, false),
            (None, HEX, false),
            (None, "", false),
        ] {
            let page = ListingPage {
                url: url("http://h/SHA256SUMS"),
                content_type: content_type.map(str::to_owned),
                body: body.to_owned().into(),
            };
            let read = SideFile::of(&page);
            assert_eq!(read == SideFile::PageForPeople, is_page, "{content_type:?} {body}");
        }
    }

    #[test]
    fn a_digest_alone_or_with_its_name() {
        let escaped = format!("\\{HEX}  a\\nb\n");
        for text in [HEX.to_owned(), format!("{HEX}  a\n"), format!("\n {HEX} *a"), escaped] {
            assert!(first_digest(&text).is_some(), "{text}");
        }
        assert!(first_digest("not found").is_none() && first_digest("").is_none());
    }
}
