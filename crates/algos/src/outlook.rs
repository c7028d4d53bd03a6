//! Whether others shall help a stream that has its path for itself.
//!
//! A window that doubles each round trip fills most paths before the first flight of a further connection is there, and
//! who fills its path needs no help. papers/001 and 004 open all streams that a plan has at once; over clean paths that
//! costs handshakes, and losses where many first flights meet in one queue.

use std::time::Duration;

use crate::connections::FIRST_FLIGHT;
use crate::slow_start::Begun;
use crate::units::{BitRate, Bytes};

/// Others pay where they save so many round trips: a request, and the end that is waited for longer.
const WORTHWHILE_TRIPS: f64 = 3.0;

/// A loss before the path is full costs one stream so many round trips more than several.
const TRIPS_OF_LOSS: f64 = 3.0;

/// Of so many bytes one part is lost on the average: by chance, or where a queue is shorter than a window.
const LOST_AMONG: f64 = 6_000_000.0;

/// Until a path has brought so many times what it holds, a loss is felt.
const FILLED: f64 = 3.0;

/// Who would be done so much sooner if it filled its path waits for a window to grow again. In round trips, in time
/// (a queue makes them longer), and in parts of what it needs at best.
const BEARABLE_TRIPS: u32 = 8;
const BEARABLE: Duration = Duration::from_millis(300);
const BEARABLE_PART: u32 = 2;

/// A stream that needs longer is helped in any case: it may be its server that gives each connection an even rate, which
/// only another one can tell. Where it is not, that costs some round trips, of which so many take longer. No more than ten
/// seconds and a hundred round trips are waited for, and no less than a second.
const LONG_TRIPS: u32 = 500;
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10);
const LEAST_LONG_TRIPS: u32 = 100;

/// No window is wider than after so many.
const MOST_DOUBLINGS: u32 = 32;

/// What is known of a path that one stream uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// What the path was seen to carry at best, by the pace of first answers or by goodput.
    pub best: BitRate,
    /// Streams that may join.
    pub joiners: u32,
    /// Their first flights come after so many round trips.
    pub joined_after: u32,
    /// The stream has filled it until now: what does not come at present waits behind a segment that was lost.
    pub was_full: bool,
}

impl Outlook {
    /// Whether others shall bring a part of the `remaining` bytes of a stream that has `begun` so, and lately brought `rate`,
    /// where it has had one for some round trips.
    pub fn is_help_worthwhile(
        &self,
        begun: &Begun,
        rate: Option<BitRate>,
        remaining: Bytes,
    ) -> bool {
        let ideal = remaining / self.best;
        let trips = |count| begun.rtt.saturating_mul(count);
        let bearable =
            BEARABLE.max(trips(BEARABLE_TRIPS)).max(ideal / BEARABLE_PART).saturating_add(ideal);
        let long = trips(LONG_TRIPS).clamp(SHORT, LONG).max(trips(LEAST_LONG_TRIPS));
        let until_now = rate.filter(|_| self.was_full).map(|_| self.best);
        let rates = [rate, begun.rate_lately(), until_now];
        let is_borne = |left: Duration| left < bearable && left < long;
        if rates.into_iter().flatten().any(|rate| is_borne(remaining / rate)) {
            return false;
        }
        !begun.is_growing() || self.trips_saved(begun, remaining) >= WORTHWHILE_TRIPS
    }

    /// What of `remaining` bytes a stream that has `begun` so had best bring itself, where so many others join: all
    /// windows double, and its own is wider by the time that theirs begin. An even part where it no longer grows.
    pub fn own_share(&self, begun: &Begun, remaining: Bytes, joiners: u32) -> Bytes {
        if !begun.is_growing() {
            return Bytes(remaining.0 / (u64::from(joiners) + 1));
        }
        let held = (self.best * begun.rtt).max(FIRST_FLIGHT).as_f64();
        let mut window = (begun.brought + FIRST_FLIGHT).as_f64().min(held);
        let (mut alone, remaining) = (0.0, remaining.as_f64());
        for _ in 0..self.joined_after.min(MOST_DOUBLINGS) {
            alone += window;
            window = (window * 2.0).min(held);
        }
        let left = (remaining - alone).max(0.0);
        let own = alone.min(remaining)
            + left * window / (window + FIRST_FLIGHT.as_f64() * f64::from(joiners));
        Bytes(own as u64)
    }

    /// The round trips that others save a stream whose window doubles, or are likely to.
    fn trips_saved(&self, begun: &Begun, remaining: Bytes) -> f64 {
        let held = (self.best * begun.rtt).max(Bytes(1)).as_f64();
        // Each flight is as much as all before it, and the first one.
        let window = (begun.brought + FIRST_FLIGHT).as_f64();
        let remaining = remaining.as_f64();
        let trips = |joiners| self.trips_to_end(window, held, remaining, joiners);
        let is_loss_likely = 1.0 - (-(held * FILLED).min(remaining) / LOST_AMONG).exp();
        trips(0) - trips(self.joiners) + TRIPS_OF_LOSS * is_loss_likely
    }

