//! At what pace the first answers come.

use std::time::Duration;

use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// So many bytes, or so small a part of a round-trip time, tell the pace.
const TELLING: Bytes = Bytes::kib(16);
const TELLING_OF_RTT: u32 = 8;

/// Who says nothing for so large a part of a round-trip time waits for acknowledgements, or for
/// requests: what comes then is another flight.
const SILENCE_OF_RTT: u32 = 2;

/// The pace of the first answers. They were asked for at once and come as fast as the slowest link on the
/// way lets them, which tells its rate long before there is a sample of goodput (packet dispersion).
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstPace {
    flight: Option<Flight>,
    known: Option<BitRate>,
}

/// What came without a silence.
#[derive(Debug, Clone, Copy)]
struct Flight {
    since: Timestamp,
    last: Timestamp,
    /// Without those that came at its beginning: they took no time that is known.
    bytes: Bytes,
}

impl FirstPace {
    /// The pace, once it is known.
    pub const fn rate(&self) -> Option<BitRate> {
        self.known
    }

    /// It was measured elsewhere. What was known before stays.
    pub fn set(&mut self, rate: BitRate) {
        self.known.get_or_insert(rate);
    }

    /// `bytes` arrived over a path of this round-trip time. Returns the pace if it became known with them.
    pub fn on_bytes(&mut self, now: Timestamp, bytes: Bytes, rtt: Duration) -> Option<BitRate> {
        if self.known.is_some() {
            return None;
        }
        let is_same = |flight: &Flight| now.saturating_since(flight.last) <= rtt / SILENCE_OF_RTT;
        let Some(flight) = self.flight.as_mut().filter(|flight| is_same(flight)) else {
            self.flight = Some(Flight { since: now, last: now, bytes: Bytes::ZERO });
            return None;
        };
        flight.last = now;
        flight.bytes += bytes;
        let took = now.saturating_since(flight.since);
        if flight.bytes >= TELLING || took >= rtt / TELLING_OF_RTT {
            self.known = Some(flight.bytes / took.max(Duration::from_nanos(1)));
        }
        self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::START + Duration::from_micros(micros)
    }

    #[test]
    fn a_few_packets_tell_the_rate() {
        let mut pace = FirstPace::default();
        // 20 Mbit/s are a packet each 600 us.
        let rtt = Duration::from_millis(60);
        let mut told = (0..13).map(|n| pace.on_bytes(at(120_000 + 600 * n), Bytes(1_448), rtt));
        assert!(told.by_ref().take(12).all(|told| told.is_none()));
        let seen = told.next().flatten().unwrap().mbps();
        assert!((seen - 19.3).abs() < 0.1, "{seen}");
        assert_eq!(pace.rate().map(BitRate::mbps), Some(seen));
        assert_eq!(pace.on_bytes(at(130_000), Bytes::mib(1), rtt), None, "that was it");
        pace.set(BitRate::from_mbps(1.0));
        assert_eq!(pace.rate().map(BitRate::mbps), Some(seen));
    }

    #[test]
    fn a_slow_link_is_seen_within_a_part_of_its_round_trip_time() {
        let mut pace = FirstPace::default();
        let mut packet = |millis: u64| {
            pace.on_bytes(at(millis * 1_000), Bytes(1_448), Duration::from_millis(400))
        };
        assert_eq!((packet(800), packet(849)), (None, None));
        let seen = packet(850).unwrap().bps() / 1000.0;
        assert!((seen - 463.4).abs() < 0.1, "{seen}");
    }

    #[test]
    fn a_silence_is_no_pace() {
        let mut pace = FirstPace::default();
        let rtt = Duration::from_millis(200);
        // One file came with the first flight, and the others need a second one.
        assert_eq!(pace.on_bytes(at(616_000), Bytes(14_465), rtt), None);
        assert_eq!(pace.on_bytes(at(814_000), Bytes(14_465), rtt), None);
        let seen = pace.on_bytes(at(816_000), Bytes(16_384), rtt).unwrap().mbps();
        assert!((seen - 65.5).abs() < 0.1, "{seen}");
    }
}
