//! The search in virtual time.

use std::time::Duration;

use super::*;
use crate::energy::ConstantPower;
use crate::params::tests::{worked_clusters, worked_limits, worked_link};
use crate::units::{BitRate, Bytes, Joules};

#[test]
fn weights_and_channels_of_the_worked_example() {
    let eht = Eht::default();
    let rounded: Vec<_> =
        eht.weights(&worked_clusters()).iter().map(|w| (w * 1000.0).round() / 1000.0).collect();
    assert_eq!(rounded, [0.612, 0.357, 0.031]);
    // 9, 5, and a floor of 0.49 lifted to 1; the sixteenth goes to the heaviest.
    assert_eq!(eht.shares(&worked_clusters(), 16), [10, 5, 1]);
    assert_eq!(eht.shares(&worked_clusters(), 2), [1, 1, 0]);
}

fn observation<'a>(clusters: &'a [Cluster], model: &'a ConstantPower) -> Observation<'a> {
    Observation {
        link: worked_link(),
        clusters,
        limits: worked_limits(),
        is_measured: true,
        is_told: false,
        sizes_are_known: true,
        delivered: Bytes::ZERO,
        handshake: Bytes::ZERO,
        just_came: Bytes::ZERO,
        energy: Some(Joules::ZERO),
        energy_model: model,
    }
}

/// Drives a search in virtual time with the given goodput and power a number of channels.
fn search(eht: &mut Eht, goodput: impl Fn(u32) -> BitRate, watts: impl Fn(u32) -> f64) -> Vec<u32> {
    let clusters = [Cluster::new(crate::cluster::SizeClass::Medium, 10_000, Bytes(7_000_000_000))];
    let model = ConstantPower::default();
    let mut seen = observation(&clusters, &model);
    let mut tried = Vec::new();
    let mut now = Timestamp::START;
    for _ in 0..100 {
        let channels = eht.decide(now, &seen).channels();
        if tried.last() != Some(&channels) {
            tried.push(channels);
        }
        let Some(next) = eht.next_timeout() else { return tried };
        let step = next - now;
        seen.delivered += goodput(channels) * step;
        seen.energy = seen.energy.map(|e| e + Joules::new(watts(channels) * step.as_secs_f64()));
        now = next;
    }
    panic!("the search does not end");
}

#[test]
fn the_search_finds_the_knee_and_stops_early() {
    // Throughput saturates at 7 channels, each channel costs power.
    let goodput = |channels: u32| BitRate::from_mbps(7.0 * f64::from(channels.min(7)));
    let watts = |channels: u32| 1.0 + 0.3 * f64::from(channels);
    for (start, expected) in [
        (1, vec![1, 4, 7, 10, 13, 7]),
        (4, vec![4, 7, 10, 13, 1, 7]),
        (13, vec![13, 16, 10, 7, 4, 1, 7]),
    ] {
        let config = EhtConfig { efficient_channels: Some(start), ..EhtConfig::default() };
        let mut eht = Eht::new(config);
        assert_eq!(search(&mut eht, goodput, watts), expected, "from {start}");
        assert_eq!(eht.efficient_channels(), Some(7));
    }
}

#[test]
fn nothing_is_searched_before_anything_is_measured() {
    let clusters = [Cluster::new(crate::cluster::SizeClass::Medium, 10_000, Bytes(7_000_000_000))];
    let model = ConstantPower::default();
    let mut seen = observation(&clusters, &model);
    seen.is_measured = false;
    let mut eht = Eht::default();
    let decision = eht.decide(Timestamp::START, &seen);
    assert!(decision.reason.contains("not measured yet"), "{}", decision.reason);
    seen.is_measured = true;
    let decision = eht.decide(Timestamp::from_millis(2_000), &seen);
    assert!(decision.reason.contains("trying"), "{}", decision.reason);
}

