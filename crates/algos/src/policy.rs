//! The seat of a scheduling policy, and the four that pelton brings.
//!
//! A policy is asked for a [`Decision`] whenever something that it may depend on has changed:
//! files finished, the link estimate moved, a time-out that it set has passed. It answers with an
//! [`Allocation`] per cluster and with the reason in words.
//!
//! The verbs: `decide` gives the present decision, `next_timeout` says when to be asked again.

mod eht;
mod fixed;
mod hat;
mod lowe;

use std::fmt;

pub use eht::{Eht, EhtConfig, Objective, Weighting};
pub use fixed::{Fixed, FixedConfig};
pub use hat::Hat;
pub use lowe::LowE;

use crate::cluster::Cluster;
use crate::energy::EnergyModel;
use crate::link::LinkEstimate;
use crate::params::{self, Allocation, Limits, Parameters};
use crate::time::Timestamp;
use crate::units::{Bytes, Joules};

/// What a policy sees when it decides.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    /// The present belief about the link.
    pub link: LinkEstimate,
    /// Unfinished work, from small to large, without empty clusters.
    pub clusters: &'a [Cluster],
    /// What the decision has to keep to.
    pub limits: Limits,
    /// The link has been filled and sizes have been seen: what the observation says is measured,
    /// not assumed.
    pub is_measured: bool,
    /// Of some file at least the size is known or was seen: before, clusters are assumed.
    pub sizes_are_known: bool,
    /// Body bytes received since the run began.
    pub delivered: Bytes,
    /// Energy since the run began, where a meter is read.
    pub energy: Option<Joules>,
    /// Predicts joules; always there, if only as [`crate::energy::ConstantPower`].
    pub energy_model: &'a dyn EnergyModel,
}

impl Observation<'_> {
    /// Bytes still to come.
    pub fn remaining(&self) -> Bytes {
        self.clusters.iter().map(|cluster| cluster.bytes).sum()
    }
}

/// How files are transferred from now on, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// One entry a cluster, in the observation's order.
    pub allocations: Vec<Allocation>,
    /// Connections that the formulas asked for over HTTP/1.1 before the budget was applied.
    pub wanted_connections: u32,
    /// Channels that may be active in all. Where files are too small for the range streams of
    /// their cluster, channels up to this number bring further files instead.
    pub max_channels: u32,
    /// Channels that no cluster has a file for: each is one more range stream of the file with the
    /// most left to do.
    pub surplus_channels: u32,
    /// Why, in words that the command, the report and the tests show.
    pub reason: String,
}

impl Decision {
    /// Channels over all clusters.
    pub fn channels(&self) -> u32 {
        self.allocations.iter().map(|a| a.parameters.concurrency).sum()
    }

    /// Connections over all clusters over HTTP/1.1.
    pub fn connections(&self) -> u32 {
        params::connections(&self.allocations)
    }
}

/// Decides how many files at once and how many range streams a file.
pub trait Policy: Send + fmt::Debug {
    /// The name that people and reports read.
    fn name(&self) -> &str;

    /// The decision for the present. The same calls in the same order give the same decisions.
    fn decide(&mut self, now: Timestamp, observation: &Observation<'_>) -> Decision;

    /// When the policy wants to be asked again although nothing happened.
    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }

    /// Whether lanes may grow beyond the decision while that brings throughput. Not while they
    /// are exact: because the user said so, or because a search measures them.
    fn allows_growth(&self) -> bool {
        true
    }
}

/// Shares of channels turned into allocations: bounded by files, surplus passed on, parallelism
/// from the formulas, and everything within the budget.
struct Plan<'a> {
    observation: &'a Observation<'a>,
    /// Channels a cluster, as the algorithm computed them.
    shares: Vec<u32>,
    /// Channels over all clusters that may be active.
    max_channels: u32,
}

impl<'a> Plan<'a> {
    fn new(observation: &'a Observation<'a>, shares: Vec<u32>, max_channels: u32) -> Self {
        Self { observation, shares, max_channels }
    }

    fn cluster_channels(&self, index: usize) -> u32 {
        let files = u32::try_from(self.observation.clusters[index].files).unwrap_or(u32::MAX);
        self.shares[index].min(files)
    }

