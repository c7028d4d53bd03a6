//! What is assumed or known of a link before anything was measured.

use std::time::Duration;

use crate::units::{BitRate, Bytes};

/// What is assumed or known before anything was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkConfig {
    /// The user's or host's word for the bandwidth: used until the measurement says otherwise.
    pub bandwidth_hint: Option<BitRate>,
    /// The same for the RTT. More than an hour counts as one.
    pub rtt_hint: Option<Duration>,
    /// Bandwidth before the first measurement when there is no hint.
    pub prior_bandwidth: BitRate,
    /// RTT before the first handshake when there is no hint. More than an hour counts as one.
    pub prior_rtt: Duration,
    /// What one stream can keep in flight before it was measured.
    pub prior_stream_window: Bytes,
    /// How long a measured maximum (bandwidth) or minimum (RTT) counts.
    pub memory: Duration,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            bandwidth_hint: None,
            rtt_hint: None,
            // A common access rate. Too low costs a doubling or two in the first second, too high
            // costs a few connections that find no work.
            prior_bandwidth: BitRate::from_mbps(20.0),
            prior_rtt: Duration::from_millis(50),
            // The largest window without RFC 7323 scaling; receivers start near it and tune up.
            prior_stream_window: Bytes::kib(64),
            memory: Duration::from_secs(10),
        }
    }
}
