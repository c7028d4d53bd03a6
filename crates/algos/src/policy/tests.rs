//! What holds for every policy.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::cluster::{Classes, SizeClass};
use crate::energy::ConstantPower;
use crate::params::tests::{worked_clusters, worked_limits, worked_link};
use crate::units::BitRate;

const MODEL: ConstantPower = ConstantPower(crate::units::Watts::ZERO);

fn observe(clusters: &[Cluster], limits: Limits) -> Observation<'_> {
    Observation {
        link: worked_link(),
        clusters,
        limits,
        is_measured: true,
        is_told: false,
        sizes_are_known: true,
        delivered: Bytes::ZERO,
        handshake: Bytes::ZERO,
        just_came: Bytes::ZERO,
        energy: None,
        energy_model: &MODEL,
    }
}

fn lanes(decision: &Decision) -> Vec<u32> {
    decision.allocations.iter().map(|a| a.parameters.concurrency).collect()
}

#[test]
fn lowe_on_the_worked_example() {
    let clusters = worked_clusters();
    let decision = LowE::default().decide(Timestamp::START, &observe(&clusters, worked_limits()));
    assert_eq!(lanes(&decision), [9, 2, 1]);
    assert_eq!(decision.wanted_connections, 51);
    assert!(decision.reason.contains("left 16 -> 7 -> 5 -> 4"), "{}", decision.reason);
}

#[test]
fn lowe_begins_with_all_channels_until_a_size_is_known() {
    let clusters = [Cluster::new(SizeClass::Medium, 100, Bytes(26_214_400))];
    let mut seen = observe(&clusters, worked_limits());
    let channels = |seen: &Observation<'_>| {
        LowE::default().decide(Timestamp::START, seen).allocations[0].parameters.concurrency
    };
    let planned = channels(&seen);
    seen.sizes_are_known = false;
    assert_eq!(channels(&seen), worked_limits().max_channels);
    assert!(planned < worked_limits().max_channels);
}

#[test]
fn lanes_that_wait_for_short_files_are_missed_by_the_forecast() {
    // 16 ms of each file on the link, and 31 ms of waiting for it.
    let clusters = [Cluster::new(SizeClass::Small, 1_000, Bytes(2_000_000))];
    let mut seen = observe(&clusters, worked_limits());
    seen.link.bandwidth = BitRate::from_mbps(1.0);
    seen.link.rtt = Duration::from_millis(31);
    let seconds = |channels| forecast::forecast(&seen, channels, channels).duration.as_secs_f64();
    assert!((seconds(1) - 47.062).abs() < 1e-6 && (seconds(2) - 23.562).abs() < 1e-6);
    assert!((seconds(4) - 16.062).abs() < 1e-6, "as fast as the link: {}", seconds(4));
}

#[test]
fn hat_on_the_worked_example() {
    let clusters = worked_clusters();
    let decision = Hat.decide(Timestamp::START, &observe(&clusters, worked_limits()));
    assert!(decision.reason.contains("small 5, medium 5, large 6"), "{}", decision.reason);
    assert_eq!(decision.wanted_connections, 80);
    // Large has one file: its five spare channels flow on to medium.
    assert_eq!(lanes(&decision), [5, 10, 1]);
}

#[test]
fn eht_on_the_worked_example() {
    let clusters = worked_clusters();
    let mut eht = Eht::default();
    let decision = eht.decide(Timestamp::START, &observe(&clusters, worked_limits()));
    assert!(decision.wanted_connections > 80 || eht.efficient_channels() < Some(16));
}

#[test]
fn budgets_of_the_worked_example_shrink_parallelism_first() {
    let clusters = worked_clusters();
    let limits = Limits { max_connections: 64, ..worked_limits() };
    let lowe = LowE::default().decide(Timestamp::START, &observe(&clusters, limits));
    assert_eq!(lowe.connections(), 51);
    let hat = Hat.decide(Timestamp::START, &observe(&clusters, limits));
    assert_eq!(lanes(&hat), [5, 10, 1], "concurrency is untouched");
    assert!(hat.connections() <= 64);
}

