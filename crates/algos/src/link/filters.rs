//! The filters of a link estimate: what was seen lately, over some time, at most and at least.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// The last samples. What TCP held back behind a lost segment comes at once when that is there: over one
/// sample it seems that a link carries twice what it does.
#[derive(Debug, Clone, Default)]
pub(super) struct Lately(VecDeque<(Bytes, Duration)>);

/// So many samples in a row are a steady rate, or as many as come in this time.
const STEADY_SAMPLES: usize = 3;
const STEADY_FOR: Duration = Duration::from_millis(600);

impl Lately {
    /// Takes note of a sample, and returns the rate over the last ones.
    pub(super) fn push(&mut self, bytes: Bytes, elapsed: Duration) -> BitRate {
        self.0.push_back((bytes, elapsed));
        let time = |samples: &VecDeque<(Bytes, Duration)>| -> Duration {
            samples.iter().map(|(_, elapsed)| *elapsed).sum()
        };
        while self.0.len() > 1 && (self.0.len() > STEADY_SAMPLES || time(&self.0) > STEADY_FOR) {
            self.0.pop_front();
        }
        Bytes(self.0.iter().map(|(bytes, _)| bytes.0).sum()) / time(&self.0)
    }
}

/// TCP holds back no more behind lost segments than what is under way, queues included: what a path brings in so long.
const LONGEST_HELD: Duration = Duration::from_secs(1);

/// What a path that was full has brought less than it could lately: it may be held back behind lost segments, and come
/// at once when those are there.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldBack(Bytes);

impl HeldBack {
    /// Takes note of a sample of a path that is believed to carry so much. Returns the bytes that tell of it: what was
    /// missing before does not count beyond that rate.
    pub(super) fn push(&mut self, bytes: Bytes, elapsed: Duration, believed: BitRate) -> Bytes {
        let expected = believed * elapsed;
        let released = bytes.saturating_sub(expected).min(self.0);
        let missing = expected.saturating_sub(bytes);
        self.0 = (self.0.saturating_sub(released) + missing).min(believed * LONGEST_HELD);
        bytes.saturating_sub(released)
    }

    /// Whether a path of this round-trip time that brings `seen` may bring `faster` for one of them only because what was held
    /// back comes: a half of it is.
    pub(super) fn explains(&self, seen: BitRate, faster: BitRate, rtt: Duration) -> bool {
        let beyond = (faster * rtt).saturating_sub(seen * rtt);
        self.0.0 > beyond.0 / 2
    }
}

/// Transfers that bring such a part of a pace keep it: heads take the rest, and what tells a pace is few packets.
const KEEPS: f64 = 0.85;
/// A path that brings so many times its pace carries more than that told.
pub(super) const OUTPACES: f64 = 1.4;

/// Whether transfers bring what first answers told of a path, and have not lacked a second of it since.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AtPace {
    /// What they have lacked since they last kept it. `None` before they did.
    lacking: Option<Bytes>,
}

impl AtPace {
    /// `bytes` came within `elapsed`, and `steady` over the last samples.
    pub(super) fn push(&mut self, bytes: Bytes, elapsed: Duration, steady: BitRate, pace: BitRate) {
        let kept = pace * KEEPS;
        if steady >= kept {
            self.lacking = (steady <= pace * OUTPACES).then_some(Bytes::ZERO);
        } else if let Some(lacking) = self.lacking {
            let lacking = (lacking + kept * elapsed).saturating_sub(bytes);
            self.lacking = Some(lacking).filter(|lacking| *lacking < pace * LONGEST_HELD);
        }
    }

    pub(super) const fn is_kept(self) -> bool {
        self.lacking.is_some()
    }
}

/// Goodput over so long, or up to twice as long, is no chance.
const SUSTAINED_FOR: Duration = Duration::from_secs(1);

/// The goodput over some time, silences included.
#[derive(Debug, Clone, Default)]
pub(super) struct Sustained {
    bytes: Bytes,
    /// When the present time and the one before began, and what had come by then.
    since: Option<[(Timestamp, Bytes); 2]>,
    /// The most that was seen.
    pub(super) best: BitRate,
}

