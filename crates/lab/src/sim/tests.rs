//! Whole runs whose times can be reckoned by hand.

use std::time::Duration;

use pelton_algos::policy::{Eht, Fixed, FixedConfig, Hat, LowE, Policy};
use pelton_algos::units::BitRate;
use pelton_core::connection::Protocol;

use super::*;
use crate::sets;

const H1: OriginConfig = OriginConfig::plain(Protocol::Http11, false);

fn link(mbps: f64, rtt_millis: u64) -> LinkSpec {
    LinkSpec::plain(BitRate::from_mbps(mbps), Duration::from_millis(rtt_millis)).unwrap()
}

fn fixed(concurrency: u32, parallelism: u32) -> Box<dyn Policy> {
    Box::new(Fixed::new(FixedConfig { concurrency, parallelism, pipelining: 1 }))
}

fn files(sizes: &[u64]) -> FileList {
    let files: Vec<_> = sizes
        .iter()
        .enumerate()
        .map(|(i, size)| VirtualFile::new(format!("/file-{i}.bin"), *size, 0))
        .collect();
    FileList::new(&files).unwrap()
}

#[test]
fn one_stream_needs_handshakes_slow_start_and_the_rate() {
    // TCP, TLS, request: 3 round trips of 100 ms. 10 MB in segments of 1500 B at 50 Mbit/s: 1.66 s.
    let files = files(&[10_000_000]);
    let link = link(50.0, 100);
    let tls = OriginConfig::plain(Protocol::Http11, true);
    let ending = Scenario::new(&link, tls, &files, 1).run(fixed(1, 1));
    assert!(ending.is_complete);
    // Slow start from ten segments to a window of 432 takes between five and nine round trips
    // more, for `HyStart` leaves it early.
    assert!((2.3..2.9).contains(&ending.seconds), "{}", ending.seconds);
    assert_eq!(ending.connections, 1);
    assert!((2..10).contains(&ending.requests), "{} parts", ending.requests);
    assert_eq!(ending.bytes, Bytes(10_000_000));
}

#[test]
fn a_loss_bounds_one_stream_as_the_square_root_law_says() {
    // Mathis et al. 1997: 1448 B / 30 ms x sqrt(3 / (2 x 0.005)) = 6.7 Mbit/s.
    let mut link = link(1000.0, 30);
    link.down.loss.random = 0.005;
    let files = files(&[50_000_000]);
    let ending = Scenario::new(&link, H1, &files, 3).run(fixed(1, 1));
    let mbps = 400.0 / ending.seconds;
    assert!((5.0..8.5).contains(&mbps), "{mbps} Mbit/s");
    let share = ending.lost_segments as f64 / ending.segments as f64;
    assert!((0.004..0.006).contains(&share), "{share}");
}

#[test]
fn each_small_file_over_one_connection_costs_a_round_trip() {
    let files = files(&[1_000; 50]);
    let link = link(100.0, 40);
    let ending = Scenario::new(&link, H1, &files, 1).run(fixed(1, 1));
    // One for TCP, then one for each.
    assert!((51.0 * 0.040..51.0 * 0.042).contains(&ending.seconds), "{}", ending.seconds);
    // Ten at a time over HTTP/2 share what one waits for.
    let http2 = OriginConfig::plain(Protocol::Http2, false);
    let pipelined = FixedConfig { concurrency: 1, parallelism: 1, pipelining: 10 };
    let mut scenario = Scenario::new(&link, http2, &files, 1);
    scenario.engine.limits.max_connections_per_origin = 1;
    let ending = scenario.run(Box::new(Fixed::new(pipelined)));
    assert!(ending.seconds < 12.0 * 0.040, "{}", ending.seconds);
    assert_eq!(ending.connections, 1);
}

#[test]
fn a_server_that_caps_connections_is_met_with_more_of_them() {
    let capped = OriginConfig { connection_rate: Some(BitRate::from_mbps(2.0)), ..H1 };
    let files = files(&[5_000_000]);
    let link = link(50.0, 20);
    let one = Scenario::new(&link, capped, &files, 1).run(fixed(1, 1));
    let eight = Scenario::new(&link, capped, &files, 1).run(fixed(1, 8));
    assert!((20.0..21.0).contains(&one.seconds), "{}", one.seconds);
    assert!(eight.seconds < 3.5, "{}", eight.seconds);
}

