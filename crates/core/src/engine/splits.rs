//! Which of the streams of a file is worth being split.

use std::time::Duration;

use pelton_algos::params::SPLIT_FLOOR;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};

use super::Engine;
use super::watch::Recent;

/// A range that takes one stream so many times as long as an answer is worth being split: a connection may have
/// to be opened for it.
const WORTHWHILE_ANSWERS: u32 = 3;

/// Below this a range is never split by itself: a new connection with TLS costs some 5 kB.
const LEAST_SPLIT: Bytes = Bytes::kib(64);

/// The same where the path is far from full: there is room for another stream, and mostly an idle connection.
const LEAST_ON_FREE_PATH: Bytes = Bytes::kib(24);

/// A path that carries less than this part of its bandwidth is far from full.
const FREE: f64 = 0.5;

/// What splitting a range gains at present.
#[derive(Debug, Clone, Copy)]
pub(super) struct Splits {
    /// What each stream brings on the average; nothing where that is not known.
    of_each: BitRate,
    rtt: Duration,
    /// How long a new stream's first byte is waited for.
    answer: Duration,
    least: Bytes,
    usual: Bytes,
    /// The user has set the floor.
    is_set: bool,
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
        let shares = self.origins.iter().any(|origin| origin.multiplexes);
        let answer = if shares { Duration::ZERO } else { self.answer_time };
        let is_free = self.goodput.bps() < link.bandwidth.bps() * FREE;
        Splits {
            of_each: self.goodput * (1.0 / self.streams.len().max(1) as f64),
            rtt: link.rtt,
            answer: link.rtt.max(answer),
            least: if is_free { LEAST_ON_FREE_PATH } else { LEAST_SPLIT },
            usual: self.split_floor(),
            is_set: self.config.limits.split_floor.is_some(),
        }
    }
}

impl Splits {
    pub(super) const fn of_each(&self) -> BitRate {
        self.of_each
    }

    /// The least part of a gap for a stream that starts now.
    pub(super) fn of_gap(&self) -> Bytes {
        self.floor(self.of_each)
    }

    /// How long `remaining` bytes keep a stream busy that has done as in `recent`, where half of them
    /// is worth a stream of its own.
    pub(super) fn gain(&self, now: Timestamp, recent: &Recent, remaining: u64) -> Option<Duration> {
        let rate = recent.rate_lately(now, self.rtt).unwrap_or(self.of_each);
        (Bytes(remaining / 2) >= self.floor(rate)).then(|| Bytes(remaining) / rate)
    }

    /// Where a stream is so slow that it needs many round trips for the usual floor, less is worth a
    /// request: else the last ones are waited for.
    fn floor(&self, rate: BitRate) -> Bytes {
        if self.is_set || self.of_each == BitRate::ZERO {
            return self.usual;
        }
        (rate * (self.answer * WORTHWHILE_ANSWERS)).max(self.least).min(self.usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn splits() -> Splits {
        let of_each = BitRate::from_mbps(8.0);
        let usual = Bytes::kib(256);
        Splits { of_each, rtt: RTT, answer: RTT, least: LEAST_SPLIT, usual, is_set: false }
    }

    /// A stream that has brought `bytes` in one second.
    fn having_brought(bytes: u64) -> Recent {
        let mut recent = Recent::starting(Timestamp::START);
        recent.on_head(Timestamp::START, RTT);
        recent.on_data(Timestamp::START, bytes, 1);
        recent
    }

    #[test]
    fn a_slow_stream_is_split_where_a_fast_one_is_not() {
        let now = Timestamp::START + Duration::from_secs(1);
        let gain = |rate, remaining| splits().gain(now, &having_brought(rate), remaining);
        // 1 MB/s: half of 400 kB are two round trips.
        assert_eq!(gain(1_000_000, 400_000), None);
        // 100 kB/s: twenty.
        assert_eq!(gain(100_000, 400_000), Some(Duration::from_secs(4)));
        assert_eq!(gain(100_000, 100_000), None, "not worth a connection");
        let free = Splits { least: LEAST_ON_FREE_PATH, ..splits() };
        assert!(free.gain(now, &having_brought(50_000), 100_000).is_some(), "one is idle");
        assert!(gain(0, 400_000) > gain(100_000, 400_000), "it brings nothing at all");
    }

    #[test]
    fn a_stream_without_an_answer_is_taken_for_the_average() {
        let fresh = Recent::starting(Timestamp::START);
        let gain = |remaining| splits().gain(Timestamp::START, &fresh, remaining);
        assert_eq!(gain(2_000_000), Some(Duration::from_secs(2)));
        assert_eq!(gain(400_000), None);
    }

    #[test]
    fn the_floor_of_a_user_is_exact() {
        let set = Splits { is_set: true, ..splits() };
        let now = Timestamp::START + Duration::from_secs(1);
        assert_eq!(set.gain(now, &having_brought(100_000), 2 * 256 * 1024 - 2), None);
        assert!(set.gain(now, &having_brought(100_000), 2 * 256 * 1024).is_some());
    }
}
