//! Who is waited for, and for how long.

use std::time::Duration;

use pelton_algos::policy::Hat;

use super::super::*;
use super::complete::policies;
use super::host::{Ending, Host};
use super::world::World;
use crate::ErrorKind;
use crate::connection::Protocol;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn requests_that_wait_in_vain_together_are_one_failure() {
    for policy in policies() {
        let mut world = World::new(policy).host("one", Host::default().files(20, |_| 60_000));
        world.host_mut("one").silent = true;
        world.get_all();
        world.run_for(secs(31));
        world.host_mut("one").silent = false;
        world.run();
        world.assert_all_complete();
    }
}

#[test]
fn who_wants_one_attempt_gets_one() {
    for attempts in [1, 2] {
        let mut config = EngineConfig::default();
        config.retry.attempts = attempts;
        let host = Host::default().files(50, |_| 5_000_000);
        let mut world = World::with(config, Box::new(Hat)).host("one", host);
        world.get_all();
        world.run_for(secs(2));
        world.host_mut("one").refuses = true;
        world.break_all(ErrorKind::Connect);
        world.run();
        let message = &world.failure(49).message;
        // A server that was there is waited for a minute for each.
        let waited = if attempts == 1 { 2.0..2.1 } else { 122.0..160.0 };
        assert!(waited.contains(&world.seconds()), "{} s, {attempts} attempts", world.seconds());
        assert_eq!(message.contains("attempts"), attempts > 1, "{message}");
    }
}

#[test]
fn who_shares_a_connection_waits_for_its_turn() {
    let ended = |protocol| {
        // 40 files take 91 s, and 16 of them 37.
        let host = Host { protocol, in_turn: true, mbps: 0.35, ..Host::default() };
        let mut world = World::new(Box::new(Hat)).host("one", host.files(40, |_| 100_000));
        world.get_all();
        world.run();
        let complete = world.local.iter().filter(|f| f.ending == Some(Ending::Complete)).count();
        (complete, world.engine.totals().retries)
    };
    assert_eq!(ended(Protocol::Http2), (40, 0));
    let (_, retries) = ended(Protocol::Http11);
    assert!(retries > 0, "a connection of its own that brings nothing has stalled");
}

#[test]
fn nobody_waits_for_a_turn_at_a_host_that_is_silent() {
    let host = Host { protocol: Protocol::Http2, in_turn: true, mbps: 0.35, ..Host::default() };
    let mut world = World::new(Box::new(Hat)).host("one", host.files(40, |_| 100_000));
    world.get_all();
    world.run_for(secs(5));
    world.host_mut("one").silent = true;
    world.run_for(secs(31));
    assert!(!world.aborts.is_empty(), "all of them have stalled");
    world.host_mut("one").silent = false;
    world.run();
    world.assert_all_complete();
}
