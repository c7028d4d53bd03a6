//! How a long range is asked for over HTTP/1.1: in parts that follow each other over one connection.

use std::time::Duration;

use crate::answers::{is_thought_about, thinks_after};
use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// Less is not worth a request of its own: with its answer's head it costs some 600 bytes.
const LEAST_PART: Bytes = Bytes::kib(256);

/// Whether a file of `expected` bytes, where anything tells how many, is better asked for in parts from its
/// first byte on, by a stream that brings `rate` from a server that answers after `answer`. What ends sooner than
/// a part shall last is not split, and a plain GET has more friends.
pub fn suit(expected: Option<u64>, rate: BitRate, answer: Duration) -> bool {
    let part = (rate * lasts(answer)).max(LEAST_PART);
    expected.is_none_or(|bytes| bytes > part.0)
}

/// A part takes at least so long, and so many times as long as an answer: what was asked for and is no longer
/// wanted is received for nothing, but each part costs a request, and perhaps the time that its server thinks.
const PART_LASTS: Duration = Duration::from_millis(500);
const PART_ANSWERS: u32 = 8;

fn lasts(answer: Duration) -> Duration {
    PART_LASTS.max(answer.saturating_mul(PART_ANSWERS))
}

/// The first rate is needed soon: a server that thinks is done with a first part before its next answer is due.
const FIRST_SAMPLE: Duration = Duration::from_millis(10);
const SAMPLE: Duration = Duration::from_millis(50);

/// Others may take over up to so many parts towards the end of a range.
const LEFT_PARTS: u64 = 4;

/// The next part is asked for when what is left of those before takes so much longer than an answer, in round trips
/// without queues: an answer's time has those in it that the request meets.
const LEAD_RTTS: u32 = 1;

/// While a window doubles each round trip, what comes meanwhile is four times of what came in the last one: whose
/// server runs out of what it was asked for stops growing it.
const GROWING_LEAD_ANSWERS: u32 = 4;

/// A part is no less than this part of what has to be asked for ahead: the shorter the last ones are, the more can be
/// given away for nothing. While the window of the first stream grows, which may have the path for itself, it is so many
/// times that: whose server runs out of what it was asked for stops growing it. Where a server thinks before each, a part
/// lasts for so many times its thought.
const PARTS_AHEAD: u64 = 2;
const PART_THOUGHTS: u32 = 4;

/// A rate that is so much higher than the one before it still grows.
const GROWING: f64 = 1.25;

/// A stream that brought nothing for this part of an answer's time before the first of a part, and for so long at least,
/// had run dry: the path has become longer than it was taken for, or its queue. What is lost on the way makes it
/// run dry, too: an answer is taken to be so many times as long as before at most.
const DRY_ANSWERS: f64 = 0.25;
const DRY_AT_LEAST: Duration = Duration::from_millis(10);
const LONGER_AT_ONCE: u32 = 2;

/// As long as nothing is known of the rate, and the least part: six times the first window of RFC 6928.
const LEAST_LEAD: Bytes = Bytes::kib(64);

/// What is known as the first part is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outset {
    /// Of the path.
    pub rtt: Duration,
    /// How long other answers took: a server that thinks for a second before each is not asked for parts that come
    /// within a moment. Zero where there were none.
    pub answer: Duration,
    /// What of that its server thinks, as the shortest of them tells: the others may have waited in a queue.
    pub thought: Duration,
    /// What other streams bring. Zero where it is not known.
    pub rate: BitRate,
}

/// Asks for one range in parts.
///
/// An HTTP/1.1 server cannot be told to stop: who gives away the end of what was asked for has to close the
/// connection, and loses what is under way and the window that it had grown. What was not asked for yet
/// can be given away for nothing. The next part is asked for before the last one has come (RFC 9112,
/// section 9.3.2), so that there is no pause between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parts {
    outset: Outset,
    /// How long an answer takes: a round trip, as far as is known, or what the first one took, or one that there was nothing
    /// else to come before.
    answer: Duration,
    /// What of that its server thinks.
    thought: Duration,
    /// What has come ends here.
    position: u64,
    came_at: Option<Timestamp>,
    /// Where the part begins that was asked for ahead, and when it was asked for.
    ahead: Option<(u64, Timestamp)>,
    /// Up to here (excluded) everything was asked for.
    asked: u64,
    /// What came lately; zero at first.
    rate: BitRate,
    /// It is higher than before.
    grows: bool,
    /// No stream's rate was known as this one began, and its own has grown ever since.
    is_first: bool,
    since: Option<Timestamp>,
    bytes: u64,
}