#[test]
fn the_reason_is_true_at_each_decision() {
    let clusters = worked_clusters();
    let model = ConstantPower::default();
    let mut seen = observation(&clusters, &model);
    seen.is_measured = false;
    let mut eht = Eht::default();
    let first = eht.decide(Timestamp::START, &seen).reason;
    assert!(first.contains("not measured yet"), "{first}");
    let left = [Cluster::new(crate::cluster::SizeClass::Small, 20, Bytes(240_000))];
    let seen = Observation { clusters: &left, is_measured: true, ..seen };
    let later = eht.decide(Timestamp::from_millis(3_000), &seen).reason;
    assert!(later.contains("too short to search"), "{later}");
    let expected = |text: &str| {
        text.split(" expected").next().unwrap().rsplit(": ").next().unwrap().to_owned()
    };
    assert_ne!(expected(&first), expected(&later), "what is left takes less");
}

#[test]
fn a_remembered_value_starts_the_search() {
    let config = EhtConfig { efficient_channels: Some(9), ..EhtConfig::default() };
    let mut eht = Eht::new(config);
    let tried = search(&mut eht, |_| BitRate::from_mbps(10.0), f64::from);
    assert_eq!(tried[0], 9);
    assert_eq!(eht.efficient_channels(), Some(1));
}

#[test]
fn a_short_transfer_goes_by_the_model() {
    let clusters = worked_clusters();
    let model = ConstantPower::default();
    let mut eht = Eht::default();
    let decision = eht.decide(Timestamp::START, &observation(&clusters, &model));
    assert!(decision.reason.contains("too short to search"), "{}", decision.reason);
    assert_eq!(eht.next_timeout(), None);
    assert!(eht.efficient_channels().is_some());
}

#[test]
fn the_literal_objective_prefers_fewer_joules_to_less_time() {
    let goodput = |channels: u32| BitRate::from_mbps(10.0 + f64::from(channels));
    let watts = |channels: u32| 1.0 + 0.2 * f64::from(channels);
    let mut whole = Eht::default();
    search(&mut whole, goodput, watts);
    let mut literal = Eht::new(EhtConfig { objective: Objective::Literal, ..EhtConfig::default() });
    search(&mut literal, goodput, watts);
    assert!(literal.efficient_channels() < whole.efficient_channels());
}

#[test]
fn a_changed_link_is_searched_again() {
    let mut eht = Eht::default();
    search(&mut eht, |_| BitRate::from_mbps(10.0), |_| 1.0);
    let clusters = [Cluster::new(crate::cluster::SizeClass::Medium, 10_000, Bytes(7_000_000_000))];
    let model = ConstantPower::default();
    let mut seen = observation(&clusters, &model);
    seen.link.bandwidth = BitRate::from_mbps(10.0);
    let decision = eht.decide(Timestamp::from_millis(60_000), &seen);
    assert!(decision.reason.contains("trying"), "{}", decision.reason);
}

#[test]
fn a_search_that_could_try_few_channels_begins_anew_where_many_are_allowed() {
    let clusters = [Cluster::new(crate::cluster::SizeClass::Medium, 10_000, Bytes(7_000_000_000))];
    let model = ConstantPower::default();
    let mut seen = observation(&clusters, &model);
    let most = std::mem::replace(&mut seen.limits.max_channels, 2);
    let mut eht = Eht::default();
    let decision = eht.decide(Timestamp::START, &seen);
    assert!(decision.reason.contains("of at most 2"), "{}", decision.reason);
    seen.limits.max_channels = 3;
    let decision = eht.decide(Timestamp::from_millis(10), &seen);
    assert!(decision.reason.contains("of at most 2"), "{}", decision.reason);
    seen.limits.max_channels = most;
    let decision = eht.decide(Timestamp::from_millis(20), &seen);
    assert!(!decision.reason.contains("of at most 2"), "{}", decision.reason);
}

