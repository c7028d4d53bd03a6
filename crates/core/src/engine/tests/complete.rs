//! Nothing fails: everything arrives, once.

use std::time::Duration;

use pelton_algos::policy::{Eht, Fixed, FixedConfig, Hat, LowE, Policy};

use super::host::Host;
use super::world::World;
use crate::connection::Protocol;

pub(super) fn fixed(concurrency: u32, parallelism: u32) -> Box<dyn Policy> {
    Box::new(Fixed::new(FixedConfig { concurrency, parallelism, pipelining: 4 }))
}

pub(super) fn policies() -> Vec<Box<dyn Policy>> {
    vec![Box::new(LowE::default()), Box::new(Hat), Box::new(Eht::default()), fixed(3, 2)]
}

/// From a few bytes to 20 MB, with empty files among them.
fn mixed() -> Host {
    Host::default().files(60, |i| match i % 12 {
        0 => 0,
        1..8 => 2_000 + i * 100,
        8..11 => 400_000 + i * 1_000,
        _ => 4_000_000 * (i / 12 + 1),
    })
}

/// Policies that choose for themselves how many files are in transfer.
pub(super) fn adaptive() -> impl Iterator<Item = Box<dyn Policy>> {
    policies().into_iter().filter(|policy| policy.name() != "fixed")
}

#[test]
fn a_bare_list_arrives_under_every_policy() {
    for policy in policies() {
        let mut world = World::new(policy).host("one", mixed());
        world.get_all();
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn a_list_with_sizes_arrives_under_every_policy() {
    for policy in policies() {
        let mut world = World::new(policy).host("one", mixed());
        world.metered = true;
        world.get_all_with_sizes();
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn wrong_size_hints_cost_nothing_but_time() {
    for policy in policies() {
        let mut world = World::new(policy).host("one", mixed());
        let mut specs = world.specs();
        for (index, spec) in specs.iter_mut().enumerate() {
            spec.size_hint = Some(if index % 2 == 0 { 1 } else { 50_000_000 });
        }
        world.get(specs);
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn http_2_brings_a_long_list() {
    for policy in policies() {
        let host = Host { protocol: Protocol::Http2, ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(2_000, |i| 500 + i));
        world.get_all();
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn files_start_in_the_order_of_the_list() {
    let mut world = World::new(fixed(1, 1)).host("one", Host::default().files(6, |_| 10_000));
    world.get_all();
    world.run();
    let order: Vec<usize> = world.fetches.iter().map(|(_, fetch)| fetch.file.index()).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn what_a_server_was_promised_is_left_to_it() {
    let requests = |promised| {
        let host = Host { protocol: Protocol::Http2, promised, ..Host::default() };
        let mut world = World::new(fixed(1, 4)).host("one", host.files(1, |_| 4_000_000));
        world.get_all();
        world.run_for(Duration::from_millis(400));
        world.fetches.len()
    };
    assert_eq!(requests(64 * 1024), 4);
    assert_eq!(requests(u64::MAX / 2), 1);
}
