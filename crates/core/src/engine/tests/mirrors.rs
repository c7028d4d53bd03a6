//! Files that have mirrors: what one place can't give, the next one does.

use std::time::Duration;

use url::Url;

use super::super::*;
use super::complete::{fixed, policies};
use super::host::{Ending, Host, Remote};
use super::world::World;
use crate::ErrorKind;
use crate::catalog::Digest;

const MB: u64 = 1_000_000;

/// The files of the host `one`, each with a mirror on `two` and one on `three`.
fn with_mirrors(world: &World) -> Vec<FileSpec> {
    let mut specs = world.specs();
    specs.retain(|spec| spec.url.host_str() == Some("one"));
    for spec in &mut specs {
        let at = |host: &str| Url::parse(&format!("http://{host}{}", spec.url.path())).unwrap();
        spec.mirrors = vec![at("two"), at("three")];
    }
    specs
}

fn world(one: Host) -> World {
    let same = Host { refuses: false, broken: std::collections::BTreeSet::new(), ..one.clone() };
    World::new(fixed(2, 4)).host("one", one).host("two", same.clone()).host("three", same)
}

fn hosts_of(world: &World, file: usize) -> Vec<String> {
    let mut hosts: Vec<String> = world
        .fetches_of(file)
        .iter()
        .map(|(_, fetch)| fetch.url.host_str().unwrap().to_owned())
        .collect();
    hosts.dedup();
    hosts
}

#[test]
fn what_is_missing_comes_from_the_next_place_at_once() {
    let mut world = world(Host::default().files(3, |_| 300_000));
    let specs = with_mirrors(&world);
    world.host_mut("one").files.remove("/1");
    world.host_mut("two").files.remove("/1");
    world.get(specs);
    world.run();
    world.assert_each_byte_once();
    assert_eq!(hosts_of(&world, 0), ["one"]);
    assert_eq!(hosts_of(&world, 1), ["one", "two", "three"]);
    assert!(world.seconds() < 2.0, "{}", world.seconds());
    assert_eq!(world.engine.place(world.fetches_of(1)[0].1.file).host_str(), Some("three"));
}

#[test]
fn a_host_that_refuses_all_is_left_for_the_mirrors_after_some_seconds() {
    for is_overloaded in [false, true] {
        let mut world = world(Host::default().files(60, |_| 300_000));
        let specs = with_mirrors(&world);
        let paths: Vec<String> = world.hosts["one"].files.keys().cloned().collect();
        world.get(specs);
        world.run_for(Duration::from_millis(500));
        let one = world.host_mut("one");
        if is_overloaded {
            one.bears = 0;
        } else {
            one.broken.extend(paths);
        }
        world.run();
        world.assert_each_byte_once();
        let of_one = world.fetches.iter().filter(|(_, it)| it.url.host_str() == Some("one"));
        assert!(of_one.count() < 40, "overloaded: {is_overloaded}");
        assert!(world.seconds() < 30.0, "overloaded: {is_overloaded}, {}", world.seconds());
    }
}

#[test]
fn a_host_that_was_never_reached_is_left_at_once() {
    let one = Host { refuses: true, ..Host::default().files(30, |_| 30_000) };
    let mut world = world(one);
    let mut specs = with_mirrors(&world);
    let alone = specs.len() - 1;
    specs[alone].mirrors.clear();
    world.get(specs);
    world.run_for(Duration::from_millis(1_500));
    let complete = world.local.iter().filter(|file| file.ending == Some(Ending::Complete)).count();
    assert_eq!(complete, 29, "in {} requests", world.fetches.len());
    let of_one = world.fetches.iter().filter(|(_, it)| it.url.host_str() == Some("one")).count();
    assert!(of_one < 8, "{of_one} requests");
    world.host_mut("one").refuses = false;
    world.run();
    world.assert_each_byte_once();
    assert_eq!(hosts_of(&world, alone), ["one"], "it has no other place");
}

#[test]
fn a_host_that_dies_under_way_is_left_for_the_mirrors_after_some_seconds() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let host = Host::default().files(6, |_| 6 * MB);
        let mut world = World::new(policy).host("one", host.clone()).host("two", host);
        let mut specs = with_mirrors(&world);
        for spec in &mut specs {
            spec.mirrors.truncate(1);
        }
        world.get(specs);
        world.run_for(Duration::from_secs(1));
        world.host_mut("one").refuses = true;
        world.break_all(ErrorKind::Reset);
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() < 30.0, "{name}: {}", world.seconds());
    }
}

