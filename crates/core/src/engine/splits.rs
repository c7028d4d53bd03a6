//! Which of the streams of a file is worth being split.

use std::time::Duration;

use pelton_algos::bodies::Bodies;
use pelton_algos::credit::FIRST_WINDOW;
use pelton_algos::outlook::Outlook;
use pelton_algos::params::{DEFAULT_CHANNELS, SPLIT_FLOOR};
use pelton_algos::ranges::{ByteRange, Candidate, InFlight, StreamId};
use pelton_algos::slow_start::{self, Begun};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};

use super::event::{Action, FileId};
use super::origin::OriginState;
use super::watch::Recent;
use super::{Engine, Stream};

/// A range that takes one stream so many times as long as an answer is worth being split: a connection may have
/// to be opened for it. What of its answer a server thinks about is waited for once.
const WORTHWHILE_ANSWERS: u32 = 3;

/// The same at the end where connections idle: one that is open brings its half a round trip later.
const WORTHWHILE_WHERE_IDLE: u32 = 2;

/// Where a server thinks about each answer, how fast one comes is known after this part of that time.
const SAMPLES_OF_ANSWER: u32 = 8;

/// So many requests that wait for their turn keep busy who answers one after the other.
const ENOUGH_WAIT: u32 = 2;

/// Below this a range is never split by itself: a new connection with TLS costs some 5 kB.
const LEAST_SPLIT: Bytes = Bytes::kib(64);

/// The same where the path is far from full, or a connection idles at the end: there is room for another stream.
const LEAST_ON_FREE_PATH: Bytes = Bytes::kib(24);

/// The same at the end where connections are shared: there is one that bears less, and a request is little.
const LEAST_OF_SHARED: Bytes = Bytes(12_000);

/// A path that carries less than this part of its bandwidth is far from full.
const FREE: f64 = 0.5;

/// What splitting a range gains at present.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Splits {
    /// What each stream brings on the average; nothing where that is not known.
    of_each: BitRate,
    /// What the path carries for each at most, once there are as many as are usual.
    share: BitRate,
    rtt: Duration,
    /// How long a new stream's first byte is waited for.
    answer: Duration,
    /// The server takes so long for each answer that it is worth finding out how fast one comes.
    thinks: bool,
    /// That is worth being waited for.
    finds_out: bool,
    /// In times of an answer, a stream that takes longer for its half is worth it.
    worthwhile: u32,
    /// Requests of others wait for their turn, and one more would make nobody sooner.
    have_others_their_turn: bool,
    least: Bytes,
    usual: Bytes,
    /// The user has set the floor.
    is_set: bool,
    /// Others may bring what the server of a stream was promised over HTTP/2. It comes anyhow, in place of what they
    /// bring: only at the end, or where the path stays far from full.
    may_cut_promised: bool,
    /// Of a stream that is alone, or one of so few that they are asked for no more than they need.
    alone: Option<Alone>,
}

/// Whoever saves joules lets so many streams fill a path together before others join.
const FEW_TOGETHER: u32 = 4;

/// What others may do for a stream that has all paths, or its part of them, for itself.
#[derive(Debug, Clone, Copy)]
enum Alone {
    /// What its path carries is not known yet, but soon will be.
    Unknown,
    Seen(Outlook),
    /// Several bring what it carries.
    Full,
    /// More of them are to be tried, or were found to pay, by who has so long to go.
    Tried(Duration),
}

/// What is over in so many times what a change takes to show is not worth a trial.
const WORTH_A_TRIAL: u32 = 2;

/// The first flight of a further connection comes after its handshake and an answer's round trip: over TCP alone, and
/// with TLS 1.3, where chains of certificates often take one more. Where one is idle, after the answer's.
const JOINED_AFTER: u32 = 2;
const JOINED_AFTER_TLS: u32 = 4;
const JOINED_AFTER_IDLE: u32 = 1;

impl Alone {
    fn is_help_worthwhile(
        &self,
        begun: Option<Begun>,
        rate: Option<BitRate>,
        remaining: Bytes,
    ) -> bool {
        match (self, begun) {
            (Self::Unknown, _) => begun.is_none(),
            (Self::Full, _) => false,
            (Self::Tried(least), _) => rate.is_some_and(|rate| remaining / rate >= *least),
            (Self::Seen(_), None) => true,
            (Self::Seen(outlook), Some(begun)) => {
                outlook.is_help_worthwhile(&begun, rate, remaining)
            }
        }
    }
}

