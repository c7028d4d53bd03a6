//! Cancel, pause, resume, other limits while running, and what lies there already.

use std::time::Duration;

use pelton_algos::policy::{Eht, EhtConfig, Hat};
use pelton_algos::ranges::ByteRange;
use pelton_algos::units::Bytes;

use super::super::*;
use super::complete::{adaptive, fixed, policies};
use super::host::{Ending, Host, Remote};
use super::world::World;
use crate::ErrorKind;
use crate::catalog::FileSpec;
use crate::connection::Protocol;

const MB: u64 = 1_000_000;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn twenty_files() -> Host {
    Host::default().files(20, |_| 2 * MB)
}

#[test]
fn cancel_aborts_every_stream_and_gives_every_unfinished_file_up() {
    for policy in policies() {
        let mut world = World::new(policy).host("one", twenty_files());
        world.host_mut("one").broken.insert("/1".to_owned());
        world.get_all();
        world.run_for(secs(2));
        let in_flight: Vec<_> = world.live.keys().copied().collect();
        assert!(!in_flight.is_empty());
        world.send(Event::Cancel);
        assert!(in_flight.iter().all(|stream| world.aborts.contains(stream)));
        world.run();
        assert!(world.seconds() < 2.1);
        for local in &world.local {
            match local.ending.as_ref().unwrap() {
                Ending::Complete => {}
                Ending::GivenUp(failure) => assert_eq!(failure.kind, ErrorKind::Cancelled),
                Ending::Kept => panic!("nothing was there"),
            }
        }
    }
}

#[test]
fn files_that_come_after_cancel_are_cancelled_too() {
    let mut world = World::new(fixed(1, 1)).host("one", twenty_files());
    let specs = world.specs();
    world.add(specs[..2].to_vec());
    world.slow_finish = Some(secs(1));
    world.run_for(Duration::from_millis(500));
    world.send(Event::Cancel);
    if !world.done {
        world.add(specs[2..].to_vec());
    }
    world.run();
}

#[test]
fn pause_stops_everything_and_resume_goes_on_from_the_gaps() {
    for policy in policies() {
        let mut world = World::new(policy).host("one", twenty_files());
        world.metered = true;
        world.get_all();
        world.run_for(secs(2));
        world.send(Event::Pause);
        assert!(world.live.is_empty());
        let (requests, brought) = (world.fetches.len(), world.brought());
        world.run_for(secs(100));
        assert_eq!((world.fetches.len(), world.brought()), (requests, brought));
        world.send(Event::Resume);
        assert!(!world.live.is_empty());
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() < 112.0, "{} s", world.seconds());
    }
}

