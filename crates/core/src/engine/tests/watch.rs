//! Streams that crawl, trickle, or are too many.

use std::time::Duration;

use pelton_algos::ranges::StreamId;
use pelton_algos::retries::RetryConfig;

use super::super::*;
use super::complete::{fixed, policies};
use super::host::Host;
use super::world::World;
use crate::ErrorKind;

const MB: u64 = 1_000_000;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn one_file() -> Host {
    Host::default().files(1, |_| 40 * MB)
}

#[test]
fn a_stream_that_crawls_is_replaced_and_the_end_does_not_wait_for_it() {
    let seconds = |crawls: bool| {
        let mut world = World::new(fixed(1, 8)).host("one", one_file());
        if crawls {
            // 8 kbit/s: its eighth of the file would take hours.
            world.crawling.insert(StreamId(3), 1_000.0);
        }
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        assert_eq!(world.aborts.contains(&StreamId(3)), crawls);
        world.seconds()
    };
    let (even, crawling) = (seconds(false), seconds(true));
    assert!(crawling < even * 1.3 + 1.0, "{crawling} s instead of {even} s");
}

#[test]
fn who_waits_behind_a_queue_is_given_as_many_round_trips_as_without() {
    // Two seconds without a byte are forty round trips, or two.
    for (queued, waits) in [(Duration::ZERO, false), (secs(1), true)] {
        let slow = Host { mbps: 20.0, thinks: secs(1), ..one_file() };
        let mut world = World::new(fixed(1, 4)).host("one", slow);
        world.get_all();
        world.run_for(secs(2));
        for _ in 0..20 {
            world.send(Event::RoundTrip(Duration::from_millis(50) + queued));
        }
        world.run_for(secs(1));
        world.crawling.insert(StreamId(3), 0.0);
        world.run_for(secs(2));
        assert_eq!(world.aborts.is_empty(), waits, "{queued:?}: {:?}", world.aborts);
        world.crawling.clear();
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn a_file_whose_last_byte_is_there_is_whole_although_its_answer_does_not_end() {
    for of_file in [1, 4] {
        let config = EngineConfig {
            retry: RetryConfig { attempts: 1, ..RetryConfig::default() },
            ..EngineConfig::default()
        };
        let host = Host::default().files(3, |_| 2 * MB);
        let mut world = World::with(config, fixed(3, of_file)).host("one", host);
        world.endless.extend((0..100).map(StreamId));
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() < 65.0, "{of_file}: {} s", world.seconds());
    }
}

#[test]
fn the_last_streams_of_a_run_are_replaced_too() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let mut world = World::new(policy).host("one", Host::default().files(12, |_| 4 * MB));
        world.get_all();
        // What brings the last megabyte crawls from then on.
        while world.brought() < 47 * MB {
            world.run_for(Duration::from_millis(20));
        }
        let begun = world.seconds();
        for stream in world.live.keys().take(3) {
            world.crawling.insert(*stream, 2_000.0);
        }
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() - begun < 15.0, "{name}: {} s", world.seconds() - begun);
    }
}

#[test]
fn short_files_whose_streams_all_crawl_are_not_waited_for() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let mut world = World::new(policy).host("one", Host::default().files(40, |_| 50_000));
        // Each of the last ones at 200 B/s: 250 s, and too fast for a stall.
        for stream in [20, 25, 30] {
            world.crawling.insert(StreamId(stream), 200.0);
        }
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() < 20.0, "{name}: {} s", world.seconds());
    }
}

#[test]
fn streams_that_all_crawl_after_a_good_beginning_are_replaced() {
    let mut world = World::new(fixed(1, 4)).host("one", one_file());
    world.get_all();
    world.run_for(Duration::from_millis(700));
    for stream in world.live.keys().copied().collect::<Vec<_>>() {
        world.crawling.insert(stream, 5_000.0);
    }
    world.run();
    world.assert_each_byte_once();
    assert!(world.seconds() < 60.0, "{} s", world.seconds());
}

#[test]
fn a_server_whose_streams_all_crawl_is_not_churned() {
    let mut world = World::new(fixed(1, 8)).host("one", one_file());
    for stream in 0..1_000 {
        // Each second stream, for good.
        if stream % 2 == 1 {
            world.crawling.insert(StreamId(stream), 20_000.0);
        }
    }
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    assert!(world.aborts.len() <= 8, "{} streams were ended", world.aborts.len());
}

