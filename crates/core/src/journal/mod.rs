//! What a restart needs: the ranges of a part that are there and the version that they belong to, in
//! a small file beside it that only grows.
//!
//! A record is appended behind the bytes it speaks of, so a process that is killed at any moment
//! loses what was on its way and nothing that was recorded. Against the loss of power the bytes are
//! synced every few seconds in the background; after it, what had been synced is trusted.

#[cfg(test)]
pub(crate) mod model;
mod record;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pelton_algos::ranges::FileRanges;

use crate::engine::Resumable;
use crate::sink::{open_regular, read_regular};
use record::{Record, is_begun, read};
pub(crate) use record::{checked, sealed};

/// How often a part's bytes are synced: what the loss of power may cost.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);

/// What is known of the part of `url`. `None` when there is nothing, or nothing that can be used:
/// another URL's, another format, ranges outside the part.
pub(crate) fn load(path: &Path, url: &str, part_length: u64) -> Option<Resumable> {
    let journaled = read(&read_regular(path).ok()?, boot_id().as_deref())?;
    let part = journaled.part;
    let is_usable = journaled.url == url
        && !part.done.is_empty()
        && part.done.iter().all(|range| range.end <= part_length);
    is_usable.then_some(part)
}

/// Whether what is at `path` is a journal of pelton's, of use or not.
pub(crate) fn is_at(path: &Path) -> bool {
    read_regular(path).is_ok_and(|found| is_begun(&found))
}

/// Empties the journal at `path`, for good: other bytes take the place of those that it speaks of, and
/// nobody must believe it again, not even after a loss of power. An empty one says that the part is
/// pelton's.
pub(crate) fn clear(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = open_regular(options.write(true).create(true).truncate(false), path)?;
    if file.metadata()?.len() > 0 {
        file.set_len(0)?;
        file.sync_all()?;
    }
    Ok(())
}

/// What a journal is trusted for.
#[cfg(fuzzing)]
pub(crate) fn trusted(journal: &[u8], boot: Option<&str>) -> Option<Resumable> {
    read(journal, boot).map(|journaled| journaled.part)
}

/// The journal of a part that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// Ranges that it holds, joined.
    known: FileRanges,
    /// How many records those are.
    ranges: u64,
    /// How many of them the last sync covers.
    synced: u64,
    /// A sync in the background.
    syncing: Option<JoinHandle<io::Result<()>>>,
    sync_due: Instant,
}

impl Journal {
    /// The journal at `path`: continued where it speaks of `part`, else begun.
    pub(crate) fn open(path: &Path, url: &str, part: &Resumable) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = open_regular(options.read(true).append(true).create(true), path)?;
        let found = read_regular(path).ok().and_then(|bytes| read(&bytes, boot_id().as_deref()));
        let continued = found.filter(|found| {
            found.url == url
                && (found.part.size, &found.part.validator) == (part.size, &part.validator)
        });
        let mut known = FileRanges::new(Some(part.size));
        let (mut ranges, mut lines) = (0, String::new());
        if let Some(found) = continued {
            file.set_len(found.length)?;
            found.part.done.into_iter().for_each(|range| known.mark_done(range));
            ranges = found.ranges;
        } else {
            file.set_len(0)?;
            lines = Record::part(url, part).line();
        }
        if let Some(id) = boot_id() {
            lines += &Record::Boot { id }.line();
        }
        file.write_all(lines.as_bytes())?;
        let sync_due = Instant::now() + SYNC_INTERVAL;
        Ok(Self { file, known, ranges, synced: ranges, syncing: None, sync_due })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges == 0
    }

    /// Records the ranges of `part` that are new. Their bytes have been written.
    pub(crate) fn append(&mut self, part: &Resumable) -> io::Result<()> {
        let mut lines = String::new();
        let mut added = 0;
        for range in &part.done {
            for Range { start, end } in missing(&self.known, range) {
                lines += &Record::Done { start, end }.line();
                added += 1;
            }
        }
        self.file.write_all(lines.as_bytes())?;
        part.done.iter().for_each(|range| self.known.mark_done(range.clone()));
        self.ranges += added;
        Ok(())
    }

    /// Syncs the bytes of `data` now and then, and records it, on a thread of its own.
    pub(crate) fn sync_sometimes(&mut self, data: &File) -> io::Result<()> {
        if let Some(sync) = self.syncing.take_if(|sync| sync.is_finished()) {
            sync.join().map_err(|_| io::Error::other("syncing a part failed"))??;
        }
        let is_due = self.syncing.is_none() && self.ranges > self.synced;
        if is_due && Instant::now() >= self.sync_due {
            self.sync_due = Instant::now() + SYNC_INTERVAL;
            self.synced = self.ranges;
            let (data, mut journal) = (data.try_clone()?, self.file.try_clone()?);
            let synced = Record::Synced { ranges: self.ranges }.line();
            let sync = move || {
                data.sync_data()?;
                journal.write_all(synced.as_bytes())?;
                journal.sync_data()
            };
            self.syncing = Some(std::thread::Builder::new().name("sync".into()).spawn(sync)?);
        }
        Ok(())
    }
}

