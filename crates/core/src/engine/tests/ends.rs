//! What was lost at the end of an answer, or a whole answer, while connections idle.

use std::time::Duration;

use pelton_algos::policy::Hat;
use pelton_algos::ranges::StreamId;
use pelton_algos::units::BitRate;

use super::super::*;
use super::complete::{adaptive, fixed, policies};
use super::host::Host;
use super::learnt::origin;
use super::world::World;
use crate::connection::Protocol;

const MB: u64 = 1_000_000;
const SIZE: u64 = 50_000;

/// Twelve short files over a path of 50 ms.
fn short_files(policy: Box<dyn Policy>, limits: UserLimits) -> World {
    let config = EngineConfig { limits, ..EngineConfig::default() };
    let host = Host::default().files(12, |_| SIZE);
    let mut world = World::with(config, policy).host("one", host);
    world.mbps = 5.0;
    world
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The stream of the last file.
const LAST: StreamId = StreamId(11);

/// How long the run takes if the last file's stream falls silent within its answer.
fn with_a_silent_end(world: &mut World) -> f64 {
    world.get_all();
    while world.live.get(&LAST).is_none_or(|last| last.position < SIZE / 3) {
        world.run_for(Duration::from_millis(1));
    }
    world.crawling.insert(LAST, 0.0);
    world.run();
    world.assert_each_byte_once();
    world.seconds()
}

#[test]
fn an_end_that_was_lost_comes_over_a_connection_that_idles() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let mut world = short_files(policy, UserLimits::default());
        let seconds = with_a_silent_end(&mut world);
        assert!(seconds < 2.0, "{name}: {seconds} s");
        assert!(world.aborts.contains(&LAST), "{name}");
        let (_, anew) = world.fetches.last().unwrap();
        assert!(anew.range.as_ref().is_some_and(|range| range.start > 0), "{name}: {anew:?}");
    }
}

#[test]
fn connections_that_were_closed_for_silent_streams_are_replaced() {
    let host = Host { rtt: Duration::from_millis(5), ..Host::default() };
    let mut world = World::new(fixed(16, 1)).host("one", host.files(200, |_| SIZE));
    world.mbps = 100.0;
    // As many as there are connections, while files wait.
    let silent = || (40..52).chain(100..112);
    world.crawling.extend(silent().map(|stream| (StreamId(stream), 0.0)));
    world.get_all();
    while world.engine.outstanding() > Bytes(6 * SIZE) {
        world.run_for(Duration::from_millis(1));
    }
    assert_eq!(silent().filter(|it| world.aborts.contains(&StreamId(*it))).count(), 24);
    let last = *world.live.keys().next_back().unwrap();
    world.crawling.insert(last, 0.0);
    world.run_for(Duration::from_millis(100));
    world.assert_each_byte_once();
    assert!(world.aborts.contains(&last) && world.done, "an idle connection brings it");
}

#[test]
fn every_connection_that_is_open_brings_a_part_of_the_end() {
    for policy in adaptive() {
        let name = policy.name().to_owned();
        let host = Host { rtt: Duration::from_millis(100), ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(40, |_| 250_000));
        world.mbps = 40.0;
        world.get_all();
        while world.live.is_empty() {
            world.run_for(Duration::from_millis(1));
        }
        // Together they fill half of the path, and are as many as a plan has channels.
        let slow: Vec<StreamId> = world.live.keys().copied().collect();
        world.crawling.extend(slow.iter().map(|stream| (*stream, 130_000.0)));
        world.run();
        world.assert_each_byte_once();
        let helpers = world.fetches.iter().filter(|(_, fetch)| fetch.range.is_some()).count();
        assert!(slow.len() == 16 && helpers > 32, "{name}: {helpers} for {slow:?}");
    }
}

#[test]
fn what_a_limit_holds_back_is_waited_for() {
    let slow = Some(BitRate::from_mbps(4.0));
    let mut world =
        short_files(fixed(4, 1), UserLimits { max_rate: slow, ..UserLimits::default() });
    let seconds = with_a_silent_end(&mut world);
    assert!(seconds > 5.0, "{seconds} s");
}

