//! How long what has just begun still takes.

use std::time::Duration;

use crate::connections::FIRST_FLIGHT;
use crate::units::{BitRate, Bytes};

/// A window that has doubled in such a part of the round trips still grows: acknowledgements may be delayed.
const NEARLY: f64 = 0.75;

/// The same where a round trip brought such a part of what it does where the window doubles.
const NEARLY_LATELY: f64 = 0.6;

/// Before so many round trips nothing is told of growth by the last one.
const FEW_TRIPS: u32 = 2;

/// What is asked for now brings on the average until so long: a flight and then two by the third round trip (RFC 5681 section
/// 3.1, RFC 6928 section 2), the first of which it is waited for.
pub fn rate_until(third_trip: Duration) -> BitRate {
    Bytes(FIRST_FLIGHT.0 * 3) / third_trip
}

/// How a response goes that has begun to come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Begun {
    /// What came.
    pub brought: Bytes,
    /// Since its head.
    pub age: Duration,
    /// Of its path.
    pub rtt: Duration,
    /// What came over the last round trip, or up to two of them.
    pub lately: Bytes,
    /// How long that took.
    pub over: Duration,
    /// What the last whole round trip brought; nothing before there was one.
    pub last_trip: BitRate,
}

impl Begun {
    /// How long `remaining` bytes take if it goes on doubling its window each round trip (RFC 5681 section 3.1), at most to
    /// `most`. `None` where it has not done so: by losses, a server that is slow, or its receiver.
    pub fn time_left(&self, remaining: Bytes, most: BitRate) -> Option<Duration> {
        let doublings = (self.brought.as_f64() / FIRST_FLIGHT.as_f64() + 1.0).log2();
        let round_trips = self.age.as_secs_f64() / self.rtt.as_secs_f64().max(f64::MIN_POSITIVE);
        if doublings < round_trips * NEARLY {
            return None;
        }
        let window = self.brought.max(FIRST_FLIGHT).as_f64();
        let further = (remaining.as_f64() / window + 1.0).log2();
        Some(self.rtt.mul_f64(further).max(remaining / most))
    }

    /// Whether its window still doubles, or nearly. Other than what it has brought since its head, the last round trip
    /// tells at once when it no longer does: where windows double it brings half of all.
    pub fn is_growing(&self) -> bool {
        let trips = self.over.as_secs_f64() / self.rtt.as_secs_f64().max(f64::MIN_POSITIVE);
        let part = 1.0 - (-trips).exp2();
        self.age <= self.rtt.saturating_mul(FEW_TRIPS)
            || self.lately.as_f64() >= self.brought.as_f64() * part * NEARLY_LATELY
    }

    /// What it brings at present at best: by the last whole round trip, or since. `None` before there was one.
    pub fn rate_lately(&self) -> Option<BitRate> {
        let since = self.lately / self.over;
        (self.last_trip > BitRate::ZERO).then_some(since.max(self.last_trip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn begun(kb: u64, millis: u64) -> Begun {
        let (brought, age) = (Bytes(kb * 1_000), Duration::from_millis(millis));
        let last_trip = brought / age;
        Begun { brought, age, rtt: RTT, lately: brought, over: age, last_trip }
    }

    #[test]
    fn windows_that_double_are_soon_done() {
        let left = |begun: Begun, kb: u64, mbps| {
            begun.time_left(Bytes(kb * 1_000), BitRate::from_mbps(mbps))
        };
        // 100 kB came in some 280 ms; 300 kB are twice as much and once again.
        assert_eq!(left(begun(100, 280), 300, 1_000.0), Some(RTT * 2));
        assert_eq!(left(begun(0, 0), 0, 1_000.0), Some(Duration::ZERO));
        // At most 1 Mbit/s.
        assert_eq!(left(begun(100, 280), 300, 1.0), Some(Duration::from_millis(2_400)));
    }

    #[test]
    fn the_last_round_trip_tells_of_growth() {
        let lately = |kb: u64, over: u64| {
            let (lately, over) = (Bytes(kb * 1_000), Duration::from_millis(over));
            Begun { lately, over, ..begun(1_000, 600) }
        };
        assert!(lately(500, 100).is_growing() && lately(310, 100).is_growing());
        assert!(!lately(250, 100).is_growing(), "as much as in each of four");
        assert!(lately(750, 200).is_growing() && !lately(400, 200).is_growing());
        assert!(begun(14, 200).is_growing(), "nobody knows yet");
        let mbps = |begun: Begun| begun.rate_lately().map(BitRate::mbps);
        assert_eq!(mbps(lately(500, 100)), Some(40.0));
        let last_trip = BitRate::from_mbps(50.0);
        assert_eq!(mbps(Begun { last_trip, ..lately(500, 100) }), Some(50.0), "a moment ago");
        assert_eq!(mbps(Begun { last_trip: BitRate::ZERO, ..begun(14, 50) }), None);
    }

    #[test]
    fn a_window_that_does_not_grow_is_not_foreseen_to() {
        let left = |begun: Begun| begun.time_left(Bytes(300_000), BitRate::from_mbps(1_000.0));
        assert_eq!(left(begun(100, 1_000)), None, "ten round trips for what takes three");
        assert_eq!(left(begun(100, 500)), None);
        assert!(left(begun(100, 390)).is_some(), "a round trip more than it needs");
    }
}