impl Parts {
    /// For a range that begins at `start`. Nothing is asked for yet.
    pub fn starting(start: u64, outset: Outset) -> Self {
        let answer = outset.rtt.max(outset.answer);
        Self {
            outset,
            answer,
            thought: outset.thought,
            position: start,
            came_at: None,
            ahead: None,
            asked: start,
            rate: BitRate::ZERO,
            grows: true,
            is_first: outset.rate == BitRate::ZERO,
            since: None,
            bytes: 0,
        }
    }

    /// The answer to the first request took so long, over a path of this `rtt` where that is known by now. It may be
    /// longer than a round trip where a proxy or a server that thinks is on the way.
    pub fn on_answer(&mut self, took: Duration, rtt: Option<Duration>) {
        self.outset.rtt = rtt.unwrap_or(self.outset.rtt);
        self.answer = self.answer.max(took);
        // The very first one meets no queue.
        if self.outset.answer.is_zero() {
            self.thought = took.saturating_sub(self.outset.rtt);
        }
    }

    /// What was to be asked for from `position` on is asked for elsewhere, or later. How fast parts came
    /// stays: each of them may have waited for its answer.
    pub const fn begin_again(&mut self, position: u64) {
        (self.asked, self.position, self.ahead) = (position, position, None);
    }

    /// Up to where everything was asked for.
    pub const fn asked(&self) -> u64 {
        self.asked
    }

    /// `bytes` came.
    pub fn on_bytes(&mut self, now: Timestamp, bytes: u64) {
        self.note_wait(now);
        self.position += bytes;
        // What comes first was under way together.
        let since = *self.since.get_or_insert(now);
        self.bytes += bytes;
        let elapsed = now.saturating_since(since);
        let sample = if self.rate == BitRate::ZERO {
            self.outset.rtt.max(FIRST_SAMPLE)
        } else {
            self.answer.max(SAMPLE)
        };
        if elapsed >= sample {
            let before =
                std::mem::replace(&mut self.rate, Bytes(std::mem::take(&mut self.bytes)) / elapsed);
            self.grows = self.rate.bps() >= before.bps() * GROWING;
            self.is_first &= self.grows;
            self.since = Some(now);
        }
    }

    /// Something comes: where it is the first of a part, and nothing else had come for a while, that took as long as
    /// answers do.
    fn note_wait(&mut self, now: Timestamp) {
        let quiet = now.saturating_since(self.came_at.replace(now).unwrap_or(now));
        let Some((_, asked_at)) = self.ahead.filter(|(from, _)| self.position >= *from) else {
            return;
        };
        self.ahead = None;
        if quiet >= self.answer.mul_f64(DRY_ANSWERS).max(DRY_AT_LEAST) {
            let took = now.saturating_since(asked_at);
            self.answer = took.min(self.answer * LONGER_AT_ONCE).max(self.answer);
        }
    }

