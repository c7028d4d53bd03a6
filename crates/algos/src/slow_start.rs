//! How long what has just begun still takes.

use std::time::Duration;

use crate::connections::FIRST_FLIGHT;
use crate::units::{BitRate, Bytes};

/// A window that has doubled in such a part of the round trips still grows: acknowledgements may be delayed.
const NEARLY: f64 = 0.75;

/// How a response goes that has begun to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// What came.
    pub brought: Bytes,
    /// Since its head.
    pub age: Duration,
    /// Of its path.
    pub rtt: Duration,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn begun(kb: u64, millis: u64) -> Begun {
        Begun { brought: Bytes(kb * 1_000), age: Duration::from_millis(millis), rtt: RTT }
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
    fn a_window_that_does_not_grow_is_not_foreseen_to() {
        let left = |begun: Begun| begun.time_left(Bytes(300_000), BitRate::from_mbps(1_000.0));
        assert_eq!(left(begun(100, 1_000)), None, "ten round trips for what takes three");
        assert_eq!(left(begun(100, 500)), None);
        assert!(left(begun(100, 390)).is_some(), "a round trip more than it needs");
    }
}
