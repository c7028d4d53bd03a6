//! What heads of answers tell: of the origin that answered, and of the file.

use std::time::Duration;

use pelton_algos::answers::Answer;
use pelton_algos::connections;
use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::event::{Action, FileId};
use super::facts::{Existing, Failure, Head, Ranges, Validator};
use super::file::{OpenedAs, Shelved};
use super::origin::{Contact, FailedBefore};
use super::{Engine, OriginId, Stream};
use crate::ErrorKind;
use crate::catalog::FileSpec;
use crate::connection::{Protocol, shown};

impl Engine {
    pub(super) fn on_head(&mut self, now: Timestamp, stream: StreamId, mut head: Head) {
        let rtt = self.link.estimate().rtt;
        let Some(known) = self.streams.get_mut(&stream) else { return };
        known.in_parts &= head.protocol == Protocol::Http11;
        let asked = *known;
        known.has_head = true;
        let shares = (head.protocol == Protocol::Http2).then_some(head.connection);
        known.shares = shares;
        known.recent.on_head(now, rtt);
        known.in_parts &= head.partial;
        let file = asked.file;
        if let Some(before) = asked.shares {
            self.origin(asked.origin).bearers.remove(before.0);
        }
        let answered_by = self.origin_id(&head.origin);
        if answered_by != asked.origin {
            self.note_where_led(asked.origin, answered_by);
            self.move_stream(stream, asked.origin, answered_by);
        }
        let state = self.origin(answered_by);
        state.served += u32::from(!asked.has_head);
        if let Some(connection) = shares {
            state.bearers.add(connection.0);
        }
        state.trust.on_answer();
        self.note_answer(now, answered_by, &asked, head.protocol);
        let came = self.brought().saturating_sub(asked.brought_before);
        let busy = self.busy_with(came);
        let rtt = self.link.estimate().rtt;
        let ahead = asked.ahead.filter(|_| !asked.has_head);
        self.note_response(now, Answer { took: head.response_time, rtt, busy, ahead });
        let answers = self.answers.count();
        self.origin(answered_by).note_sign(now, answers);
        if answered_by != asked.origin {
            self.origin(asked.origin).note_sign(now, answers);
        }
        let entry = &mut self.files[file.index()];
        entry.unanswered_for = Duration::ZERO;
        if std::mem::take(&mut entry.was_passed) {
            self.passed_over.remove(&file);
        }
        if let Some(failure) = size_conflict(entry.spec().size, head.total, entry.url()) {
            self.fail(file, failure);
            return;
        }
        if !self.joins(file, &head) {
            return;
        }
        let entry = &mut self.files[file.index()];
        entry.located_again |= asked.redirected && entry.located.as_ref() == Some(&head.url);
        entry.agreement.on_answer();
        entry.modified = head.modified;
        entry.promised = entry.promised.take().or(head.digest.take());
        self.settle_where_led(file, answered_by, &head.url);
        let entry = &mut self.files[file.index()];
        if asked.whole {
            self.on_whole(now, stream, &asked, answered_by, head);
        } else if !std::mem::replace(&mut entry.gave_range, true) {
            self.refill |= entry.tries_range;
            self.cut_plain_get(file);
        }
    }

    /// How long the path needs for so many `bytes`. Answers that share connections wait for their windows, too.
    fn busy_with(&self, bytes: Bytes) -> Option<Duration> {
        let busy = self.link.busy_with(bytes)?;
        if !self.shares_connections() {
            return Some(busy);
        }
        let connections = u32::try_from(self.opened()).unwrap_or(u32::MAX);
        let windows =
            connections::time_of_first_windows(bytes, connections, self.link.estimate().rtt);
        Some(busy.max(windows))
    }

    /// What was `asked` for is the whole file, or its first part where the server gives ranges.
    fn on_whole(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        asked: &Stream,
        answered_by: OriginId,
        head: Head,
    ) {
        let file = asked.file;
        let part = asked.in_parts.then_some(head.partial);
        self.answers.on_file(head.waited_before);
        let can_join = self.can_join(file, &head.validator);
        let state = self.origin(answered_by);
        let are_several = state.machines.are_several();
        // Who was asked for a part, and tells nothing of ranges, has none.
        let tries_range = head.ranges == Ranges::Unsaid && part.is_none() && state.gives_parts();
        let entry = &mut self.files[file.index()];
        if let Some(Shelved { part, reason }) = entry.shelved.take() {
            let bytes = part.done.iter().map(|range| range.end - range.start).sum();
            self.actions.push(Action::Restart { file, bytes, reason });
        }
        let entry = &mut self.files[file.index()];
        let is_led = head.url != *entry.place() && entry.left.is_none();
        entry.located = is_led.then_some(head.url);
        entry.takes_ranges = (head.ranges == Ranges::Given || tries_range)
            && head.total.is_some()
            && !entry.ignores_ranges
            && !are_several
            && can_join;
        entry.tries_range = tries_range;
        entry.validator = Some(head.validator);
        let (class, gives_ranges) = (entry.class, entry.takes_ranges);
        self.origin(answered_by).note_ranges(gives_ranges, part);
        if asked.origin != answered_by {
            self.origin(asked.origin).note_ranges(gives_ranges, part);
        }
        self.move_to(file, class, answered_by);
        if let Some(known) = self.streams.get_mut(&stream) {
            known.redirected = is_led;
        }
        let entry = &mut self.files[file.index()];
        if let Some(OpenedAs::Existing(existing)) = entry.opened {
            if existing.is_version(head.total, head.modified) {
                self.keep_existing(now, file, existing.size);
                return;
            }
            let bytes_tell = existing.bytes_tell && head.total.is_none() && head.modified.is_none();
            if !self.config.overwrite && !bytes_tell {
                let failure = differs(entry.spec(), existing, head.total, head.modified.is_some());
                self.give_up(file, failure);
                return;
            }
            entry.opened = Some(OpenedAs::Writable);
        }
        if let Some(total) = head.total {
            let knew_any = self.sizes.knows_any();
            self.learn_size(file, total, false);
            if !knew_any {
                self.on_first_size(now);
            }
        }
    }