#[test]
fn what_sixteen_capped_connections_bring_is_not_taken_for_the_link() {
    let capped = OriginConfig { connection_rate: Some(BitRate::from_mbps(0.5)), ..H1 };
    let cases: [(Box<dyn Policy>, Vec<u64>); 3] = [
        (Box::new(LowE::default()), vec![500_000; 60]),
        (Box::new(Hat), vec![500_000; 60]),
        (Box::new(Hat), vec![5_000_000; 6]),
    ];
    for (policy, sizes) in cases {
        let name = policy.name().to_owned();
        let ending = Scenario::new(&link(50.0, 40), capped, &files(&sizes), 1).run(policy);
        let over_sixteen = ending.bytes / BitRate::from_mbps(16.0 * 0.5);
        let share = ending.seconds / over_sixteen.as_secs_f64();
        assert!(share < 0.75, "{name}: {share} of what sixteen take, {} files", sizes.len());
    }
}

#[test]
fn what_is_cut_over_http2_does_not_come() {
    let http2 = OriginConfig::plain(Protocol::Http2, false);
    let files = files(&[24_000_000]);
    // Socket buffers would hold six windows of each connection, and every stream is cut in the end.
    let ending = Scenario::new(&link(50.0, 100), http2, &files, 1).run(fixed(1, 4));
    let beyond = ending.received.0 - ending.bytes.0;
    assert!(ending.requests > 4, "{} requests", ending.requests);
    assert!(beyond < 500_000, "{beyond} bytes beyond");
}

#[test]
fn a_server_that_caps_all_is_not_outrun() {
    let capped = OriginConfig { rate: Some(BitRate::from_mbps(8.0)), ..H1 };
    let files = files(&[1_000_000; 8]);
    let ending = Scenario::new(&link(50.0, 20), capped, &files, 1).run(fixed(8, 1));
    assert!((8.0..8.6).contains(&ending.seconds), "{}", ending.seconds);
}

#[test]
fn the_end_does_not_wait_for_a_connection_that_crawls() {
    let files = files(&[4_000_000; 10]);
    let link = link(50.0, 40);
    for policy in
        [Box::new(LowE::default()) as Box<dyn Policy>, Box::new(Hat), Box::new(Eht::default())]
    {
        let name = policy.name().to_owned();
        let crawling =
            OriginConfig { crawling_connection: Some((0, BitRate::from_mbps(0.02))), ..H1 };
        let ending = Scenario::new(&link, crawling, &files, 1).run(policy);
        // 6.5 s of bytes. A quarter of its first file would crawl for minutes.
        assert!(ending.is_complete && ending.seconds < 10.0, "{name}: {} s", ending.seconds);
    }
}

#[test]
fn an_overloaded_server_is_obeyed_and_everything_arrives() {
    let overload = Overload { bears: 3, retry_after: Some(Duration::from_secs(1)) };
    let origin = OriginConfig { overload: Some(overload), ..H1 };
    // More than a socket takes at once: a response that is written is no load any more.
    let files = files(&[200_000; 40]);
    let ending = Scenario::new(&link(20.0, 30), origin, &files, 1).run(Box::new(Hat));
    assert!(ending.is_complete);
    assert!(ending.retries > 0);
}

#[test]
fn an_outage_is_survived() {
    use crate::model::{Capacity, Change, RateSchedule};
    let outage = Change::Outage { at: Duration::from_secs(1), lasting: Duration::from_secs(5) };
    let mut link = link(20.0, 30);
    let schedule = RateSchedule::new(BitRate::from_mbps(20.0), &[outage]).unwrap();
    link.down.capacity = Capacity::Rate(schedule);
    let files = files(&[10_000_000]);
    let ending = Scenario::new(&link, H1, &files, 1).run(fixed(1, 1));
    assert!(ending.is_complete);
    // 4.2 s of bytes, 5 s without any, and what is left of a time-out that has doubled up to 6 s.
    assert!((9.2..14.0).contains(&ending.seconds), "{}", ending.seconds);
}

