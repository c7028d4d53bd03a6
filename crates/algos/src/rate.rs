//! A limit on the rate of a run, shared fairly by its files and by the streams of each file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::ranges::StreamId;
use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// What is read at once takes so long at the limit: few reads, and none that holds others up.
const TURN: Duration = Duration::from_millis(5);
/// A turn of fewer bytes costs more than it brings.
const LEAST_TURN: u64 = 1024;
/// What a reader's memory takes at once.
const LONGEST_TURN: u64 = 256 * 1024;
/// What was not used counts for so long: a late timer loses nothing, and a pause is not followed by
/// a burst. 50 ms are 1 % of 5 s.
const SAVED: Duration = Duration::from_millis(50);

/// Idle files that are remembered.
const MOST_IDLE: usize = 256;

/// What a stream that wants to read may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Read so many bytes at most, and say with [`RateBudget::spend`] how many came.
    Now(u64),
    /// Ask again then: it is the next one.
    At(Timestamp),
    /// Wait to be called: others come first.
    Later,
}

/// A token bucket whose tokens go to the waiting file that has had the fewest bytes, and in it to
/// the streams in turn (start-time fair queueing, Goyal, Vin and Cheng 1996). A file that was idle
/// has no claim to what it did not ask for then.
///
/// A stream asks when it could read. If nothing was there for it, it withdraws, and nobody waits for
/// it: a file that its server sends slowly holds no other up.
#[derive(Debug, Default)]
pub struct RateBudget {
    rate: Option<BitRate>,
    /// Bytes that may be read now.
    tokens: f64,
    refilled: Timestamp,
    files: BTreeMap<u64, Shares>,
    /// Files with streams that wait, the one with the fewest bytes first.
    waiting: BTreeSet<(u64, u64)>,
    /// Bytes of the file that was served last: what an idle file returns with at least.
    served: u64,
}

/// What one file has had, and who of it waits.
#[derive(Debug, Default)]
struct Shares {
    served: u64,
    streams: VecDeque<StreamId>,
}

impl RateBudget {
    /// Another limit from `now` on; `None` is no limit.
    pub fn set_rate(&mut self, now: Timestamp, rate: Option<BitRate>) {
        self.refill(now);
        self.rate = rate.filter(|rate| *rate > BitRate::ZERO);
        self.tokens = self.tokens.min(self.most_saved());
    }

    /// The limit.
    pub const fn rate(&self) -> Option<BitRate> {
        self.rate
    }

    /// `stream` of `file` could read. It waits until it spends or withdraws, unless it may read
    /// now.
    pub fn ask(&mut self, now: Timestamp, file: u64, stream: StreamId) -> Turn {
        let Some(rate) = self.rate else { return Turn::Now(u64::MAX) };
        self.enter(file, stream);
        if self.next() != Some(stream) {
            return Turn::Later;
        }
        self.refill(now);
        let turn = self.turn();
        let missing = turn as f64 - self.tokens;
        if missing <= 0.0 {
            return Turn::Now(turn);
        }
        // A whole byte later at least, so that rounding never asks for this moment again.
        let wait = Bytes(missing.ceil() as u64) / rate;
        Turn::At(now + wait.max(Duration::from_micros(1)))
    }

    /// `stream` of `file` has read `bytes`: its turn is over.
    pub fn spend(&mut self, now: Timestamp, file: u64, stream: StreamId, bytes: u64) {
        self.leave(file, stream);
        if self.rate.is_none() {
            return;
        }
        self.refill(now);
        self.tokens -= bytes as f64;
        let shares = self.files.entry(file).or_default();
        let before = (shares.served, file);
        shares.served = shares.served.max(self.served);
        self.served = shares.served;
        shares.served += bytes;
        if self.waiting.remove(&before) {
            self.waiting.insert((shares.served, file));
        } else if self.waiting.is_empty() {
            // Nobody wanted more than it got.
            self.served = shares.served;
        }
        self.forget_idle();
    }

    /// `stream` of `file` could not read after all, or is gone.
    pub fn withdraw(&mut self, file: u64, stream: StreamId) {
        self.leave(file, stream);
    }

    /// The stream that has the next turn.
    pub fn next(&self) -> Option<StreamId> {
        let (_, file) = self.waiting.first()?;
        self.files.get(file)?.streams.front().copied()
    }

    fn enter(&mut self, file: u64, stream: StreamId) {
        let shares = self.files.entry(file).or_default();
        if shares.streams.contains(&stream) {
            return;
        }
        if shares.streams.is_empty() {
            shares.served = shares.served.max(self.served);
            self.waiting.insert((shares.served, file));
        }
        shares.streams.push_back(stream);
    }

    fn leave(&mut self, file: u64, stream: StreamId) {
        let Some(shares) = self.files.get_mut(&file) else { return };
        shares.streams.retain(|other| *other != stream);
        if shares.streams.is_empty() {
            self.waiting.remove(&(shares.served, file));
        }
    }

    /// Forgets files that would return with no claim of their own, once they are many.
    fn forget_idle(&mut self) {
        if self.files.len() > 2 * self.waiting.len() + MOST_IDLE {
            let served = self.served;
            self.files.retain(|_, shares| !shares.streams.is_empty() || shares.served > served);
        }
    }

    fn refill(&mut self, now: Timestamp) {
        let since = now.saturating_since(self.refilled);
        self.refilled = self.refilled.max(now);
        if let Some(rate) = self.rate {
            let gained = rate.bps() / 8.0 * since.as_secs_f64();
            self.tokens = (self.tokens + gained).min(self.most_saved());
        }
    }

    fn turn(&self) -> u64 {
        self.rate.map_or(LONGEST_TURN, |rate| (rate * TURN).0.clamp(LEAST_TURN, LONGEST_TURN))
    }

    fn most_saved(&self) -> f64 {
        let saved = self.rate.map_or(0, |rate| (rate * SAVED).0);
        saved.max(2 * self.turn()) as f64
    }
}

#[cfg(test)]
mod tests;
