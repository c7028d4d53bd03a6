//! What happens to a file in transfer: opened, headed, filled, ended, finished.

use pelton_algos::growth::Response;
use pelton_algos::ranges::{ByteRange, StreamId};
use pelton_algos::silence::SHORT_END;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::event::{Action, Existing, Failure, FileId, Head, Opened, Outcome};
use super::file::{OpenedAs, State};
use super::origin::Contact;
use super::{Engine, OriginId, Stream};
use crate::ErrorKind;
use crate::catalog::FileSpec;
use crate::connection::{Protocol, shown};

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
            Opened::Part(part) => {
                entry.ranges.set_size(part.size);
                let within = |range: ByteRange| range.start..range.end.min(part.size);
                part.done.into_iter().for_each(|range| entry.ranges.mark_done(within(range)));
                entry.validator = Some(part.validator);
                entry.takes_ranges = true;
                entry.dirty = true;
                self.finish_if_complete(file);
            }
            Opened::Existing(existing) => entry.opened = Some(OpenedAs::Existing(existing)),
            Opened::Verified { size } => self.keep_existing(file, size),
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

    pub(super) fn on_head(&mut self, now: Timestamp, stream: StreamId, head: Head) {
        let rtt = self.link.estimate().rtt;
        let Some(known) = self.streams.get_mut(&stream) else { return };
        known.has_head = true;
        known.recent.on_head(now, rtt);
        let (file, whole, old_origin) = (known.file, known.whole, known.origin);
        let began = known.began;
        let failed_before = known.attempt;
        let part = known.in_parts.then_some(head.partial);
        known.in_parts &= head.partial;
        let answered_by = self.origin_id(&head.origin);
        if answered_by != old_origin {
            self.move_stream(stream, old_origin, answered_by);
        }
        let entry = &mut self.files[file.index()];
        let was_forbidden = std::mem::take(&mut entry.doubts) > 0;
        let refused_before = std::mem::take(&mut entry.refused);
        entry.is_refused_for_itself = false;
        let state = self.origin(answered_by);
        state.first_requests.on_answer(failed_before, refused_before);
        state.forbidding.on_answer(began);
        if was_forbidden {
            state.forbidding.on_given();
        }
        self.note_answer(now, answered_by, began, head.protocol);
        let at_least = self.link.estimate().rtt;
        self.note_response(now, Response { took: head.response_time, at_least });
        let entry = &mut self.files[file.index()];
        if let Some(failure) = size_conflict(entry.spec().size, head.total, entry.url()) {
            self.fail(file, failure);
            return;
        }
        if !self.joins(file, &head) {
            return;
        }
        let entry = &mut self.files[file.index()];
        entry.modified = head.modified;
        entry.promised = entry.promised.take().or(head.digest);
        if !whole {
            if !std::mem::replace(&mut entry.gave_range, true) {
                self.cut_plain_get(file);
            }
            return;
        }
        entry.shelved = None;
        let is_led = head.url != *entry.place() && !entry.asks_at_home;
        entry.located = is_led.then_some(head.url);
        entry.takes_ranges = head.ranges
            && head.total.is_some()
            && !entry.ignores_ranges
            && entry.can_join(&head.validator);
        entry.validator = Some(head.validator);
        let (class, gives_ranges) = (entry.class, entry.takes_ranges);
        self.origin(answered_by).note_ranges(gives_ranges, part);
        if old_origin != answered_by {
            self.origin(old_origin).note_ranges(gives_ranges, part);
        }
        self.move_to(file, class, answered_by);
        if let Some(known) = self.streams.get_mut(&stream) {
            known.redirected = is_led;
        }
        let entry = &mut self.files[file.index()];
        if let Some(OpenedAs::Existing(existing)) = entry.opened {
            if existing.is_version(head.total, head.modified) {
                self.keep_existing(file, existing.size);
                return;
            }
            if !self.config.overwrite {
                let failure =
                    differs(&entry.spec().name, existing, head.total, head.modified.is_some());
                self.give_up(file, failure);
                return;
            }
            entry.opened = Some(OpenedAs::Writable);
        }
        if let Some(total) = head.total {
            let knew_any = self.sizes.knows_any();
            self.learn_size(file, total);
            if !knew_any {
                self.widen_for_short_files(now);
            }
        }
    }

    /// `file` gives ranges, of which this is the first: a plain GET for it that has just begun is not needed to
    /// its end, where its connection would end and what is on its way be lost.
    fn cut_plain_get(&mut self, file: FileId) {
        let ranges = &mut self.files[file.index()].ranges;
        let is_plain = |id: &StreamId| {
            self.streams.get(id).is_some_and(|stream| {
                let multiplexes = self.origins[stream.origin.0 as usize].multiplexes;
                stream.is_plain() && !multiplexes
            })
        };
        let Some(stream) = ranges.stream_ids().find(is_plain) else { return };
        if let Some(end) = ranges.cut_early(stream) {
            self.actions.push(Action::Cut { stream, end });
            self.refill = true;
        }
    }

    fn learn_size(&mut self, file: FileId, total: u64) {
        let entry = &mut self.files[file.index()];
        let was_guessed = entry.size_is_guessed();
        entry.ranges.set_size(total);
        let group = entry.group;
        if was_guessed {
            self.sizes.on_size(group, Bytes(total));
            self.sizes_learnt += 1;
        }
        let (class, expected) = self.classify(file);
        let entry = &mut self.files[file.index()];
        entry.expected = expected;
        self.redecide |= entry.class != class;
        let origin = entry.origin;
        self.move_to(file, class, origin);
    }

    fn move_stream(&mut self, stream: StreamId, from: OriginId, to: OriginId) {
        // By sending it on.
        self.origin(from).contact = Contact::Answered;
        self.origin(from).streams = self.origin(from).streams.saturating_sub(1);
        self.origin(to).add_stream();
        if let Some(known) = self.streams.get_mut(&stream) {
            known.origin = to;
        }
        self.redecide = true;
    }

    fn note_answer(
        &mut self,
        now: Timestamp,
        origin: OriginId,
        began: Timestamp,
        protocol: Protocol,
    ) {
        let state = self.origin(origin);
        let multiplexes = protocol == Protocol::Http2;
        let news = !state.has_answered() || state.multiplexes != multiplexes;
        state.multiplexes = multiplexes;
        state.answered += 1;
        state.budget.on_answer();
        self.redecide |= news;
        self.note_success(now, origin, began);
    }

    fn note_success(&mut self, now: Timestamp, origin: OriginId, began: Timestamp) {
        let state = self.origin(origin);
        state.contact = Contact::Answered;
        state.connect_failures = 0;
        state.failing_since = None;
        state.has_told_of_wait = false;
        self.redecide |= state.budget.on_success(now, began);
    }

    pub(super) fn on_continued(&mut self, now: Timestamp, stream: StreamId) {
        let rtt = self.link.estimate().rtt;
        let Some(known) = self.streams.get_mut(&stream) else { return };
        known.recent.on_continued(now, rtt);
        self.files[known.file.index()].gave_range = true;
    }

    pub(super) fn on_asked(&mut self, stream: StreamId, end: u64) {
        let Some(known) = self.streams.get_mut(&stream) else { return };
        self.totals.requests += u64::from(std::mem::replace(&mut known.has_asked, true));
        self.files[known.file.index()].ranges.on_asked(stream, end);
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
        let Some(known) = self.streams.get_mut(&stream) else { return };
        known.recent.on_data(now, bytes, enough);
        let (file, attempt) = (known.file, known.attempt);
        // What begins anew has paid when all of it is there.
        let goes_on = self.files[file.index()].takes_ranges;
        if goes_on && known.stands_in.is_some() && known.recent.has_brought(SHORT_END) {
            let stand_in = *known;
            known.stands_in = None;
            self.note_stand_in(now, &stand_in);
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
                    self.learn_size(file, in_flight.position);
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
                if unfinished && !came {
                    let message =
                        format!("{}: the body ended early", shown(self.files[file.index()].url()));
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
                self.keep_existing(file, existing.size);
                return;
            }
            Outcome::RangeRefused(failure) => {
                self.on_range_refused(now, ended, failure);
                return;
            }
            Outcome::Changed(message) => {
                self.on_changed(file, message);
                return;
            }
            // What fails behind the last byte is none of the file's.
            Outcome::Failed(_) if self.files[file.index()].ranges.is_complete() => {}
            Outcome::Failed(failure) => {
                self.on_failure(now, ended, failure);
                return;
            }
        }
        self.note_complete(now, &ended);
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

    fn keep_existing(&mut self, file: FileId, size: u64) {
        self.end_file(file);
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

fn size_conflict(listed: Option<u64>, stated: Option<u64>, url: &url::Url) -> Option<Failure> {
    let (listed, stated) = (listed?, stated?);
    (listed != stated).then(|| {
        let message = format!(
            "{}: the list says {listed} bytes, the server has {stated}; update the list",
            shown(url)
        );
        Failure::new(ErrorKind::Checksum, message)
    })
}

fn differs(name: &str, existing: Existing, total: Option<u64>, tells_date: bool) -> Failure {
    let difference = match total {
        Some(total) if total == existing.size => "with another date than the server's".to_owned(),
        Some(total) => format!("with {} bytes and the server has {total}", existing.size),
        None if tells_date => "with another date than the server's".to_owned(),
        None => "and whether it is the server's can't be known, which tells neither size nor date"
            .to_owned(),
    };
    let message = format!("{name} exists {difference}; use --overwrite to replace it");
    Failure::new(ErrorKind::Exists, message)
}
