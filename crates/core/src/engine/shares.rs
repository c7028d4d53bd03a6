//! How hosts and files share lanes: none of them holds the others up.

use std::time::Duration;

use pelton_algos::cluster::{Classes, SizeClass};
use pelton_algos::time::Timestamp;

use super::event::FileId;
use super::lanes::STREAMS_PER_CONNECTION;
use super::{Engine, OriginId, OriginState, Stream};

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
    /// Some host may have one more.
    pub(super) has_free: bool,
}

/// Silent hosts, each of which waits for its time-out, leave this part of all connections to others.
const LEFT_BY_SILENCE: u32 = 2;

/// Silence is looked for so often at least.
const LOOK: Duration = Duration::from_millis(250);

/// The first answer arrives within so many round trips where nobody thinks, though others came up meanwhile.
const FIRST_ROUND_TRIPS: u32 = 6;

/// Less than that servers take for many files, without thinking.
const THOUGHT: Duration = Duration::from_millis(50);

/// So many further requests at a time find out whether a host that is silent answers none, or only those that it was asked.
const PROBES_OF_SILENCE: u32 = 2;

impl Shares {
    /// By what hosts come one after the other: who is used least first.
    pub(super) const fn turn_of(&self, state: &OriginState) -> (bool, u32) {
        (self.knows_silence && !state.has_answered(), state.streams + state.idle)
    }
}

impl Engine {
    /// How hosts share so many lanes for files of `classes`.
    pub(super) fn shares(&self, classes: Classes, count: u32) -> Shares {
        let count = f64::from(count);
        let is_used = |o: &&OriginState| !o.is_silent() && o.files_in_transfer() > 0;
        let used = match self.origins.len() {
            1 => 1,
            _ => self.origins.iter().filter(is_used).count().max(1),
        };
        let part = (count / used as f64).max(1.0);
        let (mut held, mut in_vain, mut probes) = (0.0, 0, 0);
        for (state, id) in self.origins.iter().zip(0..) {
            if state.is_silent() {
                in_vain += state.streams;
                probes += state.probes;
            } else {
                held += self.lanes_of(OriginId(id), classes).min(part);
            }
        }
        let knows_silence = in_vain >= self.config.limits.max_connections / LEFT_BY_SILENCE;
        let has_free = held < count || probes > 0;
        Shares { classes, count, part, held, knows_silence, has_free }
    }

    /// Whether `origin` may have one lane more.
    pub(super) fn has_lane_for(&self, origin: OriginId, shares: &Shares) -> bool {
        let state = &self.origins[origin.0 as usize];
        if state.is_silent() {
            return state.probes > 0 && !shares.knows_silence;
        }
        let used = self.lanes_of(origin, shares.classes);
        shares.held - used.min(shares.part) + used < shares.count
    }

    /// Lanes that files of `classes` in transfer from one host occupy. Over HTTP/2 each bears several files.
    fn lanes_of(&self, origin: OriginId, classes: Classes) -> f64 {
        let state = &self.origins[origin.0 as usize];
        let classes = SizeClass::ALL.into_iter().filter(|class| classes.contains(*class));
        if !state.multiplexes() && self.passed_over.is_empty() {
            return f64::from(classes.map(|class| state.files[class as usize]).sum::<u32>());
        }
        let of_class = |class: SizeClass| {
            let files = state.files[class as usize];
            let files = f64::from(files.saturating_sub(self.passed_over(origin, class)));
            if state.multiplexes() { files / f64::from(self.files_of_lane(class)) } else { files }
        };
        classes.map(of_class).sum()
    }

    fn files_of_lane(&self, class: SizeClass) -> u32 {
        let lanes = self.lanes.iter().find(|lanes| lanes.classes.contains(class));
        lanes.map_or(1, |lanes| lanes.files.clamp(1, STREAMS_PER_CONNECTION))
    }

    /// How many files of a host and `class` wait for an answer that others have passed.
    fn passed_over(&self, origin: OriginId, class: SizeClass) -> u32 {
        let entries = self.passed_over.iter().map(|file| &self.files[file.index()]);
        entries.filter(|entry| entry.origin == origin && entry.class == class).count() as u32
    }

