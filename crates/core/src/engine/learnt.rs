//! What a run has learnt of its origins, and what an earlier one had.

use std::collections::HashMap;
use std::time::Duration;

use pelton_algos::limits::OriginBudget;
use pelton_algos::link::LinkConfig;
use pelton_algos::units::BitRate;

use super::{Engine, EngineConfig};
use crate::connection::Origin;

/// What is known of an origin: a start for the next run, which measures it again.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Learnt {
    /// More connections than this were too many.
    pub connections: Option<u32>,
    /// The round-trip time without queues.
    pub rtt: Option<Duration>,
    /// What the path carried.
    pub bandwidth: Option<BitRate>,
}

/// What earlier runs have learnt.
pub type Known = HashMap<Origin, Learnt>;

impl EngineConfig {
    /// The same for a run that starts at `origin`: where the user gives no hint, what is known of the
    /// path to it is the first guess.
    #[must_use]
    pub fn starting_at(self, origin: &Learnt) -> Self {
        let link = LinkConfig {
            prior_rtt: origin.rtt.unwrap_or(self.link.prior_rtt),
            prior_bandwidth: origin.bandwidth.unwrap_or(self.link.prior_bandwidth),
            ..self.link
        };
        Self { link, ..self }
    }
}

impl Engine {
    /// The same engine, which begins with what earlier runs have learnt of origins.
    #[must_use]
    pub fn with_known(mut self, known: Known) -> Self {
        self.known = known;
        self
    }

    /// What is known by now of each origin that has answered. The path's numbers are those of the run:
    /// it has one estimate for all of its origins.
    pub fn learnt(&self) -> Vec<(Origin, Learnt)> {
        let bandwidth = self.link.measured_bandwidth();
        // What a limit of the user's lets through says nothing of the path.
        let bandwidth = bandwidth.filter(|_| self.max_rate().is_none());
        let answered = self.origins.iter().filter(|state| state.has_answered());
        answered
            .map(|state| {
                let connections = state.budget.borne();
                let rtt = self.link.measured_rtt();
                (state.origin.clone(), Learnt { connections, rtt, bandwidth })
            })
            .collect()
    }

    /// The budget of `origin` at the start.
    pub(super) fn budget_of(&self, origin: &Origin) -> OriginBudget {
        let budget = OriginBudget::new(self.config.limits.max_connections_per_origin);
        match self.known.get(origin).and_then(|learnt| learnt.connections) {
            Some(borne) => budget.starting_with(borne),
            None => budget,
        }
    }
}