impl Engine {
    /// Two stream windows: a range below that ends before its stream has reached its rate.
    pub(super) fn split_floor(&self) -> Bytes {
        let measured =
            || Bytes(self.link.estimate().stream_window.0.saturating_mul(2)).max(SPLIT_FLOOR);
        self.config.limits.split_floor.unwrap_or_else(measured)
    }

    pub(super) fn splits(&self) -> Splits {
        let link = self.link.estimate();
        // Over a shared connection an answer waits behind others: that says nothing of a connection of its own.
        let shares = self.shares_connections();
        let mean = if shares { Duration::ZERO } else { self.answers.mean() };
        let turns = self.turns();
        let answer = turns.map_or(mean, |turns| turns.wait);
        let is_far_from_full = self.goodput.bps() < link.bandwidth.bps() * FREE;
        let is_at_end = self.is_at_end();
        let idles_at_end = is_at_end && self.idle_connections() > 0;
        let is_free = is_far_from_full || idles_at_end;
        // A path that is full brings what is left as soon, and what is asked for once more costs joules.
        let is_full = self.link.keeps_pace(self.goodput);
        let hurries = idles_at_end && !is_full && !self.policy.is_thrifty();
        let streams = self.streams.len() as u32;
        let part = |streams: u32| 1.0 / f64::from(streams);
        let share = link.bandwidth * part(streams.max(DEFAULT_CHANNELS));
        let of_each = self.goodput * part(streams.max(1));
        let few = if self.is_full_by_few() {
            u32::MAX
        } else if self.is_thrifty() {
            FEW_TOGETHER
        } else {
            1
        };
        // What streams bring that mostly wait for their server says nothing of what one brings that was answered.
        let thinks = turns.is_some() || self.are_answers_thought_about();
        Splits {
            of_each: if thinks { share.max(of_each).max(self.rate_of_bodies()) } else { of_each },
            share,
            rtt: link.rtt,
            // What answers have waited for was a queue that is gone where connections idle.
            answer: if hurries && !thinks { link.rtt } else { link.rtt.max(answer) },
            thinks,
            finds_out: thinks,
            worthwhile: if hurries { WORTHWHILE_WHERE_IDLE } else { WORTHWHILE_ANSWERS },
            have_others_their_turn: turns.is_some_and(|turns| turns.waiting >= ENOUGH_WAIT),
            least: if shares && is_at_end {
                LEAST_OF_SHARED
            } else if is_free {
                LEAST_ON_FREE_PATH
            } else {
                LEAST_SPLIT
            },
            usual: self.split_floor(),
            is_set: self.config.limits.split_floor.is_some(),
            may_cut_promised: is_at_end || self.stays_far_from_full(),
            alone: ((1..=few).contains(&streams) && self.policy.prefers_files())
                .then(|| self.alone(streams)),
        }
    }

    /// What a stream brings whose server is done thinking: those that were, or, before any of them has come, those that are.
    fn rate_of_bodies(&self) -> BitRate {
        let mut bodies = self.bodies;
        if bodies == Bodies::default() {
            let begun = self.streams.values().filter_map(|stream| stream.recent.body());
            begun.for_each(|(bytes, took)| bodies.add(bytes, took));
        }
        bodies.rate()
    }

    /// Whether requests share connections.
    pub(super) fn shares_connections(&self) -> bool {
        self.origins.iter().any(OriginState::multiplexes)
    }

    /// Whether all requests do.
    pub(super) fn shares_all_connections(&self) -> bool {
        !self.origins.is_empty() && self.origins.iter().all(OriginState::multiplexes)
    }

    /// Whether the path carries far less than it was seen to, and no rate grows.
    fn stays_far_from_full(&self) -> bool {
        let is_far_from_full = |best: BitRate| self.goodput.bps() < best.bps() * FREE;
        !self.link.is_filling() && self.link.best_seen().is_some_and(is_far_from_full)
    }

    /// Whether the path never carried far more than it does.
    pub(super) fn has_stayed_far_from_full(&self) -> bool {
        let is_far_from_full =
            |best: BitRate| self.link.measured_bandwidth().is_some_and(|it| it < best * FREE);
        self.stays_far_from_full() && self.link.best_seen().is_some_and(is_far_from_full)
    }

    /// Whether what comes is what the first answers told of a path that few windows fill, and do.
    pub(super) fn is_full_by_few(&self) -> bool {
        self.room.is_held && self.link.is_at_pace() && self.link.has_queue()
    }

