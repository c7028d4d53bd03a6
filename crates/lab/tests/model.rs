//! What any link does: its rate, its order, its losses, its queue.

#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};
use pelton_lab::model::{
    Capacity, Cause, Direction, DirectionSpec, GilbertElliott, LinkModel, LinkSpec, Loss,
    RateSchedule, Trace, Verdict,
};
use proptest::prelude::*;

fn direction(rate: BitRate) -> DirectionSpec {
    DirectionSpec {
        capacity: Capacity::Rate(RateSchedule::constant(rate).unwrap()),
        delays: vec![(Duration::ZERO, Duration::from_millis(30))],
        jitter: Duration::ZERO,
        loss: Loss::default(),
        queue: Bytes(150_000),
    }
}

/// Offers `count` packets of 1500 bytes, `load` times as fast as `rate`.
fn flood(spec: &DirectionSpec, seed: u64, count: u32, rate: BitRate, load: f64) -> Vec<Verdict> {
    let mut direction = Direction::new(spec, seed);
    let gap = Bytes(1500) / (rate * load);
    (0..count).map(|index| direction.offer(Timestamp::START + gap * index, Bytes(1500))).collect()
}

fn deliveries(verdicts: &[Verdict]) -> Vec<Timestamp> {
    let delivered = |verdict: &Verdict| match *verdict {
        Verdict::Delivered { at } => Some(at),
        Verdict::Dropped(_) => None,
    };
    verdicts.iter().filter_map(delivered).collect()
}

fn lost(verdicts: &[Verdict]) -> f64 {
    let lost = verdicts.iter().filter(|verdict| **verdict == Verdict::Dropped(Cause::Lost));
    lost.count() as f64 / verdicts.len() as f64
}

#[test]
fn a_packet_takes_its_serialisation_and_the_delay() {
    // 1500 bytes at 12 Mbit/s are 1 ms; the second waits for the first.
    let mut link = Direction::new(&direction(BitRate::from_mbps(12.0)), 1);
    let at = |millis| Verdict::Delivered { at: Timestamp::from_millis(millis) };
    assert_eq!(link.offer(Timestamp::from_millis(5), Bytes(1500)), at(36));
    assert_eq!(link.offer(Timestamp::from_millis(5), Bytes(1500)), at(37));
    assert_eq!(link.backlog(Timestamp::from_millis(5)), Bytes(3000));
    assert_eq!(link.backlog(Timestamp::from_millis(6)), Bytes(1500));
    assert_eq!(link.offer(Timestamp::from_millis(50), Bytes(1500)), at(81));
}

#[test]
fn a_new_delay_holds_from_its_moment_and_reorders_nothing() {
    let mut spec = direction(BitRate::from_mbps(12.0));
    spec.delays.push((Duration::from_millis(10), Duration::from_millis(5)));
    let mut link = Direction::new(&spec, 1);
    let at = |millis| Verdict::Delivered { at: Timestamp::from_millis(millis) };
    assert_eq!(link.offer(Timestamp::from_millis(8), Bytes(1500)), at(39));
    assert_eq!(link.offer(Timestamp::from_millis(12), Bytes(1500)), at(39));
    assert_eq!(link.offer(Timestamp::from_millis(40), Bytes(1500)), at(46));
}

#[test]
fn a_trace_sets_the_pace() {
    let mut spec = direction(BitRate::from_mbps(1.0));
    spec.capacity = Capacity::Trace(Trace::parse("4\n4\n9\n").unwrap().into());
    let mut link = Direction::new(&spec, 1);
    let arrivals: Vec<u128> =
        deliveries(&[(); 4].map(|()| link.offer(Timestamp::START, Bytes(1500))))
            .iter()
            .map(|at| at.since_start().as_millis())
            .collect();
    assert_eq!(arrivals, [34, 34, 39, 43]);
}

