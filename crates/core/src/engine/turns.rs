//! What waits for its turn at a server that answers one request after another.

use std::time::Duration;

use super::{Engine, OriginId};

/// Requests that servers answer one after another.
#[derive(Debug, Clone, Copy)]
pub(super) struct InTurns {
    /// How many wait.
    pub(super) waiting: u32,
    /// How long one more would.
    pub(super) wait: Duration,
}

impl Engine {
    /// How many requests `origin` has still to answer as it is asked for more. Where files share connections over HTTP/1.1
    /// each waits for those before it anyhow, and of several hosts each has its own turns.
    pub(super) fn ahead(&self, origin: OriginId, in_parts: bool) -> Option<u32> {
        if self.origins.len() > 1 {
            return None;
        }
        let state = &self.origins[origin.0 as usize];
        if in_parts {
            return Some(self.waiting_streams());
        }
        (self.pipelined(state) == 1).then(|| state.streams.saturating_sub(state.served))
    }

    /// What waits for its turn, where the only server answers one request after another.
    pub(super) fn turns(&self) -> Option<InTurns> {
        if self.origins.len() > 1 || self.answers.wait_for_turn(0).is_none() {
            return None;
        }
        let waiting = self.waiting_streams();
        let wait = self.answers.wait_for_turn(waiting)?;
        Some(InTurns { waiting, wait })
    }

    /// How many streams wait for an answer.
    fn waiting_streams(&self) -> u32 {
        self.streams.values().filter(|it| it.recent.waits_for_answer()).count() as u32
    }
}
