//! Hosts that refuse, fail, stall, change their files or lie about ranges.

use std::collections::HashSet;
use std::time::Duration;

use pelton_algos::link::LinkConfig;
use pelton_algos::policy::{Eht, Hat};
use pelton_algos::units::BitRate;

use super::super::*;
use super::complete::{adaptive, fixed, policies};
use super::host::{Ending, Host, Other, Remote};
use super::learnt::origin;
use super::world::World;
use crate::ErrorKind;
use crate::connection::Protocol;

const MB: u64 = 1_000_000;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn one_big_file() -> Host {
    Host::default().files(1, |_| 20 * MB)
}

#[test]
fn a_lasting_failure_is_retried_with_growing_pauses_and_then_fails_the_file_alone() {
    let mut world = World::new(fixed(2, 1)).host("one", Host::default().files(10, |_| 300_000));
    world.host_mut("one").broken.insert("/3".to_owned());
    world.get_all();
    world.run();
    let failure = world.failure(3);
    assert_eq!(failure.kind, ErrorKind::ServerError);
    assert!(
        failure.message.contains("after 5 attempts"),
        "{} {:?}",
        failure.message,
        world
            .fetches_of(3)
            .iter()
            .map(|(at, _)| at.since_start().as_secs_f64())
            .collect::<Vec<_>>()
    );
    let tries: Vec<f64> =
        world.fetches_of(3).iter().map(|(at, _)| at.since_start().as_secs_f64()).collect();
    assert_eq!(tries.len(), 5);
    for (index, pair) in tries.windows(2).enumerate() {
        let full = 0.25 * f64::from(1 << index);
        let pause = pair[1] - pair[0] - 0.05;
        assert!(pause >= full / 2.0 && pause < full + 0.4, "pause {index} took {pause}");
    }
    let complete = world.local.iter().filter(|f| f.ending == Some(Ending::Complete)).count();
    assert_eq!(complete, 9);
    assert_eq!(world.engine.totals().retries, 4);
}

#[test]
fn jitter_spreads_retries_and_a_seed_repeats_them() {
    let tries = |seed| {
        let config = EngineConfig { seed, ..EngineConfig::default() };
        let mut world = World::with(config, fixed(1, 1)).host("one", one_big_file());
        world.host_mut("one").broken.insert("/0".to_owned());
        world.get_all();
        world.run();
        world.fetches.iter().map(|(at, _)| *at).collect::<Vec<_>>()
    };
    assert_eq!(tries(1), tries(1));
    assert_ne!(tries(1), tries(2));
}

#[test]
fn a_missing_file_is_not_tried_again() {
    let mut world = World::new(fixed(2, 1)).host("one", Host::default().files(3, |_| 1_000));
    let specs = world.specs();
    world.host_mut("one").files.remove("/1");
    world.get(specs);
    world.run();
    assert_eq!(world.failure(1).kind, ErrorKind::NotFound);
    assert_eq!(world.fetches_of(1).len(), 1);
    assert_eq!(*world.ending(0), Ending::Complete);
    assert_eq!(*world.ending(2), Ending::Complete);
}

