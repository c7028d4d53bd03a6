//! Files whose server has no ranges of them after all, or another version: they go on in one body, or begin anew.

use std::time::Duration;

use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::event::{Action, FileId};
use super::facts::Failure;
use super::file::Shelved;
use super::{Engine, Stream};
use crate::ErrorKind;

/// What comes once more if need be: a few first parts, or what came within this time.
pub(super) const LITTLE: Bytes = Bytes::kib(1024);
const SHORT: Duration = Duration::from_secs(2);

/// So many ranges of a file that fail, in so many attempts, tell that it has none, where none was given.
const MOST_FAILED_RANGES: u32 = 4;
const MOST_FAILED_ATTEMPTS: u32 = 2;

impl Engine {
    /// A server that said it takes ranges answered one otherwise: no more range streams of this file.
    pub(super) fn on_range_refused(&mut self, now: Timestamp, stream: Stream, failure: Failure) {
        if self.goes_back(now, &stream, &failure) {
            return;
        }
        let file = stream.file;
        let attempts = self.config.retry.attempts;
        let is_otherwise = failure.kind == ErrorKind::Protocol;
        if is_otherwise {
            self.files[file.index()].agreement.on_answered_otherwise();
        }
        let entry = &self.files[file.index()];
        let gives_part =
            |id| self.streams.get(&id).is_some_and(|stream| stream.has_head && stream.in_parts);
        let gives_some = entry.gave_range || entry.ranges.stream_ids().any(gives_part);
        // Who has given ranges has another reason, or another machine of that name has answered.
        let is_last_try = failure.kind.is_retryable() && entry.failures + 1 >= attempts;
        let is_known = is_otherwise && entry.agreement.lacks_ranges_somewhere();
        let goes_whole = is_known && self.loses_little(file);
        if gives_some && !is_last_try && !goes_whole {
            self.on_failure(now, stream, failure);
            return;
        }
        if gives_some && is_otherwise {
            self.note_differing(file, &stream);
        } else if self.files[file.index()].tries_range {
            self.origin(stream.origin).note_ranges(true, Some(false));
        }
        self.leave_ranges(file, failure.message);
    }

    /// `file` is asked for whole from now on, as `reason` says: a stream that brings it from its first byte goes on
    /// to its end; if there is none, the file starts anew.
    pub(super) fn leave_ranges(&mut self, file: FileId, reason: String) {
        let entry = &mut self.files[file.index()];
        let from_start =
            entry.ranges.stream_ids().find(|id| self.streams.get(id).is_some_and(Stream::is_plain));
        entry.ignores_ranges = true;
        let Some(survivor) = from_start else {
            let part = entry.resumable();
            entry.shelved = part.map(|part| Shelved { part, reason: reason.clone() });
            self.start_anew(file, reason);
            return;
        };
        entry.takes_ranges = false;
        let others: Vec<StreamId> =
            entry.ranges.stream_ids().filter(|id| *id != survivor).collect();
        for stream in others {
            self.abort(stream);
        }
        match self.files[file.index()].ranges.leave_to(survivor) {
            Some(end) => self.actions.push(Action::Cut { stream: survivor, end }),
            None => self.start_anew(file, reason),
        }
    }

    /// The server's file is another one than before, as `reason` says, and `stream` was told so.
    pub(super) fn on_changed(&mut self, file: FileId, stream: &Stream, reason: String) {
        // Hardly any file changes just after it was begun.
        let is_early = self.has_just_begun(file);
        let entry = &mut self.files[file.index()];
        // Another place may well have another version.
        entry.restarts += u32::from(!entry.unproven);
        // Perhaps several machines answer, and none agrees with another: what one of them sends in one
        // body is of one version.
        let disagree = !entry.unproven && entry.agreement.has_two_versions(is_early);
        entry.ignores_ranges |= disagree || entry.restarts > 1;
        if disagree {
            self.note_differing(file, stream);
        }
        self.start_anew(file, reason);
    }

    /// Machines that answer as the host of `stream` differ in `file`.
    pub(super) fn note_differing(&mut self, file: FileId, stream: &Stream) {
        let origin = &mut self.origins[stream.origin.0 as usize];
        origin.machines.on_differing(&mut self.files[file.index()].agreement);
    }

    /// What was written of `file` belongs to nothing.
    pub(super) fn start_anew(&mut self, file: FileId, reason: String) {
        let streams: Vec<StreamId> = self.files[file.index()].ranges.stream_ids().collect();
        for stream in streams {
            self.abort(stream);
        }
        let entry = &mut self.files[file.index()];
        let bytes = entry.ranges.done_bytes();
        entry.forget_version();
        // What is put aside may yet be of use.
        if bytes > 0 && entry.shelved.is_none() {
            self.actions.push(Action::Restart { file, bytes, reason });
        }
    }

    /// Whether `stream` has failed with what a server may say to ranges alone, and little is lost by asking for
    /// the whole. One that has given any beyond a first part means something else, unless what it gives is never
    /// enough.
    pub(super) fn may_be_had_whole(&self, stream: &Stream, kind: ErrorKind) -> bool {
        let entry = &self.files[stream.file.index()];
        let may_be_about_ranges = match kind {
            ErrorKind::ShortBody => true,
            // Another place may still have it.
            ErrorKind::NotFound if entry.place < entry.spec().mirrors.len() => false,
            kind => kind.is_answer() && !entry.gave_range,
        };
        let has_answered = entry.validator.is_some();
        let is_of_range = !stream.is_plain() && has_answered && !entry.ignores_ranges;
        is_of_range && may_be_about_ranges && self.loses_little(stream.file)
    }

    /// Whether little comes again where `file` is asked for whole.
    pub(super) fn loses_little(&self, file: FileId) -> bool {
        let entry = &self.files[file.index()];
        let little = LITTLE.max(self.link.estimate().bandwidth * SHORT);
        let is_plain = |id| self.streams.get(&id).is_some_and(Stream::is_plain);
        entry.ranges.done_bytes() <= little.0 || entry.ranges.stream_ids().any(is_plain)
    }

    /// Whether next to nothing of `file` has come.
    pub(super) fn has_just_begun(&self, file: FileId) -> bool {
        self.files[file.index()].ranges.done_bytes() <= LITTLE.0
    }

    /// Whether so many ranges of a file were refused, or their connections closed, and none was given, while one body
    /// brings all of it. Where its host gives no first parts either one is enough, or two without such a body.
    pub(super) fn are_ranges_vain(&mut self, stream: &Stream, kind: ErrorKind) -> bool {
        let is_refused = kind == ErrorKind::ServerError || stream.is_turned_away(kind);
        let entry = &mut self.files[stream.file.index()];
        if stream.whole || stream.has_head || entry.gave_range || !is_refused {
            return false;
        }
        entry.failed_ranges += 1;
        let is_plain = |id| self.streams.get(&id).is_some_and(Stream::is_plain);
        let are_many = entry.failed_ranges >= MOST_FAILED_RANGES
            && entry.attempt >= MOST_FAILED_ATTEMPTS.into();
        let gives_none = !self.origins[stream.origin.0 as usize].gives_parts();
        if entry.ranges.stream_ids().any(is_plain) {
            are_many || gives_none
        } else {
            gives_none && entry.failed_ranges >= MOST_FAILED_ATTEMPTS
        }
    }
}
