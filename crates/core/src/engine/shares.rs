//! How hosts share lanes: none of them holds the others up.

use pelton_algos::cluster::{Classes, SizeClass};
use pelton_algos::connections;
use pelton_algos::time::Timestamp;

use super::lanes::STREAMS_PER_CONNECTION;
use super::{Engine, OriginState};

/// Lanes as each host sees them: who has more than its part, from when there were more of them, takes nothing from the
/// others, and who is silent, which leaves the path empty, has none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    classes: Classes,
    count: f64,
    /// That of each.
    part: f64,
    /// Lanes of all, each with its part at most.
    held: f64,
    /// Silent hosts have taken so many connections that those come first which have answered.
    knows_silence: bool,
}

/// Silent hosts, each of which waits for its time-out, leave this part of all connections to others.
const LEFT_BY_SILENCE: u32 = 2;

impl Engine {
    /// How hosts share so many lanes for files of `classes`.
    pub(super) fn shares(&self, classes: Classes, count: u32) -> Shares {
        let used = self.origins.iter().filter(|state| !state.is_silent);
        let used = used.map(|state| self.lanes_of(state, classes)).filter(|lanes| *lanes > 0.0);
        let count = f64::from(count);
        let part = (count / used.clone().count().max(1) as f64).max(1.0);
        let held = used.map(|lanes| lanes.min(part)).sum();
        let silent = self.origins.iter().filter(|state| state.is_silent);
        let in_vain: u32 = silent.map(|state| state.streams).sum();
        let knows_silence = in_vain >= self.config.limits.max_connections / LEFT_BY_SILENCE;
        Shares { classes, count, part, held, knows_silence }
    }

    /// Whether `state` may have one lane more.
    pub(super) fn has_lane_for(&self, state: &OriginState, shares: &Shares) -> bool {
        let used = self.lanes_of(state, shares.classes);
        !state.is_silent && shares.held - used.min(shares.part) + used < shares.count
    }

    /// By what hosts come one after the other: who is used least first.
    pub(super) fn turn_of(&self, state: &OriginState, shares: &Shares) -> (bool, u32) {
        (shares.knows_silence && !state.has_answered(), state.streams + state.idle)
    }

    /// Lanes that files of `classes` in transfer from one host occupy. Over HTTP/2 each bears several files.
    fn lanes_of(&self, state: &OriginState, classes: Classes) -> f64 {
        let of_class = |class: SizeClass| {
            let lanes = self.lanes.iter().find(|lanes| lanes.classes.contains(class));
            let files = lanes.map_or(1, |lanes| lanes.files.clamp(1, STREAMS_PER_CONNECTION));
            let of_each = if state.multiplexes { files } else { 1 };
            f64::from(state.files[class as usize]) / f64::from(of_each)
        };
        SizeClass::ALL.into_iter().filter(|class| classes.contains(*class)).map(of_class).sum()
    }

    /// Finds hosts that answer nothing, sooner where others do meanwhile, and when the next one may have been silent for long.
    pub(super) fn look_for_silent_hosts(&mut self, now: Timestamp) {
        self.silence_check = None;
        if self.origins.len() < 2 || self.waiting.is_empty() {
            return;
        }
        let (answer, answers) = (self.answers.mean(), self.answers.count());
        for state in self.origins.iter_mut().filter(|state| state.waits_for_first_answer()) {
            let passed = answers - state.answers_before;
            let at = state.sign_at.max(state.came_at) + connections::overdue(answer, passed);
            if now >= at {
                state.is_silent = true;
                self.refill = true;
            } else {
                self.silence_check = Some(self.silence_check.map_or(at, |check| check.min(at)));
            }
        }
    }
}

impl OriginState {
    /// It was asked where it had nothing to do, or has answered, after so many `answers` of all hosts.
    pub(super) const fn note_sign(&mut self, now: Timestamp, answers: u32) {
        (self.sign_at, self.answers_before, self.is_silent) = (now, answers, false);
    }

    /// Whether it was asked, serves nothing, and is not known to be silent.
    const fn waits_for_first_answer(&self) -> bool {
        self.streams > 0 && self.served == 0 && !self.is_silent
    }
}