#[test]
fn a_pause_is_obeyed_where_nothing_is_answered() {
    let host =
        Host { bears: 0, retry_after: Some(secs(3)), ..Host::default().files(40, |_| 300_000) };
    let mut world = World::new(fixed(16, 1)).host("one", host);
    world.get_all();
    world.run_for(Duration::from_millis(300));
    assert_eq!(world.fetches.len(), 16);
    world.run_for(Duration::from_millis(2_600));
    assert_eq!(world.fetches.len(), 16, "the host asked for 3 s of quiet");
    world.host_mut("one").bears = usize::MAX;
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn who_serves_some_beside_those_that_are_to_pause_is_asked_for_so_many_at_once() {
    let host =
        Host { bears: 4, retry_after: Some(secs(60)), ..Host::default().files(40, |_| 300_000) };
    let mut world = World::new(fixed(16, 1)).host("one", host.clone());
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    let mut four = World::new(fixed(4, 1)).host("one", host);
    four.get_all();
    four.run();
    assert!(world.seconds() < four.seconds() * 1.3, "{} s", world.seconds());
    assert!(world.fetches.len() < 40 + 30, "{} requests", world.fetches.len());
}

#[test]
fn the_budget_halves_and_grows_back_slowly() {
    let host = Host { bears: 4, ..Host::default().files(3_000, |_| 3_000_000) };
    let mut world = World::new(fixed(16, 1)).host("one", host);
    world.get_all();
    world.run_for(Duration::from_millis(300));
    let cut = world.told["one"];
    assert!(cut <= 8, "half of 16 at most: {cut}");
    world.run_for(Duration::from_millis(2_600));
    let cut = cut.min(world.told["one"]);
    world.host_mut("one").bears = usize::MAX;
    world.run_for(secs(3));
    let grown = world.told["one"];
    assert!(grown >= cut && grown <= cut + 3, "{cut} to {grown} in 3 s");
    world.run_for(secs(90));
    assert!(world.told["one"] > grown, "{grown} to {}", world.told["one"]);
}

#[test]
fn a_host_that_asks_for_too_long_a_wait_has_failed() {
    let host =
        Host { bears: 0, retry_after: Some(secs(3_600)), ..Host::default().files(2, |_| 1_000) };
    let mut world =
        World::new(fixed(2, 1)).host("one", host).host("two", Host::default().files(2, |_| 1_000));
    world.get_all();
    world.run();
    assert!(world.seconds() < 5.0, "{}", world.seconds());
    for file in [0, 2] {
        assert_eq!(world.failure(file).kind, ErrorKind::Overloaded);
        assert!(world.failure(file).message.contains("too long"));
    }
    assert_eq!(*world.ending(1), Ending::Complete);
}

#[test]
fn an_overloaded_host_is_asked_patiently() {
    let host = Host { bears: 0, ..Host::default().files(3, |_| 1_000) };
    let mut world = World::new(fixed(2, 1)).host("one", host);
    world.get_all();
    world.run_for(secs(60));
    world.host_mut("one").bears = 10;
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn a_dead_host_fails_its_files_quickly_and_holds_nobody_up() {
    for (policy, again) in policies().into_iter().zip(policies()) {
        let name = policy.name().to_owned();
        let live = Host::default().files(100, |_| 300_000);
        let mut world = World::new(again).host("live", live.clone());
        world.get_all();
        world.run();
        let alone = world.seconds();

        let dead = Host { refuses: true, ..Host::default().files(1_000, |_| MB) };
        let mut world = World::new(policy).host("dead", dead).host("live", live);
        world.get_all();
        world.run();
        let mut messages = HashSet::new();
        for file in world.local.iter().filter(|file| file.host == "dead") {
            let Some(Ending::GivenUp(failure)) = &file.ending else { panic!("{:?}", file.ending) };
            assert_eq!(failure.kind, ErrorKind::Connect);
            messages.insert(failure.message.as_str());
        }
        assert_eq!(messages.len(), 1_000, "each names its own URL");
        let tried = world.fetches.iter().filter(|(_, f)| f.url.host_str() == Some("dead")).count();
        assert!(tried < 100, "{name}: {tried}");
        let mut live = world.local.iter().filter(|f| f.host == "live");
        assert!(live.all(|file| file.ending == Some(Ending::Complete)));
        // Five attempts with a second between them on average.
        assert!(world.seconds() < alone.max(6.0) * 1.2, "{name}: {alone} s to {}", world.seconds());
    }
}

/// Those of a host that does as it should come as soon as without `other`, or nearly.
fn assert_holds_nobody_up(other: &Host) {
    for (policy, again) in policies().into_iter().zip(policies()) {
        let name = policy.name().to_owned();
        // What is assumed before it is known that the path is short needs more lanes.
        let hint =
            LinkConfig { bandwidth_hint: Some(BitRate::from_mbps(20.0)), ..LinkConfig::default() };
        let config = || EngineConfig { link: hint, ..EngineConfig::default() };
        let near = Host { rtt: Duration::from_micros(100), ..Host::default() };
        let live = near.files(300, |_| 10_000);
        let mut world = World::with(config(), again).host("live", live.clone());
        world.get_all();
        world.run();
        let alone = world.seconds();

        let mut world =
            World::with(config(), policy).host("live", live).host("other", other.clone());
        world.get_all();
        let is_there = |world: &World| {
            let mut live = world.local.iter().filter(|file| file.host == "live");
            live.all(|file| file.ending == Some(Ending::Complete))
        };
        while !is_there(&world) && world.seconds() < 60.0 {
            world.run_for(Duration::from_millis(50));
        }
        assert!(world.seconds() < alone * 2.0 + 0.5, "{name}: {alone} s to {}", world.seconds());
        world.run();
    }
}

#[test]
fn a_host_that_takes_requests_and_answers_none_holds_nobody_up() {
    let silent = Host { silent: true, ..Host::default() };
    for files in [1, 10, 1_000] {
        assert_holds_nobody_up(&silent.clone().files(files, |_| 10_000));
    }
}

/// A host that answers none of the first `times` requests for each of the first `files` of 300.
fn answering_some(files: u32, times: u32) -> Host {
    let mut host = Host::default().files(300, |_| 10_000);
    host.unanswered = (0..files).map(|file| (format!("/{file}"), times)).collect();
    host
}

#[test]
fn files_that_are_never_answered_hold_up_no_others_of_their_host() {
    // The numbers of a user are exact.
    for policy in policies().into_iter().filter(|policy| policy.allows_growth()) {
        let name = policy.name().to_owned();
        let mut world = World::new(policy).host("one", answering_some(20, u32::MAX));
        world.get_all();
        world.run_for(secs(8));
        let there = world.local.iter().filter(|file| file.ending == Some(Ending::Complete)).count();
        assert_eq!(there, 280, "{name}");
        world.run();
        let message = &world.failure(0).message;
        assert!(message.ends_with("(after 5 attempts)"), "{message}");
        // Five times half a minute, and the pauses between: none waits for another one.
        assert!(world.seconds() < 200.0, "{name}: {} s", world.seconds());
        let of_first = world.fetches.iter().filter(|(_, fetch)| fetch.url.path() == "/0").count();
        assert!(of_first <= 12, "{name}: {of_first} requests");
    }
}

#[test]
fn many_that_are_never_answered_are_waited_for_together() {
    for policy in policies().into_iter().filter(|policy| policy.allows_growth()) {
        let name = policy.name().to_owned();
        let mut config = EngineConfig::default();
        config.retry.attempts = 1;
        let mut host = answering_some(70, u32::MAX);
        host.unanswered.remove("/0");
        let mut world = World::with(config, policy).host("one", host);
        world.get_all();
        world.run();
        let there = world.local.iter().filter(|file| file.ending == Some(Ending::Complete)).count();
        assert_eq!(there, 231, "{name}");
        // Half a minute each, sixteen at a time and a few more.
        assert!(world.seconds() < 130.0, "{name}: {} s", world.seconds());
    }
}

#[test]
fn who_answers_only_what_is_asked_for_again_gives_all() {
    for policy in policies() {
        let mut host = answering_some(40, 1);
        host.files.retain(|path, _| host.unanswered.contains_key(path));
        let mut world = World::new(policy).host("one", host);
        world.get_all();
        world.run();
        world.assert_all_complete();
    }
}

#[test]
fn a_slow_host_holds_nobody_up() {
    assert_holds_nobody_up(&Host { mbps: 0.5, ..Host::default() }.files(16, |_| 200_000));
}

#[test]
fn a_host_that_is_away_for_a_while_is_waited_for() {
    for policy in policies() {
        let mut world = World::new(policy).host("one", Host::default().files(200, |_| 300_000));
        world.get_all();
        world.run_for(secs(2));
        world.host_mut("one").refuses = true;
        world.break_all(ErrorKind::ShortBody);
        world.run_for(secs(20));
        let tried = world.fetches.len();
        world.host_mut("one").refuses = false;
        world.run_for(secs(6));
        assert!(world.fetches.len() > tried, "back after a quarter of the time that it was away");
        world.run();
        world.assert_all_complete();
        let told: Vec<f64> =
            world.away.iter().map(|(at, _)| at.since_start().as_secs_f64()).collect();
        assert!(matches!(told[..], [at] if (2.5..6.0).contains(&at)), "told once: {told:?}");
    }
}

#[test]
fn a_host_that_closes_what_comes_for_some_seconds_is_waited_for() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let host = Host { refuses: true, ..Host::default().files(200, |_| 300_000) };
        let mut world = World::new(policy).host("one", host);
        world.get_all();
        world.send(Event::Reached { origin: origin(), rtt: Duration::from_millis(10) });
        world.run_for(secs(6));
        let tried = world.fetches.len();
        assert!(tried < 40, "{name}: {tried} requests in vain");
        world.host_mut("one").refuses = false;
        world.run();
        world.assert_all_complete();
    }
}

