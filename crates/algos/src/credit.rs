//! How far ahead a server may send over an HTTP/2 connection (RFC 9113, section 5.2).
//!
//! What a server was promised it writes to its socket, and what is there comes, wanted or not: a
//! range that is cut costs the promise beyond its new end, and the answers that come next queue
//! behind it. Too small a promise stops the server for want of it. So a connection promises a few
//! times what came over it in a round trip, its streams share that, and none that is cut is promised
//! more than what is still wanted of it.

use std::time::Duration;

use crate::time::Timestamp;

/// What a stream may have on its way before anything is known: more than slow start (RFC 6928) sends
/// in its first four round trips, and no more than the least half of a range that is split.
pub const FIRST_WINDOW: u64 = 256 * 1024;
/// More is promised to no connection: the bandwidth-delay product of 1 Gbit/s at 130 ms.
pub const MOST: u64 = 16 * 1024 * 1024;
/// What came in a round trip, so many times: while a lost packet is sent again what was sent after it waits. More is
/// read in vain (docs/simulator.md).
const AHEAD: u64 = 3;
/// The same while round trips bring ever more: what comes in the next two is four times of what came in the last one.
const AHEAD_GROWING: u64 = 4;
/// What came in this many round trips and as many before them counts. A path that has become slow, or
/// that was slow from the start, is not promised what nobody would wait for.
const ROUND_TRIPS: u32 = 8;
/// On a short path, programs that wait for their turn are slower than packets.
const LEAST_ROUND_TRIP: Duration = Duration::from_millis(5);
/// A stream among many has this promised at least.
const LEAST_SHARE: u64 = 64 * 1024;

/// What a server may send beyond what was told of is told of where it is so much.
const NEWS: u64 = 64 * 1024;

/// The end of what a server may send that has `ahead` bytes of credit from `position` on, where it is far enough beyond the
/// end that was `told` before.
pub fn news_of_promise(position: u64, ahead: u64, told: u64) -> Option<u64> {
    let end = position.saturating_add(ahead);
    (end >= told.saturating_add(NEWS)).then_some(end)
}

/// What the streams of one connection may have on their way together.
#[derive(Debug, Clone)]
pub struct ConnectionCredit {
    ahead: u64,
    rtt: Option<Duration>,
    /// What came since the last look.
    came: u64,
    looked: Timestamp,
    /// Round trips that were looked at, of those that count as the present ones.
    looks: u32,
    /// The most of them, and of those before them.
    most: u64,
    most_before: u64,
}

impl ConnectionCredit {
    /// Of a connection that begins at `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self {
            ahead: FIRST_WINDOW,
            rtt: None,
            came: 0,
            looked: now,
            looks: 0,
            most: 0,
            most_before: FIRST_WINDOW,
        }
    }

    /// A round trip took so long. The least counts: the others had waited somewhere.
    pub fn on_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// So many bytes came.
    pub fn on_bytes(&mut self, now: Timestamp, bytes: u64) {
        self.came += bytes;
        let Some(rtt) = self.rtt else { return };
        let round_trip = rtt.max(LEAST_ROUND_TRIP);
        let since = now.saturating_since(self.looked);
        if since >= round_trip {
            let part = round_trip.as_secs_f64() / since.as_secs_f64();
            self.look((self.came as f64 * part) as u64);
            self.came = 0;
            self.looked = now;
        }
    }

    /// A round trip brought so much.
    fn look(&mut self, came: u64) {
        let grows = came.saturating_mul(AHEAD) > self.most.max(self.most_before);
        let times = if grows { AHEAD_GROWING } else { AHEAD };
        self.most = self.most.max(came.saturating_mul(times));
        self.ahead = self.most.max(self.most_before).clamp(LEAST_SHARE, MOST);
        self.looks += 1;
        if self.looks == ROUND_TRIPS {
            self.looks = 0;
            self.most_before = std::mem::take(&mut self.most);
        }
    }

    /// What a stream that has the connection for itself needs: a power of two, as each change costs
    /// a frame.
    pub const fn window(&self) -> u64 {
        self.ahead.next_power_of_two()
    }

    /// What one of `streams` may have on its way.
    pub fn share(&self, streams: u64) -> u64 {
        (self.ahead / streams.max(1)).max(LEAST_SHARE)
    }
}

/// What one stream was promised, and what of it came.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamCredit {
    received: u64,
    released: u64,
}

impl StreamCredit {
    /// So many bytes were read.
    pub const fn on_received(&mut self, bytes: u64) {
        self.received += bytes;
    }

    /// What was read and is not promised anew.
    pub const fn held(&self) -> u64 {
        self.received - self.released
    }

    /// What may still come where each stream began with `window`.
    pub const fn ahead(&self, window: u64) -> u64 {
        (window + self.released).saturating_sub(self.received)
    }

