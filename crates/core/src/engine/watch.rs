//! Streams are looked at now and then: those that have stalled, those that crawl, and those that are
//! too many.

use std::time::Duration;

use pelton_algos::crowding::Verdict;
use pelton_algos::ranges::{InFlight, StreamId};
use pelton_algos::slow_start::Begun;
use pelton_algos::tail::{Watched, look_interval};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};

use super::facts::Failure;
use super::origin::Contact;
use super::{Engine, OriginId, Stream};
use crate::ErrorKind;
use crate::connection::{Scheme, shown, through};

/// A part of the streams whose rate is known says as much as all of them.
const NEARLY_ALL: f64 = 0.9;

/// The rate of a stream that brought less says little of its connection.
const TELLING: Bytes = Bytes::kib(16);

/// Over less than this a stream has no rate: bytes come in bursts.
const LEAST_SAMPLE: Duration = Duration::from_millis(100);

/// Who has waited for so much more than a round trip has waited for its server.
const LEAST_WAIT: Duration = Duration::from_millis(20);

/// The rate of a stream is that over so many round trips, or up to twice as many: windows are halved and grow
/// again, and what it did long ago says nothing of when it will be done.
const SPAN_RTTS: u32 = 4;

/// An answer takes so many times as long as others at most.
const LONGEST_ANSWERS: u32 = 2;

/// Who waits for its turn does so for no more than so many stall time-outs.
const LONGEST_TURN: u32 = 4;

/// What a stream has brought lately.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recent {
    /// When anything came last.
    pub(super) came_at: Timestamp,
    /// Since when enough has not arrived.
    pub(super) quiet_since: Timestamp,
    /// Bytes since then.
    quiet_bytes: u64,
    /// From here on its rate is watched: it has begun to have one.
    watched_from: Option<Timestamp>,
    watched_bytes: u64,
    head_at: Option<Timestamp>,
    bytes: u64,
    /// So many had come, or will have, when the part begins that was asked for last.
    part_from: u64,
    /// As its head came.
    rtt: Duration,
    /// How long a span is over which its rate is taken.
    span: Duration,
    /// When the present span and the one before began, and how many bytes had come by then.
    spans: [(Timestamp, u64); 2],
    /// The same of round trips.
    trips: [(Timestamp, u64); 2],
    /// What it brought before it was watched has been told.
    has_told: bool,
}

impl Recent {
    pub(super) const fn starting(now: Timestamp) -> Self {
        Self {
            came_at: now,
            quiet_since: now,
            quiet_bytes: 0,
            watched_from: None,
            watched_bytes: 0,
            head_at: None,
            bytes: 0,
            part_from: 0,
            rtt: Duration::MAX,
            span: Duration::MAX,
            spans: [(now, 0); 2],
            trips: [(now, 0); 2],
            has_told: false,
        }
    }

    pub(super) fn on_head(&mut self, now: Timestamp, rtt: Duration) {
        self.came_at = now;
        self.note_sign(now);
        if self.head_at.is_none() {
            self.head_at = Some(now);
            self.span = (rtt * SPAN_RTTS).max(LEAST_SAMPLE);
            self.spans = [(now, self.bytes); 2];
            self.rtt = rtt;
            self.trips = self.spans;
        }
        if self.watched_from.is_none() {
            self.watched_from = Some(now + look_interval(rtt));
        }
    }

    /// The next of several answers comes. Where it had to be waited for, what came before says nothing of how fast.
    pub(super) fn on_continued(&mut self, now: Timestamp, rtt: Duration) {
        if now.saturating_since(self.came_at) > rtt + LEAST_WAIT {
            *self = Self::starting(now);
            self.on_head(now, rtt);
        }
    }

    /// It was asked for again. Whether it has stalled is another question.
    pub(super) const fn on_moved(&mut self, now: Timestamp) {
        self.came_at = now;
    }

    /// Whether it waits for its server, for its first answer or for the next one.
    pub(super) const fn waits_for_answer(&self) -> bool {
        self.head_at.is_none() || self.is_between_parts()
    }

    /// Something comes. The wait for its turn, if that was one, says nothing of how fast.
    pub(super) fn end_turn(&mut self, now: Timestamp) {
        if self.is_between_parts() {
            self.on_continued(now, self.rtt);
        }
    }

    /// It asked for more, behind so many bytes that are still to come.
    pub(super) const fn on_asked(&mut self, ahead: u64) {
        self.part_from = self.bytes + ahead;
    }

    /// Whether all that it asked for before its last request has come.
    const fn is_between_parts(&self) -> bool {
        self.part_from > 0 && self.bytes == self.part_from
    }

    /// Whether all that it asked for before has come, and the answer to its last request is waited for, for no longer than
    /// twice an `answer`.
    pub(super) fn waits_for_part(&self, now: Timestamp, answer: Duration) -> bool {
        self.bytes == self.part_from && self.silent_for(now) < answer * LONGEST_ANSWERS
    }