#[test]
fn who_is_turned_away_for_some_seconds_comes_back() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let host = Host { rtt: Duration::from_millis(300), ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(200, |_| 300_000));
        world.get_all();
        // Nobody gets an answer in that time.
        for _ in 0..120 {
            world.run_for(Duration::from_millis(50));
            world.break_all(ErrorKind::Reset);
        }
        let tried = world.fetches.len();
        assert!(tried < 120, "{name}: {tried} requests in vain");
        world.run();
        world.assert_all_complete();
    }
}

#[test]
fn one_file_that_is_always_turned_away_fails_soon() {
    let files = Host::default().files(40, |_| 300_000);
    let mut world = World::new(Box::new(Hat)).host("one", files);
    world.get_all();
    world.run();
    world.assert_all_complete();
    let alone = world.seconds();

    let host = Host::default().files(40, |_| 300_000);
    let mut world = World::new(Box::new(Hat)).host("one", host);
    world.host_mut("one").reset.insert("/3".to_owned());
    world.get_all();
    world.run();
    assert_eq!(world.failure(3).kind, ErrorKind::Reset);
    assert!(world.seconds() < alone + 6.0, "{alone} s to {}", world.seconds());
}

#[test]
fn many_files_that_are_always_turned_away_fail_after_a_few_attempts_each() {
    // Once the others are here nobody is answered any more.
    for bad in [8, 60, 200] {
        let host = Host::default().files(400, |_| 8_000);
        let mut world = World::new(Box::new(Hat)).host("one", host);
        let paths = (0..bad).map(|n| format!("/{}", n * 2));
        world.host_mut("one").reset.extend(paths);
        world.get_all();
        world.run();
        let failed: Vec<usize> = (0..bad).map(|n| n * 2).collect();
        assert!(failed.iter().all(|file| world.failure(*file).kind == ErrorKind::Reset));
        let requests = world.host_mut("one").requests;
        assert!(requests < (400 + bad * 12) as u64, "{bad}: {requests}");
        assert!(world.seconds() < 30.0, "{bad}: {}", world.seconds());
    }
}

