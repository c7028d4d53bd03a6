//! Readers in virtual time.

mod any;

use std::time::Duration;

use super::*;

const FIVE: Duration = Duration::from_secs(5);

/// A stream that reads as fast as it may and as its server sends.
struct Stream {
    run: usize,
    reader: Reader,
    /// What its server sends.
    inflow: BitRate,
    begins: Duration,
    got: u64,
}

fn stream(file: u64, stream: u64, mbps: f64) -> Stream {
    let reader = Reader { origin: 0, file, stream: StreamId(stream) };
    let inflow = BitRate::from_mbps(mbps);
    Stream { run: 0, reader, inflow, begins: Duration::ZERO, got: 0 }
}

/// One stream of the file of the same number, which reads what comes at once.
fn file_of(origin: u64, file: u64) -> Stream {
    let reader = Reader { origin, file, stream: StreamId(file) };
    Stream { reader, ..stream(file, file, 10_000.0) }
}

/// Runs of one client.
struct Runs {
    common: CommonRate,
    budgets: Vec<RateBudget>,
    now: Timestamp,
}

impl Runs {
    fn new(count: u64) -> Self {
        let budgets = (0..count).map(RateBudget::new).collect();
        Self { common: CommonRate::default(), budgets, now: Timestamp::START }
    }

    /// Lets `streams` read for `time` at steps of a timer of 1 ms that is late by that at most.
    fn read(&mut self, streams: &mut [Stream], time: Duration) {
        let end = self.now + time;
        while self.now < end {
            while streams
                .iter_mut()
                .map(|stream| self.step(stream))
                .fold(false, |any, one| any | one)
            {}
            self.now = self.now + Duration::from_millis(1);
        }
    }

    fn step(&mut self, stream: &mut Stream) -> bool {
        let (now, budget) = (self.now, &mut self.budgets[stream.run]);
        let since = now.since_start().saturating_sub(stream.begins);
        let there = (stream.inflow * since).0.saturating_sub(stream.got);
        if there == 0 {
            budget.withdraw(stream.reader, &mut self.common);
            return false;
        }
        match budget.ask(now, stream.reader, &mut self.common) {
            Turn::Now(most) => {
                let read = there.min(most);
                stream.got += read;
                budget.spend(now, stream.reader, read, &mut self.common);
                true
            }
            Turn::At(at) => {
                assert!(at > now);
                false
            }
            Turn::Later => false,
        }
    }
}

/// One run with this limit.
fn limited(rate: f64) -> Runs {
    let mut runs = Runs::new(1);
    runs.budgets[0].set_rate(Timestamp::START, Some(BitRate::from_mbps(rate)));
    runs
}

/// One run with this limit of each origin.
fn limited_per_origin(rate: f64) -> Runs {
    let mut runs = Runs::new(1);
    runs.budgets[0].set_rate_per_origin(Timestamp::START, Some(BitRate::from_mbps(rate)));
    runs
}

fn total<'a>(streams: impl IntoIterator<Item = &'a Stream>) -> u64 {
    streams.into_iter().map(|stream| stream.got).sum()
}

/// What came in `time` as part of what `rate` allows.
fn part_of(rate: f64, time: Duration, bytes: u64) -> f64 {
    bytes as f64 / (BitRate::from_mbps(rate) * time).as_f64()
}

fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{what}: {found}, expected {expected}");
}

#[test]
fn the_rate_is_met_within_two_percent_over_five_seconds() {
    for rate in [0.1, 1.0, 8.0, 100.0, 1_000.0] {
        for count in [1, 7, 64] {
            let what = format!("{rate} Mbit/s, {count} streams");
            let limit = |level: usize| {
                let mut runs = Runs::new(1);
                match level {
                    0 => runs.budgets[0].set_rate(Timestamp::START, Some(BitRate::from_mbps(rate))),
                    1 => runs.budgets[0]
                        .set_rate_per_origin(Timestamp::START, Some(BitRate::from_mbps(rate))),
                    _ => runs.common.set_rate(Timestamp::START, Some(BitRate::from_mbps(rate))),
                }
                runs
            };
            for level in 0..3 {
                let mut streams: Vec<_> = (0..count).map(|i| stream(i, i, 10_000.0)).collect();
                limit(level).read(&mut streams, FIVE);
                let part = part_of(rate, FIVE, total(&streams));
                assert_near(part, 1.0, 0.02, &format!("level {level}, {what}"));
            }
        }
    }
}

