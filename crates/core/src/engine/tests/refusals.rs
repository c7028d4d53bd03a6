//! Hosts that refuse what they are asked: they are asked less, and then later.

use std::time::Duration;

use pelton_algos::policy::Hat;
use pelton_algos::retries::RetryConfig;

use super::super::*;
use super::complete::{adaptive, fixed, policies};
use super::host::{Ending, Host, Remote};
use super::world::World;
use crate::ErrorKind;
use crate::connection::Protocol;

/// How long all files of `host` take.
fn seconds_for_all(policy: Box<dyn Policy>, host: Host) -> f64 {
    let mut world = World::new(policy).host("one", host);
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    world.seconds()
}

const PROTOCOLS: [Protocol; 2] = [Protocol::Http11, Protocol::Http2];

fn policies_and_protocols() -> impl Iterator<Item = (Box<dyn Policy>, Protocol)> {
    PROTOCOLS.into_iter().flat_map(|protocol| policies().into_iter().map(move |it| (it, protocol)))
}

fn refusing() -> World {
    let host = Host { bears: 0, ..Host::default().files(400, |_| 300_000) };
    let mut world = World::new(fixed(32, 1)).host("one", host);
    world.get_all();
    world
}

#[test]
fn a_host_that_refuses_everything_is_asked_less_and_less() {
    let mut world = refusing();
    world.run_for(Duration::from_secs(10));
    let asked = world.fetches.len();
    // Each flight is half of the one before, with up to a second between them.
    assert!(asked <= 32 + 16 + 8 + 4 + 2 + 20, "{asked} requests");
    world.host_mut("one").bears = usize::MAX;
    world.run();
    world.assert_each_byte_once();
    // That it refused all of them said nothing of how many it bears.
    assert!(world.told["one"] >= 15, "{:?}", world.told);
    assert!(world.seconds() < 45.0, "{}: a file may wait on its own", world.seconds());
}

#[test]
fn a_host_that_refuses_for_good_fails_as_a_whole() {
    let mut world = refusing();
    world.run();
    assert!(world.local.iter().all(|file| matches!(file.ending, Some(Ending::GivenUp(_)))));
    assert_eq!(world.failure(0).kind, ErrorKind::Overloaded);
    assert!((600.0..700.0).contains(&world.seconds()), "{}", world.seconds());
    assert!(world.fetches.len() < 1_200, "{} requests", world.fetches.len());
}

#[test]
fn a_host_that_bears_few_gets_few_at_once() {
    for protocol in PROTOCOLS {
        let host = Host { bears: 4, protocol, ..Host::default().files(400, |_| 300_000) };
        let mut world = World::new(fixed(32, 1)).host("one", host);
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        assert!(world.told["one"] <= 8, "{protocol:?}: {:?}", world.told);
        let refused = world.fetches.len() - 400;
        assert!(refused < 60, "{protocol:?}: {refused} requests for nothing");
    }
}

#[test]
fn where_each_file_is_refused_a_few_times_each_waits_for_itself() {
    // Each name is of its own kind, and one of each kind comes first, to learn its size.
    let names = (0..100).map(|file| format!("/f.{file}"));
    let files = names.map(|name| (name, Remote { size: 30_000, version: 1 }));
    let host = Host { files: files.collect(), ..Host::default() };
    for (times, retry_after, turns_away, most) in [
        (1, None, false, 8.0),
        (1, Some(1), false, 8.0),
        (2, None, false, 10.0),
        (3, None, false, 16.0),
        (2, Some(1), false, 20.0),
        (1, None, true, 8.0),
        (2, None, true, 10.0),
        (3, None, true, 20.0),
    ] {
        let unready = host.files.keys().map(|name| (name.clone(), times)).collect();
        let retry_after = retry_after.map(Duration::from_secs);
        let host = Host { retry_after, unready, turns_away, ..host.clone() };
        for policy in policies().into_iter().chain([fixed(8, 1)]) {
            let name = policy.name().to_owned();
            let mut world = World::new(policy).host("one", host.clone());
            world.get_all();
            world.run();
            world.assert_each_byte_once();
            assert_eq!(world.fetches.len(), 100 * (1 + times as usize));
            let took = world.seconds();
            assert!(took < most, "{name}, {times} times, {retry_after:?}, {turns_away}: {took}");
        }
    }
}

