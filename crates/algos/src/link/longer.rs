//! A path that becomes longer while transfers use it.

use std::time::Duration;

use crate::time::Timestamp;
use crate::units::BitRate;

/// So many round trips in a row are no chance.
const TELLING: u32 = 4;
/// They are all so many times as long as the path was, and by so much longer at least.
const LONGER: f64 = 1.5;
const LONGER_AT_LEAST: Duration = Duration::from_millis(5);
/// For how long a path has not been full at least: less is a wait for something that was lost.
const LASTS: Duration = Duration::from_millis(500);
/// Transfers that bring so many times as much as before recover from a pause.
const RECOVERS: f64 = 2.0;

/// Tells a path that has become longer from a queue that transfers fill.
///
/// Both make round trips longer. Transfers that bring all that the path carries fill its queue; where they bring much less than
/// they did, their windows have become too small for it. A path that has become slower, and has a deep queue, looks the same for
/// as long as its old rate is remembered: more transfers then bring nothing more, which is found out soon.
///
/// Transports smooth what they tell, which lags behind; in answers there is what a server thinks. The former shows that the
/// path is longer, and the latter how long it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LongerPath {
    /// Since when transfers have brought much less than the path carried.
    slack_since: Option<Timestamp>,
    /// The most that they have brought since then.
    best: BitRate,
    seen: u32,
    least: Duration,
    /// The shortest answer, and how many there were.
    answer: Duration,
    answers: u32,
}

impl LongerPath {
    /// Transfers bring `rate` at `now`, which is what the path carries, or much less.
    pub(super) fn on_rate(&mut self, now: Timestamp, rate: BitRate, is_full: bool) {
        if is_full {
            *self = Self::default();
        } else if self.slack_since.is_none() || rate > self.best * RECOVERS {
            *self = Self { slack_since: Some(now), best: rate, ..Self::default() };
        }
    }

    /// An answer took so long, without what the server thinks.
    pub(super) fn on_answer(&mut self, now: Timestamp, took: Duration) {
        let Some(since) = self.slack_since else { return };
        if took > now.saturating_since(since) {
            return;
        }
        self.answer = if self.answers == 0 { took } else { self.answer.min(took) };
        self.answers += 1;
    }

    /// A round trip took so long over a path of `known`. Returns how long the path is, where it has become longer.
    pub(super) fn on_round_trip(
        &mut self,
        now: Timestamp,
        took: Duration,
        known: Duration,
    ) -> Option<Duration> {
        let slack = now.saturating_since(self.slack_since?);
        // One that began before may have met the queue of then.
        if took > slack {
            return None;
        }
        let least = if self.seen == 0 { took } else { self.least.min(took) };
        (self.least, self.seen) = (least, self.seen + 1);
        let is_longer = least > known.mul_f64(LONGER).max(known + LONGER_AT_LEAST);
        if self.seen < TELLING || slack < LASTS || !is_longer {
            return None;
        }
        let answer = if self.answers >= TELLING { self.answer } else { Duration::ZERO };
        *self = Self::default();
        Some(least.max(answer))
    }
}