#[test]
fn without_sizes_all_channels_are_used_and_then_the_model() {
    let clusters = worked_clusters();
    let model = ConstantPower::default();
    let mut seen = observation(&clusters, &model);
    seen.sizes_are_known = false;
    let mut eht = Eht::default();
    let blind = eht.decide(Timestamp::START, &seen);
    assert_eq!(blind.max_channels, seen.limits.max_channels);
    assert!(blind.reason.contains("no size is known yet"), "{}", blind.reason);
    assert_eq!(eht.efficient_channels(), None);
    seen.sizes_are_known = true;
    seen.energy = None;
    let informed = eht.decide(Timestamp::from_millis(300), &seen);
    assert!(informed.reason.contains("by model"), "{}", informed.reason);
}

#[test]
fn what_a_model_finds_as_good_is_insurance_unless_the_link_was_told() {
    // One file in each round trip keeps 50 Mbit/s x 200 ms busy from two channels on.
    let clusters = [Cluster::new(crate::cluster::SizeClass::Medium, 20, Bytes(20_000_000))];
    let model = ConstantPower::default();
    let mut seen = observation(&clusters, &model);
    seen.is_measured = false;
    let channels = |config: EhtConfig, seen: &Observation<'_>| {
        Eht::new(config).decide(Timestamp::START, seen).max_channels
    };
    assert_eq!(channels(EhtConfig::default(), &seen), 16);
    let literal = EhtConfig { as_good: 1.0, ..EhtConfig::default() };
    let fewest = channels(literal, &seen);
    assert!(fewest < 16, "{fewest}");
    seen.is_told = true;
    assert_eq!(channels(EhtConfig::default(), &seen), fewest);
}

#[test]
fn lanes_may_grow_after_a_search_that_found_no_number_too_many() {
    let found = |goodput: fn(u32) -> BitRate| {
        let mut eht = Eht::default();
        search(&mut eht, goodput, |_| 1.0);
        (eht.efficient_channels(), eht.allows_growth())
    };
    let more_is_better = found(|channels| BitRate::from_mbps(f64::from(channels)));
    assert_eq!(more_is_better, (Some(16), true));
    let seven_are_enough =
        found(|channels| BitRate::from_mbps(f64::from(14 - channels.abs_diff(7))));
    assert_eq!(seven_are_enough, (Some(7), false));
}

#[test]
fn a_link_that_becomes_faster_within_a_search_is_searched_anew() {
    // Windows are of 1.2 s. Without it seven channels would seem to be the worst by far.
    let mut eht = Eht::new(EhtConfig { efficient_channels: Some(7), ..EhtConfig::default() });
    let windows = std::cell::Cell::new(0);
    let goodput = |channels: u32| {
        let is_first = windows.replace(windows.get() + 1) < 2;
        BitRate::from_mbps(if is_first { 10.0 } else { 80.0 - f64::from(channels.abs_diff(7)) })
    };
    let tried = search(&mut eht, goodput, |_| 1.0);
    assert_eq!(tried[..3], [7, 10, 7], "{tried:?}");
    assert_eq!(eht.efficient_channels(), Some(7), "{tried:?}");
}

#[test]
fn what_a_model_promised_and_does_not_come_is_not_waited_for() {
    let clusters = [Cluster::new(crate::cluster::SizeClass::Medium, 30, Bytes(9_000_000))];
    let model = ConstantPower::default();
    let mut seen = observation(&clusters, &model);
    let bandwidth = seen.link.bandwidth;
    for (part, expected) in [(0.5, None), (0.1, Some(seen.limits.max_channels))] {
        let mut eht = Eht::new(EhtConfig { efficient_channels: Some(1), ..EhtConfig::default() });
        let mut now = Timestamp::START;
        let first = eht.decide(now, &seen).channels();
        for _ in 0..3 {
            let next = eht.next_timeout().unwrap_or(now + Duration::from_secs(2));
            seen.delivered += bandwidth * part * (next - now);
            now = next;
            let later = eht.decide(now, &seen);
            if expected.is_none() {
                assert_eq!(later.channels(), first);
            }
        }
        assert_eq!(first, 1);
        let last = eht.decide(now, &seen);
        assert_eq!(last.channels(), expected.unwrap_or(first), "{}", last.reason);
    }
}