#[test]
fn a_pause_while_files_wait_for_a_retry_ends_nothing() {
    let mut world = World::new(fixed(2, 1)).host("one", twenty_files());
    world.get_all();
    world.run_for(secs(1));
    world.break_all(ErrorKind::ShortBody);
    world.send(Event::Pause);
    world.run_for(secs(5));
    assert!(world.live.is_empty());
    world.send(Event::Resume);
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn a_paused_search_for_efficiency_does_not_spin() {
    let config = EhtConfig { search_share: 1.0, ..EhtConfig::default() };
    let mut world =
        World::new(Box::new(Eht::new(config))).host("one", Host::default().files(20, |_| 20 * MB));
    world.metered = true;
    world.get_all_with_sizes();
    while world.engine.policy.next_timeout().is_none() {
        world.run_for(Duration::from_millis(100));
        assert!(!world.done, "there was no search");
    }
    world.send(Event::Pause);
    world.run_for(secs(100));
    world.send(Event::Resume);
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn lower_limits_bind_at_once() {
    let mut world = World::new(fixed(8, 2)).host("one", twenty_files());
    world.get_all();
    world.run_for(secs(1));
    assert_eq!(world.live.len(), 16);
    let limits = UserLimits { max_connections_per_origin: 4, ..UserLimits::default() };
    world.set_limits(limits);
    assert!(world.live.len() <= 4, "{}", world.live.len());
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn fewer_streams_of_a_file_bind_at_once() {
    let mut world = World::new(fixed(1, 8)).host("one", Host::default().files(1, |_| 50 * MB));
    world.get_all();
    world.run_for(secs(1));
    assert_eq!(world.streams_of(0), 8);
    world.set_limits(UserLimits { max_streams_per_file: Some(2), ..UserLimits::default() });
    assert_eq!(world.streams_of(0), 2);
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn lower_limits_do_not_throw_away_what_a_server_without_ranges_gave() {
    let host = Host { ranges: false, ..twenty_files() };
    let mut world = World::new(fixed(8, 1)).host("one", host);
    world.get_all();
    world.run_for(secs(1));
    world.set_limits(UserLimits { max_connections_per_origin: 2, ..UserLimits::default() });
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn higher_limits_are_used() {
    let limits = UserLimits { max_files: Some(1), ..UserLimits::default() };
    let config = EngineConfig { limits, ..EngineConfig::default() };
    let mut world = World::with(config, Box::new(Hat)).host("one", twenty_files());
    world.get_all();
    world.run_for(secs(1));
    assert_eq!(world.files_in_transfer(), 1);
    world.set_limits(UserLimits::default());
    world.run_for(Duration::from_millis(200));
    assert!(world.files_in_transfer() > 4);
    world.run();
    world.assert_each_byte_once();
}

fn existing(size: u64, version: u64) -> Opened {
    let modified = Some(Remote { size, version }.modified());
    Opened::Existing(Existing { size, modified, size_tells: true, bytes_tell: true })
}

/// One file of 1 MB, version 2, where `found` lies already.
fn where_lies(found: Opened, overwrite: bool) -> World {
    let config = EngineConfig { overwrite, ..EngineConfig::default() };
    let mut world = World::with(config, fixed(1, 4)).host("one", Host::default());
    world.host_mut("one").files.insert("/0".to_owned(), Remote { size: MB, version: 2 });
    let specs = world.specs();
    world.found.push((0, found));
    world.get(specs);
    world.run();
    world
}

#[test]
fn a_file_that_is_there_already_is_kept() {
    let world = where_lies(existing(MB, 2), false);
    assert_eq!(*world.ending(0), Ending::Kept);
    assert_eq!(world.local[0].brought, 0, "304 brings no body");

    // Without a time to compare, or with an older one, the server's is another.
    for found in [
        existing(MB, 1),
        Opened::Existing(Existing { size: MB, modified: None, size_tells: true, bytes_tell: true }),
    ] {
        let world = where_lies(found.clone(), false);
        assert_eq!(world.failure(0).kind, ErrorKind::Exists);
        assert!(world.failure(0).message.contains("`overwrite`"));
        assert_eq!(*where_lies(found, true).ending(0), Ending::Complete);
    }
    let digest = format!("sha-256={}", "ab".repeat(32)).parse().ok();
    let mut world = World::new(fixed(1, 4)).host("one", Host::default().files(2, |_| MB));
    let specs: Vec<_> =
        world.specs().into_iter().map(|spec| FileSpec { digest: digest.clone(), ..spec }).collect();
    world.found.push((0, existing(MB, 0)));
    world.found.push((1, existing(MB - 1, 0)));
    world.get(specs);
    world.run();
    for (file, why) in
        [(0, "with another digest than"), (1, "with 999999 bytes and the server has")]
    {
        assert_eq!(world.failure(file).kind, ErrorKind::Exists);
        let message = &world.failure(file).message;
        assert!(message.contains(&format!("exists {why}")), "{message}");
    }
    let world = where_lies(Opened::Verified { size: MB }, false);
    assert_eq!(*world.ending(0), Ending::Kept);
    assert!(world.fetches.is_empty());
}

#[test]
fn the_same_size_and_time_are_kept_though_the_server_sends_a_body() {
    // This server knows no If-Modified-Since.
    let mut world = World::new(fixed(1, 4)).host("one", Host::default().files(2, |_| MB));
    world.host_mut("one").always_sends_bodies = true;
    let specs = world.specs();
    world.found.push((0, existing(MB, 1)));
    world.found.push((1, existing(MB - 1, 1)));
    world.get(specs);
    world.run();
    assert_eq!(*world.ending(0), Ending::Kept);
    assert_eq!(world.failure(1).kind, ErrorKind::Exists);
}

#[test]
fn where_files_are_there_already_many_are_asked_for_at_once() {
    for (protocol, always_sends_bodies) in
        [(Protocol::Http11, false), (Protocol::Http11, true), (Protocol::Http2, true)]
    {
        let thinks = Duration::from_millis(300);
        let host = Host { protocol, thinks, always_sends_bodies, ..Host::default() };
        for policy in adaptive() {
            let name = policy.name().to_owned();
            let host = host.clone().files(200, |_| MB);
            let mut world = World::new(policy).host("one", host);
            let specs = world.specs();
            world.found = (0..200).map(|file| (file, existing(MB, 1))).collect();
            world.get(specs);
            world.run();
            assert!((0..200).all(|file| *world.ending(file) == Ending::Kept));
            // Sixteen at first, of which it is known that they are there.
            let took = world.seconds();
            assert!(took < 3.0, "{name}, {protocol:?}, {always_sends_bodies}: {took}");
        }
    }
}

#[test]
fn not_modified_for_a_file_that_is_not_there_is_an_error() {
    let mut world = World::new(fixed(1, 1)).host("one", Host::default().files(1, |_| MB));
    world.get_all();
    world.run_for(Duration::from_millis(10));
    let stream = *world.live.keys().next().unwrap();
    world.send(Event::Ended { stream, result: Outcome::NotModified });
    world.run();
    world.assert_all_complete();
}

#[test]
fn a_file_that_cannot_be_written_fails_alone() {
    let mut world = World::new(fixed(2, 1)).host("one", twenty_files());
    let specs = world.specs();
    world.found.push((0, Opened::Failed(Failure::new(ErrorKind::FileIo, "read-only"))));
    world.get(specs);
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::FileIo);
    assert!((1..20).all(|file| *world.ending(file) == Ending::Complete));
}

fn part(size: u64, version: u64, done: impl IntoIterator<Item = ByteRange>) -> Opened {
    let validator = Remote { size, version }.validator();
    Opened::Part(Resumable { size, validator, done: done.into_iter().collect() })
}

#[test]
fn a_part_is_continued_from_its_gaps() {
    let found = part(MB, 2, [0..400_000, 600_000..700_000]);
    let world = where_lies(found, false);
    assert_eq!(*world.ending(0), Ending::Complete);
    assert_eq!(world.local[0].brought, 500_000);
    assert_eq!(world.engine.totals().delivered, Bytes(500_000));
    assert!(world.fetches.iter().all(|(_, fetch)| fetch.range.is_some()));
    let modified = Some(Remote { size: MB, version: 2 }.modified());
    assert_eq!(world.local[0].modified, modified, "the server's time is known all the same");
}

#[test]
fn a_whole_part_needs_no_request() {
    let world = where_lies(part(MB, 2, Some(0..MB)), false);
    assert_eq!(*world.ending(0), Ending::Complete);
    assert!(world.fetches.is_empty());
}

#[test]
fn a_part_of_another_version_starts_anew() {
    let world = where_lies(part(MB, 1, Some(0..400_000)), false);
    assert_eq!(*world.ending(0), Ending::Complete);
    assert_eq!(world.local[0].restarts, 1);
    assert_eq!(world.local[0].brought, MB);
}

#[test]
fn parts_of_earlier_versions_are_no_sign_of_machines_that_differ() {
    let mut host = Host::default();
    for file in 0..4 {
        host.files.insert(format!("/{file}"), Remote { size: 20 * MB, version: 2 });
    }
    let mut world = World::new(fixed(4, 4)).host("one", host);
    world.found.extend((0..4).map(|file| (file, part(20 * MB, 1, Some(0..400_000)))));
    world.get_all();
    world.run();
    world.assert_all_complete();
    let split = |file| {
        world
            .fetches_of(file)
            .iter()
            .any(|(_, it)| it.range.as_ref().is_some_and(|range| range.start > MB))
    };
    assert!((0..4).all(split), "each comes over several streams");
}

#[test]
fn a_part_of_a_file_that_is_not_there_any_more_is_not_said_to_be_lost() {
    let mut world = World::new(fixed(1, 4)).host("one", Host::default());
    world.host_mut("one").files.insert("/0".to_owned(), Remote { size: MB, version: 2 });
    let specs = world.specs();
    world.host_mut("one").files.clear();
    world.found.push((0, part(MB, 2, Some(0..400_000))));
    world.get(specs);
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::NotFound);
    assert_eq!(world.local[0].restarts, 0);
}

#[test]
fn a_part_that_claims_more_than_its_size_is_not_complete() {
    let world = where_lies(part(MB, 2, [0..400_000, 2 * MB..9 * MB]), false);
    assert_eq!(*world.ending(0), Ending::Complete);
    assert_eq!(world.local[0].brought, 600_000);
}
