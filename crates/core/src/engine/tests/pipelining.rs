//! Short files wait on connections where there can be no more of those.

use std::time::Duration;

use pelton_algos::energy::{ConstantPower, EnergyModel, Forecast};
use pelton_algos::policy::{Hat, LowE};
use pelton_algos::units::Joules;

use super::super::*;
use super::complete::fixed;
use super::host::Host;
use super::world::World;
use crate::connection::Protocol;

/// Far away, and fast: 2.5 MB are under way, in files of 12 kB.
fn far() -> Host {
    Host { rtt: Duration::from_millis(200), ..Host::default() }.files(800, |_| 12_000)
}

fn run(host: Host) -> World {
    let mut world = World::new(Box::new(Hat)).host("one", host);
    world.mbps = 100.0;
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    world
}

/// Most requests that were under way at a time, counted by a round trip.
fn most_at_once(world: &World) -> usize {
    let flight = |(at, _): &(_, _)| {
        world
            .fetches
            .iter()
            .filter(|(other, _)| *other >= *at && *other < *at + Duration::from_millis(200))
            .count()
    };
    world.fetches.iter().step_by(50).map(flight).max().unwrap_or_default()
}

#[test]
fn a_host_that_answers_in_order_is_asked_for_more_than_it_has_connections() {
    let in_order = run(Host { in_order: Some(true), ..far() });
    let one_by_one = run(far());
    assert!(most_at_once(&one_by_one) <= 64);
    let most = most_at_once(&in_order);
    assert!(most > 128, "{most}");
    assert!(in_order.told["one"] <= 64);
    let seconds = (in_order.seconds(), one_by_one.seconds());
    assert!(seconds.0 < seconds.1 * 0.6, "{seconds:?}");
}

#[test]
fn the_first_request_shows_whether_a_host_answers_in_order_where_that_is_of_use() {
    let asked_whole = |files| {
        let host = Host::default().files(files, |_| 12_000);
        let mut world = World::new(Box::new(Hat)).host("one", host);
        world.get_all();
        world.run_for(Duration::ZERO);
        world.live.values().filter(|live| live.fetch.parts.is_none()).count()
    };
    assert_eq!((asked_whole(64), asked_whole(65)), (0, 1));
}

/// A radio that draws for each request as much as for waiting so long.
struct Request(Duration);

impl EnergyModel for Request {
    fn predict(&self, forecast: &Forecast) -> Joules {
        let requests = self.0.saturating_mul(forecast.requests as u32);
        ConstantPower::default()
            .predict(&Forecast { duration: forecast.duration + requests, ..*forecast })
    }
}

#[test]
fn least_energy_pays_for_a_head_behind_each_file_where_waiting_costs_more() {
    let most = |of_request| {
        let engine = Engine::new(EngineConfig::default(), Box::new(LowE::default()))
            .with_energy_model(Box::new(Request(of_request)));
        let mut world = World::new(Box::new(LowE::default()));
        world.engine = engine;
        let mut world = world.host("one", Host { in_order: Some(true), ..far() });
        world.mbps = 100.0;
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        most_at_once(&world)
    };
    assert!(most(Duration::from_micros(10)) > 64, "2.5 s against 8 ms");
    assert!(most(Duration::from_millis(20)) <= 64, "2.5 s against 16 s");
}

#[test]
fn who_does_not_answer_in_order_is_asked_one_at_a_time() {
    let world = run(Host { in_order: Some(false), ..far() });
    assert!(most_at_once(&world) <= 64);
    assert_eq!(world.pipelined["one"], 1, "it is found out once");
}

#[test]
fn a_host_that_has_refused_is_asked_one_at_a_time_for_good() {
    let world = run(Host { in_order: Some(true), bears: 80, ..far() });
    assert_eq!(world.pipelined["one"], 1);
    let refused = world.fetches.len() - 800;
    // Those of the one flight that was too much.
    assert!(refused <= most_at_once(&world) - 80, "{refused} requests for nothing");
    assert!(world.told["one"] >= 15, "{:?}", world.told);
}

#[test]
fn nobody_is_asked_for_more_than_there_is_use_for() {
    let asked = |world: &World| world.pipelined["one"];
    // No more files than connections.
    let few = Host { in_order: Some(true), rtt: Duration::from_millis(200), ..Host::default() };
    assert_eq!(asked(&run(few.files(60, |_| 12_000))), 1);
    // The numbers of a user are exact.
    let mut world = World::new(fixed(8, 1)).host("one", Host { in_order: Some(true), ..far() });
    world.get_all();
    world.run();
    assert_eq!(asked(&world), 1);
    // Over HTTP/2 connections are shared.
    assert_eq!(asked(&run(Host { protocol: Protocol::Http2, in_order: Some(true), ..far() })), 1);
    // Long files need windows.
    let long = Host { in_order: Some(true), rtt: Duration::from_millis(50), ..Host::default() };
    assert_eq!(asked(&run(long.files(100, |_| 1_000_000))), 1);
}

#[test]
fn two_hosts_share_the_connections() {
    let mut config = EngineConfig::default();
    config.limits.max_connections = 10;
    let mut world = World::with(config, Box::new(Hat))
        .host("one", Host { in_order: Some(true), ..far() })
        .host("two", Host { in_order: Some(true), ..far() });
    world.mbps = 100.0;
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    let most = most_at_once(&world);
    assert!(most > 20, "{most}");
}
