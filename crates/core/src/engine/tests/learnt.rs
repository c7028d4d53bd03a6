//! What earlier runs have learnt is a start, and is measured again.

use std::time::Duration;

use pelton_algos::units::BitRate;
use url::Url;

use super::super::*;
use super::complete::fixed;
use super::host::Host;
use super::world::World;
use crate::ErrorKind;

const MB: u64 = 1_000_000;

pub(super) fn origin() -> Origin {
    Origin::of(&Url::parse("http://one/").unwrap()).unwrap()
}

/// Thirty-two files at once, of a server that is known to bear so many connections.
fn world(connections: Option<u32>) -> World {
    let mut world = World::new(fixed(32, 1)).host("one", Host::default().files(200, |_| 4 * MB));
    let learnt = Learnt { connections, ..Learnt::default() };
    world.engine.known = Known::from([(origin(), learnt)]);
    world
}

#[test]
fn connections_that_were_borne_are_where_the_next_run_starts() {
    for (known, begun) in [(None, 32), (Some(6), 6), (Some(100), 32)] {
        let mut world = world(known);
        world.get_all();
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.live.len(), begun, "{known:?}");
        world.run();
        world.assert_each_byte_once();
        assert!(world.told["one"] >= 20, "nothing has failed: they grow back");
    }
}

#[test]
fn what_was_too_many_is_learnt() {
    let mut world = world(None);
    world.get_all();
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.engine.learnt()[0].1.connections, None);
    world.break_all(ErrorKind::Overloaded);
    let (learnt_of, learnt) = world.engine.learnt().remove(0);
    assert_eq!((learnt_of, learnt.connections), (origin(), Some(16)));
    world.run();
    let (_, learnt) = world.engine.learnt().remove(0);
    let bandwidth = learnt.bandwidth.unwrap().bps();
    assert!((45e6..55e6).contains(&bandwidth), "of 50 Mbit/s: {bandwidth}");
}

#[test]
fn a_path_that_is_known_is_a_first_guess_below_any_hint() {
    let learnt = Learnt {
        connections: None,
        rtt: Some(Duration::from_millis(300)),
        bandwidth: Some(BitRate::from_mbps(80.0)),
    };
    let mut config = EngineConfig::default();
    let link = |config: EngineConfig| Engine::new(config, fixed(1, 1)).link();
    let guessed = link(config.starting_at(&learnt));
    assert_eq!((guessed.rtt, guessed.bandwidth.bps()), (Duration::from_millis(300), 80e6));
    config.link.rtt_hint = Some(Duration::from_millis(20));
    config.link.bandwidth_hint = Some(BitRate::from_mbps(10.0));
    assert_eq!(link(config.starting_at(&learnt)), link(config));
}