    /// Finds hosts and files that are not answered, now and then. The numbers of a user are exact.
    pub(super) fn look_for_silence(&mut self, now: Timestamp) {
        if self.silence_check.is_some_and(|at| now < at) {
            return;
        }
        self.silence_check = None;
        if !self.waiting.is_empty() && self.policy.allows_growth() {
            self.look_for_silent_hosts(now);
            self.look_for_passed_over(now);
            self.look_for_first_thoughts(now);
        }
    }

    /// Requests are on their way over the first connection that is shared.
    pub(super) fn expect_thoughts(&mut self, now: Timestamp) {
        let rtt = self.link.measured_rtt().unwrap_or_default();
        let at = now + (rtt * FIRST_ROUND_TRIPS).max(THOUGHT);
        self.thoughts_check.get_or_insert(at);
        self.silence_check = self.silence_check.map(|next| next.min(at));
    }

    /// Where the first answers take far longer than the path does, their servers think: meanwhile more may be asked for over
    /// connections that are shared, where a request costs next to nothing.
    fn look_for_first_thoughts(&mut self, now: Timestamp) {
        let is_due = self.thoughts_check.is_some_and(|at| now >= at);
        if is_due && self.answers.count() == 0 && self.growth.factor() == 1 {
            self.widen_for_short_files(now);
        }
    }

    /// Finds hosts that answer nothing, sooner where others do meanwhile.
    fn look_for_silent_hosts(&mut self, now: Timestamp) {
        let (times, answers) = (self.answers.times(), self.answers.count());
        let mut next = now + LOOK;
        let (passed_over, files) = (&self.passed_over, &self.files);
        for (state, id) in self.origins.iter_mut().zip(0..) {
            let is_of_it = |file: &&FileId| files[file.index()].origin == OriginId(id);
            let known = || passed_over.iter().filter(is_of_it).count();
            let answers_none = state.streams > 0 && state.served == 0;
            // Whose answers are known not to come tells nothing of their host.
            if !answers_none || state.streams as usize <= known() {
                continue;
            }
            let first = times.overdue(answers - state.answers_before);
            let further = times.long_overdue() * state.silences;
            let at = state.sign_at.max(state.came_at) + first + further;
            if now >= at {
                state.silences += 1;
                state.probes = PROBES_OF_SILENCE;
                self.refill = true;
            } else {
                next = next.min(at);
            }
        }
        self.silence_check = Some(next);
    }

    /// Finds files whose answer has been waited for while their host has answered others that were asked for later.
    fn look_for_passed_over(&mut self, now: Timestamp) {
        let times = self.answers.times();
        let is_passed_over = |stream: &&Stream| {
            let passed = self.passed(stream);
            let is_overdue = || now >= stream.began + times.overdue(passed);
            stream.whole && !stream.has_head && passed > 0 && is_overdue()
        };
        let found: Vec<FileId> =
            self.streams.values().filter(is_passed_over).map(|stream| stream.file).collect();
        for file in found {
            self.files[file.index()].was_passed = true;
            self.refill |= self.passed_over.insert(file);
        }
    }

    /// How many requests its host has answered since it was asked for `stream`.
    pub(super) fn passed(&self, stream: &Stream) -> u32 {
        let state = &self.origins[stream.origin.0 as usize];
        u32::try_from(state.answered.saturating_sub(stream.answered_before)).unwrap_or(u32::MAX)
    }
}

impl OriginState {
    /// It was asked where it had nothing to do, or has answered, after so many `answers` of all hosts.
    pub(super) const fn note_sign(&mut self, now: Timestamp, answers: u32) {
        (self.sign_at, self.answers_before) = (now, answers);
        (self.silences, self.probes) = (0, 0);
    }

    /// Whether it answers nothing that it was asked.
    pub(super) const fn is_silent(&self) -> bool {
        self.silences > 0 && self.streams > 0
    }
}
