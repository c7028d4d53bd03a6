//! What the engine knows of one file.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use pelton_algos::cluster::SizeClass;
use pelton_algos::machines::Agreement;
use pelton_algos::ranges::FileRanges;
use pelton_algos::sizes::{GroupId, SizeModel};
use pelton_algos::time::Timestamp;
use url::Url;

use super::OriginId;
use super::facts::{Existing, Resumable, Validator};
use super::redirects::Left;
use crate::catalog::{Digest, FileSpec};

/// How often a rerun is told of a file: what its process' end costs is a percent or two of it.
const CHECKPOINTS: u64 = 64;
/// A note of fewer bytes would cost as much as they do.
const LEAST_CHECKPOINT: u64 = 16 * 1024;
/// What is lost of the largest files.
const MOST_CHECKPOINT: u64 = 4 * 1024 * 1024;

/// A file whose size nothing tells: about the mean object of the web, so that it is planned as one
/// of many rather than as one that needs many streams.
const UNKNOWN_SIZE: u64 = 256 * 1024;

/// Where a file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// In a queue.
    Waiting,
    /// Waiting for [`super::Event::Opened`].
    Opening,
    /// In transfer.
    Active,
    /// Waiting after a failure.
    Delayed,
    /// Waiting for [`super::Event::Finished`].
    Finishing,
    /// There, or given up.
    Over,
}

/// A file of the list. There may be a million of them, of which a few are in transfer at a time: what
/// only those need is in [`Transfer`], which is there from a file's first use of it until it is over.
#[derive(Debug)]
pub(super) struct Entry {
    /// Nothing once the file is forgotten.
    spec: Option<FileSpec>,
    pub(super) state: State,
    pub(super) origin: OriginId,
    pub(super) group: GroupId,
    pub(super) class: SizeClass,
    /// The size that plans count with.
    pub(super) expected: u64,
    transfer: Option<Box<Transfer>>,
}

/// A part that is put aside, why, and is worth nothing as soon as the whole file comes.
#[derive(Debug)]
pub(super) struct Shelved {
    pub(super) part: Resumable,
    pub(super) reason: String,
}

/// What is known of a file beyond the list: read and written as if it were fields of [`Entry`].
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) ranges: FileRanges,
    /// Which of its places is asked: 0 is its URL, others are its mirrors in their order.
    pub(super) place: usize,
    /// What is there came from another place, and this one has not shown yet that it has the same.
    pub(super) unproven: bool,
    /// Where its bytes come from, after redirects.
    pub(super) located: Option<Url>,
    /// Requests that went there without being led have been answered, too.
    pub(super) located_again: bool,
    /// Where they came from before, and where that has not lasted.
    pub(super) left: Option<Left>,
    /// Where a redirect has led to that does not have it.
    pub(super) lacking: Option<OriginId>,
    pub(super) validator: Option<Validator>,
    pub(super) modified: Option<SystemTime>,
    /// The server takes range requests for it.
    pub(super) takes_ranges: bool,
    /// It has answered one as it should.
    pub(super) gave_range: bool,
    /// It has not said so, and is asked for one to see whether it does.
    pub(super) tries_range: bool,
    /// Ranges of it that were refused, or whose connections were closed, before any was given.
    pub(super) failed_ranges: u32,
    /// What its answers have in common.
    pub(super) agreement: Agreement,
    /// It says that it does and answers otherwise.
    pub(super) ignores_ranges: bool,
    /// Something may have been written that belongs to nothing.
    pub(super) dirty: bool,
    /// What a rerun could continue, though this run begins anew: until it does.
    pub(super) shelved: Option<Shelved>,
    /// What is there under its name.
    pub(super) opened: Option<OpenedAs>,
    /// Counts failed attempts, however many streams each had.
    pub(super) attempt: u64,
    /// Failed attempts in a row without progress.
    pub(super) failures: u32,
    /// How often in a row it was refused (429, 5xx, or a closed connection), and what its origin had answered before.
    pub(super) refused: u32,
    pub(super) answered_before: u64,
    /// How often its origin had refused all files for a while when this one was refused last.
    pub(super) times_of_all: u32,
    /// When it was refused first of those times.
    pub(super) refused_at: Timestamp,
    /// That is so for itself, whatever is asked for beside it.
    pub(super) is_refused_for_itself: bool,
    /// It waits for as long as its server asked for with a 503.
    pub(super) waits_as_asked: bool,
    /// Failed attempts since one that brought something. Streams that go on meanwhile do not count:
    /// the server may bear them and no others.
    pub(super) setbacks: u32,
    /// Times that it was forbidden (403) without telling whether it is.
    pub(super) doubts: u32,
    /// How many requests for it were waited for in vain.
    pub(super) unanswered: u32,
    /// For how long those of the next one were that others took the place of.
    pub(super) unanswered_for: Duration,
    /// Its host has answered others meanwhile that were asked for later.
    pub(super) was_passed: bool,
    /// Times that the server's file turned out to be another one.
    pub(super) restarts: u32,
    /// Times that its bytes were other ones than those that were promised.
    pub(super) damaged: usize,
    /// How often a part of it was asked for anew, as nothing came.
    pub(super) hastened: u32,
    /// How often it began anew for that, as it can't go on.
    pub(super) begun_anew: u32,
    /// For how long each of its streams was silent that were ended for that, until another one stands in for it.
    pub(super) silences: Vec<Duration>,
    /// What the server says that it hashes to.
    pub(super) promised: Option<Digest>,
    /// No new stream before this.
    pub(super) not_before: Option<Timestamp>,
    /// Bytes that a rerun has been told of.
    noted: u64,
}