    /// `bytes` came; `enough` of them show that the stream has not stalled.
    pub(super) fn on_data(&mut self, now: Timestamp, bytes: u64, enough: u64) {
        if now.saturating_since(self.spans[0].0) >= self.span {
            self.spans = [(now, self.bytes), self.spans[0]];
        }
        if now.saturating_since(self.trips[0].0) >= self.rtt {
            self.trips = [(now, self.bytes), self.trips[0]];
        }
        self.came_at = now;
        self.bytes += bytes;
        self.quiet_bytes += bytes;
        if self.quiet_bytes >= enough {
            self.note_sign(now);
        }
        if self.watched_from.is_some_and(|from| now >= from) {
            self.watched_bytes += bytes;
        }
    }

    /// What it has brought lately, once its head came long enough ago for a rate.
    pub(super) fn rate_lately(&self, now: Timestamp, rtt: Duration) -> Option<BitRate> {
        self.head_at?;
        let (since, before) = self.spans[1];
        let elapsed = now.saturating_since(since);
        let bytes = Bytes(self.bytes - before);
        (elapsed >= (rtt * 2).max(LEAST_SAMPLE)).then(|| bytes / elapsed)
    }

    /// All that it has brought, and how long that took. What came with the head was under way for a round trip.
    pub(super) fn body(&self) -> Option<(Bytes, Duration)> {
        let took = self.came_at.saturating_since(self.head_at?) + self.rtt;
        Some((Bytes(self.bytes), took))
    }

    /// The same of a part, if it has all come.
    pub(super) fn part(&self) -> Option<(Bytes, Duration)> {
        if self.is_between_parts() { self.body() } else { None }
    }

    /// For how long nothing came.
    pub(super) fn silent_for(&self, now: Timestamp) -> Duration {
        now.saturating_since(self.came_at)
    }

    /// Whether what it brought is worth a connection.
    pub(super) const fn has_brought_much(&self) -> bool {
        self.has_brought(TELLING)
    }

    pub(super) const fn has_brought(&self, bytes: Bytes) -> bool {
        self.bytes >= bytes.0
    }

    /// How it has begun, if its head came.
    pub(super) fn begun(&self, now: Timestamp, rtt: Duration) -> Option<Begun> {
        let age = now.saturating_since(self.head_at?);
        let [(ended, by_then), (since, before)] = self.trips;
        let (lately, over) = (Bytes(self.bytes - before), now.saturating_since(since));
        let last_trip = Bytes(by_then - before) / ended.saturating_since(since);
        Some(Begun { brought: Bytes(self.bytes), age, rtt, lately, over, last_trip })
    }

    /// What it brought before it was watched: once, and where that says something.
    fn first_rate(&mut self, now: Timestamp) -> Option<BitRate> {
        let (from, head_at) = (self.watched_from?, self.head_at?);
        if now < from || std::mem::replace(&mut self.has_told, true) {
            return None;
        }
        let bytes = Bytes(self.bytes.saturating_sub(self.watched_bytes));
        (bytes >= TELLING).then(|| bytes / from.saturating_since(head_at))
    }

    const fn note_sign(&mut self, now: Timestamp) {
        self.quiet_since = now;
        self.quiet_bytes = 0;
    }

    /// What it brought since the last look, if it was there for most of that time.
    fn rate(&mut self, now: Timestamp, interval: Duration) -> Option<BitRate> {
        let watched = now.saturating_since(self.watched_from?);
        if watched < interval / 2 {
            return None;
        }
        self.watched_from = Some(now);
        Some(Bytes(std::mem::take(&mut self.watched_bytes)) / watched)
    }
}

impl Engine {
    /// `stream` brought all that it had to.
    pub(super) fn note_complete(&mut self, stream: &Stream) {
        let Some((bytes, took)) = stream.recent.body() else { return };
        if bytes >= TELLING {
            let rate = bytes / took;
            self.bodies.add(bytes, took);
            let state = self.origin(stream.origin);
            state.tail.on_rate(rate, state.streams + 1);
        }
    }

    /// Streams that brought nothing for too long, or next to nothing, have failed.
    pub(super) fn drop_stalled(&mut self, now: Timestamp) {
        if self.stall_check.is_none_or(|at| now < at) {
            return;
        }
        let is_due = |stream: &&Stream| now >= self.stalls_at(stream);
        let stalled: Vec<(StreamId, Stream)> =
            self.streams.iter().filter(|(_, s)| is_due(s)).map(|(id, s)| (*id, *s)).collect();
        for (id, stream) in stalled {
            // The failure of another one may have ended its file.
            if !self.streams.contains_key(&id) {
                continue;
            }
            self.abort_crawling(id);
            // All that it had to bring is there, and the server says that more comes.
            if self.files[stream.file.index()].ranges.is_complete() {
                self.finish_if_complete(stream.file);
                continue;
            }
            let message = self.describe_stall(now, &stream);
            self.on_failure(now, stream, Failure::new(ErrorKind::Timeout, message));
        }
        self.stall_check = self.streams.values().map(|stream| self.stalls_at(stream)).min();
    }

