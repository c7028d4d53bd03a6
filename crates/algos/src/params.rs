//! The three formulas: pipelining, parallelism and concurrency of a cluster, and how connections
//! are fitted into a budget.
//!
//! The printed algorithms of papers/001 name the inputs ("`cc_opt <- optParams(BDP, avgFileSize,
//! availChannel)`", "`p_opt <- optParams(BDP, bufSize, availChannel)`") and not the formulas; these
//! are those of the family's `MinE` (Alan, Arslan, Kosar, SC'15).

use crate::cluster::{Classes, Cluster};
use crate::link::LinkEstimate;
use crate::units::Bytes;

/// How one cluster is transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// Outstanding requests of one lane. Over HTTP/1.1 a lane has one whatever this says.
    pub pipelining: u32,
    /// Range streams of one file.
    pub parallelism: u32,
    /// Lanes: files at once.
    pub concurrency: u32,
}

impl Parameters {
    /// Connections that these parameters ask for over HTTP/1.1: one a range stream.
    pub const fn connections(&self) -> u32 {
        self.concurrency.saturating_mul(self.parallelism)
    }
}

impl Parameters {
    /// The same connections with as few range streams of each file as there are `files` for: a range that is
    /// cut short or begins anew costs what its connection had in flight, or its window. At most `most_files`
    /// are in transfer at once.
    #[must_use]
    pub fn files_before_streams(self, files: u64, most_files: u32) -> Self {
        let connections = self.connections();
        let files = clamp(files).min(most_files).min(connections);
        if files <= self.concurrency {
            return self;
        }
        Self { parallelism: (connections / files).max(1), concurrency: files, ..self }
    }
}

/// What a decision has to keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Channels over all clusters (`maxCC` in the papers).
    pub max_channels: u32,
    /// Files in transfer at once (`-j`). It bounds lanes and not channels: those above it are range
    /// streams.
    pub max_files: u32,
    /// Range streams of one file (`-s`).
    pub max_streams_per_file: u32,
    /// Connections over all clusters: the least of `-x`, the total and what the origin bears.
    pub max_connections: u32,
    /// No range stream is made for fewer bytes than this (`-k`).
    pub split_floor: Bytes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_channels: DEFAULT_CHANNELS,
            max_files: u32::MAX,
            max_streams_per_file: u32::MAX,
            max_connections: DEFAULT_CONNECTIONS,
            split_floor: SPLIT_FLOOR,
        }
    }
}

/// Channels before any gain was measured. The papers leave `maxCC` to "resource capacities of
/// mobile users and fairness concerns"; sixteen is about three browsers' worth for one origin.
pub const DEFAULT_CHANNELS: u32 = 16;

/// The same over a short path, where a channel too many costs more than time. More of them fill it no
/// sooner, and overflow its queue: what is lost there is sent again, and what comes behind it waits.
pub const FEW_CHANNELS: u32 = 8;

/// Connections to one origin at most, unless the user says otherwise.
pub const DEFAULT_CONNECTIONS: u32 = 64;

/// The least split floor: below this the request's own round trip outweighs the bytes.
pub const SPLIT_FLOOR: Bytes = Bytes::kib(256);

/// The parameters that the formulas give for `cluster` when `available` channels are left, before
/// any budget.
///
/// ```text
/// pp = max(1, ceil(BDP / avg))
/// p  = max(1, min(ceil(BDP / buf), ceil(avg / buf)))
/// cc = max(1, min(ceil(BDP / avg), ceil((avail + 1) / 2), files in cluster))
/// ```
pub fn wanted(
    cluster: &Cluster,
    link: &LinkEstimate,
    limits: &Limits,
    available: u32,
) -> Parameters {
    let bdp = link.bdp();
    let average = cluster.mean_size.max(Bytes(1));
    let buffer = link.stream_window.max(Bytes(1));
    let files_in_flight = bdp.div_ceil(average).max(1);
    let parallelism = bdp.div_ceil(buffer).min(average.div_ceil(buffer)).max(1);
    let half_of_available = u64::from(available).saturating_add(2) / 2;
    Parameters {
        pipelining: clamp(files_in_flight),
        parallelism: clamp(parallelism).min(limits.max_streams_per_file.max(1)),
        concurrency: clamp(files_in_flight.min(half_of_available).min(cluster.files).max(1)),
    }
}

/// Range streams that a file of `cluster` has room for within the split floor, of those that the
/// formula gives.
pub fn usable_parallelism(cluster: &Cluster, link: &LinkEstimate, limits: &Limits) -> u32 {
    let wanted = wanted(cluster, link, limits, limits.max_channels).parallelism;
    let room = cluster.mean_size.0.checked_div(limits.split_floor.0).unwrap_or(u64::MAX);
    wanted.min(clamp(room)).max(1)
}

