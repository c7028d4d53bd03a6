//! How long a connection leaves unread what comes, so that one acknowledgement tells of many segments.
//!
//! A receiver acknowledges every second segment (RFC 5681 section 4.2) as long as what comes is read at once.
//! Linux has its reader tell: what waits unread has used up a part of the window, and an acknowledgement that
//! gives nothing back is left until it is read. So few reads make few acknowledgements, and few wake-ups. Over
//! LTE a bit that is sent costs eight times one that is received (AT&T ARO's profile: 438 and 52 mW per Mbit/s),
//! and acknowledgements are a seventh of what a radio spends on the bits of a download.
//!
//! A sender waits for acknowledgements, and a rest must not make the path idle meanwhile. So a connection
//! rests no longer than the queue on the path lasts, which its round-trip times tell: what is drained of that
//! queue is what the burst after the rest finds room in. A path without a queue, be it that it loses packets or
//! has no room for one, knows no rests. Nor does slow start, where acknowledgements are what the sender grows
//! by, or the end of what was asked for.

use std::time::Duration;

use crate::time::Timestamp;
use crate::units::Bytes;

/// A rest is so long at most: the window must hold what comes meanwhile, and after 40 ms Linux acknowledges
/// by itself.
const LONGEST: Duration = Duration::from_millis(36);
const PART_OF_ROUND_TRIP: u32 = 2;
/// Timers tell milliseconds.
const SHORTEST: Duration = Duration::from_millis(2);

/// What an acknowledgement tells of at least, if it is to be worth a rest: three segments.
const LEAST_TOLD: Bytes = Bytes(3 * 1448);
/// What it tells of at most: as much as Linux sends in one piece anyway.
const MOST_TOLD: Bytes = Bytes::kib(64);

/// A round trip that brings more than so many times what any before it brought is one of slow start.
const GROWS: f64 = 1.6;

/// What is known of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rests {
    /// When the round trip that passes now began.
    began: Timestamp,
    /// Bytes that it brought so far, and the last one.
    this: f64,
    last: f64,
    /// The most that one of those before brought.
    most: f64,
    /// How long what comes waits in queues on its way, and when that was found out.
    queued: Duration,
    looked: Timestamp,
}

impl Rests {
    /// Some `bytes` were read, over a path of this round-trip time.
    pub fn on_bytes(&mut self, now: Timestamp, bytes: u64, rtt: Duration) {
        let passed = now - self.began;
        if passed >= rtt && !passed.is_zero() {
            self.most = self.most.max(self.last);
            self.last = self.this * rtt.as_secs_f64() / passed.as_secs_f64();
            self.this = 0.0;
            self.began = now;
        }
        self.this += bytes as f64;
    }

