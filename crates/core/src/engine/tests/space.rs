//! A disk that is full, and how the run goes on.

use std::time::Duration;

use super::super::*;
use super::complete::{fixed, policies};
use super::host::{Ending, Host};
use super::world::World;
use crate::ErrorKind;

const MB: u64 = 1_000_000;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn world(policy: Box<dyn Policy>) -> World {
    World::new(policy).host("one", Host::default().files(20, |_| 4 * MB))
}

#[test]
fn the_run_waits_for_space_and_loses_nothing() {
    for policy in policies() {
        let mut world = world(policy);
        world.get_all();
        world.run_for(secs(3));
        world.free = Some(0);
        world.break_all(ErrorKind::DiskFull);
        assert!(world.live.is_empty());
        let requests = world.fetches.len();
        world.run_for(secs(30));
        assert_eq!(world.fetches.len(), requests, "nothing is asked for");
        world.free = Some(80 * MB);
        world.run();
        world.assert_each_byte_once();
        assert_eq!(world.full_since.len(), 1);
        assert_eq!(world.engine.totals().retries, 0);
        assert!(world.seconds() < 3.0 + 30.0 + 16.0 + 15.0, "{} s", world.seconds());
    }
}

#[test]
fn a_directory_that_the_disk_has_no_room_for_is_waited_for_like_a_write() {
    for policy in policies() {
        let mut world = world(policy);
        world.full_at_opening = 3;
        world.free = Some(0);
        world.get_all();
        world.run_for(secs(20));
        assert!(world.live.is_empty(), "nothing is asked for");
        world.free = Some(80 * MB);
        world.run();
        world.assert_each_byte_once();
        assert_eq!(world.engine.totals().failed, 0);
    }
    let config = EngineConfig { disk_patience: Duration::ZERO, ..EngineConfig::default() };
    let mut world = World::with(config, fixed(1, 1)).host("one", Host::default().files(3, |_| MB));
    world.full_at_opening = 1;
    world.get_all();
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::DiskFull);
    assert_eq!(*world.ending(1), Ending::Complete);
}

#[test]
fn without_space_everything_unfinished_fails_and_what_is_there_stays() {
    let mut world = world(fixed(4, 1));
    world.get_all();
    world.run_for(secs(3));
    let done = world.local.iter().filter(|file| file.ending.is_some()).count();
    world.free = Some(MB);
    world.break_all(ErrorKind::DiskFull);
    world.run();
    let begun = world.fetches_of(done).len();
    assert!(begun > 0);
    let mut found = 0;
    for (index, local) in world.local.iter().enumerate() {
        match local.ending.as_ref().unwrap() {
            Ending::GivenUp(failure) => {
                assert_eq!(failure.kind, ErrorKind::DiskFull);
                let is_first = failure.message.contains("still to come");
                found += usize::from(is_first);
                let of_another = format!("{index}: the disk was full before it was complete");
                assert!(is_first || failure.message.ends_with(&of_another), "{}", failure.message);
            }
            ending => assert!(*ending == Ending::Complete && index < done + 1),
        }
    }
    assert_eq!(found, 1, "that file tells where, and what to do");
    let seconds = world.seconds();
    assert!((63.0..64.0).contains(&seconds), "a minute of patience: {seconds} s");
}

#[test]
fn a_quota_that_the_file_system_does_not_know_of_is_tried_less_and_less_often() {
    for (patience, expected) in [(60, 4..=8), (4, 2..=3)] {
        let config = EngineConfig { disk_patience: secs(patience), ..EngineConfig::default() };
        let host = Host::default().files(20, |_| 4 * MB);
        let mut world = World::with(config, fixed(1, 1)).host("one", host);
        world.get_all();
        world.run_for(secs(1));
        let mut tries = 0;
        while !world.done {
            if !world.live.is_empty() {
                world.break_all(ErrorKind::DiskFull);
                tries += 1;
            }
            world.run_for(Duration::from_millis(10));
        }
        assert!(expected.contains(&tries), "{tries} tries");
        assert_eq!(world.full_since.len(), 1, "it is told once");
        assert_eq!(world.failure(19).kind, ErrorKind::DiskFull);
        let waited = world.seconds() - 1.0;
        assert!(waited < patience as f64 + 0.1, "no longer than is said: {waited} s");
    }
}

#[test]
fn without_patience_the_file_fails_alone() {
    let config = EngineConfig { disk_patience: Duration::ZERO, ..EngineConfig::default() };
    let mut world = World::with(config, fixed(1, 1)).host("one", Host::default().files(3, |_| MB));
    world.get_all();
    world.run_for(Duration::from_millis(100));
    world.break_all(ErrorKind::DiskFull);
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::DiskFull);
    assert_eq!(*world.ending(1), Ending::Complete);
}

#[test]
fn a_run_that_waits_for_space_can_be_cancelled() {
    let mut world = world(fixed(2, 1));
    world.get_all();
    world.run_for(secs(1));
    world.free = Some(0);
    world.break_all(ErrorKind::DiskFull);
    world.run_for(secs(5));
    world.send(Event::Cancel);
    world.run();
    assert!(world.seconds() < 6.1);
    assert_eq!(world.failure(19).kind, ErrorKind::Cancelled);
}
