//! What happens to a file in transfer: opened, filled, ended, finished.

use pelton_algos::ranges::{ByteRange, InFlight, StreamId};
use pelton_algos::silence::SHORT_END;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::event::{Action, FileId, Opened, Outcome};
use super::facts::{Existing, Failure};
use super::file::{OpenedAs, State};
use super::heads::size_conflict;
use super::{Engine, Stream};
use crate::ErrorKind;
use crate::catalog::FileSpec;
use crate::connection::shown;

/// Why what an earlier run left of a file is not continued.
const UNUSABLE: &str = "what an earlier run left is of another URL, or of a version that nothing names (a server's ETag \
                        would, or a date that is older than its answer)";

impl Engine {
    pub(super) fn on_opened(&mut self, now: Timestamp, file: FileId, opened: Opened) {
        let waits = matches!(&opened, Opened::Failed(failure) if self.waits_out(failure));
        let entry = &mut self.files[file.index()];
        if entry.state != State::Opening {
            // It can also turn out later that it can't be written.
            if let (Opened::Failed(failure), State::Active | State::Delayed) = (opened, entry.state)
            {
                self.give_up(file, failure);
            }
            return;
        }
        entry.state = State::Active;
        entry.opened = Some(OpenedAs::Writable);
        match opened {
            Opened::Fresh => {}
            Opened::Unusable { bytes } => {
                let reason = UNUSABLE.to_owned();
                self.actions.push(Action::Restart { file, bytes, reason });
            }
            Opened::Part(part) => {
                entry.ranges.set_size(part.size);
                let within = |range: ByteRange| range.start..range.end.min(part.size);
                part.done.into_iter().for_each(|range| entry.ranges.mark_done(within(range)));
                entry.validator = Some(part.validator);
                entry.takes_ranges = true;
                entry.dirty = true;
                self.finish_if_complete(file);
            }
            Opened::Existing(existing) => {
                let size_tells = existing.size_tells && !self.config.overwrite;
                entry.opened = Some(OpenedAs::Existing(Existing { size_tells, ..existing }));
            }
            Opened::Verified { size } => self.keep_existing(now, file, size),
            Opened::Failed(failure) if waits => {
                // It is opened again when there is space.
                entry.opened = None;
                self.leave_lane(file);
                self.enqueue(file);
                self.on_full(now, file, failure);
            }
            Opened::Failed(failure) if failure.kind == ErrorKind::Descriptors => {
                entry.opened = None;
                self.on_too_many_open(now, now, file, failure);
            }
            Opened::Failed(failure) => self.give_up(file, failure),
        }
    }

    pub(super) fn on_continued(&mut self, now: Timestamp, stream: StreamId) {
        let rtt = self.link.estimate().rtt;
        let Some(known) = self.streams.get_mut(&stream) else { return };
        known.recent.on_continued(now, rtt);
        self.files[known.file.index()].gave_range = true;
    }

    /// The connection that it was silent over is not waited for any more.
    pub(super) fn on_moved(&mut self, now: Timestamp, stream: StreamId) {
        if let Some(known) = self.streams.get_mut(&stream) {
            known.recent.on_moved(now);
        }
    }

    pub(super) fn on_asked(&mut self, stream: StreamId, end: u64) {
        let Some(known) = self.streams.get_mut(&stream) else { return };
        self.totals.requests += u64::from(std::mem::replace(&mut known.has_asked, true));
        let ranges = &mut self.files[known.file.index()].ranges;
        if let Some(InFlight { position, asked: Some(asked), .. }) = ranges.stream(stream) {
            known.recent.on_asked(asked.saturating_sub(*position));
            if let Some((bytes, took)) = known.recent.part() {
                self.bodies.add(bytes, took);
            }
        }
        ranges.on_asked(stream, end);
    }

    /// What its server was promised comes, as what was asked for does.
    pub(super) fn on_promised(&mut self, stream: StreamId, end: u64) {
        let Some(known) = self.streams.get(&stream) else { return };
        self.files[known.file.index()].ranges.on_asked(stream, end);
    }

    pub(super) fn on_data(&mut self, now: Timestamp, stream: StreamId, bytes: u64) {
        let Some(Stream { origin, .. }) = self.streams.get(&stream) else { return };
        let origin = *origin;
        let enough = self.enough(origin);
        let state = self.origin(origin);
        state.came += bytes;
        state.came_at = now;
        let are_in_turns = self.answers.wait_for_turn(0).is_some();
        let Some(known) = self.streams.get_mut(&stream) else { return };
        if are_in_turns {
            known.recent.end_turn(now);
        }
        known.recent.on_data(now, bytes, enough);
        if let Some((bytes, took)) = known.recent.part() {
            self.bodies.add(bytes, took);
        }
        let (file, attempt, shares) = (known.file, known.attempt, known.shares);
        // What begins anew has paid when all of it is there.
        let goes_on = self.files[file.index()].takes_ranges;
        if goes_on && known.stands_in.is_some() && known.recent.has_brought(SHORT_END) {
            let stand_in = *known;
            known.stands_in = None;
            self.note_stand_in(now, &stand_in);
        }
        if let Some(connection) = shares {
            self.origin(origin).bearers.on_data(now, connection.0);
        }
        let entry = &mut self.files[file.index()];
        let accepted = entry.ranges.advance(stream, bytes);
        // Without ranges the next attempt starts from the first byte: this one has got nowhere.
        if entry.takes_ranges {
            entry.failures = 0;
            if attempt == entry.attempt && std::mem::take(&mut entry.setbacks) > 0 {
                self.refill = true;
            }
        }
        if let Some(part) = entry.checkpoint() {
            self.actions.push(Action::Checkpoint { file, part });
        }
        self.totals.delivered += Bytes(accepted);
        let streams = self.streams.len() as u32;
        let was_seen = self.link.seen_bandwidth().is_some();
        if let Some(rate) = self.link.on_delivered(now, Bytes(bytes), streams) {
            self.goodput = rate;
            self.note_rate(now);
        }
        if !was_seen && self.link.seen_bandwidth().is_some() {
            self.widen_for_short_files(now);
        }
    }

