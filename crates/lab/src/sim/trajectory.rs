//! What a run did over time.

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Bytes, Joules};
use pelton_core::engine::ClusterUse;

/// The state of a run at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// Body bytes kept so far.
    pub delivered: Bytes,
    /// Open connections.
    pub connections: u32,
    /// Files and streams in transfer, per cluster of the decision.
    pub clusters: Vec<ClusterUse>,
    /// Energy so far, modelled.
    pub energy: Joules,
}