#[test]
fn each_file_is_asked_for_anew_once() {
    let mut world = short_files(fixed(4, 1), UserLimits::default());
    // Whatever comes after the first one is silent, too.
    for stream in 12..100 {
        world.crawling.insert(StreamId(stream), 0.0);
    }
    world.get_all();
    world.run_for(Duration::from_secs(5));
    let anew = world.fetches.iter().filter(|(_, fetch)| fetch.stream.0 >= 12).count();
    assert_eq!(anew, 0, "nothing was lost");
    assert!(world.done);
    let mut world = short_files(fixed(4, 1), UserLimits::default());
    for stream in 10..100 {
        world.crawling.insert(StreamId(stream), 100.0);
    }
    world.get_all();
    world.run_for(Duration::from_millis(2_500));
    let of = |file| world.fetches.iter().filter(|(_, fetch)| fetch.file == file).count();
    let most = world.fetches.iter().map(|(_, fetch)| of(fetch.file)).max();
    assert!(most <= Some(2), "{most:?}");
}

#[test]
fn an_answer_that_was_lost_is_asked_for_over_a_connection_that_idles() {
    let mut world = short_files(fixed(4, 1), UserLimits::default());
    world.lost.insert(LAST);
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    assert!(world.seconds() < 3.0, "{} s", world.seconds());
    assert!(world.aborts.contains(&LAST));
}

