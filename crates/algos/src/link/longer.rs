//! A path that becomes longer while transfers use it.

use std::time::Duration;

use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// So many round trips in a row are no chance, where they are of more than a moment.
const TELLING: u32 = 4;
/// They are all so many times as long as the path was, and as the ones that met its queue, and by so much longer at least.
const LONGER: f64 = 1.5;
const LONGER_AT_LEAST: Duration = Duration::from_millis(5);
/// For how long they are at least: less is a wait for something that was lost.
const LASTS: Duration = Duration::from_millis(500);
/// Transfers that bring so many times as much as before recover from a pause.
const RECOVERS: f64 = 2.0;

/// Tells a path that has become longer from a queue that transfers fill.
///
/// Both make round trips longer. Transfers that bring all that the path carries fill its queue; where they bring much less than
/// they did, their windows have become too small for it. A queue that was there before shows in the round trips of then. A path
/// that has become much slower, and has a deep queue, looks the same for as long as its old rate is remembered.
///
/// Transports smooth what they tell, which lags behind; in answers there is what a server thinks. The former shows that the
/// path is longer, and the latter how long it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LongerPath {
    /// Since when transfers have brought much less than the path carried.
    slack_since: Option<Timestamp>,
    /// How long a round trip was at the last two samples before. Transports may have noticed sooner than the last one.
    full: (Duration, Duration),
    /// The most that they have brought since then.
    best: BitRate,
    /// Round trips in a row that were longer, the shortest of them, and since when.
    seen: u32,
    least: Duration,
    long_since: Timestamp,
    /// The shortest answer, and how many there were.
    answer: Duration,
    answers: u32,
    trips: WholeTrips,
    /// What the last whole round trip brought, with its pauses.
    rate: BitRate,
}

/// What a path that has become longer is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Longer {
    pub(super) rtt: Duration,
    /// What a whole round trip brings at present, with its pauses.
    pub(super) rate: BitRate,
}

/// What comes in whole round trips. Where windows are small for a path it comes at its full rate, and then not at all: parts of a
/// round trip would look like a path that is full time and again.
#[derive(Debug, Clone, Copy, Default)]
struct WholeTrips {
    bytes: Bytes,
    took: Duration,
}

impl WholeTrips {
    /// `bytes` came within `took`. Returns the rate of all since the last one, where that took a round trip of `trip` at least.
    fn push(&mut self, bytes: Bytes, took: Duration, trip: Duration) -> Option<BitRate> {
        self.bytes += bytes;
        self.took += took;
        if self.took < trip {
            return None;
        }
        let whole = std::mem::take(self);
        Some(whole.bytes / whole.took)
    }
}

impl LongerPath {
    /// `bytes` came within `took`; a round trip takes so long of late. A path that brings as much as `full_from` is full; `None`
    /// where it is not known what it carries.
    pub(super) fn on_delivered(
        &mut self,
        now: Timestamp,
        bytes: Bytes,
        took: Duration,
        full_from: Option<BitRate>,
        trip: Duration,
    ) {
        let Some(rate) = self.trips.push(bytes, took, trip) else { return };
        self.rate = rate;
        if full_from.is_none_or(|full| rate >= full) {
            *self = Self { full: (self.full.1, trip), rate, ..Self::default() };
        } else if self.slack_since.is_none() || rate > self.best * RECOVERS {
            let full = self.full;
            *self = Self { slack_since: Some(now), best: rate, full, rate, ..Self::default() };
        }
    }

    /// An answer took so long, without what the server thinks.
    pub(super) fn on_answer(&mut self, now: Timestamp, took: Duration) {
        let Some(since) = self.slack_since else { return };
        if took > now.saturating_since(since) {
            return;
        }
        self.answer = if self.answers == 0 { took } else { self.answer.min(took) };
        self.answers += 1;
    }

