//! What the caller may do to a run: other limits, pause, cancel.

use std::collections::BTreeSet;

use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;

use super::event::{Failure, FileId};
use super::{Engine, Stream, UserLimits};
use crate::ErrorKind;

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
                || !origin.multiplexes
                    && (origin.streams > origin.budget.capacity()
                        || self.connections_in_use() > limits.max_connections);
            if beyond && entry.takes_ranges {
                self.abort(id);
            }
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
        let begun = self.active.iter().copied().chain(self.delayed.iter().map(|(_, file)| *file));
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
