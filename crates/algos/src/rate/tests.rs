//! Readers in virtual time.

use proptest::prelude::*;

use super::*;

const FIVE: Duration = Duration::from_secs(5);

/// A stream that reads as fast as it may and as its server sends.
struct Reader {
    file: u64,
    stream: StreamId,
    /// What its server sends.
    inflow: BitRate,
    begins: Duration,
    got: u64,
}

fn reader(file: u64, stream: u64, mbps: f64) -> Reader {
    let inflow = BitRate::from_mbps(mbps);
    Reader { file, stream: StreamId(stream), inflow, begins: Duration::ZERO, got: 0 }
}

/// Lets `readers` read for `time` at steps of a timer of 1 ms that is `late` at most.
fn read(budget: &mut RateBudget, readers: &mut [Reader], time: Duration) {
    let mut now = Timestamp::START;
    while now.since_start() < time {
        loop {
            let before: u64 = readers.iter().map(|reader| reader.got).sum();
            for reader in readers.iter_mut() {
                let since = now.since_start().saturating_sub(reader.begins);
                let there = (reader.inflow * since).0.saturating_sub(reader.got);
                if there == 0 {
                    continue;
                }
                match budget.ask(now, reader.file, reader.stream) {
                    Turn::Now(most) => {
                        let read = there.min(most);
                        reader.got += read;
                        budget.spend(now, reader.file, reader.stream, read);
                    }
                    Turn::At(at) => assert!(at > now),
                    Turn::Later => {}
                }
            }
            if readers.iter().map(|reader| reader.got).sum::<u64>() == before {
                break;
            }
        }
        now = now + Duration::from_millis(1);
    }
}

fn limited(mbps: f64) -> RateBudget {
    let mut budget = RateBudget::default();
    budget.set_rate(Timestamp::START, Some(BitRate::from_mbps(mbps)));
    budget
}

fn total(readers: &[Reader]) -> u64 {
    readers.iter().map(|reader| reader.got).sum()
}

#[test]
fn the_rate_is_met_within_two_percent_over_five_seconds() {
    for mbps in [0.1, 1.0, 8.0, 100.0, 1_000.0] {
        for streams in [1, 7, 64] {
            let mut readers: Vec<_> = (0..streams).map(|i| reader(i, i, 10_000.0)).collect();
            read(&mut limited(mbps), &mut readers, FIVE);
            let share = total(&readers) as f64 / (BitRate::from_mbps(mbps) * FIVE).as_f64();
            assert!((0.98..=1.02).contains(&share), "{mbps} Mbit/s, {streams} streams: {share}");
        }
    }
}

#[test]
fn files_share_evenly_however_many_streams_they_have() {
    let mut readers: Vec<_> = (0..9).map(|i| reader(u64::from(i > 0), i, 1_000.0)).collect();
    read(&mut limited(8.0), &mut readers, FIVE);
    let alone = readers[0].got as f64;
    let together = total(&readers[1..]) as f64;
    assert!((alone / together - 1.0).abs() < 0.02, "{alone} and {together}");
    for one in &readers[1..] {
        assert!((one.got as f64 * 8.0 / together - 1.0).abs() < 0.05);
    }
}

#[test]
fn what_a_slow_file_leaves_goes_to_the_others() {
    let mut readers = vec![reader(0, 0, 1.0), reader(1, 1, 1_000.0), reader(2, 2, 1_000.0)];
    read(&mut limited(8.0), &mut readers, FIVE);
    let mbps = |reader: &Reader| (Bytes(reader.got) / FIVE).mbps();
    assert!((0.95..=1.0).contains(&mbps(&readers[0])), "all that its server sends");
    assert!((mbps(&readers[1]) - 3.5).abs() < 0.1 && (mbps(&readers[2]) - 3.5).abs() < 0.1);
}

#[test]
fn a_file_that_comes_later_does_not_catch_up() {
    let mut readers = vec![reader(0, 0, 1_000.0), reader(1, 1, 1_000.0)];
    readers[1].begins = Duration::from_secs(4);
    read(&mut limited(8.0), &mut readers, FIVE);
    let expected = (BitRate::from_mbps(4.0) * Duration::from_secs(1)).as_f64();
    let late = readers[1].got as f64;
    assert!((late / expected - 1.0).abs() < 0.1, "{late} of {expected}");
}