    /// What to promise now, beyond the `window` that each stream begins with and what was promised
    /// since: up to `share` ahead, and of what is still `wanted` no more than that. Never more than
    /// was read.
    pub fn release(&mut self, window: u64, share: u64, wanted: u64) -> u64 {
        let target = self.received.saturating_add(share.min(window).min(wanted));
        let more = target.saturating_sub(window.saturating_add(self.released)).min(self.held());
        self.released += more;
        more
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A connection of 100 ms over which `rates` came, in bytes a round trip.
    fn after(rates: &[u64]) -> ConnectionCredit {
        let mut credit = ConnectionCredit::new(at(0));
        credit.on_rtt(RTT);
        for (index, bytes) in rates.iter().enumerate() {
            credit.on_bytes(at(100 * (index as u64 + 1)), *bytes);
        }
        credit
    }

    #[test]
    fn a_promise_is_news_where_it_goes_far_beyond_the_last_one() {
        assert_eq!(news_of_promise(0, FIRST_WINDOW, 0), Some(FIRST_WINDOW));
        assert_eq!(news_of_promise(10_000, FIRST_WINDOW, FIRST_WINDOW), None);
        assert_eq!(news_of_promise(u64::MAX - 1, FIRST_WINDOW, 0), Some(u64::MAX));
    }

    #[test]
    fn a_connection_promises_what_came_in_a_round_trip_a_few_times() {
        assert_eq!(after(&[]).share(1), FIRST_WINDOW);
        assert_eq!(after(&[1_000]).share(1), FIRST_WINDOW);
        assert_eq!(after(&[1_000_000]).share(1), 4_000_000);
        assert_eq!(after(&[1_000_000]).window(), 4 << 20);
        assert_eq!(after(&[1_000_000, 10_000]).share(1), 4_000_000, "a pause takes nothing back");
        assert_eq!(after(&[1 << 40]).share(1), MOST);
        // It has stopped growing: what the last growth asked for is forgotten in the end.
        assert_eq!(after(&[1_000_000; 17]).share(1), 3_000_000);
    }

    #[test]
    fn a_connection_that_stays_slow_is_promised_less() {
        let slow = [10_000; 16];
        assert_eq!(after(&slow[..8]).share(1), FIRST_WINDOW, "it may have begun slowly");
        assert_eq!(after(&slow[..9]).share(1), LEAST_SHARE);
        let was_fast = [&[1_000_000], &slow[..]].concat();
        assert_eq!(after(&was_fast[..16]).share(1), 4_000_000);
        assert_eq!(after(&was_fast).share(1), LEAST_SHARE);
    }

    #[test]
    fn streams_share_the_promise_down_to_a_least_part() {
        assert_eq!(after(&[1_000_000]).share(4), 1_000_000);
        assert_eq!(after(&[1_000_000]).share(1_000), LEAST_SHARE);
        assert_eq!(after(&[1_000_000]).share(0), 4_000_000);
    }

    #[test]
    fn nothing_is_learnt_before_a_round_trip_is_known_and_over() {
        let mut credit = ConnectionCredit::new(at(0));
        credit.on_bytes(at(1_000), 1 << 30);
        assert_eq!(credit.share(1), FIRST_WINDOW);
        credit.on_rtt(RTT * 3);
        credit.on_rtt(RTT);
        let mut early = ConnectionCredit::new(at(0));
        early.on_rtt(RTT);
        early.on_bytes(at(99), 1_000_000);
        assert_eq!(early.share(1), FIRST_WINDOW);
        early.on_bytes(at(200), 1_000_000);
        assert_eq!(early.share(1), 4_000_000, "two round trips brought 2 MB");
    }

    #[test]
    fn slow_start_doubles_each_round_trip() {
        // What is sent doubles, as far as it is promised; a promise takes two round trips to show.
        let (mut credit, mut promised) = (ConnectionCredit::new(at(0)), FIRST_WINDOW);
        credit.on_rtt(RTT);
        let mut sent = vec![14_480];
        for trip in 1..10 {
            credit.on_bytes(at(100 * trip), sent[sent.len() - 1]);
            sent.push((sent[sent.len() - 1] * 2).min(promised));
            promised = credit.share(1);
        }
        for two_trips in sent.windows(2) {
            assert_eq!(two_trips[1], two_trips[0] * 2, "{sent:?}");
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Read(u64),
        Want(u64),
        Share(u64),
        Widen(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1_u64..400_000).prop_map(Step::Read),
            1 => (0_u64..3_000_000).prop_map(Step::Want),
            1 => (1_u64..3_000_000).prop_map(Step::Share),
            1 => (0_u64..1_000_000).prop_map(Step::Widen),
        ]
    }

    proptest! {
        /// Whatever comes and is cut: nobody is promised more than was wanted when it was promised,
        /// and who wants something is never left without.
        #[test]
        fn promises_end_where_what_is_wanted_ends(steps in prop::collection::vec(step(), 1..200)) {
            let mut credit = StreamCredit::default();
            let (mut window, mut share, mut wanted_end) = (FIRST_WINDOW, FIRST_WINDOW, 2_000_000);
            let (mut received, mut promised) = (0, FIRST_WINDOW);
            for step in steps {
                match step {
                    // A server sends what it was promised.
                    Step::Read(bytes) => {
                        let bytes = bytes.min(promised - received);
                        received += bytes;
                        credit.on_received(bytes);
                    }
                    Step::Want(more) => wanted_end = received + more,
                    Step::Share(other) => share = other,
                    Step::Widen(more) => {
                        window += more;
                        promised += more;
                    }
                }
                let wanted = wanted_end.saturating_sub(received);
                let more = credit.release(window, share, wanted);
                prop_assert!(more == 0 || promised + more <= received + wanted.min(share));
                promised += more;
                prop_assert!(promised - received <= promised.min(window), "more than was read");
                let due = share.min(wanted).min(window);
                prop_assert!(promised - received >= due, "{due} due");
                prop_assert_eq!(credit.release(window, share, wanted), 0, "once is enough");
            }
        }
    }
}