    /// Each of so many `streams` has an equal part of what the path carries, and of those that may join.
    fn alone(&self, streams: u32) -> Alone {
        // A path that loses or queues what comes is full with those that it has.
        let may_have_room = !self.link.tells_of_queue() && !self.losses.any();
        if self.is_thrifty() && self.widening() > streams && may_have_room {
            return Alone::Tried(self.settle() * WORTH_A_TRIAL);
        }
        let Some(best) = self.link.best_seen() else { return Alone::Unknown };
        let best = best * (1.0 / f64::from(streams));
        // Who fills its path is given one more, to see whether it is the path.
        let joiners = match (self.is_full_by_few(), self.limits().max_channels / streams) {
            (true, _) if streams > 1 => return Alone::Full,
            (true, _) => 1,
            (false, channels) => channels.saturating_sub(1).max(1),
        };
        let has_idle = self.origins.iter().any(|origin| origin.opened > streams);
        let joined_after = match self.handshake() {
            _ if has_idle => JOINED_AFTER_IDLE,
            Bytes::ZERO => JOINED_AFTER,
            _ => JOINED_AFTER_TLS,
        };
        let was_full = streams == 1 && self.link.is_at_pace();
        Alone::Seen(Outlook { best, joiners, joined_after, was_full })
    }
}

impl Engine {
    /// What `stream` is to bring of `file`, which shall have `wanted` of them in all: of another one, if need be.
    pub(super) fn range_for(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        file: FileId,
        wanted: u32,
    ) -> Option<ByteRange> {
        let mut splits = self.splits();
        // Whose connections break may never find out what one of them brings.
        if self.files[file.index()].attempt > 0 {
            (splits.alone, splits.finds_out) = (None, false);
        }
        let floor = splits.of_gap().0;
        let is_alone = splits.alone.is_some();
        let entry = &mut self.files[file.index()];
        let finds_out = entry.tries_range && !entry.gave_range;
        if finds_out && entry.ranges.streams() > 1 {
            return None;
        }
        let multiplexes = self.origins[entry.origin.0 as usize].multiplexes();
        let (known, ranges) = (&self.streams, &mut entry.ranges);
        let gain = |of: Candidate| {
            let stream = known.get(&of.stream)?;
            if multiplexes && of.has_asked && !splits.may_cut_promised {
                return None;
            }
            let costs_connection = !multiplexes && (of.has_asked || stream.is_plain());
            splits.gain(now, &stream.recent, of.remaining, costs_connection)
        };
        let streams = ranges.streams() as u32;
        let parts = match splits.alone {
            // What is lost where none is given has to be little.
            _ if finds_out => 2,
            Some(Alone::Seen(outlook)) => wanted.min(streams.saturating_add(outlook.joiners)),
            _ => wanted,
        };
        // The first split of a probe deals even shares; later ones take halves.
        if streams == 1 && ranges.gaps().is_empty() && parts > 2 {
            let probe = ranges.stream_ids().next().filter(|id| {
                let left = ranges.stream(*id).and_then(InFlight::remaining);
                let of = |remaining| Candidate { stream: *id, remaining, has_asked: false };
                let is_plain = known.get(id).is_some_and(Stream::is_plain);
                let may_be_free = !is_alone && (multiplexes || !is_plain);
                may_be_free || left.is_some_and(|left| gain(of(left)).is_some())
            });
            let cut = probe.and_then(|id| {
                let left = ranges.stream(id).and_then(InFlight::remaining)?;
                let begun = known.get(&id).and_then(|stream| stream.recent.begun(now, splits.rtt));
                let share = splits.own_share(begun, Bytes(left), parts - 1);
                Some((id, ranges.cut_to_share(id, share.0, floor)?))
            });
            self.actions.extend(cut.map(|(stream, end)| Action::Cut { stream, end }));
        }
        let sharers = u64::from(parts.saturating_sub(streams).max(1));
        let assignment = ranges.assign(stream, sharers, floor, gain)?;
        if multiplexes {
            // So much at least, until it is known which connection bears it.
            ranges.on_asked(stream, assignment.range.start.saturating_add(FIRST_WINDOW));
        }
        self.actions.extend(assignment.cut.map(|(stream, end)| Action::Cut { stream, end }));
        Some(assignment.range)
    }
}

impl Splits {
    pub(super) const fn of_each(&self) -> BitRate {
        self.of_each
    }

    /// What a stream brings that has just begun, until a range of its own pays. The mean says less, once many have.
    fn of_beginning(&self) -> BitRate {
        slow_start::rate_until(self.worthwhile()).max(self.of_each)
    }