    /// A round trip took so long over a path of `known`. Returns what the path is like, where it has become longer.
    pub(super) fn on_round_trip(
        &mut self,
        now: Timestamp,
        took: Duration,
        known: Duration,
    ) -> Option<Longer> {
        let slack = now.saturating_since(self.slack_since?);
        // One that began before may have met the queue of then.
        if took > slack {
            return None;
        }
        let known = known.max(self.full.0);
        if took <= known.mul_f64(LONGER).max(known + LONGER_AT_LEAST) {
            self.seen = 0;
            return None;
        }
        if self.seen == 0 {
            (self.least, self.long_since) = (took, now);
        }
        let least = self.least.min(took);
        (self.least, self.seen) = (least, self.seen + 1);
        if self.seen < TELLING || now.saturating_since(self.long_since) < LASTS {
            return None;
        }
        let answer = if self.answers >= TELLING { self.answer } else { Duration::ZERO };
        let found = Longer { rtt: least.max(answer), rate: self.rate };
        *self = Self::default();
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Duration = Duration::from_millis(40);
    const RATE: BitRate = BitRate::from_kbps(10_000);

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// One that brings less since the start, and what round trips of so long, one each 100 ms from `from` on, show.
    fn found(longer: &mut LongerPath, from: u64, trips: &[u64]) -> Vec<Option<Duration>> {
        let each = (from..).step_by(100).zip(trips);
        let mut trip =
            |(millis, took): (u64, &u64)| longer.on_round_trip(at(millis), ms(*took), KNOWN);
        each.map(|each| trip(each).map(|longer| longer.rtt)).collect()
    }

    /// A whole round trip of `trip` brings `rate` over a path that is full or not.
    fn brings(longer: &mut LongerPath, millis: u64, rate: BitRate, is_full: bool, trip: Duration) {
        let full_from = if is_full { rate } else { rate * 2.0 };
        longer.on_delivered(at(millis), rate * trip, trip, Some(full_from), trip);
    }

    fn slack() -> LongerPath {
        let mut longer = LongerPath::default();
        brings(&mut longer, 0, RATE, false, KNOWN);
        longer
    }

    #[test]
    fn round_trips_in_a_row_that_are_longer_show_it_where_less_comes() {
        let longer = [None, None, None, None, None, Some(ms(300))];
        let trips = [320, 300, 310, 330, 305, 340];
        assert_eq!(found(&mut slack(), 500, &trips), longer);
        let with_a_short_one = [320, 310, 45, 300, 310, 330, 305, 340, 350];
        let found_later = found(&mut slack(), 500, &with_a_short_one);
        assert_eq!(found_later.iter().position(Option::is_some), Some(8));
        assert_eq!(found(&mut slack(), 500, &[55; 6]), [None; 6], "a little");
        assert_eq!(found(&mut slack(), 500, &[320; 5]), [None; 5], "for a moment");
        assert_eq!(found(&mut slack(), 500, &[1_500; 6]), [None; 6], "they began before");
        let mut full = LongerPath::default();
        brings(&mut full, 0, RATE, true, KNOWN);
        assert_eq!(found(&mut full, 500, &[300; 6]), [None; 6], "a queue that is filled");
    }

    #[test]
    fn round_trips_that_were_as_long_while_the_path_was_full_meet_its_queue() {
        let mut longer = LongerPath::default();
        let queued = |longer: &mut LongerPath, millis, trip| {
            brings(longer, millis, RATE, true, ms(trip));
        };
        queued(&mut longer, 0, 250);
        queued(&mut longer, 200, 300);
        brings(&mut longer, 400, RATE, false, ms(310));
        assert_eq!(found(&mut longer, 900, &[370; 6]), [None; 6]);
        assert_eq!(
            found(&mut longer, 1_500, &[380; 6])[5],
            Some(ms(380)),
            "more than half as long"
        );
    }

    #[test]
    fn transfers_that_recover_tell_nothing() {
        let mut longer = slack();
        brings(&mut longer, 1_400, RATE * 2.5, false, KNOWN);
        assert_eq!(found(&mut longer, 1_400, &[90; 6]), [None; 6]);
        let mut longer = slack();
        brings(&mut longer, 700, RATE * 1.2, false, KNOWN);
        assert_eq!(found(&mut longer, 800, &[90; 6])[5], Some(ms(90)));
    }

    #[test]
    fn answers_tell_how_long_it_is_where_transports_lag_behind() {
        let mut longer = slack();
        (0..4).for_each(|index| longer.on_answer(at(600 + index * 100), ms(310 + index)));
        assert_eq!(found(&mut longer, 1_000, &[75, 100, 125, 150, 175, 200])[5], Some(ms(310)));
        let mut longer = slack();
        longer.on_answer(at(600), ms(310));
        assert_eq!(found(&mut longer, 1_000, &[75; 6])[5], Some(ms(75)), "one may be chance");
    }

    #[test]
    fn a_round_trip_of_bursts_and_pauses_is_looked_at_as_a_whole() {
        let trip = ms(300);
        let mut trips = WholeTrips::default();
        let mut whole = |parts: [u64; 3]| {
            parts
                .map(|bytes| trips.push(Bytes(bytes), ms(100), trip).map(|rate| rate.bps().round()))
        };
        assert_eq!(whole([500_000, 20_000, 20_000]), [None, None, Some(14_400_000.0)]);
        assert_eq!(whole([0, 0, 37_500]), [None, None, Some(1_000_000.0)], "anew");
    }
}