impl Sustained {
    pub(super) fn push(&mut self, now: Timestamp, bytes: Bytes) {
        // What comes first was under way before.
        self.bytes += bytes;
        let [last, before] = self.since.get_or_insert([(now, self.bytes); 2]);
        if now.saturating_since(last.0) >= SUSTAINED_FOR {
            (*last, *before) = ((now, self.bytes), *last);
        }
        let elapsed = now.saturating_since(before.0);
        let rate = Bytes(self.bytes.0 - before.1.0) / elapsed;
        if elapsed >= SUSTAINED_FOR && rate > self.best {
            self.best = rate;
        }
    }

    pub(super) fn pause(&mut self) {
        self.since = None;
    }
}

/// The greatest of the rates seen lately: a queue whose values fall from front to back.
#[derive(Debug, Clone, Default)]
pub(super) struct WindowedMax(VecDeque<(Timestamp, BitRate)>);

impl WindowedMax {
    pub(super) fn push(&mut self, now: Timestamp, value: BitRate, memory: Duration) {
        while self.0.back().is_some_and(|(_, older)| *older <= value) {
            self.0.pop_back();
        }
        self.0.push_back((now, value));
        while self.0.len() > 1
            && self.0.front().is_some_and(|(at, _)| now.saturating_since(*at) > memory)
        {
            self.0.pop_front();
        }
    }

    pub(super) fn max(&self) -> BitRate {
        self.0.front().map_or(BitRate::ZERO, |(_, value)| *value)
    }
}

/// The least of the round-trip times seen lately.
#[derive(Debug, Clone, Default)]
pub(super) struct WindowedMin(VecDeque<(Timestamp, Duration)>);

impl WindowedMin {
    pub(super) fn push(&mut self, now: Timestamp, value: Duration, memory: Duration) {
        while self.0.back().is_some_and(|(_, older)| *older >= value) {
            self.0.pop_back();
        }
        self.0.push_back((now, value));
        while self.0.len() > 1
            && self.0.front().is_some_and(|(at, _)| now.saturating_since(*at) > memory)
        {
            self.0.pop_front();
        }
    }

    pub(super) fn min(&self) -> Option<Duration> {
        self.0.front().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: BitRate = BitRate::from_kbps(8_000);
    const SAMPLE: Duration = Duration::from_millis(200);

    /// Whether the pace is kept after samples of so many Mbit/s.
    fn is_kept_after(samples: &[f64]) -> bool {
        let (mut at_pace, mut lately) = (AtPace::default(), Lately::default());
        for rate in samples.iter().map(|mbps| BitRate::from_mbps(*mbps)) {
            let bytes = rate * SAMPLE;
            at_pace.push(bytes, SAMPLE, lately.push(bytes, SAMPLE), PACE);
        }
        at_pace.is_kept()
    }

    #[test]
    fn a_pace_is_kept_until_a_second_of_it_is_lacking() {
        assert!(!is_kept_after(&[2.0, 4.0, 6.0]), "windows grow");
        assert!(is_kept_after(&[2.0, 4.0, 8.0, 8.0, 8.0]));
        assert!(is_kept_after(&[8.0, 8.0, 8.0, 0.0, 0.0, 0.0]), "it may come at once");
        assert!(!is_kept_after(&[8.0, 8.0, 8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]));
        assert!(!is_kept_after(&[&[8.0; 3][..], &[5.0; 30]].concat()), "some losses");
        assert!(!is_kept_after(&[20.0; 3]), "it carries more than that told");
    }

    #[test]
    fn what_was_held_back_explains_a_burst_of_as_much() {
        let rtt = Duration::from_millis(100);
        let explains = |missing: u64, faster| {
            let mut held_back = HeldBack::default();
            held_back.push(Bytes(200_000 - missing), SAMPLE, PACE);
            held_back.explains(PACE, BitRate::from_mbps(faster), rtt)
        };
        // 24 Mbit/s for 100 ms are 200 kB beyond the pace.
        assert!(explains(150_000, 24.0) && !explains(50_000, 24.0) && explains(50_000, 12.0));
        assert!(!explains(0, 9.0));
    }
}
