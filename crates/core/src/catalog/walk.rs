//! Walks directory listings into the files below a URL.

use std::collections::HashSet;
use std::mem;
use std::num::NonZeroU32;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use globset::{GlobBuilder, GlobSet};
use url::Url;

use super::spec::FileSpec;
use super::{listing, names};
use crate::connection::shown;
use crate::{Error, ErrorKind, Result};

/// Listing pages fetched at once. They are small and each costs a round trip, so a few hide most
/// of the latency; more would be a burst on the server before any file is asked for.
const PAGES_IN_FLIGHT: usize = 8;

/// Levels that a walk without an own bound goes down. Real trees stay well below; a link to a
/// directory above itself never ends, and Linux follows 40 such links before it refuses.
const DEEPEST: u32 = 32;

/// What of a tree is wanted.
#[derive(Debug, Clone, Default)]
pub struct WalkOptions {
    /// Whether to go into sub-directories.
    pub recursive: bool,
    /// How many levels of listings to read at most, the root's own being the first. Only counts
    /// with `recursive`.
    pub depth: Option<NonZeroU32>,
    /// Only files that match are taken; all where it is empty.
    pub include: Globs,
    /// Files that match are left out, directories that match are not read.
    pub exclude: Globs,
}

/// Glob patterns over the paths below a root. One without `/` is matched against the last part
/// of the path (`*.csv` at any level), one with `/` against the whole path, where `*` stays within
/// a part and `**` crosses them.
#[derive(Debug, Clone, Default)]
pub struct Globs(GlobSet);

impl Globs {
    /// Patterns as `--include` and `--exclude` take them. A `/` at the end is ignored.
    ///
    /// # Errors
    /// `Usage`, with the pattern that is malformed.
    pub fn parse<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Self> {
        let bad_glob = |error: globset::Error| Error::new(ErrorKind::Usage, error.to_string());
        let mut set = GlobSet::builder();
        for pattern in patterns {
            let mut glob = GlobBuilder::new(pattern.as_ref().trim_end_matches('/'));
            glob.literal_separator(true).backslash_escape(true);
            set.add(glob.build().map_err(bad_glob)?);
        }
        set.build().map(Self).map_err(bad_glob)
    }

    fn matches(&self, path: &str) -> bool {
        let last = path.rsplit('/').next().unwrap_or(path);
        self.0.is_match(path) || self.0.is_match(last)
    }
}

impl WalkOptions {
    fn takes_file(&self, path: &str) -> bool {
        (self.include.0.is_empty() || self.include.matches(path)) && !self.exclude.matches(path)
    }

    fn reads_below(&self, level: u32) -> bool {
        self.recursive && self.depth.is_none_or(|most| level < most.get())
    }
}

/// A fetched page.
#[derive(Debug, Clone)]
pub struct ListingPage {
    /// Where it was in the end, after redirects.
    pub url: Url,
    /// Its `Content-Type`.
    pub content_type: Option<String>,
    /// Its body.
    pub body: Bytes,
}

struct Directory {
    url: Url,
    /// Its path below the root with a `/` at its end; empty for the root.
    path: String,
}

/// What a walk has found.
#[derive(Debug, Default)]
pub struct Walked {
    /// Files, in the listings' order.
    pub files: Vec<FileSpec>,
    /// What of the listings can't be had: directories below the root that could not be read, and
    /// files whose names can't be stored or are those of others.
    pub failed: Vec<(Url, Error)>,
    /// What is there and of no use, and why: the files are judged without it.
    pub warnings: Vec<(Url, String)>,
    /// The listing where the walk began; of several walks, the first.
    pub root: Option<Url>,
    /// Files that `include` and `exclude` left out.
    pub left_out: u64,
    /// Directories that were not read because the walk was not `recursive`.
    pub not_entered: u64,
}

impl Walked {
    /// Adds what another walk has found.
    pub(crate) fn append(&mut self, other: Self) {
        self.files.extend(other.files);
        self.failed.extend(other.failed);
        self.warnings.extend(other.warnings);
        self.root = self.root.take().or(other.root);
        self.left_out += other.left_out;
        self.not_entered += other.not_entered;
    }
}