#[test]
fn files_share_evenly_however_many_streams_they_have() {
    let mut streams: Vec<_> = (0..9).map(|i| stream(u64::from(i > 0), i, 1_000.0)).collect();
    limited(8.0).read(&mut streams, FIVE);
    let together = total(&streams[1..]) as f64;
    assert_near(streams[0].got as f64, together, 0.02, "one stream and eight");
    for one in &streams[1..] {
        assert_near(one.got as f64 * 8.0, together, 0.05, "a stream of eight");
    }
}

#[test]
fn files_share_evenly_whatever_origin_they_come_from() {
    let mut streams: Vec<_> = (0..5).map(|file| file_of(u64::from(file == 0), file)).collect();
    limited(8.0).read(&mut streams, FIVE);
    for one in &streams {
        assert_near(part_of(8.0, FIVE, one.got), 0.2, 0.02, "one of five");
    }
}

#[test]
fn each_origin_has_its_limit_and_its_files_share_it() {
    let mut streams: Vec<_> = (0..6).map(|file| file_of(u64::from(file < 2), file)).collect();
    limited_per_origin(4.0).read(&mut streams, FIVE);
    let (two, four) = streams.split_at(2);
    assert_near(part_of(4.0, FIVE, total(two)), 1.0, 0.02, "two files");
    assert_near(part_of(4.0, FIVE, total(four)), 1.0, 0.02, "four files");
    assert_near(two[0].got as f64, two[1].got as f64, 0.02, "of two");
    assert_near(four[0].got as f64, four[3].got as f64, 0.02, "of four");
}

#[test]
fn what_a_held_origin_leaves_of_the_runs_limit_goes_to_others() {
    // One limit of 6 Mbit/s, and 2 Mbit/s for each origin: of four files at one and one at another the
    // former would have more.
    let mut runs = limited(6.0);
    runs.budgets[0].set_rate_per_origin(Timestamp::START, Some(BitRate::from_mbps(4.0)));
    let mut streams: Vec<_> = (0..5).map(|file| file_of(u64::from(file == 0), file)).collect();
    runs.read(&mut streams, FIVE);
    assert_near(part_of(6.0, FIVE, total(&streams)), 1.0, 0.02, "the run");
    assert_near(part_of(2.0, FIVE, streams[0].got), 1.0, 0.05, "the file alone has what is left");
    assert_near(part_of(4.0, FIVE, total(&streams[1..])), 1.0, 0.02, "the other origin");
}

#[test]
fn an_origin_that_was_held_does_not_catch_up() {
    let mut runs = limited(8.0);
    let mut streams = vec![file_of(0, 0), file_of(1, 1)];
    // The files of origin 1 are slow by themselves, those of origin 0 by the limit.
    runs.budgets[0].set_rate_per_origin(Timestamp::START, Some(BitRate::from_mbps(6.0)));
    streams.push(file_of(0, 2));
    runs.read(&mut streams, FIVE);
    let before: Vec<u64> = streams.iter().map(|stream| stream.got).collect();
    runs.budgets[0].set_rate_per_origin(runs.now, None);
    runs.read(&mut streams, Duration::from_secs(1));
    for (stream, before) in streams.iter().zip(before) {
        let part = part_of(8.0, Duration::from_secs(1), stream.got - before);
        assert_near(part, 1.0 / 3.0, 0.05, "a third from now on");
    }
}

#[test]
fn what_a_slow_file_leaves_goes_to_the_others() {
    let mut streams = vec![stream(0, 0, 1.0), stream(1, 1, 1_000.0), stream(2, 2, 1_000.0)];
    limited(8.0).read(&mut streams, FIVE);
    assert!((0.95..=1.0).contains(&part_of(1.0, FIVE, streams[0].got)), "all that is sent");
    assert_near(part_of(3.5, FIVE, streams[1].got), 1.0, 0.03, "half of the rest");
    assert_near(part_of(3.5, FIVE, streams[2].got), 1.0, 0.03, "half of the rest");
}

#[test]
fn a_file_that_comes_later_does_not_catch_up() {
    for origin in 0..2 {
        let mut streams = vec![file_of(0, 0), file_of(origin, 1)];
        streams[1].begins = Duration::from_secs(4);
        limited(8.0).read(&mut streams, FIVE);
        let part = part_of(4.0, Duration::from_secs(1), streams[1].got);
        assert_near(part, 1.0, 0.1, "the half of the last second");
    }
}

