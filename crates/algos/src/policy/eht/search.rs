//! The search for the number of active channels, window by window.

use std::time::Duration;

use super::{EhtConfig, Objective};
use crate::link::LinkEstimate;
use crate::policy::{Observation, count};
use crate::time::Timestamp;
use crate::units::{BitRate, Bytes, Joules};

/// As long as its rate grows a link is taken for twice as fast as it is.
const GUESSED: f64 = 2.0;

/// A search under way.
#[derive(Debug, Clone)]
pub(super) struct Search {
    candidates: Vec<u32>,
    current: usize,
    /// The counted part of each window.
    counted: Duration,
    window: Window,
    best: Option<(u32, f64)>,
    worse_in_a_row: u32,
    tried: Vec<(u32, f64)>,
    /// As it was when the search began, or as the most channels have shown it since.
    link: LinkEstimate,
    /// What the last window brought.
    last: Option<(u32, BitRate)>,
    /// That can't have been over the link of the window before.
    is_elsewhere: bool,
}

/// What a search has found beside the best number of channels.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// In words.
    pub(super) why: String,
    /// The most channels that it could try.
    pub(super) most: u32,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    counted_from: Timestamp,
    ends: Timestamp,
    start: Option<Totals>,
}

#[derive(Debug, Clone, Copy)]
struct Totals {
    at: Timestamp,
    delivered: Bytes,
    energy: Joules,
}

impl EhtConfig {
    /// The ramp-up and the counted part of a window.
    pub(super) fn window_lengths(&self, link: &LinkEstimate) -> (Duration, Duration) {
        let ramp = link.rtt * self.ramp_rtts;
        let counted = (link.rtt * self.window_rtts).max(self.shortest_window);
        (ramp, counted)
    }

    /// As long as the share of `expected` allows for `windows` of them, with as much again to spare, and no
    /// longer than the family's: what a queue and a few losses do to a short one is chance.
    fn counted(&self, link: &LinkEstimate, expected: Duration, windows: usize) -> Duration {
        let (ramp, shortest) = self.window_lengths(link);
        let each = expected.mul_f64(self.search_share / 2.0) / windows.max(1) as u32;
        each.saturating_sub(ramp).min(self.longest_window).max(shortest)
    }

    fn window(&self, now: Timestamp, link: &LinkEstimate, counted: Duration) -> Window {
        let (ramp, _) = self.window_lengths(link);
        Window { counted_from: now + ramp, ends: now + ramp + counted, start: None }
    }

    /// Equation 1 for `bytes` in `time` with `energy`.
    pub(super) fn efficiency(&self, bytes: Bytes, time: Duration, energy: Joules) -> f64 {
        let seconds = time.as_secs_f64().max(1e-9);
        let bits = bytes.as_f64() * 8.0;
        let joules = energy.get().max(1e-9);
        match self.objective {
            Objective::WholeTransfer => bits * bits / (seconds * joules),
            Objective::Literal => bits / seconds / joules,
        }
    }
}

impl Search {
    /// A search through `candidates`, of which there is at least one, from `now` on, in a transfer of which
    /// `expected` is left.
    pub(super) fn new(
        config: &EhtConfig,
        candidates: Vec<u32>,
        now: Timestamp,
        link: &LinkEstimate,
        expected: Duration,
    ) -> Self {
        let counted = config.counted(link, expected, candidates.len());
        Self {
            candidates,
            current: 0,
            counted,
            window: config.window(now, link, counted),
            best: None,
            worse_in_a_row: 0,
            tried: Vec::new(),
            link: *link,
            last: None,
            is_elsewhere: false,
        }
    }

    /// Whether `link` is another one than that which the first windows were about. More channels than before may show
    /// more of it; fewer do not.
    pub(super) fn is_outdated(&self, config: &EhtConfig, link: &LinkEstimate) -> bool {
        let is_most = self.tried.iter().all(|(channels, _)| *channels < self.channels());
        let differs = link.differs_in_bandwidth(&self.link, config.link_change * GUESSED);
        !is_most && differs
    }

    /// Whether its last window can't have been over the link of the one before.
    pub(super) const fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// The most channels that it can try.
    pub(super) fn most(&self) -> u32 {
        self.candidates.iter().copied().max().unwrap_or(1)
    }