#[test]
fn surplus_without_any_file_stays_as_range_streams() {
    let clusters = [Cluster::new(SizeClass::Large, 1, Bytes(24_000_000))];
    let decision = Hat.decide(Timestamp::START, &observe(&clusters, worked_limits()));
    assert_eq!(lanes(&decision), [1]);
    assert_eq!(decision.allocations[0].parameters.parallelism, 20);
    assert_eq!(decision.surplus_channels, 15);
    assert!(
        decision.reason.contains("15 spare channels become range streams"),
        "{}",
        decision.reason
    );
}

#[test]
fn a_ceiling_on_files_leaves_the_streams_of_one_file() {
    let clusters = [Cluster::new(SizeClass::Large, 1, Bytes(24_000_000))];
    let free = Hat.decide(Timestamp::START, &observe(&clusters, worked_limits()));
    let one_file = Limits { max_files: 1, ..worked_limits() };
    let bounded = Hat.decide(Timestamp::START, &observe(&clusters, one_file));
    assert_eq!(bounded, free);

    let clusters = worked_clusters();
    let bounded = Hat.decide(Timestamp::START, &observe(&clusters, one_file));
    assert_eq!(lanes(&bounded), [0, 0, 1]);
    assert_eq!(bounded.allocations[2].parameters.parallelism, 20);
    assert_eq!(bounded.surplus_channels, 15);
    assert!(bounded.reason.contains("1 file at once allowed; 15 spare"), "{}", bounded.reason);
    for mut policy in policies().into_iter().filter(|policy| policy.name() != "fixed") {
        for max_files in [1, 2, 5] {
            let limits = Limits { max_files, ..worked_limits() };
            let decision = policy.decide(Timestamp::START, &observe(&clusters, limits));
            assert!(decision.channels() <= max_files, "{policy:?}: {decision:?}");
        }
    }
}

#[test]
fn spare_streams_keep_to_the_split_floor_and_to_every_ceiling() {
    let clusters = [Cluster::new(SizeClass::Large, 1, Bytes(24_000_000))];
    let streams = |limits: Limits| {
        let decision = Hat.decide(Timestamp::START, &observe(&clusters, limits));
        decision.spare_streams(&clusters, &limits)[0]
    };
    assert_eq!(streams(worked_limits()), 15);
    assert_eq!(streams(Limits { max_connections: 22, ..worked_limits() }), 2);
    assert_eq!(streams(Limits { max_streams_per_file: 21, ..worked_limits() }), 1);
    let floor = Bytes(24_000_000 / 23);
    assert_eq!(streams(Limits { split_floor: floor, ..worked_limits() }), 3);
}

#[test]
fn files_come_before_range_streams_where_there_are_files() {
    let clusters = [Cluster::new(SizeClass::Large, 100, Bytes::mib(6_000))];
    let planned = Parameters { concurrency: 4, parallelism: 4, pipelining: 1 };
    let allocation = Allocation { classes: clusters[0].classes, parameters: planned };
    let preferring = |files: u64, most, whole| {
        let clusters = [Cluster { files, ..clusters[0] }];
        let mut decision = Decision::new(vec![allocation], "");
        decision.prefer_files(&clusters, most, whole);
        let Parameters { concurrency, parallelism, .. } = decision.allocations[0].parameters;
        (concurrency, parallelism)
    };
    assert_eq!(preferring(100, u32::MAX, false), (16, 1));
    assert_eq!(preferring(100, 8, false), (8, 2));
    assert_eq!(preferring(100, 8, true), (8, 1));
    // Each file is under way: their streams are what is left to add.
    assert_eq!(preferring(4, 8, true), (4, 4));
}

#[test]
fn connections_are_counted_as_they_are_when_the_budget_binds() {
    let clusters = worked_clusters();
    let limits = Limits { max_connections: 64, ..worked_limits() };
    let hat = Hat.decide(Timestamp::START, &observe(&clusters, limits));
    assert_eq!(hat.wanted_connections, 80, "before the surplus passes on");
    assert!(hat.reason.contains("135 connections wanted, 64 allowed"), "{}", hat.reason);
}

fn policies() -> Vec<Box<dyn Policy>> {
    vec![
        Box::new(LowE::default()),
        Box::new(Hat),
        Box::new(Eht::default()),
        Box::new(Eht::new(EhtConfig { weighting: Weighting::Logarithmic, ..EhtConfig::default() })),
        Box::new(Fixed::new(FixedConfig { concurrency: 7, parallelism: 3, pipelining: 2 })),
    ]
}