#[test]
fn runs_share_the_limit_above_them_by_their_files() {
    for (rate, files) in [(8.0, 2), (80.0, 5), (1_000.0, 20)] {
        let mut runs = Runs::new(3);
        runs.common.set_rate(Timestamp::START, Some(BitRate::from_mbps(rate)));
        // Run 0 has one file, run 1 has several, and run 2 has less to do than it might.
        let mut streams: Vec<_> = (0..=files).map(|file| file_of(0, file)).collect();
        streams[1..].iter_mut().for_each(|stream| stream.run = 1);
        streams.push(Stream { run: 2, ..stream(0, 99, rate / 100.0) });
        runs.read(&mut streams, FIVE);
        let what = format!("{rate} Mbit/s over {files} files");
        assert_near(part_of(rate, FIVE, total(&streams)), 1.0, 0.02, &what);
        let slow = streams.pop().map_or(0, |stream| stream.got);
        assert_near(part_of(rate / 100.0, FIVE, slow), 1.0, 0.05, "all that its server sends");
        let one = total(&streams) as f64 / (files + 1) as f64;
        for stream in &streams {
            assert_near(stream.got as f64, one, 0.05, &what);
        }
    }
}

#[test]
fn a_run_that_is_held_by_its_own_limit_leaves_the_rest_to_others() {
    let mut runs = Runs::new(2);
    runs.common.set_rate(Timestamp::START, Some(BitRate::from_mbps(10.0)));
    runs.budgets[0].set_rate(Timestamp::START, Some(BitRate::from_mbps(2.0)));
    let mut streams = vec![file_of(0, 0), Stream { run: 1, ..file_of(0, 0) }];
    runs.read(&mut streams, FIVE);
    assert_near(part_of(2.0, FIVE, streams[0].got), 1.0, 0.02, "its own limit");
    assert_near(part_of(8.0, FIVE, streams[1].got), 1.0, 0.02, "the rest");
    assert!(!runs.common.holds(runs.now, 0), "it is not this limit that holds it");
    assert!(runs.common.holds(runs.now, 1));
}

#[test]
fn a_thread_that_hangs_holds_no_other_run_up() {
    let mut runs = Runs::new(2);
    runs.common.set_rate(Timestamp::START, Some(BitRate::from_mbps(8.0)));
    // It asks, and never comes back.
    runs.budgets[0].ask(runs.now, file_of(0, 0).reader, &mut runs.common);
    let mut streams = [Stream { run: 1, ..file_of(0, 0) }];
    runs.read(&mut streams, FIVE);
    assert_near(part_of(8.0, FIVE, streams[0].got), 1.0, 0.02, "the other run");
}

#[test]
fn a_limit_of_all_runs_moves_and_goes_while_they_read() {
    let mut runs = Runs::new(2);
    runs.common.set_rate(Timestamp::START, Some(BitRate::from_mbps(8.0)));
    let mut streams = [file_of(0, 0), Stream { run: 1, ..file_of(0, 0) }];
    runs.read(&mut streams, FIVE);
    let before = total(&streams);
    runs.common.set_rate(runs.now, Some(BitRate::from_mbps(80.0)));
    runs.read(&mut streams, FIVE);
    assert_near(part_of(80.0, FIVE, total(&streams) - before), 1.0, 0.02, "ten times as fast");
    runs.common.set_rate(runs.now, None);
    let reader = streams[0].reader;
    assert_eq!(runs.budgets[0].ask(runs.now, reader, &mut runs.common), Turn::Now(u64::MAX));
    assert!(!runs.common.holds(runs.now, 0));
    runs.common.forget(1);
    runs.common.set_rate(runs.now, Some(BitRate::from_mbps(8.0)));
    let before = streams[0].got;
    // What it could have read without a limit is there.
    runs.read(&mut streams[..1], FIVE);
    assert_near(part_of(8.0, FIVE, streams[0].got - before), 1.0, 0.02, "the only run has all");
}