#[test]
fn a_pause_saves_little_and_another_rate_counts_at_once() {
    let mut budget = limited(8.0);
    let minute = Timestamp::new(Duration::from_secs(60));
    let mut read = 0;
    while let Turn::Now(most) = budget.ask(minute, 0, StreamId(0)) {
        read += most;
        budget.spend(minute, 0, StreamId(0), most);
    }
    assert!(read <= 50_000, "50 ms of 1 MB/s, and not a minute: {read}");
    budget.set_rate(minute, None);
    assert_eq!(budget.ask(minute, 0, StreamId(0)), Turn::Now(u64::MAX));
    budget.set_rate(minute, Some(BitRate::from_bps(8.0 * 1024.0)));
    let Turn::At(at) = budget.ask(minute, 0, StreamId(0)) else { panic!("it has to wait") };
    assert!(at.saturating_since(minute) <= Duration::from_millis(1_001), "1 KiB at 1 KiB/s");
}

#[test]
fn who_withdraws_holds_nobody_up() {
    let mut budget = limited(8.0);
    let at = Timestamp::from_millis(100);
    assert!(matches!(budget.ask(at, 0, StreamId(0)), Turn::Now(_)));
    assert_eq!(budget.ask(at, 1, StreamId(1)), Turn::Later);
    assert_eq!(budget.next(), Some(StreamId(0)));
    budget.withdraw(0, StreamId(0));
    assert_eq!(budget.next(), Some(StreamId(1)));
    assert!(matches!(budget.ask(at, 1, StreamId(1)), Turn::Now(_)));
    budget.spend(at, 1, StreamId(1), 100);
    assert_eq!(budget.next(), None);
}

#[test]
fn files_that_are_over_are_forgotten() {
    let mut budget = limited(1_000.0);
    for file in 0..10_000 {
        let now = Timestamp::from_millis(100 + file);
        assert!(matches!(budget.ask(now, file, StreamId(file)), Turn::Now(_)));
        budget.spend(now, file, StreamId(file), 10);
    }
    assert!(budget.files.len() < 1_000, "{}", budget.files.len());
}

#[derive(Debug, Clone)]
enum Operation {
    Ask(u64, u64),
    Withdraw(u64, u64),
    Rate(Option<u32>),
    Wait(u16),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0u64..4, 0u64..4).prop_map(|(file, stream)| Operation::Ask(file, stream)),
        1 => (0u64..4, 0u64..4).prop_map(|(file, stream)| Operation::Withdraw(file, stream)),
        1 => proptest::option::of(any::<u32>()).prop_map(Operation::Rate),
        3 => any::<u16>().prop_map(Operation::Wait),
    ]
}

proptest! {
    /// While a limit holds, nothing goes beyond it and what was saved.
    #[test]
    fn never_more_than_the_limit(mbit in 1u32..2_000, waits in proptest::collection::vec((any::<u16>(), 0u64..4), 1..200)) {
        let rate = BitRate::from_mbps(f64::from(mbit) / 10.0);
        let mut budget = RateBudget::default();
        budget.set_rate(Timestamp::START, Some(rate));
        let (mut now, mut read) = (Timestamp::START, 0);
        for (micros, file) in waits {
            now = now + Duration::from_micros(u64::from(micros));
            if let Turn::Now(most) = budget.ask(now, file, StreamId(file)) {
                read += most;
                budget.spend(now, file, StreamId(file), most);
            }
        }
        let allowed = (rate * now.since_start()).0 + (rate * SAVED).0.max(2 * LONGEST_TURN);
        prop_assert!(read <= allowed, "{} of {}", read, allowed);
    }

    /// Whoever is next gets its turn after the time that it was told, whatever happened before.
    #[test]
    fn who_waits_is_served(operations in proptest::collection::vec(any_operation(), 0..200)) {
        let mut budget = RateBudget::default();
        let mut now = Timestamp::START;
        for operation in operations {
            match operation {
                Operation::Ask(file, stream) => {
                    let id = StreamId(file * 10 + stream);
                    if let Turn::Now(most) = budget.ask(now, file, id) {
                        budget.spend(now, file, id, most.min(10_000));
                    }
                }
                Operation::Withdraw(file, stream) => budget.withdraw(file, StreamId(file * 10 + stream)),
                Operation::Rate(rate) => budget.set_rate(now, rate.map(|bps| BitRate::from_bps(f64::from(bps)))),
                Operation::Wait(millis) => now = now + Duration::from_millis(u64::from(millis)),
            }
            prop_assert!(budget.waiting.iter().all(|(served, file)| budget.files[file].served == *served));
        }
        for _ in 0..40 {
            let Some(stream) = budget.next() else { return Ok(()) };
            let file = stream.0 / 10;
            if let Turn::At(at) = budget.ask(now, file, stream) {
                prop_assert!(at > now);
                now = at + Duration::from_micros(1);
            }
            let turn = budget.ask(now, file, stream);
            prop_assert!(matches!(turn, Turn::Now(_)), "{:?}", turn);
            budget.spend(now, file, stream, 1_000);
        }
        prop_assert_eq!(budget.next(), None);
    }
}
