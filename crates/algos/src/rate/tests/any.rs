//! Whatever readers and limits do.

use proptest::prelude::*;

use super::super::bucket::{LONGEST_TURN, SAVED};
use super::*;

#[derive(Debug, Clone)]
enum Operation {
    Ask(u64, u64),
    Withdraw(u64, u64),
    Rate(Option<u32>),
    RatePerOrigin(Option<u32>),
    CommonRate(Option<u32>),
    Wait(u16),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let rate = proptest::option::of(any::<u32>());
    prop_oneof![
        6 => (0u64..4, 0u64..4).prop_map(|(file, stream)| Operation::Ask(file, stream)),
        1 => (0u64..4, 0u64..4).prop_map(|(file, stream)| Operation::Withdraw(file, stream)),
        1 => rate.clone().prop_map(Operation::Rate),
        1 => rate.clone().prop_map(Operation::RatePerOrigin),
        1 => rate.prop_map(Operation::CommonRate),
        3 => any::<u16>().prop_map(Operation::Wait),
    ]
}

/// Two origins with two files of four streams each.
fn of_four(file: u64, stream: u64) -> Reader {
    Reader { origin: file % 2, file, stream: StreamId(file * 10 + stream) }
}

proptest! {
    /// While limits hold, nothing goes beyond any of them and what was saved.
    #[test]
    fn never_more_than_the_limits(
        rates in proptest::array::uniform3(1u32..2_000),
        waits in proptest::collection::vec((any::<u16>(), 0u64..4), 1..200),
    ) {
        let [all, origin, above] = rates.map(|mbit| BitRate::from_mbps(f64::from(mbit) / 10.0));
        let (mut budget, mut common) = (RateBudget::new(0), CommonRate::default());
        budget.set_rate(Timestamp::START, Some(all));
        budget.set_rate_per_origin(Timestamp::START, Some(origin));
        common.set_rate(Timestamp::START, Some(above));
        let (mut now, mut read) = (Timestamp::START, [0; 2]);
        for (micros, file) in waits {
            now = now + Duration::from_micros(u64::from(micros));
            let reader = of_four(file, 0);
            if let Turn::Now(most) = budget.ask(now, reader, &mut common) {
                read[reader.origin as usize] += most;
                budget.spend(now, reader, most, &mut common);
            }
        }
        let allowed =
            |rate: BitRate| (rate * now.since_start()).0 + (rate * SAVED).0.max(2 * LONGEST_TURN);
        let all = if all < above { all } else { above };
        prop_assert!(read.iter().sum::<u64>() <= allowed(all), "{:?}", read);
        prop_assert!(read.iter().all(|read| *read <= allowed(origin)), "{:?}", read);
    }

    /// Whoever is next gets its turn after the time that it was told, whatever happened before.
    #[test]
    fn who_waits_is_served(operations in proptest::collection::vec(any_operation(), 0..200)) {
        let (mut budget, mut common) = (RateBudget::new(0), CommonRate::default());
        let mut now = Timestamp::START;
        let rate = |rate: Option<u32>| rate.map(|bps| BitRate::from_bps(f64::from(bps)));
        for operation in operations {
            match operation {
                Operation::Ask(file, stream) => {
                    let reader = of_four(file, stream);
                    if let Turn::Now(most) = budget.ask(now, reader, &mut common) {
                        budget.spend(now, reader, most.min(10_000), &mut common);
                    }
                }
                Operation::Withdraw(file, stream) => budget.withdraw(of_four(file, stream), &mut common),
                Operation::Rate(bps) => budget.set_rate(now, rate(bps)),
                Operation::RatePerOrigin(bps) => budget.set_rate_per_origin(now, rate(bps)),
                Operation::CommonRate(bps) => common.set_rate(now, rate(bps)),
                Operation::Wait(millis) => now = now + Duration::from_millis(u64::from(millis)),
            }
            for origin in budget.origins.values() {
                let known = |(served, file): &(u64, u64)| origin.files[file].served == *served;
                prop_assert!(origin.waiting.iter().all(known));
            }
        }
        for _ in 0..100 {
            let Some(stream) = budget.next(now) else { return Ok(()) };
            let reader = of_four(stream.0 / 10, stream.0 % 10);
            match budget.ask(now, reader, &mut common) {
                Turn::Now(_) => budget.spend(now, reader, 1_000, &mut common),
                Turn::At(at) => {
                    prop_assert!(at > now);
                    now = at + Duration::from_micros(1);
                }
                Turn::Later => prop_assert!(false, "it is the next"),
            }
        }
        prop_assert_eq!(budget.next(now), None);
    }
}
