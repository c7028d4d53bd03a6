//! A limit that several runs share, each on its own thread.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Turn;
use super::bucket::{most_saved, turn};
use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// A run that had to wait within this time is held.
const LATELY: Duration = Duration::from_millis(250);

/// The limit. What it lets through flows to the runs that want to read, in proportion to their files
/// that wait; what one of them leaves flows to the others (water-filling, which is max-min fair: Bertsekas
/// and Gallager 1992, section 6.5). Each takes what it has when its thread comes to it, so that no run
/// waits for another's thread.
#[derive(Debug, Default)]
pub struct CommonRate {
    rate: Option<BitRate>,
    /// Bytes that nobody has yet.
    spare: f64,
    filled: Timestamp,
    /// Those that want to read.
    runs: BTreeMap<u64, Run>,
    /// When each run had to wait last.
    held: BTreeMap<u64, Timestamp>,
}

#[derive(Debug, Default)]
struct Run {
    /// Files that wait.
    files: f64,
    /// Bytes that it may read.
    tokens: f64,
}

impl CommonRate {
    /// Another limit from `now` on; `None` is no limit.
    pub fn set_rate(&mut self, now: Timestamp, rate: Option<BitRate>) {
        self.rate = rate.filter(|rate| *rate > BitRate::ZERO);
        self.filled = now;
        self.spare = 0.0;
        self.runs.clear();
        self.held.clear();
    }

    /// `run`, of which so many `files` wait, could read: how much, or when.
    pub(super) fn ask(&mut self, now: Timestamp, run: u64, files: usize) -> Turn {
        let Some(rate) = self.rate else { return Turn::Now(u64::MAX) };
        self.runs.entry(run).or_default().files = files.max(1) as f64;
        self.fill(now, rate);
        let Some(asking) = self.runs.get(&run) else { return Turn::Later };
        let turn = turn(self.part(rate, asking));
        if asking.tokens >= turn as f64 {
            return Turn::Now(turn);
        }
        let thirsty = self.files(|other| !self.is_full(rate, other));
        let inflow = rate * (asking.files / thirsty);
        let missing = Bytes((turn as f64 - asking.tokens).ceil() as u64);
        self.held.insert(run, now);
        Turn::At(now + (missing / inflow).max(Duration::from_micros(1)))
    }

    /// `run` has read `bytes`.
    pub(super) fn spend(&mut self, run: u64, bytes: u64) {
        if let Some(run) = self.runs.get_mut(&run) {
            run.tokens -= bytes as f64;
        }
    }

    /// Nothing of `run` waits any more: others have what it has not used.
    pub(super) fn leave(&mut self, run: u64) {
        self.spare += self.runs.remove(&run).map_or(0.0, |run| run.tokens);
    }

    /// `run` is over.
    pub fn forget(&mut self, run: u64) {
        self.leave(run);
        self.held.remove(&run);
    }

    /// The limit.
    pub const fn rate(&self) -> Option<BitRate> {
        self.rate
    }

    /// Whether the limit is what holds `run`: it has to wait for it.
    pub fn holds(&self, now: Timestamp, run: u64) -> bool {
        self.held.get(&run).is_some_and(|held| now.saturating_since(*held) <= LATELY)
    }

    /// Gives out what has come since the last time. A run that has saved enough takes no more.
    fn fill(&mut self, now: Timestamp, rate: BitRate) {
        let gained = rate.bps() / 8.0 * now.saturating_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        let had: f64 = self.runs.values().map(|run| run.tokens).sum();
        self.spare = (self.spare + gained).min((most_saved(rate) - had).max(0.0));
        // Each time round a run is full then, or nothing is left.
        while self.spare >= 1.0 {
            let thirsty = self.files(|run| !self.is_full(rate, run));
            if thirsty == 0.0 {
                return;
            }
            let (spare, all) = (std::mem::take(&mut self.spare), self.files(|_| true));
            for run in self.runs.values_mut() {
                let room = most_saved(rate * (run.files / all)) - run.tokens;
                if room > 0.0 {
                    let given = spare * run.files / thirsty;
                    run.tokens += given.min(room);
                    self.spare += (given - room).max(0.0);
                }
            }
        }
    }

    fn is_full(&self, rate: BitRate, run: &Run) -> bool {
        run.tokens >= most_saved(self.part(rate, run))
    }

    fn part(&self, rate: BitRate, run: &Run) -> BitRate {
        rate * (run.files / self.files(|_| true))
    }

    fn files(&self, count: impl Fn(&Run) -> bool) -> f64 {
        self.runs.values().filter(|run| count(run)).map(|run| run.files).sum()
    }
}