    /// `file` gives ranges, of which this is the first: a plain GET for it that has just begun is not needed to
    /// its end, where its connection would end and what is on its way be lost.
    fn cut_plain_get(&mut self, file: FileId) {
        let ranges = &mut self.files[file.index()].ranges;
        let is_plain = |id: &StreamId| {
            self.streams.get(id).is_some_and(|stream| {
                let multiplexes = self.origins[stream.origin.0 as usize].multiplexes();
                stream.is_plain() && !multiplexes
            })
        };
        let Some(stream) = ranges.stream_ids().find(is_plain) else { return };
        if let Some(end) = ranges.cut_early(stream) {
            self.actions.push(Action::Cut { stream, end });
            self.refill = true;
        }
    }

    /// Whether ranges of `file` that are asked for one by one can be joined.
    pub(super) fn can_join(&self, file: FileId, validator: &Validator) -> bool {
        self.config.assume_unchanged || self.files[file.index()].can_join(validator)
    }

    /// All others may be like the first one of which it is known what it brings.
    pub(super) fn on_first_size(&mut self, now: Timestamp) {
        self.recluster_if_due();
        self.widen_for_short_files(now);
    }

    /// `file` turned out to have so many bytes, and is here already or has to be brought.
    pub(super) fn learn_size(&mut self, file: FileId, total: u64, is_kept: bool) {
        let entry = &mut self.files[file.index()];
        let was_guessed = entry.size_is_guessed();
        entry.ranges.set_size(total);
        let group = entry.group;
        if was_guessed {
            self.sizes.on_size(group, Bytes(total));
            self.sizes.on_asked(group, is_kept);
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
        self.origin(from).streams = self.origin(from).streams.saturating_sub(1);
        self.origin(to).add_stream();
        if let Some(known) = self.streams.get_mut(&stream) {
            known.origin = to;
        }
        self.redecide = true;
    }

    /// `origin` has answered what was `asked`, and where that was asked of another one, that has sent it on.
    fn note_answer(
        &mut self,
        now: Timestamp,
        origin: OriginId,
        asked: &Stream,
        protocol: Protocol,
    ) {
        let entry = &mut self.files[asked.file.index()];
        entry.is_refused_for_itself = false;
        let before = FailedBefore {
            was_forbidden: std::mem::take(&mut entry.doubts) > 0,
            refused: std::mem::take(&mut entry.refused),
            attempt: asked.attempt,
        };
        if origin != asked.origin {
            let state = self.origin(asked.origin);
            state.came_at = now;
            if state.note_answer(asked.began, before, 0) {
                self.wait_no_longer(now, asked.origin);
            }
            self.note_success(now, asked.origin, asked.began);
        }
        let multiplexes = protocol == Protocol::Http2;
        let pipelined = self.pipelined(&self.origins[origin.0 as usize]);
        let state = self.origin(origin);
        let news = !state.has_answered() || state.multiplexes() != multiplexes;
        state.budget.share_connections(multiplexes);
        let is_spared = state.note_answer(asked.began, before, state.served);
        let borne = if multiplexes { 0 } else { state.served.div_ceil(pipelined) };
        let is_borne = state.budget.on_borne(borne);
        self.redecide |= news || is_borne;
        if is_spared {
            self.wait_no_longer(now, origin);
        }
        self.note_success(now, origin, asked.began);
    }

    pub(super) fn note_success(&mut self, now: Timestamp, origin: OriginId, began: Timestamp) {
        let state = self.origin(origin);
        state.contact = Contact::Answered;
        state.connect_failures = 0;
        state.failing_since = None;
        state.has_told_of_wait = false;
        self.redecide |= state.budget.on_success(now, began);
    }
}

fn differs(spec: &FileSpec, existing: Existing, total: Option<u64>, tells_date: bool) -> Failure {
    let name = &spec.name;
    let difference = match total {
        Some(total) if total != existing.size => {
            format!("with {} bytes and the server has {total}", existing.size)
        }
        // Where it has one, that was looked at first.
        _ if spec.is_verifiable() => "with another digest than the one that is promised".to_owned(),
        Some(_) => "with another date than the server's".to_owned(),
        None if tells_date => "with another date than the server's".to_owned(),
        None => "and the server tells neither size nor date, so that nothing says whether it is the same"
            .to_owned(),
    };
    let message = format!("{name} exists {difference}; use `overwrite` to replace it");
    Failure::new(ErrorKind::Exists, message)
}

/// A failure where the list and the server state different sizes.
pub(super) fn size_conflict(
    listed: Option<u64>,
    stated: Option<u64>,
    url: &url::Url,
) -> Option<Failure> {
    let (listed, stated) = (listed?, stated?);
    (listed != stated).then(|| {
        let message = format!(
            "{}: the list says {listed} bytes, the server has {stated}; update the list",
            shown(url)
        );
        Failure::new(ErrorKind::Checksum, message)
    })
}
