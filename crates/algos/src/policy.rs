//! The seat of a scheduling policy, and the four that pelton brings.
//!
//! A policy is asked for a [`Decision`] whenever something that it may depend on has changed:
//! files finished, the link estimate moved, a time-out that it set has passed. It answers with an
//! [`Allocation`] per cluster and with the reason in words.
//!
//! The verbs: `decide` gives the present decision, `next_timeout` says when to be asked again.

mod eht;
mod fixed;
mod forecast;
mod hat;
mod lowe;

use std::fmt;

pub use eht::{Eht, EhtConfig, Objective, Weighting};
pub use fixed::{Fixed, FixedConfig};
pub use hat::Hat;
pub use lowe::LowE;

use crate::cluster::{Cluster, SizeClass};
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
    /// Somebody has said what the link carries: what is planned for it needs no reserve.
    pub is_told: bool,
    /// Of some file at least the size is known or was seen: before, clusters are assumed.
    pub sizes_are_known: bool,
    /// Body bytes received since the run began.
    pub delivered: Bytes,
    /// What opening a connection brings besides TCP's own segments: TLS and its certificates.
    pub handshake: Bytes,
    /// What came just before the run's first request, as of listings.
    pub just_came: Bytes,
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

/// How files are transferred from now on, and why. [`Decision::new`] makes one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// One entry a cluster, in the observation's order.
    pub allocations: Vec<Allocation>,
    /// Connections that the formulas asked for over HTTP/1.1: for channels as they were dealt,
    /// before spare ones passed on and before any budget.
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
    /// `allocations` as they are, with no channel more.
    pub fn new(allocations: Vec<Allocation>, reason: impl Into<String>) -> Self {
        let max_channels = allocations.iter().map(|a| a.parameters.concurrency).sum();
        Self {
            wanted_connections: params::connections(&allocations),
            allocations,
            max_channels,
            surplus_channels: 0,
            reason: reason.into(),
        }
    }

    /// One stream of one file, where it allows none of any of `clusters`: nothing would ever come.
    pub fn allow_one(&mut self, clusters: &[Cluster]) {
        let is_there = |class| clusters.iter().any(|c| c.classes.contains(class));
        let is_of_some = |a: &Allocation| {
            SizeClass::ALL.into_iter().any(|class| a.classes.contains(class) && is_there(class))
        };
        let gives = |a: &Allocation| a.parameters.concurrency.min(a.parameters.parallelism) > 0;
        let Some(first) = clusters.first() else { return };
        if self.max_channels > 0 && self.allocations.iter().any(|a| is_of_some(a) && gives(a)) {
            return;
        }
        let parameters = Parameters { pipelining: 1, parallelism: 1, concurrency: 1 };
        self.allocations = vec![Allocation { classes: first.classes, parameters }];
        (self.max_channels, self.wanted_connections) = (1, 1);
        self.reason.push_str("; nothing would come, so one file at a time");
    }

    /// Range streams that [`surplus_channels`](Self::surplus_channels) become, one entry an
    /// allocation: as far as the split floor, the ceiling for one file and the connection budget
    /// leave room. Each goes where files have the most left for each of their streams.
    pub fn spare_streams(&self, clusters: &[Cluster], limits: &Limits) -> Vec<u32> {
        let mut given = vec![0; self.allocations.len()];
        let most = limits.max_connections.saturating_sub(self.connections());
        for _ in 0..self.surplus_channels.min(most) {
            let share = |(allocation, given): (&Allocation, &u32)| {
                let cluster = clusters.iter().find(|c| c.classes == allocation.classes)?;
                let Parameters { parallelism, concurrency, .. } = allocation.parameters;
                let streams = parallelism + given.checked_div(concurrency)? + 1;
                let room = cluster.mean_size.0.checked_div(limits.split_floor.0);
                let fits = u64::from(streams) <= room.unwrap_or(u64::MAX)
                    && streams <= limits.max_streams_per_file;
                fits.then(|| cluster.mean_size.0 / u64::from(streams))
            };
            let shares = self.allocations.iter().zip(&given).map(share).enumerate();
            let neediest = shares.filter_map(|(at, share)| Some((share?, at))).max();
            let Some((_, at)) = neediest else { break };
            given[at] += 1;
        }
        given
    }

    /// More files at once instead of range streams, as long as there are files and up to `most_files`; only
    /// whole ones, where there are enough, if they are to be `whole`.
    pub fn prefer_files(&mut self, clusters: &[Cluster], most_files: u32, whole: bool) {
        let mut spare = most_files.saturating_sub(self.channels());
        for allocation in &mut self.allocations {
            let Some(cluster) = clusters.iter().find(|c| c.classes == allocation.classes) else {
                continue;
            };
            let planned = allocation.parameters;
            let most = planned.concurrency.saturating_add(spare);
            let dealt = planned.files_before_streams(cluster.files, most);
            let are_enough = cluster.files > u64::from(dealt.concurrency);
            let parallelism = if whole && are_enough { 1 } else { dealt.parallelism };
            allocation.parameters = Parameters { parallelism, ..dealt };
            spare -= allocation.parameters.concurrency - planned.concurrency;
        }
    }

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

    /// Whether connections that are planned as range streams shall bring further files instead, as long as
    /// there are files: see [`params::Parameters::files_before_streams`]. Not where the number of files at
    /// once is what the policy chooses.
    fn prefers_files(&self) -> bool {
        false
    }

    /// Whether no more is to be begun at once than is known to be of use: few channels at first, and no part of
    /// a file while there are whole ones.
    fn is_thrifty(&self) -> bool {
        false
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
    /// cluster can use stays with its cluster. Returns how many passed on and how many stay.
    fn pass_surplus_on(&mut self, order: &[usize]) -> (u32, u32) {
        let bounded: Vec<u32> = (0..self.shares.len()).map(|i| self.cluster_channels(i)).collect();
        let mut surplus: u32 =
            self.shares.iter().zip(&bounded).map(|(share, used)| share - used).sum();
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
        (total - surplus, surplus)
    }

    /// The allocations within the ceilings. `priority` says who is served first when there are
    /// fewer connections or files than clusters.
    fn finish(mut self, mut reason: String, order: &[usize], priority: &[usize]) -> Decision {
        let Observation { clusters, link, limits, .. } = self.observation;
        let dealt = self.allocations(|index| self.cluster_channels(index));
        let (passed_on, mut surplus_channels) = self.pass_surplus_on(order);
        if passed_on > 0 {
            let spare = count(passed_on, "spare channel");
            reason = format!("{reason}; {spare} passed on to clusters with files");
        }
        let mut allocations = self.allocations(|index| self.cluster_channels(index));
        let cut = params::fit_to_files(&mut allocations, limits.max_files, priority);
        if cut > 0 {
            surplus_channels = surplus_channels.saturating_add(cut);
            reason = format!("{reason}; {} at once allowed", count(limits.max_files, "file"));
        }
        let connections = params::connections(&allocations);
        if connections > limits.max_connections {
            let usable: Vec<u32> =
                clusters.iter().map(|c| params::usable_parallelism(c, link, limits)).collect();
            let budget = limits.max_connections;
            params::fit_to_budget(&mut allocations, &usable, budget, priority);
            reason = format!("{reason}; {connections} connections wanted, {budget} allowed");
        }
        let mut decision = Decision {
            wanted_connections: params::connections(&dealt),
            max_channels: self.max_channels,
            surplus_channels,
            ..Decision::new(allocations, reason)
        };
        let streams: u32 = decision.spare_streams(clusters, limits).iter().sum();
        if streams > 0 {
            let note = format!("; {} become range streams", count(streams, "spare channel"));
            decision.reason.push_str(&note);
        }
        decision
    }
}

/// `1 file`, `2 files`.
fn count(number: u32, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
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
