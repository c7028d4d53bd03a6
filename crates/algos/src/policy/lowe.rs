//! LowE: the least energy (papers/001 section IV, Algorithm 1).

use super::{Decision, Observation, Plan, Policy, describe_link, describe_shares, heaviest_first};
use crate::params;
use crate::time::Timestamp;

/// Lowest-possible Energy: each cluster takes just the channels that its formula asks for.
///
/// As printed, "`maxCC <- availChannel`" (line 2) is reversed and "`while (availChannel != 0)`"
/// (line 10) does not end. The reading: `availChannel <- maxCC`, and the loop runs until channels
/// or clusters are used up. Every cluster gets at least one channel before another gets more; with
/// fewer channels than clusters the heaviest are served.
#[derive(Debug, Clone, Copy, Default)]
pub struct LowE;

impl LowE {
    /// Channels a cluster, and what was available before each took its own.
    fn shares(observation: &Observation<'_>) -> (Vec<u32>, Vec<u32>) {
        let Observation { clusters, link, limits, .. } = observation;
        // It wants no more streams than its formulas give, so lanes are all that channels are for.
        let channels = limits.max_channels.min(limits.max_files);
        let mut shares = vec![0; clusters.len()];
        let mut left = vec![channels];
        if (channels as usize) < clusters.len() {
            for index in heaviest_first(clusters).into_iter().take(channels as usize) {
                shares[index] = 1;
            }
            return (shares, left);
        }
        let mut available = channels;
        for (index, cluster) in clusters.iter().enumerate() {
            // "for each c_i in C do" (line 6), from small to large; one channel is kept for each
            // cluster that is still to come.
            let to_come = (clusters.len() - 1 - index) as u32;
            let optimal = params::wanted(cluster, link, limits, available).concurrency;
            shares[index] = optimal.min(available - to_come);
            // "availChannel <- maxCC - assignedChannels" (line 11)
            available -= shares[index];
            left.push(available);
        }
        (shares, left)
    }
}

impl Policy for LowE {
    fn name(&self) -> &'static str {
        "lowe"
    }

    fn decide(&mut self, _now: Timestamp, observation: &Observation<'_>) -> Decision {
        let (shares, left) = Self::shares(observation);
        let channels = left[0];
        let left: Vec<_> = left.iter().map(u32::to_string).collect();
        let reason = format!(
            "least energy: {} asks for {} of {channels} channels (left {})",
            describe_link(&observation.link),
            describe_shares(observation.clusters, &shares),
            left.join(" -> "),
        );
        let small_to_large: Vec<usize> = (0..observation.clusters.len()).collect();
        let priority = heaviest_first(observation.clusters);
        Plan::new(observation, shares, channels).finish(reason, &small_to_large, &priority)
    }
}