    /// The least part of a gap for a stream that starts now.
    pub(super) fn of_gap(&self) -> Bytes {
        self.floor(self.of_each)
    }

    /// What of `remaining` bytes a stream that has `begun` so is left with where so many others join.
    fn own_share(&self, begun: Option<Begun>, remaining: Bytes, joiners: u32) -> Bytes {
        match (self.alone, begun) {
            (Some(Alone::Seen(outlook)), Some(begun)) => {
                outlook.own_share(&begun, remaining, joiners)
            }
            _ => Bytes(remaining.0 / (u64::from(joiners) + 1)),
        }
    }

    /// How long `remaining` bytes keep a stream busy that has done as in `recent`, where half of them
    /// is worth a stream of its own. Where that `costs_connection`, and what is under way over it, it is worth
    /// less: a window that grows is done sooner than by its rate.
    pub(super) fn gain(
        &self,
        now: Timestamp,
        recent: &Recent,
        remaining: u64,
        costs_connection: bool,
    ) -> Option<Duration> {
        if self.have_others_their_turn {
            return None;
        }
        let begun = recent.begun(now, self.rtt);
        let is_known = |begun: Begun| begun.age >= self.answer / SAMPLES_OF_ANSWER;
        let waits = || recent.waits_for_part(now, self.answer);
        if self.finds_out && (!begun.is_some_and(is_known) || waits()) {
            return None;
        }
        let lately = recent.rate_lately(now, self.rtt);
        if self.finds_out && lately.is_none() {
            return None;
        }
        let rate = lately.unwrap_or_else(|| self.of_beginning());
        let left = Bytes(remaining) / rate;
        if Bytes(remaining / 2) < self.floor(rate) {
            return None;
        }
        if self.is_set {
            return Some(left);
        }
        let is_worthwhile =
            |alone: Alone| alone.is_help_worthwhile(begun, lately, Bytes(remaining));
        if !self.alone.is_none_or(is_worthwhile) {
            return None;
        }
        if !costs_connection {
            return Some(left);
        }
        let grown = begun.and_then(|begun| begun.time_left(Bytes(remaining), self.share));
        let left = grown.map_or(left, |grown| grown.min(left));
        (left >= self.worthwhile() * 2).then_some(left)
    }

    /// What takes a stream less is no range of its own.
    fn worthwhile(&self) -> Duration {
        if self.thinks {
            self.answer + self.rtt * (self.worthwhile - 1)
        } else {
            self.answer * self.worthwhile
        }
    }