    /// Takes note of the present totals. After the last window: the best number of channels, and
    /// what was found.
    pub(super) fn on_totals(
        &mut self,
        config: &EhtConfig,
        now: Timestamp,
        observation: &Observation<'_>,
    ) -> Option<(u32, Found)> {
        let totals = Totals {
            at: now,
            delivered: observation.delivered,
            energy: observation.energy.unwrap_or_default(),
        };
        if now >= self.window.counted_from && self.window.start.is_none() {
            self.window.start = Some(totals);
        }
        let start = self.window.start.filter(|_| now >= self.window.ends)?;
        let (bytes, time) =
            (totals.delivered.saturating_sub(start.delivered), totals.at - start.at);
        let energy = totals.energy.saturating_sub(start.energy);
        let efficiency = config.efficiency(bytes, time, energy);
        if self.has_moved(bytes / time, config.link_change) {
            self.is_elsewhere = true;
            return None;
        }
        self.on_window(config, &observation.link, efficiency);
        if self.current < self.candidates.len() {
            self.window = config.window(now, &observation.link, self.counted);
            return None;
        }
        let (best, efficiency) = self.best?;
        // Files that were begun under more channels go on under fewer, so windows differ by less than they
        // should.
        let as_good = |(_, other): &&(u32, f64)| *other >= efficiency * config.as_good_measured;
        let most = self.tried.iter().filter(as_good).map(|(channels, _)| *channels).max();
        let best = most.filter(|_| !observation.is_told).unwrap_or(best);
        let unit = match config.objective {
            Objective::WholeTransfer => "rate^2/power",
            Objective::Literal => "rate/joules",
        };
        let tried: Vec<_> = self.tried.iter().map(|(n, e)| format!("{n}: {e:.3e}")).collect();
        let best_of = count(best, "channel");
        let why = format!("searched, best with {best_of} ({unit}: {})", tried.join(", "));
        Some((best, Found { why, most: self.most() }))
    }

    /// Whether more channels than before bring so much more than in proportion that the link has become faster meanwhile.
    fn has_moved(&mut self, rate: BitRate, link_change: f64) -> bool {
        let channels = self.channels();
        self.last.replace((channels, rate)).is_some_and(|(before, brought)| {
            let times = f64::from(channels) / f64::from(before.max(1));
            times >= 1.0 && rate > brought * (times * link_change)
        })
    }

    fn on_window(&mut self, config: &EhtConfig, link: &LinkEstimate, efficiency: f64) {
        let channels = self.candidates[self.current];
        if self.tried.iter().all(|(others, _)| *others < channels) {
            self.link = *link;
        }
        self.tried.push((channels, efficiency));
        match self.best {
            Some((_, best)) if efficiency < best * config.clearly_worse => {
                self.worse_in_a_row += 1;
            }
            Some((_, best)) if efficiency <= best => self.worse_in_a_row = 0,
            _ => {
                self.best = Some((channels, efficiency));
                self.worse_in_a_row = 0;
            }
        }
        self.current += 1;
        if self.worse_in_a_row >= config.patience {
            self.turn();
        }
    }

    /// Efficiency has clearly turned in this direction: goes on below the start, or ends.
    fn turn(&mut self) {
        let start = self.candidates[0];
        let below = (self.current..self.candidates.len()).find(|i| self.candidates[*i] < start);
        let going_down = self.candidates[self.current - 1] < start;
        self.current = below.filter(|_| !going_down).unwrap_or(self.candidates.len());
        self.worse_in_a_row = 0;
    }

    /// The channels that are tried now.
    pub(super) fn channels(&self) -> u32 {
        self.candidates[self.current]
    }

    /// What is tried now, in words.
    pub(super) fn step(&self) -> String {
        let channels = count(self.channels(), "channel");
        let (number, most) = (self.current + 1, self.candidates.len());
        format!("trying {channels} (window {number} of at most {most})")
    }

    /// When totals are wanted next.
    pub(super) fn next_timeout(&self) -> Timestamp {
        if self.window.start.is_none() { self.window.counted_from } else { self.window.ends }
    }
}