/// Of a file that nothing has happened to.
static UNTOUCHED: Transfer = Transfer::new();

/// What is told of a file that is forgotten.
static FORGOTTEN: LazyLock<FileSpec> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the text is constant")]
    let url = "http://forgotten.invalid/file".parse().expect("a URL");
    #[expect(clippy::expect_used, reason = "the URL is constant")]
    let spec = FileSpec::from_url(url).expect("a file");
    FileSpec { size: Some(0), ..spec }
});

impl Deref for Entry {
    type Target = Transfer;

    fn deref(&self) -> &Transfer {
        self.transfer.as_deref().unwrap_or(&UNTOUCHED)
    }
}

impl DerefMut for Entry {
    fn deref_mut(&mut self) -> &mut Transfer {
        self.transfer.get_or_insert_with(|| Box::new(Transfer::new()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenedAs {
    Writable,
    Existing(Existing),
}

impl Transfer {
    const fn new() -> Self {
        Self {
            ranges: FileRanges::new(None),
            place: 0,
            unproven: false,
            located: None,
            located_again: false,
            left: None,
            lacking: None,
            validator: None,
            modified: None,
            takes_ranges: false,
            gave_range: false,
            tries_range: false,
            failed_ranges: 0,
            agreement: Agreement::NONE_YET,
            ignores_ranges: false,
            dirty: false,
            shelved: None,
            opened: None,
            attempt: 0,
            failures: 0,
            refused: 0,
            times_of_all: 0,
            answered_before: 0,
            refused_at: Timestamp::START,
            is_refused_for_itself: false,
            waits_as_asked: false,
            setbacks: 0,
            doubts: 0,
            unanswered: 0,
            unanswered_for: Duration::ZERO,
            was_passed: false,
            restarts: 0,
            damaged: 0,
            hastened: 0,
            begun_anew: 0,
            silences: Vec::new(),
            promised: None,
            not_before: None,
            noted: 0,
        }
    }
}

impl Entry {
    pub(super) const fn new(spec: FileSpec, origin: OriginId, group: GroupId) -> Self {
        Self {
            spec: Some(spec),
            state: State::Waiting,
            origin,
            group,
            class: SizeClass::Medium,
            expected: 0,
            transfer: None,
        }
    }

    /// What it is, as the list has it.
    pub(super) fn spec(&self) -> &FileSpec {
        self.spec.as_ref().unwrap_or_else(|| &FORGOTTEN)
    }

    /// Gives away what is known of a file that is over.
    pub(super) fn take_spec(&mut self) -> FileSpec {
        self.transfer = None;
        self.spec.take().unwrap_or_else(|| FORGOTTEN.clone())
    }

    /// Where it is asked for.
    pub(super) fn place(&self) -> &Url {
        let mirror = self.place.checked_sub(1).and_then(|at| self.spec().mirrors.get(at));
        mirror.unwrap_or(&self.spec().url)
    }

    /// The same after redirects.
    pub(super) fn url(&self) -> &Url {
        self.located.as_ref().unwrap_or_else(|| self.place())
    }

    /// The size by what is known best: the transfer, the list, its group, nothing.
    pub(super) fn expected_size(&self, sizes: &SizeModel) -> u64 {
        self.foreseen_size(sizes).unwrap_or(UNKNOWN_SIZE)
    }

    /// The same where anything tells.
    pub(super) fn foreseen_size(&self, sizes: &SizeModel) -> Option<u64> {
        self.told_size().or_else(|| sizes.predict(self.group).map(|bytes| bytes.0))
    }

    /// Whether only a prediction is known of its size.
    pub(super) fn size_is_guessed(&self) -> bool {
        self.told_size().is_none()
    }

    fn told_size(&self) -> Option<u64> {
        self.ranges.size().or(self.spec().size).or(self.spec().size_hint)
    }

    /// It is over: nothing of it is in flight any more.
    pub(super) fn settle(&mut self) {
        self.state = State::Over;
        self.ranges.settle();
    }

    /// Bytes still to come, as far as known.
    pub(super) fn outstanding(&self) -> u64 {
        self.expected.saturating_sub(self.ranges.done_bytes())
    }

    /// Forgets everything that belongs to one version of the file.
    pub(super) fn forget_version(&mut self) {
        self.noted = 0;
        self.ranges.reset();
        self.validator = None;
        self.promised = None;
        self.modified = None;
        self.located = None;
        self.takes_ranges = false;
        self.gave_range = false;
        self.agreement.forget_version();
        self.unproven = false;
    }

    /// Whether it waits, and was not refused when it was last asked for, if ever.
    pub(super) fn is_waiting_unrefused(&self) -> bool {
        self.state == State::Waiting && self.refused == 0
    }

    /// Whether ranges that are asked for one by one can be joined: something tells that they are of
    /// one version, now or when all are there.
    pub(super) fn can_join(&self, validator: &Validator) -> bool {
        validator.is_strong() || self.spec().is_verifiable()
    }

    /// What a rerun needs, when enough has come since it was last told.
    pub(super) fn checkpoint(&mut self) -> Option<Resumable> {
        let step = (self.ranges.size()? / CHECKPOINTS).clamp(LEAST_CHECKPOINT, MOST_CHECKPOINT);
        let done = self.ranges.done_bytes();
        if done < self.noted + step {
            return None;
        }
        self.noted = done;
        self.resumable()
    }

    /// What a rerun needs: only for a version that can be told from others.
    pub(super) fn resumable(&self) -> Option<Resumable> {
        if let Some(shelved) = &self.shelved {
            return Some(shelved.part.clone());
        }
        let size = self.ranges.size()?;
        let validator = self.validator.clone()?;
        // A rerun begins with the first place. What came from another one has its own date.
        let told_apart = validator.etag.is_some()
            || validator.last_modified.is_some() && self.place == 0 && !self.unproven;
        let done: Vec<_> = self.ranges.done().collect();
        (told_apart && self.takes_ranges && !done.is_empty()).then_some(Resumable {
            size,
            validator,
            done,
        })
    }
}

#[cfg(test)]
mod tests {
    use pelton_algos::units::Bytes;

    use super::*;

    fn entry() -> Entry {
        let spec = FileSpec::from_url("http://h/a/file".parse().unwrap()).unwrap();
        let group = SizeModel::default().group_of(spec.url.path());
        Entry::new(FileSpec { size: Some(7), ..spec }, OriginId(0), group)
    }

    #[test]
    fn what_is_kept_of_each_file_of_a_list_stays_small() {
        assert!(size_of::<Entry>() <= 296, "{} bytes", size_of::<Entry>());
    }

    #[test]
    fn a_file_that_waits_is_read_without_a_transfer() {
        let mut sizes = SizeModel::default();
        let mut entry = entry();
        sizes.on_size(entry.group, Bytes(7));
        assert_eq!((entry.expected_size(&sizes), entry.outstanding()), (7, 0));
        assert_eq!(entry.url().as_str(), "http://h/a/file");
        assert!(entry.resumable().is_none() && entry.transfer.is_none());
        entry.ranges.set_size(9);
        assert_eq!(entry.expected_size(&sizes), 9);
    }

    #[test]
    fn what_is_taken_of_a_file_that_is_over_is_kept_no_longer() {
        let mut entry = entry();
        entry.ranges.set_size(9);
        entry.settle();
        assert_eq!(entry.take_spec().name, "file");
        assert!(entry.spec.is_none() && entry.transfer.is_none());
        assert!(!entry.size_is_guessed(), "it does not count among those of unknown size");
    }
}