#[test]
fn where_some_files_are_ready_and_others_are_made_the_others_wait_for_themselves() {
    for (times, retry_after, turns_away, most) in [
        (1, None, false, 8.0),
        (2, None, false, 16.0),
        (1, Some(1), false, 16.0),
        (1, None, true, 6.0),
        (2, None, true, 8.0),
    ] {
        // Those that were made before are not in any order.
        let made = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0;
        let unready = (0..200).filter(|index| !made(*index));
        let unready = unready.map(|index| (format!("/{index}"), times)).collect();
        let retry_after = retry_after.map(Duration::from_secs);
        let host = Host { retry_after, unready, turns_away, ..Host::default() };
        for policy in adaptive() {
            let name = policy.name().to_owned();
            let host = host.clone().files(200, |_| 30_000);
            let took = seconds_for_all(policy, host);
            assert!(took < most, "{name}, {times} times, {retry_after:?}, {turns_away}: {took}");
        }
    }
}

#[test]
fn a_few_files_that_are_to_be_asked_for_later_hold_no_others_up() {
    // Of two hundred: each of them would stop all for a second.
    let unready = (0..200).step_by(20).map(|index| (format!("/{index}"), 1)).collect();
    let retry_after = Some(Duration::from_secs(1));
    let host = Host { retry_after, unready, ..Host::default().files(200, |_| 30_000) };
    for policy in adaptive() {
        let name = policy.name().to_owned();
        let mut world = World::new(policy).host("one", host.clone());
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        assert!(world.seconds() < 3.5, "{name}: {}", world.seconds());
    }
}

#[test]
fn a_429_for_one_of_some_holds_no_others_up() {
    let retry_after = Some(Duration::from_secs(1));
    for (refuses_part, most) in [(0.05, 3.5), (0.2, 6.0)] {
        let host = Host { retry_after, is_of_rate: true, refuses_part, ..Host::default() };
        for policy in adaptive() {
            let name = policy.name().to_owned();
            let host = host.clone().files(200, |_| 30_000);
            let took = seconds_for_all(policy, host);
            assert!(took < most, "{name}, {refuses_part}: {took}");
        }
    }
}

#[test]
fn a_few_files_that_are_refused_for_ever_end_soon_where_others_come() {
    let host = Host::default().files(100, |_| 300_000);
    let unready = [3, 40, 41].map(|file| (format!("/{file}"), u32::MAX));
    for policy in policies() {
        let name = policy.name().to_owned();
        let host = Host { unready: unready.clone().into(), ..host.clone() };
        let mut world = World::new(policy).host("one", host);
        world.get_all();
        world.run();
        let endings = world.local.iter().map(|file| file.ending.as_ref());
        let given_up = endings.filter(|ending| matches!(ending, Some(Ending::GivenUp(_))));
        assert_eq!(given_up.count(), 3, "{name}");
        let failure = world.failure(40);
        assert_eq!(failure.kind, ErrorKind::Overloaded);
        assert!(failure.message.ends_with("(after 10 attempts)"), "{}", failure.message);
        assert!((20.0..45.0).contains(&world.seconds()), "{name}: {}", world.seconds());
    }
}