    /// Round trips until `left` bytes have come over a path that holds `held`: all windows double until they fill it
    /// (RFC 5681 section 3.1).
    fn trips_to_end(&self, mut window: f64, held: f64, mut left: f64, joiners: u32) -> f64 {
        let mut trips = 0;
        loop {
            if trips == self.joined_after {
                window += FIRST_FLIGHT.as_f64() * f64::from(joiners);
            }
            if window >= held || left <= window {
                return f64::from(trips) + left / window.min(held);
            }
            left -= window;
            (window, trips) = (window * 2.0, trips + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn outlook(mbps: f64) -> Outlook {
        Outlook { best: BitRate::from_mbps(mbps), joiners: 15, joined_after: 2, was_full: false }
    }

    /// The first flight has just come.
    fn first_flight() -> Begun {
        let (brought, none) = (FIRST_FLIGHT, Duration::ZERO);
        let last_trip = BitRate::ZERO;
        Begun { brought, age: none, rtt: RTT, lately: brought, over: none, last_trip }
    }

    /// After ten round trips of which the last one brought so much.
    fn going_on(lately_kb: u64) -> Begun {
        let lately = Bytes(lately_kb * 1_000);
        let last_trip = lately / RTT;
        Begun { brought: Bytes::mib(1), age: RTT * 10, rtt: RTT, lately, over: RTT, last_trip }
    }

    #[test]
    fn a_window_that_doubles_needs_help_only_on_a_long_fat_path() {
        let helps = |mbps, joined_after, kb: u64| {
            let outlook = Outlook { joined_after, ..outlook(mbps) };
            outlook.is_help_worthwhile(&first_flight(), None, Bytes(kb * 1_000))
        };
        // 2.5 MB under way: some two round trips are saved, and a loss is likely.
        assert!(helps(200.0, 2, 10_000) && !helps(200.0, 2, 4_000));
        // 125 kB: it is full before anybody joins.
        assert!(!helps(10.0, 2, 4_000));
        // Over TLS they come so late that its window is as wide by then.
        assert!(!helps(40.0, 4, 1_000));
        assert!(
            !helps(200.0, 4, 40_000) && helps(1_000.0, 4, 40_000),
            "a loss is likely until then"
        );
        assert!(!helps(200.0, 2, 100), "done before");
    }

    #[test]
    fn who_has_begun_keeps_the_part_that_its_window_is_wider() {
        let share = |begun: &Begun, kb: u64| {
            outlook(400.0).own_share(begun, Bytes(kb * 1_000), 8).0 / 1_000
        };
        // 29 and 58 kB come until windows of 116 and eight times 14.5 kB share the rest.
        assert_eq!(share(&first_flight(), 1_086), 86 + 500);
        assert_eq!(share(&first_flight(), 80), 80, "done before");
        assert_eq!(share(&going_on(2), 900), 100, "one that has lost a packet is one of nine");
    }

    #[test]
    fn who_fills_its_path_is_left_alone() {
        let helps = |kb_lately, rate: f64, mb| {
            let rate = BitRate::from_mbps(rate);
            outlook(10.0).is_help_worthwhile(&going_on(kb_lately), Some(rate), Bytes::mib(mb))
        };
        // A round trip holds 125 kB.
        assert!(!helps(120, 9.5, 2));
        assert!(!helps(120, 2.0, 2), "it does now");
        assert!(!helps(20, 9.5, 2), "a loss, and it did until now");
        assert!(helps(20, 1.5, 2), "a tenth of it");
        assert!(
            helps(120, 9.5, 20),
            "even if it takes that long: each connection may have its share"
        );
    }

    #[test]
    fn who_filled_its_path_until_a_loss_is_left_alone() {
        let helps = |was_full, mb| {
            let outlook = Outlook { was_full, ..outlook(10.0) };
            outlook.is_help_worthwhile(&going_on(0), Some(BitRate::from_mbps(0.5)), Bytes::mib(mb))
        };
        assert!(helps(false, 2) && !helps(true, 2));
        assert!(helps(true, 20), "even so it may be its server");
    }

    #[test]
    fn near_by_a_second_is_long() {
        let helps = |rtt_ms: u64| {
            let (rtt, rate) = (Duration::from_millis(rtt_ms), BitRate::from_mbps(10.0));
            let begun =
                Begun { rtt, over: rtt, lately: rate * rtt, last_trip: rate, ..going_on(0) };
            outlook(10.0).is_help_worthwhile(&begun, Some(rate), Bytes::mib(6))
        };
        assert!(helps(1) && helps(5) && !helps(20), "5 s");
    }

    #[test]
    fn a_short_rest_is_not_worth_help() {
        let helps = |kb: u64| {
            let rate = BitRate::from_mbps(1.0);
            outlook(100.0).is_help_worthwhile(&going_on(12), Some(rate), Bytes(kb * 1_000))
        };
        assert!(!helps(90), "0.7 s");
        assert!(helps(200));
    }

    #[test]
    fn nothing_is_too_much_for_it() {
        let nothing = Begun { rtt: Duration::ZERO, ..first_flight() };
        for best in [BitRate::ZERO, BitRate::from_bps(1.0), BitRate::from_mbps(1e9)] {
            let outlook =
                Outlook { best, joiners: u32::MAX, joined_after: u32::MAX, was_full: true };
            for remaining in [0, 1, u64::MAX] {
                let _ = outlook.is_help_worthwhile(&nothing, Some(BitRate::ZERO), Bytes(remaining));
            }
        }
    }
}