    /// Where a stream is so slow that it needs many round trips for the usual floor, less is worth a
    /// request: else the last ones are waited for.
    fn floor(&self, rate: BitRate) -> Bytes {
        if self.is_set || self.of_each == BitRate::ZERO {
            return self.usual;
        }
        let floor = (rate * self.worthwhile()).max(self.least);
        if self.thinks { floor } else { floor.min(self.usual) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn splits() -> Splits {
        let of_each = BitRate::from_mbps(8.0);
        let usual = Bytes::kib(256);
        Splits {
            of_each,
            share: of_each,
            rtt: RTT,
            answer: RTT,
            thinks: false,
            finds_out: false,
            worthwhile: WORTHWHILE_ANSWERS,
            have_others_their_turn: false,
            least: LEAST_SPLIT,
            usual,
            is_set: false,
            may_cut_promised: false,
            alone: None,
        }
    }

    /// A stream that has brought `bytes` in one second.
    fn having_brought(bytes: u64) -> Recent {
        let mut recent = Recent::starting(Timestamp::START);
        recent.on_head(Timestamp::START, RTT);
        recent.on_data(Timestamp::START, bytes, 1);
        recent
    }

    #[test]
    fn nobody_is_helped_where_several_fill_the_path() {
        let gain = |alone| {
            let now = Timestamp::from_millis(1_000);
            Splits { alone, ..splits() }.gain(now, &having_brought(10_000), 10_000_000, true)
        };
        assert!(gain(None).is_some() && gain(Some(Alone::Full)).is_none());
    }

    #[test]
    fn whoever_tries_more_streams_has_some_way_to_go() {
        let gain = |remaining| {
            let tries = Splits { alone: Some(Alone::Tried(Duration::from_secs(4))), ..splits() };
            tries.gain(Timestamp::from_millis(1_000), &having_brought(100_000), remaining, false)
        };
        assert_eq!((gain(390_000), gain(400_000)), (None, Some(Duration::from_secs(4))));
    }

    #[test]
    fn a_slow_stream_is_split_where_a_fast_one_is_not() {
        let now = Timestamp::START + Duration::from_secs(1);
        let gain = |rate, remaining| splits().gain(now, &having_brought(rate), remaining, false);
        // 1 MB/s: half of 400 kB are two round trips.
        assert_eq!(gain(1_000_000, 400_000), None);
        // 100 kB/s: twenty.
        assert_eq!(gain(100_000, 400_000), Some(Duration::from_secs(4)));
        assert_eq!(gain(100_000, 100_000), None, "not worth a connection");
        let idle = Splits { worthwhile: WORTHWHILE_WHERE_IDLE, ..splits() };
        let gain_of_idle = |remaining| idle.gain(now, &having_brought(1_000_000), remaining, false);
        assert_eq!((gain_of_idle(390_000), gain_of_idle(400_000).is_some()), (None, true));
        let free = Splits { least: LEAST_ON_FREE_PATH, ..splits() };
        assert!(free.gain(now, &having_brought(50_000), 100_000, false).is_some(), "one is idle");
        assert!(gain(0, 400_000) > gain(100_000, 400_000), "it brings nothing at all");
    }

    #[test]
    fn a_stream_without_an_answer_is_taken_for_the_average() {
        let fresh = Recent::starting(Timestamp::START);
        let gain = |remaining| splits().gain(Timestamp::START, &fresh, remaining, false);
        assert_eq!(gain(2_000_000), Some(Duration::from_secs(2)));
        assert_eq!(gain(400_000), None);
    }

    #[test]
    fn a_stream_that_has_just_begun_is_no_slower_than_slow_start() {
        let begun = Recent::starting(Timestamp::START);
        let gain = |remaining, of_each| {
            let splits = Splits { of_each, least: LEAST_ON_FREE_PATH, ..splits() };
            splits.gain(Timestamp::START, &begun, remaining, false)
        };
        // 43 kB in three round trips, where the mean would bring 7.5 kB.
        let slow = BitRate::from_mbps(0.2);
        assert_eq!((gain(86_000, slow), gain(90_000, slow).is_some()), (None, true));
        assert_eq!(gain(300_000, BitRate::from_mbps(8.0)), None, "300 kB in three round trips");
    }

    #[test]
    fn where_a_server_thinks_a_stream_shows_first_how_fast_it_comes() {
        let thinking = Splits { answer: RTT * 8, thinks: true, finds_out: true, ..splits() };
        let after = |millis| Timestamp::START + Duration::from_millis(millis);
        let gain = |now, bytes| thinking.gain(now, &having_brought(bytes), 8_000_000, true);
        let fresh = Recent::starting(Timestamp::START);
        assert_eq!(thinking.gain(after(900), &fresh, 8_000_000, true), None, "no answer yet");
        assert_eq!(gain(after(50), 500_000), None, "it has just begun");
        assert_eq!(gain(after(1_000), 8_000_000), None, "as much comes within an answer's time");
        assert_eq!(gain(after(1_000), 500_000), Some(Duration::from_secs(16)));
        assert!(
            gain(after(1_000), 2_500_000).is_some(),
            "four answers' time: another thinks only once"
        );
    }

    #[test]
    fn what_its_server_thinks_about_is_no_slowness_of_a_stream() {
        let thinking = Splits { answer: RTT * 8, thinks: true, finds_out: true, ..splits() };
        let after = |millis| Timestamp::START + Duration::from_millis(millis);
        let gain = |now, left: Option<u64>| {
            let mut recent = having_brought(500_000);
            if let Some(left) = left {
                recent.on_asked(left);
            }
            thinking.gain(now, &recent, 8_000_000, true)
        };
        assert!(gain(after(1_000), None).is_some());
        assert_eq!(gain(after(1_000), Some(0)), None, "the rest was just asked for");
        assert!(gain(after(1_000), Some(10_000)).is_some(), "not all has come before that");
        assert!(gain(after(1_700), Some(0)).is_some(), "its answer is overdue");
    }

    #[test]
    fn the_floor_of_a_user_is_exact() {
        let set = Splits { is_set: true, ..splits() };
        let now = Timestamp::START + Duration::from_secs(1);
        assert_eq!(set.gain(now, &having_brought(100_000), 2 * 256 * 1024 - 2, false), None);
        assert!(set.gain(now, &having_brought(100_000), 2 * 256 * 1024, false).is_some());
    }
}
