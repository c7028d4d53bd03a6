//! Whether what a model promised of few channels comes.

use std::time::Duration;

use super::Observation;
use crate::time::Timestamp;
use crate::units::Bytes;

/// So long, and for so many round trips, it is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
const PATIENCE_RTTS: u32 = 8;

/// Less than this part of the bandwidth is no delay but another server, or another path, than the model knows.
const FAR_BELOW: f64 = 0.25;

/// Channels that are fewer than may be, as a model says, are watched: whose server is slow to begin each answer, or gives
/// each its rate, is far from what the path carried for a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Doubt {
    /// Since when, and what had come by then.
    since: Option<(Timestamp, Bytes)>,
    due: Option<Timestamp>,
    is_contradicted: bool,
}

impl Doubt {
    /// Few channels are in use by what a model says.
    pub(super) fn look(&mut self, now: Timestamp, observation: &Observation<'_>) {
        let patience = PATIENCE.max(observation.link.rtt * PATIENCE_RTTS);
        let (since, before) = *self.since.get_or_insert((now, observation.delivered));
        if now.saturating_since(since) >= patience {
            let came = observation.delivered.saturating_sub(before) / now.saturating_since(since);
            self.is_contradicted |= came < observation.link.bandwidth * FAR_BELOW;
            self.since = Some((now, observation.delivered));
        }
        self.due = self.since.map(|(since, _)| since + patience).filter(|_| !self.is_contradicted);
    }

    /// Something else than a model decides.
    pub(super) const fn rest(&mut self) {
        (self.since, self.due) = (None, None);
    }

    /// When to look again.
    pub(super) const fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// What it promised of few channels did not come: it is not asked again.
    pub(super) const fn is_contradicted(&self) -> bool {
        self.is_contradicted
    }
}