#[test]
fn one_break_of_many_streams_is_one_failed_attempt() {
    let mut world = World::new(fixed(1, 8)).host("one", one_big_file());
    world.get_all();
    world.run_for(secs(1));
    assert_eq!(world.streams_of(0), 8);
    world.break_all(ErrorKind::Connect);
    world.run();
    world.assert_each_byte_once();
    assert_eq!(world.engine.totals().retries, 1);
}

#[test]
fn a_network_that_is_gone_for_good_ends_the_run_within_minutes() {
    let mut world = World::new(Box::new(Hat)).host("one", Host::default().files(5_000, |_| MB));
    world.get_all();
    world.run_for(secs(2));
    world.host_mut("one").refuses = true;
    world.break_all(ErrorKind::Connect);
    world.run();
    assert!(world.seconds() < 1_200.0, "{} s", world.seconds());
}

#[test]
fn a_server_without_ranges_gets_one_stream_a_file() {
    for policy in policies() {
        let host = Host { ranges: false, ..Host::default().files(3, |_| 5 * MB) };
        let mut world = World::new(policy).host("one", host);
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        assert_eq!(world.fetches.len(), 3);
    }
}

#[test]
fn a_server_that_states_no_sizes_gets_one_stream_a_file() {
    for policy in policies() {
        let host = Host { states_size: false, ..Host::default().files(30, |i| i * 100_000) };
        let mut world = World::new(policy).host("one", host);
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        assert_eq!(world.fetches.len(), 30);
    }
}