/// The files below the listing at `root`, named by their path below it. `fetch` gets a page.
///
/// Goes level by level with several pages in flight; the order of the result depends on the
/// listings alone. Each directory is read once, however many links and redirects lead to it.
///
/// # Errors
/// Those of `fetch`, with the URL of the page. `Listing`: a page is no directory listing, or the
/// tree goes down without end.
pub async fn walk<F>(root: Url, options: &WalkOptions, fetch: F) -> Result<Walked>
where
    F: AsyncFn(Url) -> Result<ListingPage>,
{
    let fetch = &fetch;
    let start = root.clone();
    let mut walk = Walk {
        options,
        seen: HashSet::from([root.clone()]),
        next_level: vec![Directory { url: root, path: String::new() }],
        found: Walked { root: Some(start), ..Walked::default() },
    };
    for level in 1.. {
        let directories = mem::take(&mut walk.next_level);
        if directories.is_empty() {
            break;
        }
        if level > DEEPEST && options.depth.is_none() {
            let endless = directories.into_iter().map(|directory| directory.url);
            walk.found.failed.extend(endless.map(|url| (url.clone(), too_deep(&url))));
            break;
        }
        // Unlike futures as they complete, a buffered stream keeps the listings' order.
        let mut pages = stream::iter(directories)
            .map(|directory| async move {
                let page = fetch(directory.url.clone()).await;
                (page.map_err(|error| naming(&directory.url, error)), directory)
            })
            .buffered(PAGES_IN_FLIGHT);
        while let Some((page, directory)) = pages.next().await {
            let read = page.and_then(|page| walk.read(level, &directory, &page));
            match read {
                Ok(()) => {}
                Err(error) if level == 1 => return Err(error),
                Err(error) => walk.found.failed.push((directory.url, error)),
            }
        }
    }
    let mut found = walk.found;
    let (files, clashing) = names::separate(found.files);
    found.files = files;
    found.failed.extend(clashing);
    Ok(found)
}

/// A walk as far as its pages are read.
struct Walk<'a> {
    options: &'a WalkOptions,
    /// Directories that are read or will be, as linked and as redirected.
    seen: HashSet<Url>,
    next_level: Vec<Directory>,
    found: Walked,
}

impl Walk<'_> {
    fn read(&mut self, level: u32, directory: &Directory, page: &ListingPage) -> Result<()> {
        if page.url != directory.url && !self.seen.insert(page.url.clone()) {
            return Ok(());
        }
        let listed = listing::parse(&page.url, page.content_type.as_deref(), &page.body)?;
        self.found.failed.extend(listed.refused);
        for entry in listed.entries {
            let path = format!("{}{}", directory.path, entry.name);
            if entry.is_dir {
                self.note_directory(level, entry.url, path);
            } else if self.options.takes_file(&path) {
                let spec = FileSpec::with_name(entry.url, path)?;
                self.found.files.push(FileSpec { size_hint: entry.size_hint, ..spec });
            } else {
                self.found.left_out += 1;
            }
        }
        Ok(())
    }

    fn note_directory(&mut self, level: u32, url: Url, path: String) {
        self.found.not_entered += u64::from(!self.options.recursive);
        let wanted = self.options.reads_below(level) && !self.options.exclude.matches(&path);
        if wanted && self.seen.insert(url.clone()) {
            self.next_level.push(Directory { url, path: path + "/" });
        }
    }
}

fn too_deep(url: &Url) -> Error {
    let line = format!(
        "{} is more than {DEEPEST} levels deep, perhaps by a loop of links: if not, ask for as many as there are with `depth`, or leave it out with `exclude`",
        shown(url)
    );
    Error::new(ErrorKind::Listing, line)
}

/// `error` with the page's URL, unless it names it already.
fn naming(url: &Url, error: Error) -> Error {
    let url = shown(url);
    if error.to_string().contains(&url) { error } else { error.prefixed(&url) }
}

#[cfg(test)]
mod tests;
