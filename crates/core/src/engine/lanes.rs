//! Files in transfer, counted as they come and go: over HTTP/2 they are many, and no event may
//! cost a walk through them.

use pelton_algos::cluster::{Classes, SizeClass};
use pelton_algos::params::DEFAULT_CHANNELS;
use pelton_algos::time::Timestamp;

use super::event::FileId;
use super::{Engine, OriginId, OriginState};

/// Requests that one HTTP/2 connection bears: servers commonly allow 100 to 128 streams.
pub(super) const STREAMS_PER_CONNECTION: u32 = 100;

/// Streams for a host that could not be reached, beside those that it answers: enough to find out whether it
/// is there.
const PROBES: u32 = 4;

/// So many streams fill the path in front of which they fill a deep queue.
const ENOUGH_FOR_QUEUE: usize = 2;

/// Lanes of one cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes {
    /// Whose files they take.
    pub(super) classes: Classes,
    /// As many as growth says.
    pub(super) count: u32,
    /// Files that each of them bears where they share connections.
    pub(super) files: u32,
}

impl Engine {
    pub(super) fn enter_lane(&mut self, file: FileId) {
        if self.active.insert(file) {
            let entry = &self.files[file.index()];
            let (origin, class) = (entry.origin, entry.class);
            if entry.was_passed {
                self.passed_over.insert(file);
            }
            self.origin(origin).files[class as usize] += 1;
            self.note_streams(file);
        }
    }

    pub(super) fn leave_lane(&mut self, file: FileId) {
        if self.active.remove(file) {
            let entry = &self.files[file.index()];
            let (origin, class) = (entry.origin, entry.class);
            if !self.passed_over.is_empty() {
                self.passed_over.remove(&file);
            }
            self.origin(origin).files[class as usize] -= 1;
            self.note_streams(file);
            self.redecide_if_drained(class);
        }
    }

    /// `file` got its first stream or lost its last, or may have.
    pub(super) fn note_streams(&mut self, file: FileId) {
        let entry = &self.files[file.index()];
        let origin = entry.origin;
        let is_idle = entry.ranges.streams() == 0 && self.active.contains(file);
        if is_idle && self.idle.insert(file) {
            self.origin(origin).idle += 1;
        } else if !is_idle && self.idle.remove(&file) {
            self.origin(origin).idle -= 1;
        }
    }

    /// `file` turned out to be of `class` and `origin`.
    pub(super) fn move_to(&mut self, file: FileId, class: SizeClass, origin: OriginId) {
        let entry = &mut self.files[file.index()];
        let before = (entry.class, entry.origin);
        (entry.class, entry.origin) = (class, origin);
        if before == (class, origin) || !self.active.contains(file) {
            return;
        }
        let is_idle = u32::from(self.idle.contains(&file));
        let state = self.origin(before.1);
        state.files[before.0 as usize] -= 1;
        state.idle -= is_idle;
        let state = self.origin(origin);
        state.files[class as usize] += 1;
        state.idle += is_idle;
    }

    /// Streams that may start at `origin` now.
    pub(super) fn room(&self, now: Timestamp, origin: OriginId) -> u32 {
        let state = &self.origins[origin.0 as usize];
        let budget = state.stream_budget(now, self.room.requests, self.pipelined(state));
        let budget = match state.connect_failures {
            0 => budget,
            _ if state.takes_connections => {
                budget.min(self.answered_streams(origin) + DEFAULT_CHANNELS)
            }
            _ => budget.min(self.answered_streams(origin) + PROBES),
        };
        let here = budget.saturating_sub(state.streams);
        let here = here.min(self.room_for_descriptors(now));
        let total = self.config.limits.max_connections;
        if state.multiplexes() {
            let others = self.origins.iter().filter(|other| other.streams > 0).count() as u32;
            // One connection at least, which bears them all.
            return if state.streams > 0 || others < total { here } else { 0 };
        }
        let pipelined = self.pipelined(state);
        let others = self.connections_in_use() - state.streams.div_ceil(pipelined);
        let most = total.saturating_sub(others).saturating_mul(pipelined);
        here.min(most.saturating_sub(state.streams))
    }

    /// Whether one more range stream of a file may start at `origin` now. It shall bring a window of
    /// its own, so over HTTP/2 too it needs a connection that no other request takes; where many
    /// small files are under way, every second one.
    pub(super) fn room_to_split(&self, now: Timestamp, origin: OriginId) -> bool {
        let state = &self.origins[origin.0 as usize];
        let connections =
            state.budget.allowed_beside(now, state.served).min(self.windows_of(state));
        // On a path that is full connections that bear nothing are no loss, and what their windows let out is too much.
        let taken = if state.multiplexes() && !self.link.keeps_pace(self.goodput) {
            state.bearers.connections(state.streams)
        } else {
            state.streams
        };
        let files = state.files_in_transfer().saturating_sub(state.idle);
        let further = state.streams.saturating_sub(files);
        self.room(now, origin) > 0
            && !self.has_deep_queue()
            && !state.machines.are_several()
            && state.trust.room_beside(state.streams) > 0
            && self.streams.len() < self.slump.most() as usize
            && (taken < connections || further < connections / 2)
    }

    /// Range streams of `origin` that bring a window of their own. Where its server slows each of them down, any number is
    /// better than fewer; LowE has as many as are usual, or as lanes were found to pay.
    pub(super) fn windows_of(&self, origin: &OriginState) -> u32 {
        match (origin.multiplexes(), self.are_slowed) {
            (true, false) => self.room.shared,
            (true, true) if self.is_thrifty() => {
                self.room.shared.max(self.lanes_in_all()).max(DEFAULT_CHANNELS)
            }
            _ => u32::MAX,
        }
    }

    /// Whether there are enough streams for a path with a queue that holds many times as much: the window that each has
    /// grown there fills most of the path, and what is taken from it was asked for already.
    fn has_deep_queue(&self) -> bool {
        self.policy.allows_growth()
            && self.streams.len() >= ENOUGH_FOR_QUEUE
            && !self.shares_connections()
            && self.link.keeps_pace(self.goodput)
            && self.answers.wait_in_deep_queue(self.link.estimate().rtt)
    }

    fn answered_streams(&self, origin: OriginId) -> u32 {
        let of_origin = self.streams.values().filter(|stream| stream.origin == origin);
        of_origin.filter(|stream| stream.has_head).count() as u32
    }

    /// Streams that have a connection of their own.
    pub(super) fn connections_in_use(&self) -> u32 {
        let separate = self.origins.iter().filter(|o| !o.multiplexes());
        separate.map(|o| o.streams.div_ceil(self.pipelined(o))).sum()
    }
}

impl OriginState {
    /// Streams that may be in flight at `now`: `sharing` where they share connections, and where they do
    /// not `pipelined` over each.
    fn stream_budget(&self, now: Timestamp, sharing: u32, pipelined: u32) -> u32 {
        if self.multiplexes() {
            return self.budget.requests_beside(now, self.served, STREAMS_PER_CONNECTION, sharing);
        }
        self.budget.allowed_beside(now, self.served).saturating_mul(pipelined)
    }

    /// Files in transfer.
    pub(super) fn files_in_transfer(&self) -> u32 {
        self.files.iter().sum()
    }
}
