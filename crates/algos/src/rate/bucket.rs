//! A token bucket.

use std::time::Duration;

use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// What is read at once takes so long at the limit: few reads, and none that holds others up.
const TURN: Duration = Duration::from_millis(5);
/// A turn of fewer bytes costs more than it brings.
pub(super) const LEAST_TURN: u64 = 1024;
/// What a reader's memory takes at once.
pub(super) const LONGEST_TURN: u64 = 256 * 1024;
/// What was not used counts for so long: a late timer loses nothing, and a pause is not followed by
/// a burst. 50 ms are 1 % of 5 s.
pub(super) const SAVED: Duration = Duration::from_millis(50);

/// Bytes that may be read, which come at a rate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bucket {
    rate: Option<BitRate>,
    /// Bytes that may be read now.
    tokens: f64,
    refilled: Timestamp,
}

impl Bucket {
    /// An empty one; no `rate` is no limit, and a rate of zero is none.
    pub(super) fn new(now: Timestamp, rate: Option<BitRate>) -> Self {
        Self { rate: rate.filter(|rate| *rate > BitRate::ZERO), tokens: 0.0, refilled: now }
    }

    /// Another rate from `now` on.
    pub(super) fn set_rate(&mut self, now: Timestamp, rate: Option<BitRate>) {
        let tokens = self.tokens_at(now);
        *self = Self::new(now, rate);
        self.tokens = tokens.min(self.rate.map_or(0.0, most_saved));
    }

    pub(super) fn spend(&mut self, now: Timestamp, bytes: u64) {
        if self.rate.is_some() {
            self.tokens = self.tokens_at(now) - bytes as f64;
            self.refilled = self.refilled.max(now);
        }
    }

    pub(super) const fn rate(&self) -> Option<BitRate> {
        self.rate
    }

    /// When `bytes` may be read, if nobody else spends.
    pub(super) fn ready_at(&self, now: Timestamp, bytes: u64) -> Timestamp {
        let Some(rate) = self.rate else { return now };
        let missing = bytes as f64 - self.tokens_at(now);
        if missing <= 0.0 {
            return now;
        }
        // A whole byte later at least, so that rounding never asks for this moment again.
        let wait = Bytes(missing.ceil() as u64) / rate;
        now + wait.max(Duration::from_micros(1))
    }

    /// Bytes that are read at once.
    pub(super) fn turn(&self) -> u64 {
        self.rate.map_or(LONGEST_TURN, turn)
    }

    fn tokens_at(&self, now: Timestamp) -> f64 {
        let Some(rate) = self.rate else { return 0.0 };
        let gained = rate.bps() / 8.0 * now.saturating_since(self.refilled).as_secs_f64();
        (self.tokens + gained).min(most_saved(rate))
    }
}

/// Bytes that are read at once at `rate`.
pub(super) fn turn(rate: BitRate) -> u64 {
    (rate * TURN).0.clamp(LEAST_TURN, LONGEST_TURN)
}

/// Bytes that are kept at most while nobody reads.
pub(super) fn most_saved(rate: BitRate) -> f64 {
    (rate * SAVED).0.max(2 * turn(rate)) as f64
}