    /// Where the next part ends, if it is time to ask for it: the stream is at `position` and brings
    /// everything up to `end`.
    pub fn next(&mut self, position: u64, end: u64) -> Option<u64> {
        let rate = if self.rate == BitRate::ZERO { self.outset.rate } else { self.rate };
        let ahead = if self.grows {
            self.answer * GROWING_LEAD_ANSWERS
        } else {
            self.answer + self.outset.rtt * LEAD_RTTS
        };
        let lead = (rate * ahead).max(LEAST_LEAD);
        if self.asked >= end || self.asked.saturating_sub(position) > lead.0 {
            return None;
        }
        // Nobody knows how fast it comes, but that each further request would wait for long.
        let is_slow = if rate == BitRate::ZERO {
            is_thought_about(self.answer, self.outset.rtt)
        } else {
            self.answer >= thinks_after(self.outset.rtt)
        };
        if is_slow && self.rate == BitRate::ZERO && end < u64::MAX {
            self.asked = end;
            return Some(end);
        }
        let least = if self.is_first { lead.0 * PARTS_AHEAD } else { lead.0 / PARTS_AHEAD };
        let least = Bytes(least).max(LEAST_LEAD).max(rate * (self.thought * PART_THOUGHTS));
        let part = (rate * lasts(self.answer)).max(LEAST_PART);
        let part = part.min(Bytes((end - self.asked) / LEFT_PARTS)).max(least);
        if self.asked > position {
            self.ahead = self.came_at.map(|at| (self.asked, at));
        }
        let next = self.asked.saturating_add(part.0);
        // A rest that is no part of its own comes with this one.
        self.asked = if next.saturating_add(part.0 / 2) >= end { end } else { next };
        Some(self.asked)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Nothing is known but the round-trip time.
    fn starting(rtt: Duration) -> Parts {
        Parts::starting(
            0,
            Outset { rtt, answer: Duration::ZERO, thought: Duration::ZERO, rate: BitRate::ZERO },
        )
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_part_is_asked_for_before_the_last_one_has_come() {
        let mut parts = starting(RTT);
        assert_eq!(parts.next(0, 10_000_000), Some(256 * 1024));
        assert_eq!(parts.next(0, 10_000_000), None);
        assert_eq!(parts.next(192 * 1024, 10_000_000), Some(512 * 1024));
        // 2 MB/s: two round trips are 400 kB, and a part lasts for eight.
        parts.on_bytes(at(1_000), 0);
        parts.on_bytes(at(1_100), 200_000);
        assert_eq!(parts.next(200 * 1024, 10_000_000), Some(512 * 1024 + 1_600_000));
        assert_eq!(parts.next(300 * 1024, 10_000_000), None);
    }

    #[test]
    fn a_window_that_doubles_is_never_short_of_requests() {
        let size = 40_000_000;
        let mut parts = starting(RTT);
        let mut asked = parts.next(0, size).unwrap();
        let (mut position, mut window) = (0, 14_480);
        for flight in 1..11 {
            for packet in 0..window / 1_448 {
                // Each is acknowledged, and two more are sent for it.
                let sent = position + window + packet * 1_448;
                assert!(asked >= sent.min(size), "flight {flight}: {asked} of {sent}");
                parts.on_bytes(at(flight * 100), 1_448);
                position += 1_448;
                asked = parts.next(position, size).unwrap_or(asked);
            }
            window *= 2;
        }
    }

    #[test]
    fn a_path_that_becomes_longer_is_asked_earlier() {
        // 5 MB/s, 40 ms until the second second, and 300 ms from then on: how long nothing came, in milliseconds.
        let size = 200_000_000;
        let outset = Outset {
            rtt: Duration::from_millis(40),
            answer: Duration::from_millis(40),
            thought: Duration::ZERO,
            rate: BitRate::from_mbps(40.0),
        };
        let mut parts = Parts::starting(0, outset);
        let mut end = parts.next(0, size).unwrap();
        let (mut position, mut further, mut dry) = (0, None, 0);
        for now in 40..20_000 {
            if position == end {
                let Some((_, next)) = further.take_if(|(comes_at, _)| *comes_at <= now) else {
                    dry += 1;
                    continue;
                };
                end = next;
            }
            let bytes = (end - position).min(5_000);
            position += bytes;
            parts.on_bytes(at(now), bytes);
            if further.is_none()
                && let Some(next) = parts.next(position, size)
            {
                further = Some((now + if now < 2_000 { 40 } else { 300 }, next));
            }
        }
        assert!(dry < 1_000, "{dry} ms");
    }

    #[test]
    fn parts_that_come_at_once_become_longer_where_each_is_waited_for() {
        let size = 60_000_000;
        let mut parts = starting(Duration::from_millis(50));
        let (mut position, mut requests, mut now) = (0, 0, 0);
        while position < size {
            parts.begin_again(position);
            let end = parts.next(position, size).expect("there is more");
            now += 20;
            parts.on_bytes(at(now), end - position);
            (position, requests) = (end, requests + 1);
        }
        assert!(requests <= 10, "{requests} requests");
    }

    #[test]
    fn a_server_that_thinks_is_asked_for_much_at_once() {
        let first_of = |end, rate, answer| {
            let rtt = Duration::from_millis(1);
            let (answer, rate) = (Duration::from_millis(answer), BitRate::from_mbps(rate));
            Parts::starting(0, Outset { rtt, answer, thought: answer.saturating_sub(rtt), rate })
                .next(0, end)
        };
        let first = |rate, answer| first_of(300_000, rate, answer);
        assert_eq!(
            first(2.0, 1_000),
            Some(300_000),
            "it would come in little more than an answer's time"
        );
        assert_eq!(first(2.0, 30), Some(75_000));
        assert_eq!(first(0.0, 15), Some(128 * 1024), "nothing is known");
        assert_eq!(first(0.0, 30), Some(300_000), "but that each request takes long");
        assert_eq!(first_of(u64::MAX, 0.0, 1_000), Some(256 * 1024), "perhaps there is no more");
    }

    #[test]
    fn the_last_parts_are_short_unless_a_server_thinks_before_each() {
        let part = |thought: u64| {
            let rate = BitRate::from_mbps(8.0);
            let (rtt, answer) = (Duration::from_millis(20), Duration::from_millis(20 + thought));
            let outset = Outset { rtt, answer, thought: answer.saturating_sub(rtt), rate };
            let mut parts = Parts::starting(0, outset);
            parts.begin_again(800_000);
            (parts.grows, parts.is_first) = (false, false);
            parts.next(800_000, 1_600_000).map(|end| end - 800_000)
        };
        // 1 MB/s.
        assert_eq!(part(0), Some(200_000), "a quarter of the rest");
        assert_eq!(part(70), Some(280_000), "four times 70 ms");
    }

    #[test]
    fn short_files_come_in_one_piece() {
        let suits = |kb: u64, mbps, millis| {
            suit(Some(kb * 1_000), BitRate::from_mbps(mbps), Duration::from_millis(millis))
        };
        assert!(suit(None, BitRate::from_mbps(1_000.0), RTT));
        assert!(suits(300, 1.0, 10) && !suits(250, 0.0, 10));
        assert!(!suits(600, 16.0, 10) && suits(1_100, 16.0, 10), "half a second");
        assert!(!suits(1_100, 16.0, 100), "eight answers");
    }

    #[test]
    fn a_short_rest_is_no_part_of_its_own() {
        let mut parts = starting(RTT);
        assert_eq!(parts.next(0, 190_000), Some(190_000));
        assert_eq!(parts.next(189_999, 190_000), None);
        let mut parts = starting(RTT);
        assert_eq!(parts.next(0, 200_000), Some(128 * 1024));
    }

    #[test]
    fn what_was_given_away_is_not_asked_for() {
        let mut parts = starting(RTT);
        assert_eq!(parts.next(0, 10_000_000), Some(256 * 1024));
        assert_eq!(parts.next(250_000, 256 * 1024), None);
        assert_eq!(parts.next(250_000, 100_000), None);
        assert_eq!(parts.asked(), 256 * 1024);
    }

    proptest! {
        #[test]
        fn every_byte_is_asked_for_once_and_in_time(
            size in 1u64..100_000_000,
            rtt in 0u64..1_000,
            pieces in proptest::collection::vec((1u64..2_000_000, 0u64..300), 1..200),
        ) {
            let mut parts = starting(Duration::from_millis(rtt));
            let (mut position, mut now) = (0, 0);
            let mut before = 0;
            for (bytes, millis) in pieces.into_iter().cycle().take(100_000) {
                while let Some(asked) = parts.next(position, size) {
                    prop_assert!(asked > before && asked <= size);
                    before = asked;
                }
                if position == size {
                    break;
                }
                prop_assert!(before > position, "nothing more will come");
                now += millis;
                let bytes = bytes.min(before - position);
                position += bytes;
                parts.on_bytes(at(now), bytes);
            }
        }
    }
}
