//! How many TLS handshakes a path bears before any answer has told how fast it is.

use std::time::Duration;

use crate::connections::{FIRST_FLIGHT, QUEUE};
use crate::params::DEFAULT_CHANNELS;
use crate::time::Timestamp;
use crate::units::Bytes;

/// From `ServerHello` to Finished with a chain of two certificates (RFC 8446): about what public servers send.
pub const TLS_HANDSHAKE: Bytes = Bytes(3_200);

/// A connection that is there early saves a round trip, of which the handshakes of all may take such a part.
pub(crate) const HANDSHAKES_TO_SAVED: f64 = 2.0 / 3.0;

/// So many that were under way together show how fast the path brings them, or their server makes them.
const TELLING: usize = DEFAULT_CHANNELS as usize / 2;

/// The pace of the first handshakes with a host.
///
/// Connections that are opened ahead reach their host while the certificates of the first ones are on their way. Those come
/// one behind the other: over a slow path, or from a server that is busy with them, further ones would keep the first
/// answers waiting for longer than a round trip. Over such a path all are about as far apart; where only some are, this
/// machine or their server had other work meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub struct HandshakePace {
    done: usize,
    /// When the last one was, and how long after the ones before each of them.
    last: Timestamp,
    apart: [Duration; TELLING - 1],
}

impl HandshakePace {
    /// Another one is done. Returns whether the pace is known by that. Those that come later began later, or had to be sent
    /// again.
    pub fn on_done(&mut self, now: Timestamp) -> bool {
        if self.done == TELLING {
            return false;
        }
        if let Some(before) = self.done.checked_sub(1) {
            self.apart[before] = now.saturating_since(self.last);
        }
        self.last = now;
        self.done += 1;
        self.done == TELLING
    }

    /// So many connections may be there or shake hands, over a path of this `rtt`.
    pub fn at_once(&self, rtt: Duration) -> u32 {
        if self.done < TELLING {
            return DEFAULT_CHANNELS;
        }
        let saved = rtt.as_secs_f64() * HANDSHAKES_TO_SAVED;
        ((saved * self.a_second()).round() as u32).max(DEFAULT_CHANNELS)
    }

    /// So many answers may be under way at first, over connections that are shared, on a path of this `rtt`: each of them has a
    /// flight, as far as known.
    pub fn answers_at_once(&self, rtt: Duration) -> u32 {
        if self.done < TELLING {
            return DEFAULT_CHANNELS;
        }
        let rate = self.a_second() * TLS_HANDSHAKE.as_f64();
        let held = rate * (rtt + QUEUE).as_secs_f64() / FIRST_FLIGHT.as_f64();
        (held as u32).max(DEFAULT_CHANNELS)
    }

    /// How many come in a second, by the middle one of those that are known.
    fn a_second(&self) -> f64 {
        let mut apart = self.apart;
        let middle = *apart.select_nth_unstable((TELLING - 1) / 2).1;
        1.0 / middle.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(150);

    /// So many are done, one each `apart` microseconds.
    fn after(done: u64, apart: u64) -> HandshakePace {
        let mut pace = HandshakePace::default();
        for number in 0..done {
            pace.on_done(Timestamp::START + Duration::from_micros(150_000 + number * apart));
        }
        pace
    }

    #[test]
    fn few_are_begun_until_half_of_the_first_ones_are_done() {
        assert_eq!(after(0, 0).at_once(RTT), DEFAULT_CHANNELS);
        assert_eq!(after(7, 10).at_once(RTT), DEFAULT_CHANNELS);
    }

    #[test]
    fn no_more_are_begun_than_come_within_the_round_trip_that_they_save() {
        // 1 Mbit/s: one each 26 ms.
        assert_eq!(after(8, 26_000).at_once(RTT), DEFAULT_CHANNELS);
        assert_eq!(after(8, 2_000).at_once(RTT), 50);
        assert_eq!(after(16, 2_000).at_once(RTT * 2), 100);
    }

    #[test]
    fn what_is_done_later_says_nothing_of_the_pace() {
        let mut pace = after(8, 1_000);
        let known = (pace.at_once(RTT), pace.answers_at_once(RTT));
        assert!(!pace.on_done(Timestamp::START + Duration::from_secs(2)));
        assert_eq!((pace.at_once(RTT), pace.answers_at_once(RTT)), known);
    }

    #[test]
    fn no_more_answers_are_asked_for_than_a_slow_path_and_its_queue_hold() {
        assert_eq!(after(7, 10).answers_at_once(RTT), DEFAULT_CHANNELS);
        assert_eq!(after(8, 26_000).answers_at_once(RTT), DEFAULT_CHANNELS);
        // 25.6 Mbit/s for 350 ms.
        assert_eq!(after(8, 1_000).answers_at_once(RTT), 77);
    }

    #[test]
    fn other_work_between_some_of_them_is_not_their_pace() {
        let mut pace = HandshakePace::default();
        // This machine did something else for 20 ms twice.
        for micros in [0, 1_000, 2_000, 22_000, 23_000, 43_000, 44_000, 45_000] {
            pace.on_done(Timestamp::START + Duration::from_micros(micros));
        }
        assert_eq!(pace.at_once(RTT), 100);
    }

    #[test]
    fn who_brings_them_all_at_once_bears_any_number() {
        assert_eq!(after(8, 0).at_once(RTT), u32::MAX);
    }
}