#[test]
fn a_server_that_ignores_ranges_still_gives_the_file() {
    let host = Host { ignores_ranges: true, ..one_big_file() };
    let mut world = World::new(fixed(1, 4)).host("one", host);
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    assert_eq!(world.fetches.len(), 4, "each further stream was tried once");
}

#[test]
fn a_server_that_ignores_ranges_and_breaks_bodies_is_not_asked_for_ranges_again() {
    let host = Host { ignores_ranges: true, ..one_big_file() };
    let mut world = World::new(fixed(1, 4)).host("one", host);
    world.get_all();
    for _ in 0..3 {
        world.run_for(Duration::from_millis(900));
        world.break_all(ErrorKind::ShortBody);
    }
    world.run();
    world.assert_all_complete();
    let ranges = world.fetches.iter().filter(|(_, fetch)| fetch.range.is_some()).count();
    assert_eq!(ranges, 3);
}

#[test]
fn machines_of_one_name_that_differ_are_soon_asked_for_whole_files() {
    for (other, most) in [(Other::NoRanges, 20), (Other::AnotherVersion, 12)] {
        for protocol in [Protocol::Http11, Protocol::Http2] {
            for policy in adaptive() {
                let name = policy.name().to_owned();
                let host = Host { other: Some(other), protocol, ..Host::default() };
                let mut world = World::new(policy).host("one", host.files(8, |_| 10 * MB));
                world.get_all();
                world.run();
                world.assert_all_complete();
                let of_files = (0..8).map(|file| world.fetches_of(file).len());
                let asked: Vec<_> = of_files.collect();
                assert!(
                    asked.iter().all(|asked| *asked <= most),
                    "{name} {protocol} {other:?}: {asked:?}"
                );
            }
        }
    }
}

#[test]
fn what_has_come_from_one_machine_and_another_one_misses_is_asked_for_again() {
    for policy in adaptive() {
        let name = policy.name().to_owned();
        let host = Host { other: Some(Other::Nothing), ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(1, |_| 30 * MB));
        world.get_all();
        world.run();
        world.assert_all_complete();
        assert!(world.fetches.len() < 100, "{name}: {}", world.fetches.len());
        // What no machine has any more is given up.
        let mut world = World::new(Box::new(Hat)).host("one", one_big_file());
        world.get_all();
        world.run_for(secs(2));
        world.host_mut("one").files.clear();
        world.break_all(ErrorKind::ShortBody);
        world.run();
        let message = &world.failure(0).message;
        assert!(message.contains("it was there before"), "{message}");
    }
}

#[test]
fn a_server_without_ranges_that_breaks_every_body_is_given_up() {
    let host = Host { ranges: false, cuts_bodies_after: Some(MB), ..one_big_file() };
    let mut world = World::new(fixed(1, 1)).host("one", host);
    world.get_all();
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::ShortBody);
    assert_eq!(world.fetches.len(), 5);
}