#[test]
fn a_pause_saves_little_and_another_rate_counts_at_once() {
    let reader = file_of(0, 0).reader;
    let minute = Timestamp::new(Duration::from_secs(60));
    for level in 0..3 {
        let mut common = CommonRate::default();
        let mut budget = RateBudget::new(0);
        let set = |budget: &mut RateBudget, common: &mut CommonRate, now, rate| match level {
            0 => budget.set_rate(now, rate),
            1 => budget.set_rate_per_origin(now, rate),
            _ => common.set_rate(now, rate),
        };
        set(&mut budget, &mut common, Timestamp::START, Some(BitRate::from_mbps(8.0)));
        let mut read = 0;
        while let Turn::Now(most) = budget.ask(minute, reader, &mut common) {
            read += most;
            budget.spend(minute, reader, most, &mut common);
        }
        assert!(read <= 50_000, "50 ms of 1 MB/s, and not a minute: {read}");
        set(&mut budget, &mut common, minute, None);
        assert_eq!(budget.ask(minute, reader, &mut common), Turn::Now(u64::MAX));
        set(&mut budget, &mut common, minute, Some(BitRate::from_bps(8.0 * 1024.0)));
        let Turn::At(at) = budget.ask(minute, reader, &mut common) else { panic!("it waits") };
        assert!(at.saturating_since(minute) <= Duration::from_millis(1_001), "1 KiB at 1 KiB/s");
    }
}

#[test]
fn a_rate_of_zero_is_no_limit_and_a_huge_one_holds_nobody() {
    let reader = file_of(0, 0).reader;
    for (rate, least) in [(0.0, u64::MAX), (f64::MAX, 1), (f64::MIN_POSITIVE, 0)] {
        let rate = Some(BitRate::from_bps(rate));
        let (mut budget, mut common) = (RateBudget::new(0), CommonRate::default());
        common.set_rate(Timestamp::START, rate);
        budget.set_rate(Timestamp::START, rate);
        budget.set_rate_per_origin(Timestamp::START, rate);
        let mut at = Timestamp::from_millis(1);
        loop {
            match budget.ask(at, reader, &mut common) {
                Turn::Now(most) => break assert!(most >= least.max(1)),
                Turn::At(later) if least > 0 => at = later,
                waits => break assert!(matches!(waits, Turn::At(_)), "{waits:?}"),
            }
        }
        assert!(at <= Timestamp::from_millis(20), "{at:?}");
    }
}

#[test]
fn who_withdraws_holds_nobody_up() {
    let Runs { mut common, mut budgets, .. } = limited(8.0);
    let budget = &mut budgets[0];
    let at = Timestamp::from_millis(100);
    let (one, other) = (file_of(0, 0).reader, file_of(1, 1).reader);
    assert!(matches!(budget.ask(at, one, &mut common), Turn::Now(_)));
    assert_eq!(budget.ask(at, other, &mut common), Turn::Later);
    assert_eq!(budget.next(at), Some(StreamId(0)));
    budget.withdraw(one, &mut common);
    assert_eq!(budget.next(at), Some(StreamId(1)));
    assert!(matches!(budget.ask(at, other, &mut common), Turn::Now(_)));
    budget.spend(at, other, 100, &mut common);
    assert_eq!(budget.next(at), None);
}

#[test]
fn a_run_that_withdraws_gives_back_what_it_has_borrowed() {
    let mut runs = Runs::new(2);
    runs.common.set_rate(Timestamp::START, Some(BitRate::from_mbps(8.0)));
    let reader = file_of(0, 0).reader;
    let [one, other] = &mut runs.budgets[..] else { panic!("two runs") };
    let Turn::At(at) = one.ask(Timestamp::START, reader, &mut runs.common) else { panic!("early") };
    one.withdraw(reader, &mut runs.common);
    let Turn::Now(_) = other.ask(at, reader, &mut runs.common) else { panic!("it is there") };
}

#[test]
fn files_that_are_over_are_forgotten() {
    let mut runs = limited(1_000.0);
    for file in 0..10_000 {
        let now = Timestamp::from_millis(100 + file);
        let reader = file_of(file % 2, file).reader;
        assert!(matches!(runs.budgets[0].ask(now, reader, &mut runs.common), Turn::Now(_)));
        runs.budgets[0].spend(now, reader, 10, &mut runs.common);
    }
    let files = runs.budgets[0].origins.values().map(|origin| origin.files.len()).sum::<usize>();
    assert!(files < 1_000, "{files}");
}
