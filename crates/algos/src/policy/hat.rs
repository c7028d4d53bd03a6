//! HAT: the most throughput (papers/001 section IV, Algorithm 2).

use super::{Decision, Observation, Plan, Policy, describe_link, describe_shares, forecast};
use crate::time::Timestamp;

/// Highest-achievable Throughput: all channels, dealt evenly from large to small.
///
/// "`i = (m * 3) + r`" (line 8): with k clusters `maxCC = k m + r`; "`cc += m + 1 for (c_video)`"
/// (line 12) when r >= 1, the next one when r >= 2, others m. As printed, `cc +=` sits inside
/// "`for i <- 1 to maxCC`" and over-counts; here the shares are computed once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hat;

impl Policy for Hat {
    fn name(&self) -> &'static str {
        "hat"
    }

    fn decide(&mut self, _now: Timestamp, observation: &Observation<'_>) -> Decision {
        let clusters = observation.clusters;
        let channels = observation.limits.max_channels;
        let count = (clusters.len() as u32).max(1);
        let (each, rest) = (channels / count, channels % count);
        let large_to_small: Vec<usize> = (0..clusters.len()).rev().collect();
        let mut shares = vec![each; clusters.len()];
        for index in large_to_small.iter().take(rest as usize) {
            shares[*index] += 1;
        }
        let reason = format!(
            "most throughput: {}, {channels} channels dealt large to small: {}",
            describe_link(&observation.link),
            describe_shares(clusters, &shares),
        );
        let mut decision = Plan::new(observation, shares, channels).finish(
            reason,
            &large_to_small,
            &large_to_small,
        );
        let (channels, connections) = (decision.channels(), decision.connections());
        let expected = forecast::forecast(observation, channels, connections);
        let expected = forecast::describe(observation, &expected);
        decision.reason = format!("{}; {expected} expected from here", decision.reason);
        decision
    }

    fn prefers_files(&self) -> bool {
        true
    }
}