#[test]
fn a_server_with_ranges_that_breaks_every_body_still_gives_the_file() {
    let host = Host { cuts_bodies_after: Some(MB), ..one_big_file() };
    let mut world = World::new(fixed(1, 2)).host("one", host);
    world.get_all();
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn a_changed_validator_restarts_that_file_alone() {
    let mut world = World::new(fixed(2, 4)).host("one", Host::default().files(2, |_| 20 * MB));
    world.get_all();
    world.run_for(secs(1));
    world.host_mut("one").files.insert("/0".to_owned(), Remote { size: 20 * MB, version: 2 });
    world.break_one(0, ErrorKind::ShortBody);
    let changed = world.now;
    world.run();
    world.assert_all_complete();
    assert_eq!(world.local[0].restarts, 1);
    let later =
        world.fetches_of(0).into_iter().filter(|(at, it)| *at > changed && it.range.is_some());
    assert!(later.count() > 3, "it goes on in parts");
    assert_eq!(world.local[1].restarts, 0);
    assert_eq!(world.local[1].brought, 20 * MB);
    assert_eq!(world.local[0].modified, Some(Remote { size: 0, version: 2 }.modified()));
}

#[test]
fn a_file_that_shrinks_between_whole_requests_has_no_old_tail() {
    let mut world = World::new(fixed(1, 1)).host("one", Host { ranges: false, ..one_big_file() });
    world.get_all();
    world.run_for(secs(2));
    world.host_mut("one").files.insert("/0".to_owned(), Remote { size: MB, version: 2 });
    world.break_all(ErrorKind::ShortBody);
    world.run();
    world.assert_all_complete();
}

#[test]
fn a_file_that_grows_between_whole_requests_is_read_to_its_end() {
    let mut world = World::new(fixed(1, 1))
        .host("one", Host { ranges: false, ..Host::default().files(1, |_| 5 * MB) });
    world.get_all();
    world.run_for(Duration::from_millis(500));
    world.host_mut("one").files.insert("/0".to_owned(), Remote { size: 10 * MB, version: 2 });
    world.break_all(ErrorKind::ShortBody);
    world.run();
    world.assert_all_complete();
    assert_eq!(world.fetches.len(), 2);
}

#[test]
fn a_file_that_changes_with_each_request_comes_in_one_body() {
    let host = Host { keeps_changing: true, ..one_big_file() };
    let mut world = World::new(fixed(1, 4)).host("one", host);
    world.get_all();
    world.run();
    world.assert_all_complete();
    assert_eq!(world.local[0].restarts, 1);
    let last = world.fetches_of(0).last().unwrap().1.clone();
    assert!(last.range.is_none() && last.anew);
}

#[test]
fn a_stalled_stream_is_aborted_and_its_bytes_come_again() {
    let mut world = World::new(fixed(1, 2)).host("one", one_big_file());
    world.get_all();
    world.run_for(secs(1));
    world.host_mut("one").silent = true;
    world.run_for(Duration::from_millis(30_050));
    assert_eq!(world.aborts.len(), 2);
    world.host_mut("one").silent = false;
    world.run();
    world.assert_each_byte_once();
    assert_eq!(world.engine.totals().retries, 1, "both streams stalled at once");
}

#[test]
fn a_host_that_never_answers_is_given_up_once() {
    let mut world = World::new(fixed(1, 1))
        .host("one", Host { silent: true, ..Host::default().files(3, |_| MB) });
    world.get_all();
    world.run();
    assert!((0..3).all(|file| world.failure(file).kind == ErrorKind::Timeout));
    let message = &world.failure(0).message;
    assert!(message.contains("no whole answer arrived for"), "its head may have begun: {message}");
    let [(told, what)] = &world.away[..] else { panic!("{:?}", world.away) };
    assert!(what.contains("no whole answer arrived for") && *told < Timestamp::from_millis(31_000));
    assert!(message.ends_with("(after 5 attempts)"), "{message}");
}

#[test]
fn what_is_silent_behind_a_proxy_is_told_with_it() {
    let silent = Host { silent: true, ..Host::default().files(1, |_| MB) };
    let mut world = World::new(fixed(1, 1)).host("one", silent);
    let specs = world.specs();
    let origin = Origin::of(&specs[0].url).unwrap();
    world.send(Event::Proxied { origin, proxy: "p:3128".to_owned() });
    world.get(specs);
    world.run();
    let message = &world.failure(0).message;
    assert!(message.contains(" s through the proxy p:3128 (after "), "{message}");
}

#[test]
fn what_the_list_says_of_sizes_binds_the_server() {
    for states_size in [true, false] {
        let host = Host { states_size, ..Host::default().files(2, |_| MB) };
        let mut world = World::new(fixed(1, 1)).host("one", host);
        let mut specs = world.specs();
        specs[0].size = Some(MB + 1);
        specs[1].size = Some(MB);
        world.get(specs);
        world.run();
        assert_eq!(world.failure(0).kind, ErrorKind::Checksum);
        assert_eq!(*world.ending(1), Ending::Complete);
    }
}

#[test]
fn redirects_count_for_the_origin_that_answers() {
    let target = Host::default().files(5, |_| 3 * MB);
    let front = Host { redirects_to: Some("mirror".to_owned()), ..target.clone() };
    let world = World::new(Box::new(Eht::default())).host("front", front);
    let specs = world.specs();
    let mut world = world.host("mirror", target);
    world.get(specs);
    world.run();
    world.assert_each_byte_once();
    let ranges = world.fetches.iter().filter(|(_, fetch)| fetch.range.is_some());
    assert!(ranges.into_iter().all(|(_, fetch)| fetch.url.host_str() == Some("mirror")));
}

#[test]
fn a_redirect_whose_target_has_gone_is_followed_anew() {
    let target = Host { cuts_bodies_after: Some(MB), ..Host::default().files(1, |_| 20 * MB) };
    let front = Host { redirects_to: Some("mirror".to_owned()), ..target.clone() };
    let world = World::new(fixed(4, 1)).host("front", front);
    let specs = world.specs();
    let mut world = world.host("mirror", target.clone()).host("other", target);
    world.get(specs);
    world.run_for(secs(1));
    world.host_mut("mirror").refuses = true;
    world.host_mut("front").redirects_to = Some("other".to_owned());
    world.run();
    world.assert_each_byte_once();
    assert!(world.seconds() < 10.0, "{}", world.seconds());
    let hosts = world.fetches.iter().map(|(_, fetch)| fetch.url.host_str().unwrap());
    let mut hosts: Vec<&str> = hosts.collect();
    hosts.dedup();
    assert_eq!(hosts, ["front", "mirror", "front", "other"], "where that leads now lasts");
}

#[test]
fn a_file_that_cannot_be_restarted_fails() {
    let mut world = World::new(fixed(1, 1)).host("one", one_big_file());
    world.get_all();
    world.run_for(secs(1));
    let failure = Failure::new(ErrorKind::FileIo, "the disk is gone");
    world.send(Event::Opened { file: FileId::new(0), opened: Opened::Failed(failure.clone()) });
    world.run();
    assert_eq!(*world.failure(0), failure);
}

#[test]
fn who_is_cut_off_again_and_again_is_helped_by_others() {
    // Ten of them fill the line, and each break comes before it is known what one brings.
    let host = Host { cuts_bodies_after: Some(100_000), window: 30_000, ..one_big_file() };
    let adaptive = policies().into_iter().filter(|policy| policy.allows_growth());
    for policy in adaptive {
        let name = policy.name().to_owned();
        let mut world = World::new(policy).host("one", host.clone());
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() < 10.0, "{name}: {}", world.seconds());
    }
}