fn clamp(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// What one cluster gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// The size classes of the cluster.
    pub classes: Classes,
    /// How it is transferred.
    pub parameters: Parameters,
}

/// Connections that `allocations` ask for over HTTP/1.1.
pub fn connections(allocations: &[Allocation]) -> u32 {
    allocations.iter().fold(0, |sum, a| sum.saturating_add(a.parameters.connections()))
}

/// Reduces parallelism, largest first, and only then concurrency, largest first, until the
/// connections fit `budget`. Streams for which the files have no room (`usable`, one entry an
/// allocation: see [`usable_parallelism`]) go before any other. Ties go to the last cluster: the larger files. With fewer connections
/// than clusters, the last ones in `priority` (indices, most important first) go without.
pub fn fit_to_budget(
    allocations: &mut [Allocation],
    usable: &[u32],
    budget: u32,
    priority: &[usize],
) {
    let mut excess = connections(allocations).saturating_sub(budget);
    for (allocation, usable) in allocations.iter_mut().zip(usable) {
        let Parameters { parallelism, concurrency, .. } = &mut allocation.parameters;
        while excess > 0 && *parallelism > (*usable).max(1) && *concurrency > 0 {
            *parallelism -= 1;
            excess = excess.saturating_sub(*concurrency);
        }
    }
    while excess > 0 {
        let Some(widest) = allocations
            .iter_mut()
            .filter(|a| a.parameters.concurrency > 0)
            .max_by_key(|a| a.parameters.parallelism)
        else {
            return;
        };
        if widest.parameters.parallelism <= 1 {
            break;
        }
        widest.parameters.parallelism -= 1;
        excess = excess.saturating_sub(widest.parameters.concurrency);
    }
    while excess > 0 {
        let most = allocations.iter_mut().max_by_key(|a| a.parameters.concurrency);
        match most {
            Some(allocation) if allocation.parameters.concurrency > 1 => {
                allocation.parameters.concurrency -= 1;
                excess -= 1;
            }
            _ => break,
        }
    }
    for index in priority.iter().rev() {
        if excess == 0 {
            return;
        }
        if allocations[*index].parameters.concurrency > 0 {
            allocations[*index].parameters.concurrency = 0;
            excess -= 1;
        }
    }
}