    fn allocations(&self, concurrency: impl Fn(usize) -> u32) -> Vec<Allocation> {
        let Observation { clusters, link, limits, .. } = self.observation;
        clusters
            .iter()
            .enumerate()
            .map(|(index, cluster)| {
                let wanted = params::wanted(cluster, link, limits, limits.max_channels);
                Allocation {
                    classes: cluster.classes,
                    parameters: Parameters { concurrency: concurrency(index), ..wanted },
                }
            })
            .collect()
    }

    /// Passes on channels that find no file, in `order` (indices of clusters): the surplus of
    /// each goes to the next that has more files than channels, then round to the first. What no
    /// cluster can use stays with its cluster and becomes range streams there.
    fn pass_surplus_on(&mut self, order: &[usize]) -> Option<(u32, String)> {
        let bounded: Vec<u32> = (0..self.shares.len()).map(|i| self.cluster_channels(i)).collect();
        let mut surplus: u32 =
            self.shares.iter().zip(&bounded).map(|(share, used)| share - used).sum();
        if surplus == 0 {
            return None;
        }
        let total = surplus;
        let givers: Vec<usize> =
            order.iter().copied().filter(|i| self.shares[*i] > bounded[*i]).collect();
        let after_first_giver =
            order.iter().position(|i| givers.contains(i)).map_or(0, |at| at + 1);
        for step in 0..order.len() {
            let index = order[(after_first_giver + step) % order.len()];
            let files = u32::try_from(self.observation.clusters[index].files).unwrap_or(u32::MAX);
            let taken = surplus.min(files.saturating_sub(self.shares[index]));
            if taken > 0 {
                self.shares[index] += taken;
                surplus -= taken;
            }
        }
        // Those that were passed on leave their givers; those that nobody could use stay.
        let mut given = total - surplus;
        for index in givers {
            let part = given.min(self.shares[index] - bounded[index]);
            self.shares[index] -= part;
            given -= part;
        }
        let note = match (total - surplus, surplus) {
            (given, 0) => format!("{given} spare channels pass on to clusters with files"),
            (0, kept) => format!("{kept} spare channels become range streams"),
            (given, kept) => {
                format!("{given} spare channels pass on, {kept} become range streams")
            }
        };
        Some((surplus, note))
    }

    /// The allocations within the budget. `priority` says who is served first when there are
    /// fewer connections than clusters.
    fn finish(mut self, mut reason: String, order: &[usize], priority: &[usize]) -> Decision {
        let max_channels = self.max_channels;
        let before = self.allocations(|index| self.cluster_channels(index));
        let wanted_connections = params::connections(&before);
        let mut surplus_channels = 0;
        if let Some((surplus, note)) = self.pass_surplus_on(order) {
            surplus_channels = surplus;
            reason = format!("{reason}; {note}");
        }
        let mut allocations = self.allocations(|index| self.cluster_channels(index));
        let budget = self.observation.limits.max_connections;
        if params::connections(&allocations) > budget {
            let Observation { clusters, link, limits, .. } = self.observation;
            let usable: Vec<u32> =
                clusters.iter().map(|c| params::usable_parallelism(c, link, limits)).collect();
            params::fit_to_budget(&mut allocations, &usable, budget, priority);
            reason = format!("{reason}; {wanted_connections} connections wanted, {budget} allowed");
        }
        Decision { allocations, wanted_connections, max_channels, surplus_channels, reason }
    }
}

/// Indices of clusters from the most bytes to the fewest.
fn heaviest_first(clusters: &[Cluster]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(clusters[*index].bytes));
    order
}

/// `small 9, medium 2, large 1`.
fn describe_shares(clusters: &[Cluster], shares: &[u32]) -> String {
    let parts: Vec<_> = clusters
        .iter()
        .zip(shares)
        .map(|(cluster, share)| format!("{} {share}", cluster.classes))
        .collect();
    parts.join(", ")
}

/// `BDP 1.25 MB (50.0 Mbit/s x 200 ms)`.
fn describe_link(link: &LinkEstimate) -> String {
    format!("BDP {} ({} x {} ms)", link.bdp(), link.bandwidth, round_millis(link.rtt))
}

fn round_millis(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

#[cfg(test)]
mod tests;
