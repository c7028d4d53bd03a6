//! The sender's view of the round trip.

use std::time::Duration;

use super::{FIRST_TIMEOUT, LEAST_VARIANCE_TERM};

/// Smoothed round-trip time and time-out (RFC 6298).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundTrips {
    pub(super) smoothed: Option<Duration>,
    variance: Duration,
    pub(super) least: Option<Duration>,
}

impl RoundTrips {
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variance = rtt / 2;
            }
            Some(smoothed) => {
                self.variance = (self.variance * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
    }

    pub(super) fn timeout(&self) -> Duration {
        let Some(smoothed) = self.smoothed else { return FIRST_TIMEOUT };
        smoothed + (self.variance * 4).max(LEAST_VARIANCE_TERM)
    }
}