/// Reduces concurrency, largest first, until no more than `most` files are in transfer at once, and
/// says by how much. With fewer files than clusters, the last ones in `priority` (indices, most
/// important first) go without.
pub fn fit_to_files(allocations: &mut [Allocation], most: u32, priority: &[usize]) -> u32 {
    let lanes: u32 = allocations.iter().map(|a| a.parameters.concurrency).sum();
    let mut excess = lanes.saturating_sub(most);
    while excess > 0 {
        let widest = allocations.iter_mut().max_by_key(|a| a.parameters.concurrency);
        match widest {
            Some(allocation) if allocation.parameters.concurrency > 1 => {
                allocation.parameters.concurrency -= 1;
                excess -= 1;
            }
            _ => break,
        }
    }
    for index in priority.iter().rev() {
        if excess > 0 && allocations[*index].parameters.concurrency > 0 {
            allocations[*index].parameters.concurrency = 0;
            excess -= 1;
        }
    }
    lanes.saturating_sub(most)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::cluster::SizeClass;
    use crate::units::BitRate;

    /// The worked example of the project's design: 50 Mbit/s, 200 ms, 64 KiB windows.
    pub(crate) fn worked_link() -> LinkEstimate {
        LinkEstimate {
            rtt: Duration::from_millis(200),
            bandwidth: BitRate::from_mbps(50.0),
            stream_window: Bytes(65_536),
        }
    }

    pub(crate) fn worked_clusters() -> Vec<Cluster> {
        vec![
            Cluster::new(SizeClass::Small, 200, Bytes(200 * 12_000)),
            Cluster::new(SizeClass::Medium, 20, Bytes(20 * 700_000)),
            Cluster::new(SizeClass::Large, 1, Bytes(24_000_000)),
        ]
    }

    pub(crate) fn worked_limits() -> Limits {
        Limits { max_connections: u32::MAX, ..Limits::default() }
    }

    #[test]
    fn parameters_of_the_worked_example() {
        assert_eq!(worked_link().bdp(), Bytes(1_250_000));
        let both: Vec<_> = worked_clusters()
            .iter()
            .map(|c| wanted(c, &worked_link(), &worked_limits(), 16))
            .map(|p| (p.pipelining, p.parallelism))
            .collect();
        assert_eq!(both, [(105, 1), (2, 11), (1, 20)]);
    }

    fn allocation(concurrency: u32, parallelism: u32) -> Allocation {
        Allocation {
            classes: Classes::ALL,
            parameters: Parameters { pipelining: 1, parallelism, concurrency },
        }
    }

    #[test]
    fn parallelism_shrinks_before_concurrency_and_the_largest_first() {
        let mut allocations = [allocation(5, 1), allocation(5, 11), allocation(1, 20)];
        fit_to_budget(&mut allocations, &[1, 11, 20], 64, &[0, 1, 2]);
        let shape: Vec<_> = allocations
            .iter()
            .map(|a| (a.parameters.concurrency, a.parameters.parallelism))
            .collect();
        assert_eq!(shape, [(5, 1), (5, 10), (1, 9)]);
        assert_eq!(connections(&allocations), 64);
    }

    #[test]
    fn streams_without_room_go_first() {
        let mut allocations = [allocation(5, 1), allocation(10, 11), allocation(1, 20)];
        fit_to_budget(&mut allocations, &[1, 2, 20], 64, &[0, 1, 2]);
        let shape: Vec<_> = allocations
            .iter()
            .map(|a| (a.parameters.concurrency, a.parameters.parallelism))
            .collect();
        assert_eq!(shape, [(5, 1), (10, 3), (1, 20)]);
    }

    #[test]
    fn with_fewer_connections_than_clusters_the_most_important_are_served() {
        let mut allocations = [allocation(3, 1), allocation(4, 2), allocation(1, 5)];
        fit_to_budget(&mut allocations, &[1, 2, 5], 2, &[2, 0, 1]);
        let lanes: Vec<_> = allocations.iter().map(|a| a.parameters.concurrency).collect();
        assert_eq!(lanes, [1, 0, 1]);
    }

    #[test]
    fn files_are_bounded_without_touching_their_streams() {
        let mut allocations = [allocation(5, 1), allocation(10, 11), allocation(1, 20)];
        assert_eq!(fit_to_files(&mut allocations, 4, &[2, 1, 0]), 12);
        let shape: Vec<_> = allocations
            .iter()
            .map(|a| (a.parameters.concurrency, a.parameters.parallelism))
            .collect();
        assert_eq!(shape, [(2, 1), (1, 11), (1, 20)]);
        assert_eq!(fit_to_files(&mut allocations, 1, &[2, 1, 0]), 3);
        let lanes: Vec<_> = allocations.iter().map(|a| a.parameters.concurrency).collect();
        assert_eq!(lanes, [0, 0, 1]);
        assert_eq!(fit_to_files(&mut allocations, 9, &[2, 1, 0]), 0);
    }

    #[test]
    fn connections_bring_files_before_they_bring_parts_of_them() {
        let planned = Parameters { pipelining: 2, parallelism: 4, concurrency: 16 };
        let dealt = |files, most| {
            let dealt = planned.files_before_streams(files, most);
            (dealt.concurrency, dealt.parallelism)
        };
        assert_eq!(dealt(1_000, u32::MAX), (64, 1));
        assert_eq!(dealt(40, u32::MAX), (40, 1));
        assert_eq!(dealt(30, u32::MAX), (30, 2));
        assert_eq!(dealt(1_000, 20), (20, 3), "-j");
        // As planned where there are no more files.
        assert_eq!(dealt(16, u32::MAX), (16, 4));
        assert_eq!(dealt(3, u32::MAX), (16, 4));
    }

    proptest! {
        #[test]
        fn fitting_never_exceeds_and_never_starves_without_need(
            shapes in proptest::collection::vec((1u32..40, 1u32..40), 1..4),
            budget in 1u32..200,
        ) {
            let mut allocations: Vec<_> = shapes.iter().map(|(cc, p)| allocation(*cc, *p)).collect();
            let before = allocations.clone();
            let priority: Vec<_> = (0..allocations.len()).collect();
            let usable: Vec<_> = shapes.iter().map(|(_, p)| p.div_ceil(2)).collect();
            fit_to_budget(&mut allocations, &usable, budget, &priority);
            prop_assert!(connections(&allocations) <= budget);
            if budget as usize >= allocations.len() {
                prop_assert!(allocations.iter().all(|a| a.parameters.concurrency >= 1));
            }
            if connections(&before) <= budget {
                prop_assert_eq!(&allocations, &before);
            }
            // Concurrency gives way only once no parallelism is left to take.
            let lanes_lost = allocations.iter().zip(&before)
                .any(|(a, b)| a.parameters.concurrency < b.parameters.concurrency);
            if lanes_lost {
                prop_assert!(allocations.iter().all(|a| a.parameters.parallelism == 1));
            }
        }
    }
}