    /// How long the connection may rest when nothing more waits to be read, and `to_come` is still to come of
    /// what was asked for. `None`: it is to read what comes as soon as it comes. The path's round-trip time is
    /// `rtt` without queues and as `rtt_now` says with them, which is asked once in a round trip.
    pub fn rest(
        &mut self,
        now: Timestamp,
        to_come: Bytes,
        rtt: Duration,
        rtt_now: impl FnOnce() -> Option<Duration>,
    ) -> Option<Duration> {
        let longest = LONGEST.min(rtt / PART_OF_ROUND_TRIP);
        let told_in = |rest: Duration| self.last * rest.as_secs_f64() / rtt.as_secs_f64();
        let grows = self.last.max(self.this) > self.most * GROWS;
        let is_near = (to_come.0 as f64) < told_in(longest);
        if grows || is_near || longest < SHORTEST || told_in(longest) < LEAST_TOLD.0 as f64 {
            return None;
        }
        if now - self.looked >= rtt {
            self.looked = now;
            self.queued = rtt_now()?.saturating_sub(rtt);
        }
        let fills = rtt.mul_f64(MOST_TOLD.0 as f64 / self.last);
        let rest = longest.min(self.queued).min(fills);
        let is_worth_it = rest >= SHORTEST && told_in(rest) >= LEAST_TOLD.0 as f64;
        is_worth_it.then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLENTY: Bytes = Bytes::mib(10);
    const RTT: Duration = Duration::from_millis(60);

    /// A connection after round trips of `RTT` that brought so many bytes, and when that is.
    fn after(round_trips: &[u64]) -> (Rests, Timestamp) {
        let mut rests = Rests::default();
        let mut now = Timestamp::START;
        for bytes in round_trips {
            for _ in 0..6 {
                rests.on_bytes(now, bytes / 6, RTT);
                now = now + RTT / 6;
            }
        }
        rests.on_bytes(now, 0, RTT);
        (rests, now)
    }

    /// How long it rests where what comes waits in queues for so many milliseconds.
    fn rest(round_trips: &[u64], to_come: Bytes, queued: u64) -> Option<u64> {
        let (mut rests, now) = after(round_trips);
        let rtt_now = RTT + Duration::from_millis(queued);
        let rest = rests.rest(now, to_come, RTT, || Some(rtt_now));
        rest.map(|rest| rest.as_millis() as u64)
    }

    #[test]
    fn a_rest_is_no_longer_than_the_queue_lasts() {
        let steady = [30_000; 4];
        assert_eq!(rest(&steady, PLENTY, 15), Some(15));
        assert_eq!(rest(&steady, PLENTY, 200), Some(30), "half a round trip");
        assert_eq!(rest(&steady, PLENTY, 0), None);
        assert_eq!(rest(&steady, PLENTY, 5), None, "it would tell of two segments");
        // 64 KiB are there after 4 ms.
        assert_eq!(rest(&[1_000_000; 4], PLENTY, 50), Some(3));
        assert_eq!(rest(&[10_000_000; 4], PLENTY, 50), None, "no timer is that fine");
    }

    #[test]
    fn slow_start_and_the_end_know_no_rests() {
        assert_eq!(rest(&[15_000, 30_000, 60_000, 120_000], PLENTY, 15), None);
        assert_eq!(
            rest(&[15_000, 30_000, 60_000, 120_000, 120_000, 120_000], PLENTY, 15),
            Some(15)
        );
        // After a loss the window grows again to what it was.
        assert_eq!(rest(&[60_000, 60_000, 60_000, 30_000, 60_000], PLENTY, 15), Some(15));
        // Half a round trip's worth is still to come.
        assert_eq!(rest(&[30_000; 4], Bytes(15_000), 15), Some(15));
        assert_eq!(rest(&[30_000; 4], Bytes(14_999), 15), None);
        assert_eq!(rest(&[], PLENTY, 15), None);
    }

    #[test]
    fn the_queue_is_looked_at_once_in_a_round_trip() {
        let (mut rests, now) = after(&[30_000; 4]);
        let at = |millis| now + Duration::from_millis(millis);
        let mut look = |now, queued| {
            let rtt_now = || Some(RTT + Duration::from_millis(queued));
            rests.rest(now, PLENTY, RTT, rtt_now).map(|rest| rest.as_millis())
        };
        assert_eq!(look(at(0), 15), Some(15));
        assert_eq!(look(at(59), 25), Some(15));
        assert_eq!(look(at(60), 25), Some(25));
        let unknown = rests.rest(at(120), PLENTY, RTT, || None);
        assert_eq!(unknown, None);
    }

    proptest! {
        /// Whatever comes and however long the path is.
        #[test]
        fn a_rest_is_short(
            reads in proptest::collection::vec((0u64..1_000, 0u64..1_000_000), 0..50),
            rtt in 0u64..2_000, queued in 0u64..5_000, to_come in any::<u64>(),
        ) {
            let rtt = Duration::from_millis(rtt);
            let mut rests = Rests::default();
            let mut now = Timestamp::START;
            for (millis, bytes) in reads {
                now = now + Duration::from_millis(millis);
                rests.on_bytes(now, bytes, rtt);
                let queued = Duration::from_millis(queued);
                if let Some(rest) = rests.rest(now, Bytes(to_come), rtt, || Some(rtt + queued)) {
                    prop_assert!(rest <= LONGEST && rest <= rtt / 2 && rest <= queued && rest >= SHORTEST);
                }
            }
        }
    }
}