#[test]
fn a_dead_or_broken_host_is_left_for_the_mirrors_after_its_retries() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let one = Host { refuses: true, ..Host::default().files(40, |_| 300_000) };
        let two = Host { refuses: false, ..one.clone() };
        let mut world = World::new(policy).host("one", one).host("two", two);
        world.host_mut("two").broken.insert("/7".to_owned());
        let third =
            Host { broken: std::collections::BTreeSet::new(), ..world.hosts["two"].clone() };
        world = world.host("three", third);
        let specs = with_mirrors(&world);
        world.get(specs);
        world.run();
        world.assert_each_byte_once();
        assert_eq!(hosts_of(&world, 7).last().unwrap(), "three", "{name}");
        assert_eq!(
            world.fetches_of(7).iter().filter(|(_, f)| f.url.host_str() == Some("two")).count(),
            5
        );
    }
}

#[test]
fn when_no_place_has_it_the_last_failure_is_told() {
    let mut world = world(Host::default().files(2, |_| 1_000));
    let specs = with_mirrors(&world);
    for host in ["one", "two", "three"] {
        world.host_mut(host).files.remove("/0");
    }
    world.get(specs);
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::NotFound);
    assert!(world.failure(0).message.contains("the last of its 3 places"));
    assert_eq!(*world.ending(1), Ending::Complete);
}

/// The file breaks for good after 2 s; the mirror has `other`.
fn moved_under_way(other: Remote, change: impl Fn(&mut FileSpec)) -> World {
    let mut world = world(Host::default().files(1, |_| 40 * MB));
    world.host_mut("two").files.insert("/0".to_owned(), other);
    let mut specs = with_mirrors(&world);
    specs.iter_mut().for_each(change);
    world.get(specs);
    world.run_for(Duration::from_secs(2));
    assert!(world.brought() > 5 * MB);
    world.host_mut("one").files.clear();
    world.break_all(ErrorKind::ShortBody);
    world.run();
    world.assert_all_complete();
    assert_eq!(hosts_of(&world, 0), ["one", "two"]);
    world
}

#[test]
fn bytes_of_two_places_are_joined_when_strong_validators_and_sizes_agree() {
    let world = moved_under_way(Remote { size: 40 * MB, version: 1 }, |_| ());
    world.assert_each_byte_once();
    assert_eq!(world.local[0].restarts, 0);
}

#[test]
fn another_version_or_size_at_the_mirror_starts_the_file_anew() {
    for other in [Remote { size: 40 * MB, version: 2 }, Remote { size: 30 * MB, version: 1 }] {
        let world = moved_under_way(other, |_| ());
        assert_eq!(world.local[0].restarts, 1);
        assert!(world.local[0].is(other));
    }
}

#[test]
fn a_digest_lets_bytes_be_joined_whatever_the_validators_say() {
    let digest = Digest::parse("crc32c=e3069283").unwrap();
    let other = Remote { size: 40 * MB, version: 2 };
    let mut world = world(Host::default().files(1, |_| 40 * MB));
    world.host_mut("two").files.insert("/0".to_owned(), other);
    let mut specs = with_mirrors(&world);
    specs[0].digest = Some(digest);
    world.get(specs);
    world.run_for(Duration::from_secs(2));
    world.host_mut("one").files.clear();
    world.break_all(ErrorKind::ShortBody);
    world.run_for(Duration::from_secs(3));
    assert_eq!(world.local[0].restarts, 0, "the digest will tell");
    let ranges = world.fetches.iter().filter(|(_, fetch)| fetch.url.host_str() == Some("two"));
    assert!(ranges.clone().count() > 0);
    assert!(ranges.clone().all(|(_, fetch)| fetch.range.is_some()));
}

#[test]
fn a_failure_of_this_machine_asks_no_mirror() {
    let mut world = world(Host::default().files(1, |_| 1_000));
    let existing = Existing { size: 7, modified: None, size_tells: true, bytes_tell: true };
    world.found = vec![(0, Opened::Existing(existing))];
    let specs = with_mirrors(&world);
    world.get(specs);
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::Exists);
    assert_eq!(hosts_of(&world, 0), ["one"]);
}