    pub(super) fn on_ended(&mut self, now: Timestamp, stream: StreamId, outcome: Outcome) {
        let Some(ended) = self.streams.get(&stream).copied() else { return };
        let file = ended.file;
        let in_flight = self.files[file.index()].ranges.stream(stream).copied();
        self.remove_stream(stream);
        match outcome {
            Outcome::Complete => {
                self.redecide |= self.descriptors.on_success(now, ended.began);
                if let Some(in_flight) = in_flight.filter(|s| ended.whole && s.end.is_none()) {
                    self.learn_size(file, in_flight.position, false);
                    let entry = &self.files[file.index()];
                    let received = entry.ranges.size();
                    if let Some(failure) = size_conflict(entry.spec().size, received, entry.url()) {
                        self.fail(file, failure);
                        return;
                    }
                }
                let unfinished = in_flight.and_then(|s| s.remaining()).is_some_and(|left| left > 0);
                // A server may give less than it was asked for; then the rest is asked for.
                let came = in_flight.is_some_and(|s| s.position > s.start);
                let entry = &self.files[file.index()];
                let what_failed = match (unfinished, came) {
                    (true, false) => Some("the body ended early"),
                    // Without ranges the same part would come again, for ever.
                    (true, true) if ended.whole && !entry.takes_ranges => {
                        Some("the server sent a part and was asked for the whole")
                    }
                    _ => None,
                };
                if let Some(what_failed) = what_failed {
                    let message = format!("{}: {what_failed}", shown(entry.url()));
                    self.on_failure(now, ended, Failure::new(ErrorKind::ShortBody, message));
                    return;
                }
            }
            Outcome::NotModified => {
                let entry = &self.files[file.index()];
                let Some(OpenedAs::Existing(existing)) = entry.opened else {
                    let message =
                        format!("{}: found unchanged and is not there", shown(entry.url()));
                    self.on_failure(now, ended, Failure::new(ErrorKind::Protocol, message));
                    return;
                };
                self.note_success(now, ended.origin, ended.began);
                self.keep_existing(now, file, existing.size);
                return;
            }
            Outcome::RangeRefused(failure) => {
                self.on_range_refused(now, ended, failure);
                return;
            }
            Outcome::Changed(message) => {
                self.on_changed(file, &ended, message);
                return;
            }
            // What fails behind the last byte is none of the file's.
            Outcome::Failed(_) if self.files[file.index()].ranges.is_complete() => {}
            Outcome::Failed(failure) => {
                self.on_failure(now, ended, failure);
                return;
            }
        }
        self.note_complete(&ended);
        self.note_stand_in(now, &ended);
        // What could not be had beside it may be had alone.
        if self.files[file.index()].ranges.streams() == 0 {
            self.release_hold(file);
        }
        self.finish_if_complete(file);
    }

    pub(super) fn finish_if_complete(&mut self, file: FileId) {
        let entry = &mut self.files[file.index()];
        if entry.state != State::Active || !entry.ranges.is_complete() {
            return;
        }
        let leftover: Vec<StreamId> = entry.ranges.stream_ids().collect();
        entry.state = State::Finishing;
        let modified = entry.modified;
        for stream in leftover {
            self.abort(stream);
        }
        self.leave_lane(file);
        self.release_hold(file);
        self.finishing += 1;
        self.actions.push(Action::Finish { file, modified });
    }

    pub(super) fn keep_existing(&mut self, now: Timestamp, file: FileId, size: u64) {
        let knew_any = self.sizes.knows_any();
        self.learn_size(file, size, true);
        self.end_file(file);
        if !knew_any {
            self.on_first_size(now);
        }
        self.totals.done += 1;
        self.actions.push(Action::Kept { file, size });
    }

    pub(super) fn on_finished(&mut self, file: FileId, result: Result<(), Failure>) {
        if self.files[file.index()].state != State::Finishing {
            return;
        }
        self.finishing -= 1;
        match result {
            Ok(()) => {
                self.files[file.index()].settle();
                self.totals.done += 1;
            }
            Err(failure) => self.give_up(file, failure),
        }
    }

    /// Gives away what is known of `file`, which is over and was reported: a long list holds it once.
    pub(crate) fn take_spec(&mut self, file: FileId) -> FileSpec {
        self.files[file.index()].take_spec()
    }

    /// Takes `file` out of transfer for good.
    pub(super) fn end_file(&mut self, file: FileId) {
        let streams: Vec<StreamId> = self.files[file.index()].ranges.stream_ids().collect();
        for stream in streams {
            self.abort(stream);
        }
        self.files[file.index()].settle();
        self.leave_lane(file);
        self.release_hold(file);
    }
}
