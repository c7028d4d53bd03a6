//! Files whose server has no ranges of them after all, or another version: they go on in one body, or begin anew.

use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;

use super::event::{Action, FileId};
use super::facts::Failure;
use super::file::Shelved;
use super::{Engine, Stream};
use crate::ErrorKind;

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
}