#[test]
fn a_path_that_becomes_longer_is_filled_again() {
    // 40 Mbit/s, a round trip of 40 ms, and of 300 ms after four seconds.
    let mut longer = link(40.0, 40);
    for direction in [&mut longer.down, &mut longer.up] {
        direction.delays.push((Duration::from_secs(4), Duration::from_millis(150)));
        direction.queue = Bytes(600_000);
    }
    let many = files(&vec![16_000; 2_500]);
    let one = files(&[40_000_000]);
    for (files, policy) in [
        (&many, Box::<Eht>::default() as Box<dyn Policy>),
        (&many, Box::<LowE>::default()),
        (&one, Box::<Eht>::default()),
        (&one, Box::<Hat>::default()),
    ] {
        let ending = Scenario::new(&longer, H1, files, 1).run(policy);
        assert!(ending.is_complete);
        let floor = longer.down.time_for(ending.bytes).as_secs_f64();
        assert!(ending.seconds < 1.8 * floor, "{} of {floor} s", ending.seconds);
    }
}

#[test]
fn a_slow_and_short_path_is_not_overfilled_by_one_file() {
    let mut link = link(4.6, 5);
    link.down.queue = Bytes(20_000);
    let files = files(&[10_000_000]);
    for policy in [Box::new(Hat) as Box<dyn Policy>, Box::new(Eht::default())] {
        let ending = Scenario::new(&link, H1, &files, 1).run(policy);
        let lost = ending.lost_segments as f64 / ending.segments as f64;
        // Sixteen first windows at once, and what fills a short queue now and then.
        assert!(ending.connections <= 20 && lost < 0.06, "{}, {lost}", ending.connections);
        assert!(ending.seconds < 18.5, "{}", ending.seconds);
    }
}

#[test]
fn short_files_over_a_long_path_do_not_overfill_its_queue() {
    let mut link = link(10.0, 600);
    link.down.queue = Bytes(750_000);
    let files = files(&[12_000; 400]);
    let http2 = OriginConfig::plain(Protocol::Http2, true);
    let ending = Scenario::new(&link, http2, &files, 1).run(Box::new(Hat));
    assert_eq!(ending.lost_segments, 0);
    // 4.8 MB take 4 s, and the handshakes with the first answer 1.8.
    assert!(ending.seconds < 6.6, "{}", ending.seconds);
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_not() {
    let mut link = link(20.0, 60);
    link.down.loss.random = 0.01;
    let files = FileList::new(&sets::worked_example(1)).unwrap();
    let run = |seed| {
        let mut scenario = Scenario::new(&link, H1, &files, seed);
        scenario.traced = true;
        scenario.run(Box::new(Eht::default()))
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn joules_follow_time_and_bytes() {
    let files = files(&[10_000_000]);
    let fast = Scenario::new(&link(50.0, 20), H1, &files, 1).run(fixed(1, 1));
    let slow = Scenario::new(&link(5.0, 20), H1, &files, 1).run(fixed(1, 1));
    // Wi-Fi: 137 nJ a bit for the bytes, 0.28 W with the device's base for the time.
    let by_hand = |ending: &Ending| 0.137_01 * 80.0 * 1.05 + 0.283 * ending.seconds;
    for ending in [fast, slow] {
        let ratio = ending.energy.get() / by_hand(&ending);
        assert!((0.95..1.1).contains(&ratio), "{ratio} {}", ending.energy);
    }
}

/// The trajectories of the policies: a change in any of them is to be seen and judged.
#[test]
fn trajectories() {
    let files = FileList::new(&sets::worked_example(1)).unwrap();
    let link = link(50.0, 200);
    let tls = OriginConfig::plain(Protocol::Http11, true);
    for policy in
        [Box::new(LowE::default()) as Box<dyn Policy>, Box::new(Hat), Box::new(Eht::default())]
    {
        let name = policy.name().to_owned();
        let mut scenario = Scenario::new(&link, tls, &files, 1);
        scenario.traced = true;
        let ending = scenario.run(policy);
        insta::assert_snapshot!(name, chart::text(&ending));
    }
}