#[test]
fn who_answers_so_many_requests_a_second_is_asked_at_that_pace() {
    for (millis, retry_after, most) in [(100, None, 1.5), (20, None, 2.0), (100, Some(1), 2.7)] {
        let answers_each = Duration::from_millis(millis);
        let retry_after = retry_after.map(Duration::from_secs);
        let rtt = Duration::from_millis(5);
        let store = Host { rtt, ..Host::default().files(100, |_| 30_000) };
        let is_of_rate = retry_after.is_some();
        let limited = Host { retry_after, is_of_rate, answers_each, ..store.clone() };
        let led = Host { redirects_to: Some("store".to_owned()), ..limited.clone() };
        for host in [limited, led] {
            for (policy, protocol) in policies_and_protocols() {
                let name = format!("{}, {protocol:?}, {:?}", policy.name(), host.redirects_to);
                let mut world = World::new(policy).host("one", Host { protocol, ..host.clone() });
                let specs = world.specs();
                world = world.host("store", Host { protocol, ..store.clone() });
                world.get(specs);
                world.run();
                world.assert_each_byte_once();
                let (took, floor) = (world.seconds(), answers_each.as_secs_f64() * 100.0);
                assert!(took < floor * most, "{name}, {millis} ms, {retry_after:?}: {took}");
                let refused = world.fetches.len() - 100;
                assert!(refused < 80, "{name}, {millis} ms, {retry_after:?}: {refused} in vain");
            }
        }
    }
}

#[test]
fn who_wants_one_attempt_gets_one_where_requests_are_limited() {
    let answers_each = Duration::from_millis(100);
    let host = Host { answers_each, rtt: Duration::from_millis(5), ..Host::default() };
    let retry = RetryConfig { attempts: 1, ..RetryConfig::default() };
    let config = EngineConfig { retry, ..EngineConfig::default() };
    let mut world = World::with(config, fixed(2, 1)).host("one", host.files(100, |_| 30_000));
    world.get_all();
    world.run();
    assert_eq!(world.fetches.len(), 100);
}

#[test]
fn what_is_refused_whatever_is_done_holds_nothing_up() {
    for each in [2, 3, 5] {
        let host = Host { refuses_each: Some(each), ..Host::default().files(100, |_| 30_000) };
        for policy in policies() {
            let name = policy.name().to_owned();
            let mut world = World::new(policy).host("one", host.clone());
            world.get_all();
            world.run();
            world.assert_each_byte_once();

            assert!(world.seconds() < 12.0, "{name}, each {each}: {}", world.seconds());
        }
    }
}

#[test]
fn what_is_refused_or_closed_at_random_costs_little_time() {
    let one = Host { window: 30_000, ..Host::default().files(1, |_| 20_000_000) };
    let some = Host { window: 30_000, ..Host::default().files(20, |_| 1_000_000) };
    for (files, most) in [(one, 6.0), (some, 6.0), (Host::default().files(300, |_| 20_000), 4.0)] {
        for refuses_part in [0.1, 0.2, 0.4] {
            for turns_away in [false, true] {
                let host = Host { turns_away, refuses_part, ..files.clone() };
                for policy in adaptive() {
                    let name = policy.name().to_owned();
                    let mut world = World::new(policy).host("one", host.clone());
                    world.get_all();
                    world.run();
                    world.assert_each_byte_once();
                    let took = world.seconds();
                    let name = format!("{name}, {} files, {refuses_part}", files.files.len());
                    assert!(took < most, "{name}, {turns_away}: {took}");
                }
            }
        }
    }
}