#[test]
fn a_trickle_fails_like_a_stall_and_its_bytes_are_kept() {
    let mut world = World::new(fixed(1, 1)).host("one", Host::default().files(1, |_| MB));
    // Ten bytes a second never trip a timer that each byte sets anew.
    world.crawling.insert(StreamId(0), 10.0);
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    assert!(world.aborts.contains(&StreamId(0)));
    assert!(world.seconds() < 40.0, "{} s", world.seconds());
    assert_eq!(world.engine.totals().retries, 1);
}

#[test]
fn a_trickle_of_a_server_without_ranges_says_what_it_brought() {
    let host = Host { ranges: false, ..Host::default().files(1, |_| MB) };
    let mut world = World::new(fixed(1, 1)).host("one", host);
    for stream in 0..10 {
        world.crawling.insert(StreamId(stream), 10.0);
    }
    world.get_all();
    world.run();
    let failure = world.failure(0);
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert!(failure.message.contains("bytes arrived for 30 s"), "{}", failure.message);
}

#[test]
fn streams_that_bring_less_than_fewer_did_are_cut() {
    let mut world = World::new(fixed(1, 4)).host("one", Host::default().files(1, |_| 400 * MB));
    world.get_all();
    world.run_for(secs(10));
    assert_eq!(world.live.len(), 4);
    // From now on everybody asks for more, and the line bears no more than eight.
    (world.crowd, world.of_crowd) = (8, 0.3);
    world.engine.policy = fixed(1, 32);
    world.engine.redecide = true;
    world.send(Event::Timeout);
    assert_eq!(world.live.len(), 32);
    world.run_for(secs(10));
    assert!(world.live.len() <= 8, "{}", world.live.len());
    assert!(world.told["one"] <= 8);
    world.run();
    world.assert_each_byte_once();
    assert!(world.seconds() < 90.0, "64 s at 50 Mbit/s: {}", world.seconds());
}

#[test]
fn resets_halve_the_budget_of_their_origin() {
    let mut world = World::new(fixed(16, 1)).host("one", Host::default().files(60, |_| 2 * MB));
    world.get_all();
    world.run_for(secs(2));
    assert_eq!(world.live.len(), 16);
    world.break_all(ErrorKind::Reset);
    assert!(world.told["one"] <= 8, "{}", world.told["one"]);
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn a_single_reset_within_a_body_is_no_overload_and_its_stream_goes_on_at_once() {
    let limits = UserLimits { max_connections_per_origin: 2, ..UserLimits::default() };
    let config = EngineConfig { limits, ..EngineConfig::default() };
    let mut world =
        World::with(config, fixed(2, 1)).host("one", Host::default().files(60, |_| 2 * MB));
    world.get_all();
    world.run_for(secs(2));
    let (at, file) = (world.now, world.live.values().next().unwrap().fetch.file.index());
    world.break_one(file, ErrorKind::Reset);
    assert_eq!((world.told["one"], world.live.len()), (2, 2));
    let (again, fetch) = world.fetches_of(file).pop().unwrap();
    assert!(again == at && fetch.range.as_ref().is_some_and(|range| range.start > 0), "{fetch:?}");
}

#[test]
fn what_waits_beside_the_connections_that_are_served_is_asked_for_over_those() {
    let mut world = World::new(fixed(16, 1)).host("one", Host::default().files(40, |_| 2 * MB));
    world.get_all();
    world.run_for(secs(2));
    let waiting: BTreeSet<StreamId> = world.live.keys().rev().take(6).copied().collect();
    for stream in &waiting {
        world.engine.streams.get_mut(stream).unwrap().has_head = false;
    }
    let origin = Origin::of(&"http://one/".parse().unwrap()).unwrap();
    world.send(Event::Unserved { origin, served: 10 });
    assert_eq!(world.told["one"], 10);
    assert!(waiting.iter().all(|stream| !world.live.contains_key(stream)));
    assert_eq!(world.live.len(), 10, "those that are answered go on");
    world.run();
    world.assert_each_byte_once();
}