#[test]
fn the_directions_lose_different_packets_and_a_seed_always_the_same() {
    let mut spec = LinkSpec::plain(BitRate::from_mbps(10.0), Duration::from_millis(60)).unwrap();
    spec.down.loss.random = 0.3;
    spec.up.loss.random = 0.3;
    let run = |seed| {
        let mut link = LinkModel::new(&spec, seed);
        let times = (0..200).map(|index| Timestamp::from_millis(2 * index));
        let verdicts =
            times.map(|at| (link.down.offer(at, Bytes(1500)), link.up.offer(at, Bytes(1500))));
        verdicts.unzip::<_, _, Vec<_>, Vec<_>>()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
    let (down, up) = run(7);
    assert_ne!(down, up);
}

#[test]
fn jitter_is_spread_evenly_and_stays_under_load() {
    let rate = BitRate::from_mbps(12.0);
    let mut spec = direction(rate);
    spec.jitter = Duration::from_millis(10);
    let arrivals = deliveries(&flood(&spec, 3, 40_000, rate, 1.0));
    let delays: Vec<f64> = (0u32..)
        .zip(&arrivals)
        .map(|(index, at)| at.since_start().as_secs_f64() - f64::from(index + 1) / 1e3)
        .collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!(delays.iter().all(|delay| (0.03..0.04).contains(delay)));
    assert!((0.0345..0.0375).contains(&mean), "{mean}");
}

prop_compose! {
    fn specs()(
        mbps in 1.0f64..1000.0,
        delay in 0u64..300,
        jitter in 0u64..50,
        random in 0.0f64..0.2,
        queue in 3_000u64..2_000_000,
    ) -> DirectionSpec {
        DirectionSpec {
            delays: vec![(Duration::ZERO, Duration::from_millis(delay))],
            jitter: Duration::from_millis(jitter),
            loss: Loss { random, bursts: None },
            queue: Bytes(queue),
            ..direction(BitRate::from_mbps(mbps))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_overloaded_link_carries_its_rate(spec in specs(), seed: u64, load in 1.2f64..3.0) {
        let spec = DirectionSpec { jitter: Duration::ZERO, loss: Loss::default(), ..spec };
        let rate = spec.peak_rate();
        let arrivals = deliveries(&flood(&spec, seed, 5_000, rate, load));
        let time = arrivals[arrivals.len() - 1] - arrivals[0];
        let measured = Bytes(1500 * (arrivals.len() as u64 - 1)) / time;
        prop_assert!((measured.bps() / rate.bps() - 1.0).abs() < 0.01, "{measured} {rate}");
    }

    #[test]
    fn an_idle_link_takes_its_delay(spec in specs(), seed: u64) {
        let spec = DirectionSpec { loss: Loss::default(), ..spec };
        let mut link = Direction::new(&spec, seed);
        let alone = Bytes(1500) / spec.peak_rate() + spec.delay_at(Duration::ZERO);
        for second in 1..50 {
            let sent = Timestamp::from_millis(1000 * second);
            let Verdict::Delivered { at } = link.offer(sent, Bytes(1500)) else {
                return Err(TestCaseError::fail("dropped"));
            };
            let extra = (at - sent).as_secs_f64() - alone.as_secs_f64();
            prop_assert!(extra > -1e-8 && extra < spec.jitter.as_secs_f64() + 1e-8, "{extra}");
        }
    }

    #[test]
    fn nothing_is_reordered(spec in specs(), seed: u64, load in 0.1f64..3.0) {
        let arrivals = deliveries(&flood(&spec, seed, 2_000, spec.peak_rate(), load));
        prop_assert!(arrivals.is_sorted());
    }

    #[test]
    fn the_queue_holds_what_it_may_and_not_less(spec in specs(), seed: u64, load in 1.5f64..4.0) {
        let mut link = Direction::new(&spec, seed);
        let gap = Bytes(1500) / (spec.peak_rate() * load);
        for index in 0..3_000 {
            let now = Timestamp::START + gap * index;
            let before = link.backlog(now);
            let full = link.offer(now, Bytes(1500)) == Verdict::Dropped(Cause::QueueFull);
            prop_assert_eq!(full, before + Bytes(1500) > spec.queue);
            prop_assert!(link.backlog(now) <= spec.queue);
        }
    }

    #[test]
    fn random_loss_has_its_share(random in 0.005f64..0.5, seed: u64) {
        let rate = BitRate::from_mbps(10.0);
        let spec = DirectionSpec { loss: Loss { random, bursts: None }, ..direction(rate) };
        let count = 100_000;
        let share = lost(&flood(&spec, seed, count, rate, 0.5));
        let deviation = (random * (1.0 - random) / f64::from(count)).sqrt();
        prop_assert!((share - random).abs() < 5.0 * deviation, "{share} {random}");
    }

    #[test]
    fn bursts_have_their_share(enter in 0.01f64..0.1, leave in 0.1f64..0.9, loss in 0.2f64..1.0, seed: u64) {
        let rate = BitRate::from_mbps(10.0);
        let loss = Loss { random: 0.0, bursts: Some(GilbertElliott { enter, leave, loss }) };
        let share = lost(&flood(&DirectionSpec { loss, ..direction(rate) }, seed, 200_000, rate, 0.5));
        prop_assert!((share / loss.share() - 1.0).abs() < 0.15, "{share} {}", loss.share());
    }

    #[test]
    fn the_same_seed_is_the_same_run(spec in specs(), seed: u64) {
        let run = |seed| flood(&spec, seed, 500, spec.peak_rate(), 1.5);
        prop_assert_eq!(run(seed), run(seed));
    }
}
