//! What the caller may do to a run: other limits, pause, cancel.

use std::collections::BTreeSet;

use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;

use super::event::FileId;
use super::facts::Failure;
use super::{Engine, Stream, UserLimits};
use crate::ErrorKind;
use crate::connection::Origin;

impl Engine {
    pub(super) fn on_limits(&mut self, limits: UserLimits) {
        let limits = limits.usable();
        self.config.limits = limits;
        for origin in &mut self.origins {
            origin.budget.set_ceiling(limits.max_connections_per_origin);
        }
        self.shed_streams();
        self.redecide = true;
    }

    /// Aborts streams beyond ceilings that were lowered, the newest first. Those whose bytes could
    /// not be kept go on to their end.
    pub(super) fn shed_streams(&mut self) {
        let limits = self.config.limits;
        let newest_first: Vec<(StreamId, Stream)> =
            self.streams.iter().rev().map(|(id, stream)| (*id, *stream)).collect();
        for (id, Stream { file, origin, .. }) in newest_first {
            let entry = &self.files[file.index()];
            let origin = &self.origins[origin.0 as usize];
            let of_file = limits.max_streams_per_file.unwrap_or(u32::MAX);
            let beyond = entry.ranges.streams() as u32 > of_file
                || !origin.multiplexes()
                    && (origin.streams > origin.budget.capacity()
                        || self.connections_in_use() > limits.max_connections);
            if beyond && entry.takes_ranges {
                self.abort(id);
            }
        }
    }

    /// `origin` answers over no more than so many connections: what waits for an answer over others is asked for
    /// over those, one after the other.
    pub(super) fn on_unserved(&mut self, now: Timestamp, origin: &Origin, served: u32) {
        let id = self.origin_id(origin);
        let state = self.origin(id);
        if !state.budget.on_unserved(now, served, state.served, state.has_answered()) {
            return;
        }
        state.opened = state.opened.min(served);
        self.redecide = true;
        if self.origins[id.0 as usize].multiplexes() {
            return;
        }
        let excess = self.origins[id.0 as usize].streams.saturating_sub(served);
        let waits = |stream: &Stream| stream.origin == id && !stream.has_head;
        let newest: Vec<StreamId> =
            self.streams.iter().rev().filter(|(_, s)| waits(s)).map(|(id, _)| *id).collect();
        for stream in newest.into_iter().take(excess as usize) {
            self.abort(stream);
        }
    }

    pub(super) fn on_pause(&mut self, now: Timestamp) {
        self.paused = true;
        self.abort_all();
        self.link.on_idle(now);
    }

    pub(super) fn on_cancel(&mut self, now: Timestamp) {
        self.cancelled = true;
        self.full = None;
        self.abort_all();
        self.link.on_idle(now);
        let begun = self.active.iter().chain(self.delayed.iter().map(|(_, file)| *file));
        let unfinished: BTreeSet<FileId> = begun.chain(self.waiting.drain()).collect();
        for file in unfinished {
            self.give_up(file, cancelled());
        }
    }

    pub(super) fn abort_all(&mut self) {
        let streams: Vec<StreamId> = self.streams.keys().copied().collect();
        for stream in streams {
            self.abort(stream);
        }
    }
}

pub(super) fn cancelled() -> Failure {
    Failure::new(ErrorKind::Cancelled, "cancelled before it was complete")
}
