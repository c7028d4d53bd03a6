//! What the formulas need to know of a link.

use std::time::Duration;

use crate::units::{BitRate, Bytes};

/// What the formulas need to know of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkEstimate {
    /// Round-trip time without queues.
    pub rtt: Duration,
    /// What the link carries, in goodput.
    pub bandwidth: BitRate,
    /// What one stream can keep in flight (`bufSize` in papers/001).
    pub stream_window: Bytes,
}

impl LinkEstimate {
    /// The bandwidth-delay product: "`BDP <- BW * RTT`" (papers/001, Algorithm 1 line 3).
    pub fn bdp(&self) -> Bytes {
        self.bandwidth * self.rtt
    }

    /// The same link where each round trip takes `time`, and a stream brings as much in that as before.
    #[must_use]
    pub fn stretched_to(self, time: Duration) -> Self {
        let times = time.as_secs_f64() / self.rtt.as_secs_f64().max(f64::MIN_POSITIVE);
        Self { rtt: time, stream_window: self.stream_window.scale(times), ..self }
    }

    /// Whether bandwidth or RTT differ from `other` by more than `factor` either way.
    pub fn differs_from(&self, other: &Self, factor: f64) -> bool {
        self.differs_in_bandwidth(other, factor)
            || are_apart(self.rtt.as_secs_f64(), other.rtt.as_secs_f64(), factor)
    }

    /// Whether the bandwidth alone does.
    pub fn differs_in_bandwidth(&self, other: &Self, factor: f64) -> bool {
        are_apart(self.bandwidth.bps(), other.bandwidth.bps(), factor)
    }
}

fn are_apart(a: f64, b: f64, factor: f64) -> bool {
    a > b * factor || b > a * factor
}