/// What of `range` is not in `known`.
fn missing(known: &FileRanges, range: &Range<u64>) -> Vec<Range<u64>> {
    let mut rest = range.start;
    let mut gaps = Vec::new();
    for done in known.done().filter(|done| done.end > range.start && done.start < range.end) {
        if rest < done.start {
            gaps.push(rest..done.start);
        }
        rest = done.end;
    }
    if rest < range.end {
        gaps.push(rest..range.end);
    }
    gaps
}

/// Names the time since the kernel was started. Where it can't be had, nothing that was not synced is
/// trusted.
fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Validator;

    fn part(done: &[Range<u64>]) -> Resumable {
        let validator = Validator { etag: Some("\"v1\"".into()), ..Validator::default() };
        Resumable { size: 100, validator, done: done.to_vec() }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
    fn what_was_recorded_is_loaded_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.part.state");
        Journal::open(&path, "http://h/a", &part(&[])).unwrap().append(&part(&[10..60])).unwrap();
        assert_eq!(load(&path, "http://h/a", 60), Some(part(&[10..60])));
        assert_eq!(load(&path, "http://h/b", 60), None, "another URL");
        assert_eq!(
            load(&path, "http://h/a", 59),
            None,
            "the part is shorter than its journal says"
        );
        fs::write(&path, b"torn").unwrap();
        assert_eq!(load(&path, "http://h/a", 60), None);
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
    fn a_journal_is_continued_behind_its_last_whole_record() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.part.state");
        let mut journal = Journal::open(&path, "http://h/a", &part(&[])).unwrap();
        journal.append(&part(&[0..10])).unwrap();
        let length = fs::metadata(&path).unwrap().len();
        journal.append(&part(&[0..10, 20..30])).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length + 5).unwrap();
        let mut journal = Journal::open(&path, "http://h/a", &part(&[])).unwrap();
        journal.append(&part(&[0..15, 40..50])).unwrap();
        assert_eq!(load(&path, "http://h/a", 100), Some(part(&[0..15, 40..50])));
        let mut other = part(&[]);
        other.validator.etag = Some("\"v2\"".into());
        Journal::open(&path, "http://h/a", &other).unwrap();
        assert_eq!(load(&path, "http://h/a", 100), None, "begun for another version");
    }

    #[test]
    fn only_what_is_new_is_recorded() {
        let mut known = FileRanges::new(Some(100));
        known.mark_done(10..20);
        known.mark_done(30..40);
        assert_eq!(missing(&known, &(0..50)), [0..10, 20..30, 40..50]);
        assert_eq!(missing(&known, &(15..45)), [20..30, 40..45]);
        assert_eq!(missing(&known, &(10..20)), []);
    }
}