#[test]
fn ranges_that_fail_beside_a_body_that_comes_are_asked_for_ever_more_rarely() {
    let host = Host { fails_ranges: true, ..Host::default().files(1, |_| 200_000_000) };
    let mut world = World::new(fixed(1, 16)).host("one", host);
    world.get_all();
    world.run_for(Duration::from_secs(20));
    // The first deal, then one at a time after 0.25, 0.5, 1, 2, ... s.
    assert!(world.fetches.len() <= 16 + 8, "{} requests", world.fetches.len());
    world.host_mut("one").fails_ranges = false;
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn ranges_that_fail_go_back_to_the_body_that_comes() {
    let files = Host::default().files(1, |_| 8_000_000);
    let host = Host { fails_ranges: true, gives_wholes: true, ..files };
    let mut world = World::new(fixed(1, 16)).host("one", host);
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    let plain = world.fetches.iter().filter(|fetch| fetch.1.range.is_none()).count();
    assert_eq!(plain, 1, "the first body brings all of it");
}

#[test]
fn hosts_whose_ranges_all_fail_give_each_file_in_one_body() {
    let host = Host { mbps: 40.0, ..Host::default().files(4, |_| 6_000_000) };
    let fails = Host { fails_ranges: true, gives_wholes: true, ..host.clone() };
    let resets = Host { resets_ranges: true, ..host };
    for host in [fails, resets] {
        let mut world = World::new(fixed(3, 2)).host("one", host.clone());
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        let ranges = world.fetches.iter().filter(|(_, it)| it.range.is_some()).count();
        assert!(ranges <= 8, "{ranges} ranges in vain");
    }
}

#[test]
fn who_forbids_further_streams_is_asked_for_fewer_files_too() {
    let host = Host { allows: 4, mbps: 40.0, ..Host::default().files(4, |_| 6_000_000) };
    for policy in policies() {
        let mut world = World::new(policy).host("one", host.clone());
        world.get_all();
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn short_files_that_were_forbidden_beside_too_many_others_come_later() {
    for allows in [1, 4] {
        let host = Host { allows, mbps: 40.0, ..Host::default().files(100, |_| 100_000) };
        for policy in policies() {
            let name = policy.name().to_owned();
            let mut world = World::new(policy).host("one", host.clone());
            world.get_all();
            world.run();
            world.assert_each_byte_once();
            let forbidden = world.fetches.len() - 100;
            assert!(world.seconds() < 15.0, "{name}, {allows} at once: {}", world.seconds());
            assert!(forbidden < 100, "{name}, {allows} at once: {forbidden} in vain");
        }
    }
}

#[test]
fn who_is_forbidden_everything_after_many_answers_waits_for_some_seconds() {
    for (seconds, most) in [(Some(3), 13.0), (None, 25.0)] {
        for policy in adaptive() {
            let name = policy.name().to_owned();
            let mut world = World::new(policy).host("one", Host::default().files(200, |_| 100_000));
            world.get_all();
            world.run_for(Duration::from_secs(1));
            world.host_mut("one").allows = 0;
            if let Some(seconds) = seconds {
                world.run_for(Duration::from_secs(seconds));
                world.host_mut("one").allows = usize::MAX;
            }
            world.run();
            let came = world.local.iter().all(|it| it.ending == Some(Ending::Complete));
            assert_eq!(came, seconds.is_some(), "{name}");
            assert!(world.seconds() < most, "{name}, {came}, {} s", world.seconds());
        }
    }
}

#[test]
fn files_that_are_forbidden_fail_soon_and_hold_nothing_up() {
    for each in [1, 3, 10] {
        let host = Host { mbps: 40.0, ..Host::default().files(100, |_| 100_000) };
        let forbidden = (0..100).step_by(each).map(|file| format!("/{file}")).collect();
        let host = Host { forbidden, ..host };
        for policy in policies() {
            let name = policy.name().to_owned();
            let mut world = World::new(policy).host("one", host.clone());
            world.get_all();
            world.run();
            let failed = world.local.iter().filter(|it| it.ending != Some(Ending::Complete));
            assert_eq!(failed.count(), host.forbidden.len());
            assert_eq!(world.failure(0).kind, ErrorKind::Auth);
            assert!(world.seconds() < 5.0, "{name}, each {each}: {}", world.seconds());
            assert!(world.fetches.len() <= 200, "{name}, each {each}: {}", world.fetches.len());
        }
    }
}

#[test]
fn a_file_that_fails_is_asked_for_by_one_stream_until_it_comes() {
    let mut world = World::new(fixed(1, 16)).host("one", Host::default().files(1, |_| 20_000_000));
    world.get_all();
    world.run_for(Duration::from_secs(1));
    world.host_mut("one").broken.insert("/0".to_owned());
    world.break_all(ErrorKind::ServerError);
    let before = world.fetches.len();
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::ServerError);
    // It was there, and what is behind its host may be restarted: that takes up to a minute.
    assert!((60.0..90.0).contains(&world.seconds()), "{}", world.seconds());
    assert!(world.fetches.len() - before < 100, "{} requests", world.fetches.len() - before);
}

/// What is behind it is away for three seconds: all that it is asked for is refused with such a status.
fn away(mut world: World, kind: ErrorKind) -> (World, usize) {
    world.run_for(Duration::from_secs(1));
    let before = world.fetches.len();
    let paths: Vec<String> = world.hosts["one"].files.keys().cloned().collect();
    match kind {
        ErrorKind::Overloaded => world.host_mut("one").bears = 0,
        _ => world.host_mut("one").broken.extend(paths),
    }
    world.run_for(Duration::from_secs(3));
    let meanwhile = world.fetches.len() - before;
    world.host_mut("one").bears = usize::MAX;
    world.host_mut("one").broken.clear();
    world.run();
    (world, meanwhile)
}

/// An outage of `host` for three seconds costs each policy little more than that, and few requests.
fn assert_outage_costs_little(host: &Host, kind: ErrorKind) {
    for (policy, same) in policies().into_iter().zip(policies()) {
        let name = format!("{}, {kind:?}, {} files", policy.name(), host.files.len());
        let begun = |policy| {
            let mut world = World::new(policy).host("one", host.clone());
            world.get_all();
            world
        };
        let mut undisturbed = begun(same);
        undisturbed.run();
        let (world, meanwhile) = away(begun(policy), kind);
        world.assert_each_byte_once();
        assert!(meanwhile < 150, "{name}: {meanwhile} requests while it was away");
        let lost = world.seconds() - undisturbed.seconds();
        assert!(lost < 6.0, "{name}: {lost} s for three");
    }
}

#[test]
fn a_host_that_was_away_gives_all_and_is_asked_for_as_much_as_before() {
    for kind in [ErrorKind::ServerError, ErrorKind::Overloaded] {
        for (files, bytes) in [(100, 300_000), (2_000, 10_000), (1, 30_000_000)] {
            let host = Host { mbps: 40.0, ..Host::default().files(files, |_| bytes) };
            assert_outage_costs_little(&host, kind);
        }
    }
}

#[test]
fn a_host_that_is_away_for_all_but_what_it_serves_is_asked_for_as_much_as_before() {
    // A stream brings 10 Mbit/s, so a large file takes longer than the host is away.
    let host = Host { window: 64 * 1024, ..Host::default() };
    let host = host.files(200, |file| if file < 3 { 8_000_000 } else { 300_000 });
    assert_outage_costs_little(&host, ErrorKind::Overloaded);
}

#[test]
fn a_limit_that_counts_what_it_refuses_loses_no_files() {
    for (most, seconds, files, is_of_rate) in [
        (50, 1, 300, false),
        (20, 1, 100, false),
        (100, 10, 200, false),
        (60, 10, 300, false),
        (60, 10, 300, true),
        (20, 1, 100, true),
    ] {
        let most_in = Some((most, Duration::from_secs(seconds)));
        let rtt = Duration::from_millis(5);
        let host = Host { rtt, is_of_rate, most_in, ..Host::default() };
        let host = host.files(files, |_| 20_000);
        for (policy, protocol) in policies_and_protocols() {
            let name = format!("{}, {protocol:?}", policy.name());
            let mut world = World::new(policy).host("one", Host { protocol, ..host.clone() });
            world.get_all();
            world.run();
            world.assert_each_byte_once();
            let floor = (files / most as u64 * seconds) as f64;
            assert!(world.seconds() < floor * 2.5, "{name}, {most}: {} s", world.seconds());
        }
    }
}

#[test]
fn a_host_that_is_away_again_and_again_gives_all() {
    for kind in [ErrorKind::ServerError, ErrorKind::Overloaded] {
        let host = Host { mbps: 40.0, ..Host::default().files(400, |_| 100_000) };
        let mut world = World::new(Box::new(Hat)).host("one", host);
        let paths: Vec<String> = world.hosts["one"].files.keys().cloned().collect();
        world.get_all();
        for _ in 0..4 {
            world.run_for(Duration::from_secs(2));
            match kind {
                ErrorKind::Overloaded => world.host_mut("one").bears = 0,
                _ => world.host_mut("one").broken.extend(paths.clone()),
            }
            world.run_for(Duration::from_secs(3));
            world.host_mut("one").bears = usize::MAX;
            world.host_mut("one").broken.clear();
        }
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn a_host_that_has_faults_for_good_fails_file_by_file_after_some_seconds() {
    let mut world = World::new(fixed(16, 1)).host("one", Host::default().files(300, |_| 10_000));
    let paths: Vec<String> = world.hosts["one"].files.keys().cloned().collect();
    world.host_mut("one").broken.extend(paths);
    for good in ["/40", "/299"] {
        world.host_mut("one").broken.remove(good);
    }
    world.get_all();
    world.run();
    let complete = world.local.iter().filter(|it| it.ending == Some(Ending::Complete));
    assert_eq!(complete.count(), 2);
    assert_eq!(world.failure(0).kind, ErrorKind::ServerError);
    assert!(world.seconds() < 200.0, "{}", world.seconds());
    assert!(world.fetches.len() < 300 * 8, "{} requests", world.fetches.len());
}

#[test]
fn what_took_long_is_not_thrown_away_where_ranges_fail() {
    let host = Host { fails_ranges: true, cuts_bodies_after: Some(60_000_000), ..Host::default() };
    let mut world = World::new(fixed(1, 1)).host("one", host.files(1, |_| 200_000_000));
    world.get_all();
    world.run();
    assert_eq!(world.failure(0).kind, ErrorKind::ServerError);
    assert_eq!(world.local[0].restarts, 0);
}

#[test]
fn who_is_refused_one_stream_more_has_the_file_by_the_others_and_asks_for_less() {
    for kind in [ErrorKind::Auth, ErrorKind::Overloaded] {
        let mut world =
            World::new(fixed(1, 4)).host("one", Host::default().files(1, |_| 40_000_000));
        world.get_all();
        world.run_for(Duration::from_secs(2));
        let in_parts = |world: &World, from| {
            world.fetches.iter().skip(from).filter(|(_, fetch)| fetch.parts.is_some()).count()
        };
        let made = world.fetches.len();
        assert!(in_parts(&world, 0) > 0);
        world.break_one(0, kind);
        world.run();
        world.assert_all_complete();
        world.assert_each_byte_once();
        assert_eq!(in_parts(&world, made), 0, "{kind:?}");
    }
}

#[test]
fn many_files_that_are_refused_for_ever_do_not_hold_each_other_up() {
    let host = Host { rtt: Duration::from_millis(20), ..Host::default() };
    let host = host.files(200, |_| 100_000);
    for each in [100, 40, 10, 4, 2] {
        let refused = (1..200).step_by(each).map(|file| (format!("/{file}"), u32::MAX));
        let host = Host { unready: refused.collect(), ..host.clone() };
        for policy in policies() {
            let name = policy.name().to_owned();
            let mut world = World::new(policy).host("one", host.clone());
            world.get_all();
            world.run();
            let failed = world.local.iter().filter(|it| it.ending != Some(Ending::Complete));
            assert_eq!(failed.count(), host.unready.len(), "{name}, each {each}");
            assert!(world.seconds() < 60.0, "{name}, each {each}: {}", world.seconds());
        }
    }
}
