//! What the engine tells of itself: for reports, progress and policies, and nothing changes by it.

use std::time::Duration;

use pelton_algos::cluster::SizeClass;
use pelton_algos::link::LinkEstimate;
use pelton_algos::policy::Decision;
use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};
use url::Url;

use super::facts::Head;
use super::facts::Ranges;
use super::{Engine, FileId, Resumable, Totals, UserLimits};
use crate::catalog::{Digest, FileSpec};

/// A file that is shorter is not missed among range streams.
const WORTH_SPLITTING: Bytes = Bytes::mib(1);

impl Engine {
    /// What the run has done so far.
    pub fn totals(&self) -> Totals {
        let active: Bytes =
            self.active.iter().map(|id| Bytes(self.files[id.index()].outstanding())).sum();
        Totals {
            expected: self.totals.delivered + self.waiting.bytes() + active,
            delivered: self.totals.delivered,
            ..self.totals
        }
    }

    /// Whether the file of `stream` comes over one stream only because its `head` tells no version of it.
    pub(crate) fn is_whole_for_want_of_version(&self, stream: StreamId, head: &Head) -> bool {
        let is_worth_it = head.total.is_some_and(|total| total >= WORTH_SPLITTING.0);
        let may_split = self.config.limits.max_streams_per_file != Some(1);
        let can_join = |file| self.can_join(file, &head.validator);
        let is_apart = || self.file_of(stream).is_some_and(|file| !can_join(file));
        head.ranges == Ranges::Given && is_worth_it && may_split && is_apart()
    }

    /// How long a run waits for space on a full disk.
    pub const fn disk_patience(&self) -> Duration {
        self.config.disk_patience
    }

    /// The user's ceilings at present.
    pub const fn user_limits(&self) -> UserLimits {
        self.config.limits
    }

    /// The present belief about the link.
    pub fn link(&self) -> LinkEstimate {
        self.link.estimate()
    }

    /// Goodput over the last sample: two round trips, at least 100 ms.
    pub const fn goodput(&self) -> BitRate {
        self.goodput
    }

    /// The same, and nothing where nothing came for a second or two round trips.
    pub fn goodput_at(&self, now: Timestamp) -> BitRate {
        let came_at = self.origins.iter().map(|origin| origin.came_at).max();
        let stands_still = Duration::from_secs(1).max(self.link.estimate().rtt * 2);
        let moves = came_at.is_some_and(|at| now.saturating_since(at) <= stands_still);
        if moves { self.goodput } else { BitRate::ZERO }
    }

    /// The present decision.
    pub const fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    /// The policy's name.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// What `file` is.
    pub fn spec(&self, file: FileId) -> &FileSpec {
        self.files[file.index()].spec()
    }

    /// What `file` was promised to hash to: by the list, else by the server where that counts.
    pub fn digest(&self, file: FileId) -> Option<&Digest> {
        let entry = &self.files[file.index()];
        entry.spec().digest.as_ref().or(entry.promised.as_ref())
    }

    /// Where `file` is asked for: its URL, or the mirror that was tried last.
    pub fn place(&self, file: FileId) -> &Url {
        self.files[file.index()].place()
    }

    /// Bytes of `file` that are there.
    pub fn bytes_of(&self, file: FileId) -> u64 {
        self.files[file.index()].ranges.done_bytes()
    }

    /// The size class of `file`, as last known.
    pub fn class_of(&self, file: FileId) -> SizeClass {
        self.files[file.index()].class
    }

    /// Files whose size is only predicted.
    pub fn files_of_unknown_size(&self) -> u64 {
        self.files.iter().filter(|entry| entry.size_is_guessed()).count() as u64
    }

    /// The file that `stream` belongs to, while it is in flight.
    pub fn file_of(&self, stream: StreamId) -> Option<FileId> {
        self.streams.get(&stream).map(|s| s.file)
    }

    /// What a rerun needs to continue `file`: its done ranges and what they belong to. `None`
    /// when nothing can be continued.
    pub fn resumable(&self, file: FileId) -> Option<Resumable> {
        self.files[file.index()].resumable()
    }

    /// Files in transfer, with the bytes that are there and the size as far as known.
    pub fn active_files(&self) -> impl Iterator<Item = (FileId, u64, Option<u64>)> + '_ {
        self.active.iter().map(|id| {
            let ranges = &self.files[id.index()].ranges;
            (id, ranges.done_bytes(), ranges.size())
        })
    }
}