prop_compose! {
    fn any_clusters()(
        shapes in proptest::collection::vec((1u64..100_000, 0u64..10_000_000_000), 1..=3)
    ) -> Vec<Cluster> {
        shapes.iter().zip(SizeClass::ALL)
            .map(|((files, bytes), class)| Cluster::new(class, *files, Bytes(*bytes)))
            .collect()
    }
}

prop_compose! {
    fn any_link()(
        rtt in 1u64..2_000_000, mbps in 0.01f64..10_000.0, window in 1u64..100_000_000
    ) -> LinkEstimate {
        LinkEstimate {
            rtt: std::time::Duration::from_micros(rtt),
            bandwidth: BitRate::from_mbps(mbps),
            stream_window: Bytes(window),
        }
    }
}

prop_compose! {
    fn any_limits()(
        channels in 1u32..100, files in 1u32..40, streams in 1u32..64, connections in 1u32..300
    ) -> Limits {
        Limits {
            max_channels: channels,
            max_files: files,
            max_streams_per_file: streams,
            max_connections: connections,
            ..Limits::default()
        }
    }
}

proptest! {
    #[test]
    fn budgets_hold_and_clusters_are_served(
        clusters in any_clusters(), link in any_link(), limits in any_limits(), metered in any::<bool>(),
    ) {
        for mut policy in policies() {
            let observation = Observation {
                link,
                energy: metered.then_some(Joules::ZERO),
                ..observe(&clusters, limits)
            };
            let mut now = Timestamp::START;
            let mut decisions = 0;
            loop {
                let decision = policy.decide(now, &observation);
                prop_assert!(decision.connections() <= limits.max_connections, "{policy:?} {decision:?}");
                prop_assert!(!decision.reason.is_empty());
                if policy.name() != "fixed" {
                    prop_assert!(decision.channels() <= limits.max_channels, "{policy:?} {decision:?}");
                    prop_assert!(decision.channels() <= limits.max_files, "{policy:?} {decision:?}");
                    let spare: u32 = decision.spare_streams(&clusters, &limits).iter().sum();
                    prop_assert!(spare <= decision.surplus_channels);
                    prop_assert!(spare == 0 || decision.connections() + spare <= limits.max_connections);
                    for (allocation, cluster) in decision.allocations.iter().zip(&clusters) {
                        prop_assert!(allocation.parameters.parallelism <= limits.max_streams_per_file);
                        prop_assert!(u64::from(allocation.parameters.concurrency) <= cluster.files);
                    }
                }
                let settled = policy.next_timeout().is_none();
                let enough = decision.channels().min(limits.max_connections) as usize >= clusters.len();
                if settled && enough && policy.name() != "fixed" {
                    prop_assert!(lanes(&decision).iter().all(|lanes| *lanes >= 1), "{policy:?} {decision:?}");
                }
                let Some(next) = policy.next_timeout() else { break };
                prop_assert!(next > now);
                now = next;
                decisions += 1;
                prop_assert!(decisions < 500, "the search does not end");
            }
        }
    }

    #[test]
    fn the_same_inputs_give_the_same_decisions(
        clusters in any_clusters(), link in any_link(), limits in any_limits(),
    ) {
        for (mut one, mut other) in policies().into_iter().zip(policies()) {
            let observation = Observation { link, energy: Some(Joules::ZERO), ..observe(&clusters, limits) };
            for millis in [0, 1_000, 2_500, 9_000] {
                let now = Timestamp::from_millis(millis);
                prop_assert_eq!(one.decide(now, &observation), other.decide(now, &observation));
            }
        }
    }
}

#[test]
fn fixed_is_exact() {
    let clusters = worked_clusters();
    let mut fixed = Fixed::new(FixedConfig { concurrency: 7, parallelism: 3, pipelining: 1 });
    let decision = fixed.decide(Timestamp::START, &observe(&clusters, Limits::default()));
    assert_eq!(decision.allocations.len(), 1);
    assert_eq!(decision.allocations[0].classes, Classes::ALL);
    assert_eq!((decision.channels(), decision.connections()), (7, 21));
}