    fn describe_stall(&self, now: Timestamp, stream: &Stream) -> String {
        let what = match stream.recent.quiet_bytes {
            // Perhaps a part of its head.
            0 if !stream.has_head => "no whole answer arrived".to_owned(),
            0 => "nothing arrived".to_owned(),
            bytes => format!("only {bytes} bytes arrived"),
        };
        let waited = now.saturating_since(stream.recent.quiet_since) + self.waited_before(stream);
        let waited = waited.as_secs_f64();
        let waited = (waited * 10.0).round() / 10.0;
        let state = &self.origins[stream.origin.0 as usize];
        let may_lack_tls =
            state.contact == Contact::Reached && state.origin.scheme == Scheme::Https;
        let hint = if may_lack_tls { " (if it speaks no TLS there, ask for http://)" } else { "" };
        let url = shown(self.files[stream.file.index()].url());
        let through = through(state.proxy.as_deref());
        format!("{url}: {what} for {waited} s{through}{hint}")
    }

    /// For how long the requests in whose place `stream` is waited for were not answered.
    fn waited_before(&self, stream: &Stream) -> Duration {
        let before = self.files[stream.file.index()].unanswered_for;
        if stream.whole && !stream.has_head { before } else { Duration::ZERO }
    }

    /// When `stream` has stalled, if it brings nothing until then. Where requests share connections, it may have to
    /// wait for its turn as long as others bring something.
    fn stalls_at(&self, stream: &Stream) -> Timestamp {
        let quiet_since = stream.recent.quiet_since;
        let limit = self.config.stall_timeout;
        // Who takes another's place in the line goes on waiting, but has time to be answered.
        let before = self.waited_before(stream).min(limit / 2);
        let limit = limit.saturating_sub(before);
        let state = &self.origins[stream.origin.0 as usize];
        let shares = state.multiplexes() || state.pipelines == Some(true);
        let others_came = if shares { state.came_at } else { quiet_since };
        (others_came.max(quiet_since) + limit).min(quiet_since + limit * LONGEST_TURN)
    }

    /// Compares the streams of each origin with each other, and with fewer of them before.
    pub(super) fn look_at_streams(&mut self, now: Timestamp) {
        if self.next_look.is_none_or(|at| now < at) {
            return;
        }
        // What was lost behind a queue comes again after round trips that are as long as that.
        let rtt = self.link.round_trip();
        let interval = look_interval(rtt);
        self.next_look = Some(now + interval);
        let (came, time) = self.take_came(now);
        let in_turns = self.turns().is_some();
        let mut by_origin: Vec<Vec<Watched>> = vec![Vec::new(); self.origins.len()];
        for (id, stream) in &mut self.streams {
            if let Some(rate) = stream.recent.first_rate(now) {
                let state = &mut self.origins[stream.origin.0 as usize];
                state.tail.on_rate(rate, state.streams);
            }
            // Who waits for its turn is no slower than others.
            if in_turns && stream.recent.waits_for_answer() {
                continue;
            }
            let Some(rate) = stream.recent.rate(now, interval) else { continue };
            let entry = &self.files[stream.file.index()];
            let can_go_on = entry.takes_ranges && !entry.unproven;
            let in_flight = entry.ranges.stream(*id).filter(|_| can_go_on);
            let remaining = in_flight.and_then(InFlight::remaining).map(Bytes);
            by_origin[stream.origin.0 as usize].push(Watched { stream: *id, rate, remaining });
        }
        // What a limit leaves for each says nothing of the server.
        if self.is_at_limit() {
            return;
        }
        for (index, (watched, came)) in by_origin.into_iter().zip(came).enumerate() {
            if self.is_origin_at_limit(came, time) {
                continue;
            }
            self.look_at_origin(now, rtt, OriginId(index as u32), &watched);
        }
    }

    fn look_at_origin(
        &mut self,
        now: Timestamp,
        rtt: Duration,
        origin: OriginId,
        watched: &[Watched],
    ) {
        let state = self.origin(origin);
        let crawling = state.tail.on_look(now, rtt, watched);
        if !crawling.is_empty() {
            // What is left of their ranges are gaps, for streams over other connections.
            for stream in crawling {
                self.abort_crawling(stream);
            }
            self.refill = true;
            return;
        }
        let streams = watched.len() as u32;
        if streams == 0 || f64::from(streams) < f64::from(state.streams) * NEARLY_ALL {
            return;
        }
        let rate = BitRate::from_bps(watched.iter().map(|watched| watched.rate.bps()).sum());
        match state.crowding.on_look(streams, rate) {
            Some(Verdict::Crowd(fewer)) if state.budget.on_crowd(now, fewer) => {
                self.redecide = true;
                self.shed_streams();
            }
            Some(Verdict::NoCrowd) => self.redecide |= state.budget.on_no_crowd(),
            _ => {}
        }
    }
}
