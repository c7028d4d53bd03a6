//! Decisions follow the link, and nothing is left idle.

use std::collections::VecDeque;
use std::time::Duration;

use pelton_algos::pace::Pace;
use pelton_algos::policy::{Eht, Hat, LowE};
use url::Url;

use super::super::*;
use super::complete::{adaptive, fixed, policies};
use super::host::Host;
use super::learnt::origin;
use super::world::World;
use crate::ErrorKind;
use crate::connection::{Origin, Protocol};

const MB: u64 = 1_000_000;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn decisions_change_when_the_bandwidth_does() {
    for policy in
        [Box::new(LowE::default()) as Box<dyn Policy>, Box::new(Hat), Box::new(Eht::default())]
    {
        let host = Host { rtt: Duration::from_millis(200), window: 64 * 1024, ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(60, |_| 3 * MB));
        world.mbps = 40.0;
        world.get_all();
        world.run_for(secs(8));
        let (decisions, before) = (world.decisions.len(), world.engine.link().bandwidth);
        world.mbps = 4.0;
        world.run_for(secs(15));
        assert!(world.decisions.len() > decisions, "{}", world.engine.policy_name());
        assert!(world.engine.link().bandwidth < before * 0.5);
        world.mbps = 400.0;
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn one_big_file_gets_several_streams() {
    for policy in policies() {
        let name = policy.name().to_owned();
        // One window a round trip is 2.6 Mbit/s: the link needs many streams.
        let host = Host { rtt: Duration::from_millis(200), window: 64 * 1024, ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(1, |_| 40 * MB));
        world.get_all();
        world.run_for(secs(4));
        let least = if name == "fixed" { 2 } else { 8 };
        assert!(world.streams_of(0) >= least, "{name}: {} streams", world.streams_of(0));
        world.run();
        world.assert_each_byte_once();
    }
}

#[test]
fn connections_bring_further_files_before_they_bring_parts_of_them() {
    let host = Host { rtt: Duration::from_millis(200), window: 256 * 1024, ..Host::default() };
    let mut world = World::new(Box::new(Hat)).host("one", host.files(60, |_| 700_000));
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    let parts = world.fetches.iter().filter(|(_, fetch)| fetch.range.is_some()).count();
    assert!(parts <= 16, "{parts} requests for parts");
}

#[test]
fn files_that_may_be_long_begin_in_parts_where_their_host_gives_ranges() {
    let in_parts = |host: Host, size: u64| {
        let mut world = World::new(fixed(1, 1)).host("one", host.files(4, |_| size));
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        let wholes = world.fetches.iter().filter(|(_, fetch)| fetch.range.is_none());
        wholes.map(|(_, fetch)| fetch.parts.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(in_parts(Host::default(), 3 * MB), [true; 4]);
    assert_eq!(in_parts(Host::default(), 100_000), [true, false, false, false], "they are short");
    let host = Host { ranges: false, ..Host::default() };
    assert_eq!(in_parts(host, 3 * MB), [true, false, false, false]);
    let host = Host { protocol: Protocol::Http2, ..Host::default() };
    assert_eq!(
        in_parts(host, 3 * MB),
        [true, false, false, false],
        "what is cut short can be reset"
    );
}

#[test]
fn connections_are_opened_ahead_once_a_host_was_reached() {
    let opened_of = |scheme: &str, hosts: usize, files: usize, rtt, hint| {
        let mut config = EngineConfig::default();
        config.link.bandwidth_hint = hint;
        let mut engine = Engine::new(config, Box::new(Hat));
        let url = |n| Url::parse(&format!("{scheme}://host{}/{n}", n % hosts)).unwrap();
        let spec = |n| FileSpec::from_url(url(n)).unwrap();
        let files = Event::Files((0..files).map(spec).collect());
        let mut actions = engine.handle(Timestamp::START, files);
        actions.extend(engine.handle(Timestamp::START, Event::ListEnded));
        for n in 0..hosts {
            let origin = Origin::of(&url(n)).unwrap();
            actions.extend(engine.handle(Timestamp::START + rtt, Event::Reached { origin, rtt }));
        }
        let mut opened = std::collections::BTreeMap::new();
        for action in actions {
            if let Action::Connections { origin, open, .. } = action {
                opened.insert(origin.to_string(), open);
            }
        }
        opened.values().sum::<u32>()
    };
    let opened = |scheme, files, rtt, hint| opened_of(scheme, 1, files, rtt, hint);
    let far = Duration::from_millis(200);
    assert_eq!(opened("http", 100, far, None), 64);
    assert_eq!(opened("https", 400, far, None), 64);
    assert_eq!(opened("https", 100, far, None), 16, "a fifth of them would be handshakes");
    assert_eq!(opened("https", 400, Duration::from_millis(1), None), 16);
    assert_eq!(opened("https", 400, far, Some(BitRate::from_mbps(20.0))), 16);
    assert_eq!(opened_of("https", 20, 400, far, None), 80);
}

#[test]
fn what_is_opened_ahead_does_not_go_before_the_first_requests() {
    let rtt = Duration::from_millis(200);
    let host = Host { rtt, ..Host::default() };
    let mut world = World::new(Box::new(Hat)).host("one", host.files(200, |_| 20_000));
    world.get_all();
    while world.live.is_empty() {
        world.run_for(Duration::from_millis(1));
    }
    assert_eq!((world.live.len(), world.early["one"]), (16, 16));
    let early = (0..16).map(|_| {
        world.send(Event::Reached { origin: origin(), rtt });
        world.early["one"]
    });
    assert_eq!(early.collect::<Vec<_>>(), [[16; 13].as_slice(), &[64; 3]].concat());
}

#[test]
fn what_is_opened_ahead_begins_tls_as_fast_as_the_first_handshakes_came() {
    let rtt = Duration::from_millis(200);
    let url = |n| Url::parse(&format!("https://host/{n}")).unwrap();
    let origin = Origin::of(&url(0)).unwrap();
    // After so many handshakes, one each `apart` milliseconds.
    let told_after = |done: u32, apart: u64| {
        let mut engine = Engine::new(EngineConfig::default(), Box::new(Hat));
        let spec = |n| FileSpec::from_url(url(n)).unwrap();
        let files = Event::Files((0..400).map(spec).collect());
        let mut actions = engine.handle(Timestamp::START, files);
        actions.extend(engine.handle(Timestamp::START, Event::ListEnded));
        let reached = Timestamp::START + rtt;
        actions.extend(engine.handle(reached, Event::Reached { origin: origin.clone(), rtt }));
        for n in 0..done {
            let connected = Event::Connected { origin: origin.clone(), protocol: Protocol::Http2 };
            let at = reached + rtt + Duration::from_millis(apart) * n;
            actions.extend(engine.handle(at, connected));
        }
        let told = actions.into_iter().rev().find_map(|action| match action {
            Action::Connections { open, handshakes, .. } => Some((open, handshakes)),
            _ => None,
        });
        told.unwrap()
    };
    assert_eq!(told_after(0, 0), (64, Some(16)), "nothing is known");
    assert_eq!(told_after(16, 26), (64, Some(16)), "1 Mbit/s");
    assert_eq!(told_after(16, 1), (64, Some(133)));
}

#[test]
fn no_more_is_asked_for_at_first_than_handshakes_tell_of_a_path() {
    let rtt = Duration::from_millis(2);
    let url = |n| Url::parse(&format!("https://host/{n}")).unwrap();
    let origin = Origin::of(&url(0)).unwrap();
    // After sixteen handshakes, one each `apart` microseconds, and a while without an answer.
    let asked_after = |apart: u64| {
        let mut engine = Engine::new(EngineConfig::default(), Box::new(Hat));
        let spec = |n| FileSpec::from_url(url(n)).unwrap();
        let connected = |n| {
            let event = Event::Connected { origin: origin.clone(), protocol: Protocol::Http2 };
            (rtt * 2 + Duration::from_micros(apart) * n, event)
        };
        let first = [
            Event::Files((0..400).map(spec).collect()),
            Event::ListEnded,
            Event::Reached { origin: origin.clone(), rtt },
        ];
        let first = first.into_iter().map(|event| (Duration::ZERO, event));
        let looks = (0..10).map(|n| (Duration::from_millis(500 + n * 50), Event::Timeout));
        let mut coming: VecDeque<_> = first.chain((0..16).map(connected)).chain(looks).collect();
        let mut asked = 0;
        while let Some((at, event)) = coming.pop_front() {
            for action in engine.handle(Timestamp::START + at, event) {
                match action {
                    Action::Open { file } => {
                        let opened = Event::Opened { file, opened: Opened::Fresh };
                        coming.push_front((at, opened));
                    }
                    Action::Fetch(_) => asked += 1,
                    _ => {}
                }
            }
        }
        asked
    };
    assert_eq!(asked_after(26_000), 16, "1 Mbit/s");
    assert_eq!(asked_after(10), 64);
}

#[test]
fn connections_that_were_opened_ahead_are_shared_by_larger_files() {
    let told = |millis| {
        let rtt = Duration::from_millis(millis);
        let host = Host { protocol: Protocol::Http2, rtt, ..Host::default() };
        let mut world = World::new(Box::new(Hat)).host("one", host.files(200, |_| 700_000));
        world.mbps = 50.0;
        world.get_all();
        world.send(Event::Reached { origin: origin(), rtt });
        world.run_for(secs(2));
        let told = world.told["one"];
        world.run();
        world.assert_each_byte_once();
        told
    };
    assert!(told(20) <= 17, "one more tells whether more would be of use");
    assert_eq!(told(200), 64);
}

#[test]
fn a_range_is_split_for_each_shared_connection_that_bears_nothing() {
    let most_streams = |brought_over| {
        let host = Host { protocol: Protocol::Http2, brought_over, ..Host::default() };
        let host = Host { rtt: Duration::from_millis(100), window: 64 * 1024, ..host };
        let mut world = World::new(Box::new(Hat)).host("one", host.files(1, |_| 64 * MB));
        world.mbps = 50.0;
        world.get_all();
        let mut most = 0;
        while !world.done {
            world.run_for(Duration::from_millis(100));
            most = most.max(world.live.len());
        }
        world.assert_each_byte_once();
        most
    };
    let (alone, shared) = (most_streams(u64::MAX), most_streams(4));
    assert!(shared > alone, "{shared} streams over few connections, {alone} over one each");
}

#[test]
fn one_file_has_as_many_shared_connections_as_fill_its_path() {
    for policy in [Box::new(Hat) as Box<dyn Policy>, Box::<Eht>::default()] {
        let name = policy.name().to_owned();
        let host = Host { protocol: Protocol::Http2, ..Host::default() };
        // Sixteen windows are three fifths of what the path holds.
        let host = Host { rtt: Duration::from_millis(100), window: 100_000, ..host };
        let mut world = World::new(policy).host("one", host.files(1, |_| 30 * MB));
        world.mbps = 200.0;
        world.get_all();
        while world.live.is_empty() {
            world.run_for(Duration::from_millis(1));
        }
        world.send(Event::Pace(Pace::of_path(BitRate::from_mbps(200.0))));
        let mut most = 0;
        while !world.done {
            world.run_for(Duration::from_millis(100));
            most = most.max(world.live.len());
        }
        world.assert_each_byte_once();
        assert!((22..=40).contains(&most), "{name}: {most}");
    }
}

#[test]
fn middling_files_do_not_wait_for_each_other_on_shared_connections() {
    let rtt = Duration::from_millis(70);
    let host = Host { protocol: Protocol::Http2, rtt, ..Host::default() };
    let mut world = World::new(Box::new(Hat)).host("one", host.files(300, |_| 250_000));
    world.mbps = 100.0;
    world.get_all();
    let mut most = 0;
    while !world.done {
        world.run_for(Duration::from_millis(100));
        most = most.max(world.files_in_transfer());
    }
    world.assert_each_byte_once();
    assert!((16..=128).contains(&most), "{most} files at once: two for each of 64 lanes");
}

#[test]
fn files_without_ranges_leave_some_for_the_end() {
    for ranges in [true, false] {
        let host = Host { ranges, rtt: Duration::from_millis(40), ..Host::default() };
        let mut world = World::new(Box::new(Hat)).host("one", host.files(60, |_| MB));
        world.mbps = 200.0;
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        let at_once = world.decisions.iter().map(|(_, decision)| decision.channels()).max();
        assert_eq!(at_once > Some(40), ranges, "{at_once:?} of 60 at once, ranges: {ranges}");
    }
}

#[test]
fn connections_whose_windows_fill_a_path_together_are_not_taken_away() {
    let host = Host {
        protocol: Protocol::Http2,
        rtt: Duration::from_millis(150),
        window: 600_000,
        ..Host::default()
    };
    let mut world = World::new(Box::new(Hat)).host("one", host.files(1, |_| 500 * MB));
    world.mbps = 1_000.0;
    world.get_all();
    world.run();
    world.assert_each_byte_once();
    // 500 MB at 1 Gbit/s take 4 s, and one window is a thirtieth of what the path holds.
    assert!(world.seconds() < 6.3, "{} s", world.seconds());
}

#[test]
fn losses_tell_how_many_connections_fill_a_path() {
    let host = Host {
        protocol: Protocol::Http2,
        rtt: Duration::from_millis(100),
        window: 4_000_000,
        ..Host::default()
    };
    // So that no connections are there that were opened while nothing was known.
    let limits = UserLimits { max_files: Some(16), ..UserLimits::default() };
    let config = EngineConfig { limits, ..EngineConfig::default() };
    let mut world = World::with(config, Box::new(Hat)).host("one", host.files(60, |_| 400_000));
    world.mbps = 200.0;
    world.get_all();
    world.send(Event::Pace(Pace::of_path(BitRate::from_mbps(200.0))));
    while world.brought() < MB {
        world.run_for(Duration::from_millis(1));
    }
    (0..3).for_each(|_| world.send(Event::Loss));
    assert_eq!(world.told["one"], 16, "that may be chance, and windows grow");
    world.send(Event::Loss);
    assert!(world.told["one"] > 32, "{}", world.told["one"]);
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn who_fills_its_path_has_it_for_itself() {
    let requests = |policy, files, size, window| {
        let host = Host { rtt: Duration::from_millis(50), window, ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(files, |_| size));
        world.mbps = 10.0;
        world.get_all();
        world.run_for(Duration::from_millis(400));
        if window > 1_000_000 {
            // What fills a path waits in its queue.
            world.send(Event::RoundTrip(Duration::from_millis(800)));
        }
        world.run();
        world.assert_each_byte_once();
        world.fetches.len()
    };
    for policy in policies().into_iter().filter(|policy| policy.prefers_files()) {
        let name = policy.name().to_owned();
        assert_eq!(requests(policy, 1, 3 * MB, 4_000_000), 1, "{name}");
    }
    assert!(
        requests(Box::new(Hat), 1, 3 * MB, 8_000) > 4,
        "its window is an eighth of what the path holds"
    );
    assert!(
        requests(Box::new(Hat), 1, 40 * MB, 4_000_000) > 1,
        "perhaps each connection has its share"
    );
    let of_three = |policy| requests(policy, 3, 3 * MB, 4_000_000);
    assert_eq!(of_three(Box::<LowE>::default()), 3, "they fill it together");
    assert!(of_three(Box::new(Hat)) > 3);
    assert_eq!(requests(fixed(1, 4), 1, 3 * MB, 4_000_000), 4, "as the user says");
}

#[test]
fn a_plain_get_ends_early_where_others_can_have_its_ranges() {
    let asks_for_most_of_it = |protocol| {
        let rtt = Duration::from_millis(200);
        let host = Host { protocol, rtt, window: 256 * 1024, ..Host::default() };
        let host = Host { gives_wholes: true, ..host.files(1, |_| 40 * MB) };
        let mut world = World::new(Box::new(LowE::default())).host("one", host);
        world.get_all();
        // The first answer comes at the pace of its window for some round trips: that the path carries more shows when all
        // have answered.
        world.run_for(secs(2));
        let mut asked = world.fetches.iter().filter_map(|(_, fetch)| fetch.range.clone());
        let asked_for_most = asked.any(|range| range.start < 4 * MB && range.end > 8 * MB);
        world.run();
        world.assert_each_byte_once();
        asked_for_most
    };
    assert!(asks_for_most_of_it(Protocol::Http11), "its connection is ended by a cut");
    assert!(!asks_for_most_of_it(Protocol::Http2), "a stream's end costs little");
}

#[test]
fn a_ceiling_on_files_leaves_the_streams_of_one_file() {
    let most_streams = |max_files| {
        let limits = UserLimits { max_files, ..UserLimits::default() };
        let config = EngineConfig { limits, ..EngineConfig::default() };
        // A wide window: the formulas give one stream, the rest are spare channels.
        let host = Host { window: 4_000_000, ..Host::default().files(3, |_| 40 * MB) };
        let mut world = World::with(config, Box::new(Hat)).host("one", host);
        // One stream does not soon fill it.
        world.mbps = 1_000.0;
        world.get_all_with_sizes();
        let mut most = 0;
        while !world.done {
            world.run_for(Duration::from_millis(200));
            most = most.max((0..3).map(|file| world.streams_of(file)).max().unwrap());
        }
        world.assert_each_byte_once();
        most
    };
    let (free, bounded) = (most_streams(None), most_streams(Some(1)));
    assert!(free >= 5 && bounded >= free, "{free} streams of a file, and {bounded} with -j 1");
}

#[test]
fn the_lanes_of_a_drained_cluster_move_at_once() {
    // Large files first, by name; the small ones are gone soon.
    let host = Host::default().files(60, |i| if i < 20 { 5 * MB } else { 2_000 });
    let mut world = World::new(Box::new(Hat)).host("one", host);
    world.get_all_with_sizes();
    let mut idle = 0;
    while !world.done {
        world.run_for(Duration::from_millis(100));
        let files_wait = !world.engine.waiting.is_empty();
        let lanes = world.engine.decision().map_or(0, Decision::channels) as usize;
        let free = world.files_in_transfer() < lanes && world.live.len() < 60;
        idle += usize::from(files_wait && free);
    }
    assert_eq!(idle, 0, "times 100 ms with idle lanes and waiting files");
    world.assert_each_byte_once();
}

#[test]
fn an_idle_stream_takes_half_of_the_largest_rest() {
    let mut world = World::new(fixed(1, 2)).host("one", Host::default().files(1, |_| 40 * MB));
    world.get_all();
    world.run_for(secs(1));
    assert_eq!(world.streams_of(0), 2);
    // One of the two breaks often, so that the other is far ahead.
    for _ in 0..6 {
        world.break_one(0, ErrorKind::ShortBody);
        world.run_for(Duration::from_millis(500));
    }
    while !world.done {
        world.run_for(Duration::from_millis(50));
        let left = 40 * MB - world.brought();
        if !world.done && left > 2 * MB {
            assert!(world.streams_of(0) >= 1);
        }
    }
    world.assert_each_byte_once();
    let steals = world.fetches.iter().filter(|(_, fetch)| fetch.range.is_some()).count();
    assert!(steals >= 3, "{steals}");
}

#[test]
fn the_last_percent_is_not_one_slow_stream() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let host = Host { rtt: Duration::from_millis(100), window: 128 * 1024, ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(8, |i| 2 * MB + i * 3 * MB));
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        // 100 MB at 50 Mbit/s take 16 s; two streams a file for three files carry 63 Mbit/s.
        let most = if name == "fixed" { 22.0 } else { 18.5 };
        assert!(world.seconds() < most, "{name}: {} s", world.seconds());
    }
}

#[test]
fn a_slow_start_does_not_confirm_itself() {
    let host = Host { rtt: Duration::from_millis(100), ..Host::default() };
    let mut world = World::new(Box::new(Hat)).host("one", host.files(300, |_| 100_000));
    world.mbps = 100.0;
    world.get_all();
    world.run();
    // 30 MB at 100 Mbit/s take 2.4 s, and each file costs a round trip.
    assert!(world.seconds() < 5.0, "{} s", world.seconds());
}

#[test]
fn a_long_list_of_small_files_costs_no_quadratic_time() {
    let host =
        Host { protocol: Protocol::Http2, rtt: Duration::from_millis(100), ..Host::default() };
    let mut world = World::new(Box::new(Hat)).host("one", host.files(20_000, |i| 300 + i % 700));
    world.mbps = 400.0;
    world.get_all();
    world.run();
    world.assert_each_byte_once();
}

#[test]
fn a_list_that_comes_file_by_file_costs_no_quadratic_time() {
    let mut world = World::new(Box::new(Hat)).host("one", Host::default().files(20_000, |_| 100));
    for spec in world.specs() {
        world.add(vec![spec]);
    }
    world.send(Event::Cancel);
    world.run();
}

#[test]
fn decisions_are_told_when_they_are_news_and_not_too_often() {
    for policy in policies() {
        let name = policy.name().to_owned();
        let host = Host { window: 64 * 1024, ..Host::default() };
        let size = |i| [24 * MB, 700_000, 12_000][usize::from(i > 0) + usize::from(i > 20)];
        let mut world = World::new(policy).host("one", host.files(221, size));
        world.metered = true;
        world.get_all();
        world.run();
        let most = 1.0 + world.seconds() * 4.0;
        assert!((world.decisions.len() as f64) <= most, "{name}: {}", world.decisions.len());
        for pair in world.decisions.windows(2) {
            assert!(pair[1].0.saturating_since(pair[0].0) >= Duration::from_millis(250));
            assert_ne!(pair[0].1.allocations, pair[1].1.allocations, "{name}");
        }
    }
}

#[test]
fn streams_that_did_not_pay_end_only_where_each_has_its_connection() {
    let ended = |protocol| {
        let host = Host { protocol, ..Host::default() }.files(12, |_| 10 * MB);
        let mut world = World::new(Box::new(LowE::default())).host("one", host);
        // The path is full, and a trial of more streams brings nothing.
        world.mbps = 20.0;
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        world.aborts.len()
    };
    assert!(ended(Protocol::Http11) > 0, "there was no trial");
    assert_eq!(ended(Protocol::Http2), 0, "what was promised comes anyhow");
}

#[test]
fn who_answers_one_request_after_another_is_not_asked_for_more_and_more() {
    for policy in adaptive() {
        let name = policy.name().to_owned();
        // Each stream brings 3.2 MB/s, and each request costs all others a tenth of a second.
        let (rtt, takes_each) = (Duration::from_millis(2), Duration::from_millis(100));
        let host = Host { rtt, takes_each, window: 6_400, ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(1, |_| 50 * MB));
        world.mbps = 1_000.0;
        world.get_all();
        world.run();
        world.assert_each_byte_once();
        let (requests, seconds) = (world.fetches.len(), world.seconds());
        assert!(requests < 40 && seconds < 4.5, "{name}: {requests} requests, {seconds} s");
    }
}

#[test]
fn short_files_over_a_path_that_becomes_faster_are_asked_for_faster() {
    for policy in adaptive() {
        let name = policy.name().to_owned();
        let host = Host { rtt: Duration::from_millis(50), ..Host::default() };
        let mut world = World::new(policy).host("one", host.files(2_500, |_| 16_000));
        world.mbps = 10.0;
        world.get_all();
        world.run_for(secs(4));
        world.mbps = 80.0;
        world.run();
        world.assert_each_byte_once();
        // 5 MB in the first four seconds; the rest at a rate that is found out. Without, 15 s.
        assert!(world.seconds() < 12.0, "{name}: {} s", world.seconds());
    }
}