#[test]
fn an_answer_that_was_lost_is_asked_for_over_a_connection_that_others_share() {
    let size = |index| if index == 0 { 60 * MB } else { SIZE };
    let host = Host { protocol: Protocol::Http2, ..Host::default() };
    let limits = UserLimits { max_connections_per_origin: 2, ..UserLimits::default() };
    let config = EngineConfig { limits, ..EngineConfig::default() };
    let mut world = World::with(config, Box::new(Hat)).host("one", host.files(12, size));
    world.lost.insert(LAST);
    world.get_all();
    world.run_for(Duration::from_secs(5));
    assert!(world.aborts.contains(&LAST), "the large file goes on for longer");
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn who_waits_for_its_turn_on_a_connection_that_brings_others_has_lost_no_end() {
    let size = |index| if index == 2 { 4 * MB } else { 4 * SIZE };
    let host = Host { protocol: Protocol::Http2, brought_over: 2, ..Host::default() };
    let mut world = World::new(fixed(4, 1)).host("one", host.files(4, size));
    world.mbps = 5.0;
    world.get_all();
    let first = StreamId(0);
    while world.live.get(&first).is_none_or(|stream| stream.position < 3 * SIZE) {
        world.run_for(Duration::from_millis(1));
    }
    world.crawling.insert(first, 0.0);
    world.run_for(Duration::from_millis(800));
    assert!(!world.aborts.contains(&first), "the third file comes over the same connection");
    world.run_for(Duration::from_millis(800));
    assert!(world.aborts.contains(&first), "its server has stopped");
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn a_server_that_pauses_in_each_answer_is_not_asked_for_all_twice() {
    let host = Host { rtt: Duration::from_millis(2), ..Host::default() };
    let mut world = World::new(fixed(4, 1)).host("one", host.files(80, |_| SIZE));
    // Each body takes half a second and comes in five pieces.
    for stream in 0..200 {
        world.crawling.insert(StreamId(stream), SIZE as f64 * 2.0);
        world.pieces.insert(StreamId(stream), SIZE / 5);
    }
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    let anew = world.fetches.len() - 80;
    assert!((1..=13).contains(&anew), "{anew}");
}

#[test]
fn a_server_that_works_on_all_of_the_last_files_is_not_asked_twice() {
    let mut world = short_files(fixed(12, 1), UserLimits::default());
    // No connection idles.
    world.lost.extend((0..12).map(StreamId));
    world.get_all();
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.fetches.len(), 12);
}

#[test]
fn what_has_stopped_is_asked_for_elsewhere_long_before_it_has_failed() {
    let seconds = |stops: bool| {
        let mut world = World::new(fixed(1, 1)).host("one", Host::default().files(1, |_| 10 * MB));
        world.get_all();
        world.run_for(Duration::from_secs(1));
        if stops {
            world.crawling.insert(*world.live.keys().next().unwrap(), 0.0);
        }
        world.run();
        world.assert_each_byte_once();
        world.seconds()
    };
    let (even, stopped) = (seconds(false), seconds(true));
    assert!(stopped < even + 7.0, "{stopped} s instead of {even} s");
    assert!(stopped > even + 4.0, "radios pause for seconds, too: {stopped} s");
}

#[test]
fn asking_anew_goes_on_where_it_is_right() {
    // Every third answer stops before its first byte.
    let mut world = World::new(Box::new(Hat)).host("one", Host::default().files(4, |_| 6 * MB));
    for stream in (0..1_000).step_by(3) {
        world.crawling.insert(StreamId(stream), 0.0);
    }
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    assert!(world.seconds() < 12.0, "{} s", world.seconds());
}

#[test]
fn answers_that_never_come_are_asked_for_anew_while_files_wait() {
    let host = Host::default().files(60, |_| SIZE);
    let mut world = World::new(fixed(4, 1)).host("one", host);
    world.lost.extend((3..1_000).step_by(7).map(StreamId));
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    assert!(world.seconds() < 20.0, "{} s", world.seconds());
}

#[test]
fn what_has_stopped_comes_again_where_there_are_no_ranges() {
    let host = Host { ranges: false, ..Host::default() };
    let mut world = World::new(fixed(4, 1)).host("one", host.files(12, |_| SIZE));
    world.crawling.insert(StreamId(5), 0.0);
    world.get_all();
    world.run();
    world.assert_all_complete();
    assert!(world.seconds() < 8.0, "{} s", world.seconds());
}

#[test]
fn bodies_that_pause_and_can_not_go_on_begin_anew_twice_at_most() {
    for (pause, most) in [((1, 3), 18.0), ((3, 6), 36.0), ((1, 20), 90.0)] {
        let pauses = Some((200_000, (secs(pause.0), secs(pause.1))));
        let host = Host { ranges: false, pauses, rtt: Duration::from_millis(1), ..Host::default() };
        let host = host.files(60, |_| 400_000);
        for policy in adaptive() {
            let name = policy.name().to_owned();
            let mut world = World::new(policy).host("one", host.clone());
            world.get_all();
            world.run();
            world.assert_all_complete();
            assert!(world.fetches.len() < 120, "{name}, {pause:?}: {}", world.fetches.len());
            assert!(world.seconds() < most, "{name}, {pause:?}: {} s", world.seconds());
        }
    }
}

#[test]
fn bodies_without_a_length_that_end_late_do_not_begin_anew_for_ever() {
    for protocol in [Protocol::Http11, Protocol::Http2] {
        for (policy, most) in adaptive().map(|it| (it, 10.0)).chain([(fixed(4, 1), 50.0)]) {
            let name = policy.name().to_owned();
            let host = Host { protocol, states_size: false, ends_late: secs(2), ..Host::default() };
            let mut world = World::new(policy).host("one", host.files(40, |_| 700_000));
            world.get_all();
            world.run();
            world.assert_all_complete();
            assert!(world.fetches.len() < 60, "{name}, {protocol:?}: {}", world.fetches.len());
            assert!(world.seconds() < most, "{name}, {protocol:?}: {} s", world.seconds());
        }
    }
}

#[test]
fn short_files_that_redirects_lead_to_are_asked_for_as_much_earlier() {
    // 0.2 s for each file, and what 20 Mbit/s bring meanwhile is 50 of them.
    let target = Host { rtt: Duration::from_millis(100), mbps: 20.0, ..Host::default() };
    let seconds = |is_led: bool| {
        let redirects_to = is_led.then(|| "store".to_owned());
        let (target, redirects_to) = (target.clone(), &redirects_to);
        adaptive()
            .map(move |policy| {
                let name = policy.name().to_owned();
                let files = target.clone().files(800, |_| 10_000);
                let front = Host { redirects_to: redirects_to.clone(), ..files.clone() };
                let mut world = World::new(policy).host("front", front).host("store", files);
                let specs = world.specs().into_iter();
                world.get(specs.filter(|spec| spec.url.host_str() == Some("front")).collect());
                world.run();
                world.assert_all_complete();
                (name, world.seconds())
            })
            .collect::<Vec<_>>()
    };
    for ((name, straight), (_, led)) in seconds(false).into_iter().zip(seconds(true)) {
        assert!(led < straight * 1.1, "{name}: {straight} s, and {led} s by redirects");
    }
}

#[test]
fn servers_that_think_get_as_many_requests_as_their_answers_take_long() {
    let (rtt, thinks) = (Duration::from_millis(2), Duration::from_millis(200));
    // Answers of 64 connections, and of a hundred streams at least.
    for (protocol, most) in [(Protocol::Http11, 2.0), (Protocol::Http2, 1.0)] {
        for policy in adaptive() {
            let name = policy.name().to_owned();
            let host = Host { rtt, protocol, thinks, ..Host::default() };
            let mut world = World::new(policy).host("one", host.files(300, |_| 5_000));
            world.get_all();
            world.run();
            world.assert_each_byte_once();
            assert!(world.seconds() < most, "{name}, {protocol:?}: {} s", world.seconds());
        }
    }
}

#[test]
fn who_thinks_longer_than_its_files_take_is_asked_for_wholes() {
    let (rtt, thinks) = (Duration::from_millis(1), Duration::from_millis(300));
    for policy in adaptive() {
        let name = policy.name().to_owned();
        let host = Host { rtt, thinks, mbps: 1_000.0, ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(60, |_| MB));
        world.mbps = 1_000.0;
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        let in_parts = world.fetches.iter().filter(|(_, fetch)| fetch.parts.is_some()).count();
        assert_eq!((in_parts, world.fetches.len()), (16, 60), "{name}: before any size is known");
    }
}

#[test]
fn while_a_server_thinks_about_the_first_answers_more_is_asked_for_over_shared_connections() {
    // Sixteen first, others long before those are answered, and more at once the more have been.
    for (files, millis, most) in
        [(50, 2_000, 2.3), (60, 300, 0.5), (100, 300, 0.8), (400, 300, 1.4)]
    {
        let thinks = Duration::from_millis(millis);
        let rtt = Duration::from_millis(1);
        let host = Host { protocol: Protocol::Http2, rtt, thinks, ..Host::default() };
        for policy in adaptive() {
            let name = policy.name().to_owned();
            let mut world = World::new(policy).host("one", host.clone().files(files, |_| 5_000));
            world.mbps = 1_000.0;
            world.get_all();
            world.send(Event::Reached { origin: origin(), rtt: host.rtt });
            world.send(Event::Connected { origin: origin(), protocol: host.protocol });
            world.run();
            world.assert_each_byte_once();
            assert!(world.seconds() < most, "{name}, {files}: {}", world.seconds());
        }
    }
}

#[test]
fn servers_that_think_for_different_times_are_asked_for_other_files_meanwhile() {
    let (rtt, thinks) = (Duration::from_micros(50), Duration::from_millis(100));
    for (protocol, bytes, most) in [
        (Protocol::Http11, 2_000, 1.4),
        (Protocol::Http2, 2_000, 1.4),
        (Protocol::Http2, 300_000, 1.4),
    ] {
        for policy in adaptive() {
            let name = policy.name().to_owned();
            let host = Host { rtt, protocol, thinks, thinks_unevenly: true, ..Host::default() };
            let mut world = World::new(policy).host("one", host.files(300, |_| bytes));
            world.mbps = 1_000.0;
            world.get_all();
            world.run();
            world.assert_each_byte_once();
            let seconds = world.seconds();
            assert!(seconds < most, "{name}, {protocol:?}, {bytes} bytes: {seconds} s");
        }
    }
}

#[test]
fn who_leaves_requests_unanswered_gets_no_more_of_them_at_once() {
    let (rtt, thinks) = (Duration::from_millis(1), Duration::from_millis(200));
    for policy in adaptive() {
        let name = policy.name().to_owned();
        let host = Host { rtt, thinks, mbps: 16.0, ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(1, |_| 12 * MB));
        // It serves one connection.
        world.lost.extend((1..200).map(StreamId));
        world.get_all();
        let (mut before, mut after) = (0, 0);
        while world.seconds() < 5.0 && !world.done {
            world.run_for(Duration::from_millis(1));
            let most = if world.aborts.is_empty() { &mut before } else { &mut after };
            *most = world.live.len().max(*most);
        }
        assert!(after <= before, "{name}: {after} at once after {before}");
    }
}

#[test]
fn what_is_asked_for_over_another_connection_is_waited_for_anew() {
    let aborted_after = |moved: bool| {
        let mut world = short_files(fixed(4, 1), UserLimits::default());
        world.lost.insert(LAST);
        world.get_all();
        let mut silent_for = 0;
        while !world.aborts.contains(&LAST) && silent_for < 5_000 {
            world.run_for(Duration::from_millis(1));
            silent_for += u32::from(world.live.contains_key(&LAST));
            if moved && silent_for == 400 {
                world.send(Event::Moved { stream: LAST });
            }
        }
        silent_for
    };
    let (left, moved) = (aborted_after(false), aborted_after(true));
    assert!(left > 60 && moved > left + 100, "{left} ms, {moved} ms");
}
