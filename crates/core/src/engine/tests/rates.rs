//! Limits on the rate: few connections, and nobody is blamed for being slow.

use std::time::Duration;

use pelton_algos::ranges::StreamId;

use super::super::*;
use super::complete::{fixed, policies};
use super::host::Host;
use super::world::World;

const MB: u64 = 1_000_000;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn twenty_files() -> Host {
    Host::default().files(20, |_| 2 * MB)
}

fn per_origin(kbps: f64) -> EngineConfig {
    let rate = Some(BitRate::from_bps(kbps * 1e3));
    let limits = UserLimits { max_rate_per_origin: rate, ..UserLimits::default() };
    EngineConfig { limits, ..EngineConfig::default() }
}

fn streams_to(world: &World, host: &str) -> usize {
    world.live.values().filter(|live| live.host == host).count()
}

#[test]
fn a_limited_rate_needs_few_connections_and_the_limit_can_move() {
    for policy in policies() {
        let slow = UserLimits { max_rate: Some(BitRate::from_kbps(256)), ..UserLimits::default() };
        let config = EngineConfig { limits: slow, ..EngineConfig::default() };
        let mut world = World::with(config, policy).host("one", twenty_files());
        // What the limit makes of the link.
        world.mbps = 0.256;
        world.get_all();
        world.run_for(secs(20));
        assert!(world.live.len() <= 4, "64 kbit/s for each: {}", world.live.len());
        world.mbps = 50.0;
        world.set_limits(UserLimits::default());
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() < 60.0, "{} s", world.seconds());
    }
}

#[test]
fn a_limited_origin_has_few_connections_and_others_no_fewer() {
    for policy in policies() {
        let limited = || Host { mbps: 0.256, ..twenty_files() };
        let mut world = World::with(per_origin(256.0), policy);
        world = world.host("one", limited()).host("two", limited());
        world.get_all();
        world.run_for(secs(20));
        for host in ["one", "two"] {
            let streams = streams_to(&world, host);
            assert!((1..=4).contains(&streams), "{host}: 64 kbit/s for each of {streams}");
        }
        for host in ["one", "two"] {
            world.host_mut(host).mbps = f64::INFINITY;
        }
        world.set_limits(UserLimits::default());
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() < 90.0, "{} s", world.seconds());
    }
}

#[test]
fn uneven_streams_of_an_origin_at_its_limit_are_not_replaced_and_others_are() {
    let seconds = |limit: f64| {
        let mut world = World::with(per_origin(limit), fixed(2, 8));
        let file = || Host::default().files(1, |_| 20 * MB);
        world = world.host("held", Host { mbps: 4.0, ..file() }).host("free", file());
        world.get_all();
        world.run_for(secs(2));
        let newest = |world: &World, host: &str| {
            *world.live.iter().rfind(|(_, live)| live.host == host).expect("it has streams").0
        };
        let (held, free) = (newest(&world, "held"), newest(&world, "free"));
        // Of each a stream brings next to nothing from now on.
        world.crawling.extend([(held, 500.0), (free, 500.0)]);
        world.run_for(secs(8));
        (world.aborts.contains(&held), world.aborts.contains(&free))
    };
    assert_eq!(seconds(4_000.0), (false, true), "only one of them is at its limit");
    assert_eq!(seconds(400_000.0), (true, true), "none is");
}

#[test]
fn a_limit_below_what_counts_as_a_stall_stalls_nothing() {
    let host = || Host { mbps: 0.0004, ..Host::default().files(1, |_| 9_000) };
    let mut world = World::with(per_origin(0.4), fixed(2, 1));
    world = world.host("one", host()).host("two", host());
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    assert_eq!(world.engine.totals().retries, 0);
}

#[test]
fn a_client_whose_limit_holds_a_run_keeps_its_connections_few_and_its_streams() {
    let held = Event::ClientRate { rate: Some(BitRate::from_kbps(512)), holds: true };
    let mut world = World::new(fixed(1, 32)).host("one", Host::default().files(1, |_| 4 * MB));
    world.mbps = 0.512;
    world.send(held);
    world.get_all();
    world.run_for(secs(10));
    assert_eq!(world.live.len(), 8, "64 kbit/s for each");
    // Then other runs leave it next to nothing, and one of its streams less than the others.
    let streams: Vec<StreamId> = world.live.keys().copied().collect();
    world.crawling.extend(streams.iter().map(|stream| (*stream, 40.0)));
    world.crawling.insert(streams[3], 1.0);
    world.run_for(secs(120));
    assert_eq!((world.aborts.len(), world.engine.totals().retries), (0, 0));
    world.mbps = 50.0;
    world.crawling.clear();
    world.send(Event::ClientRate { rate: None, holds: false });
    world.run();
    world.assert_each_byte_once();
    assert!(world.engine.link().bandwidth > BitRate::from_mbps(1.0));
}

#[test]
fn what_a_limit_lets_through_is_not_remembered_as_the_path() {
    let bandwidth = |limit: Option<BitRate>| {
        let mut world = World::with(per_origin(20_000.0), fixed(1, 4)).host("one", twenty_files());
        let limits = UserLimits { max_rate_per_origin: limit, ..UserLimits::default() };
        world.set_limits(limits);
        world.get_all();
        world.run();
        world.engine.learnt()[0].1.bandwidth
    };
    assert!(bandwidth(None).is_some());
    assert_eq!(bandwidth(Some(BitRate::from_mbps(20.0))), None);
}
