use pelton_algos::units::Bytes;
use proptest::prelude::*;

use super::*;
use crate::trace::Tcp;

const RTT: Duration = Duration::from_millis(60);

/// An airtime of exactly 1 ms at 20 Mbit/s.
const PACKET: Bytes = Bytes(2_500);

fn packet(millis: u64, direction: Direction) -> Packet {
    let at = Timestamp::from_millis(millis);
    let payload = if direction == Direction::Received { 2_448 } else { 0 };
    let tcp = Tcp { flow: 1, site: 1, payload, ..Tcp::default() };
    Packet { at, direction, bytes: PACKET, tcp: Some(tcp) }
}

fn sent(millis: u64) -> Packet {
    packet(millis, Direction::Sent)
}

fn received(millis: u64) -> Packet {
    packet(millis, Direction::Received)
}

fn joules(packets: &[Packet], policy: SleepPolicy) -> f64 {
    evaluate(packets, &Card::wavelan(), policy, RTT).energy().get()
}

fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9, "{actual} J, not {expected} J");
}

#[test]
fn always_awake_adds_up_by_hand() {
    // One packet each way and 60 ms in between: 61 ms in all.
    let packets = [sent(0), received(60)];
    let outcome = evaluate(&packets, &Card::wavelan(), SleepPolicy::AlwaysAwake, RTT);
    assert_eq!(outcome.duration, Duration::from_millis(61));
    assert_close(outcome.energy().get(), 0.059 * 1.319 + 0.001 * 1.675 + 0.001 * 1.425);
}

#[test]
fn the_oracle_sleeps_in_the_gap_and_pays_for_waking() {
    let packets = [sent(0), received(60)];
    // 59 ms of gap: 57 asleep, 2 waking.
    let by_hand = 0.001 * 1.675 + 0.001 * 1.425 + 0.057 * 0.177 + 0.002 * 1.319;
    assert_close(joules(&packets, SleepPolicy::Oracle), by_hand);
    // A gap of 2 ms does not pay.
    let packets = [sent(0), received(3)];
    let outcome = evaluate(&packets, &Card::wavelan(), SleepPolicy::Oracle, RTT);
    assert_eq!(outcome.sleep.duration, Duration::ZERO);
    let pays = Card::wavelan().break_even().as_secs_f64();
    assert!((pays - 0.002_310).abs() < 1e-5, "{pays}");
}

#[test]
fn psm_rounds_round_trips_up_to_beacons() {
    // Three round trips of 60 ms take three beacons.
    let packets = [sent(0), received(60), sent(60), received(120), sent(120), received(180)];
    let outcome = evaluate(&packets, &Card::wavelan(), SleepPolicy::Psm, RTT);
    let late = outcome.duration.as_millis();
    assert!((300..=306).contains(&late), "{late} ms");
    assert!(outcome.energy().get() < joules(&packets, SleepPolicy::AlwaysAwake));
    assert!(outcome.energy().get() > joules(&packets, SleepPolicy::Oracle));
}

#[test]
fn bounded_slowdown_saves_nothing_in_a_transfer_and_much_after_it() {
    // 50 %: awake for 200 ms after each packet sent. A round trip is shorter.
    let packets = [sent(0), received(60), sent(60), received(120)];
    let bsd = SleepPolicy::BoundedSlowdown(0.5);
    assert_close(joules(&packets, bsd), joules(&packets, SleepPolicy::AlwaysAwake));
    let think = [sent(0), received(60), sent(10_000), received(10_060)];
    let outcome = evaluate(&think, &Card::wavelan(), bsd, RTT);
    assert!(outcome.sleep.duration > Duration::from_secs(9), "{outcome:?}");
    assert_eq!(outcome.duration, Duration::from_millis(10_061));
}

#[test]
fn bounded_slowdown_delays_by_no_more_than_its_share() {
    for share in [0.1, 0.2, 0.5, 1.0] {
        let policy = SleepPolicy::BoundedSlowdown(share);
        for answer in [50, 150, 450, 1_111, 3_333, 7_777] {
            let rtt = Duration::from_millis(answer);
            let packets = [sent(0), received(answer)];
            let outcome = evaluate(&packets, &Card::wavelan(), policy, rtt);
            // A packet that just misses a beacon waits for the next one that is listened to.
            let most = rtt.mul_f64(1.0 + share) + Duration::from_millis(103);
            assert!(outcome.duration <= most, "{share} {answer} {:?}", outcome.duration);
        }
    }
}

#[test]
fn tracking_sleeps_between_stages() {
    let mut packets = Vec::new();
    let stamped = |at: u64, direction, syn, payload| {
        let timestamps = match direction {
            Direction::Sent => (at as u32, 0),
            Direction::Received => (0, at as u32 - 60),
        };
        let tcp = Tcp { flow: 1, site: 1, syn, payload, timestamps: Some(timestamps), end: false };
        Packet { at: Timestamp::from_millis(at), direction, bytes: PACKET, tcp: Some(tcp) }
    };
    packets.push(stamped(0, Direction::Sent, true, 0));
    packets.push(stamped(60, Direction::Received, true, 0));
    packets.push(stamped(60, Direction::Sent, false, 100));
    for stage in 0..40 {
        let at = 120 + 60 * stage;
        packets.push(stamped(at, Direction::Received, false, 1_000));
        packets.push(stamped(at, Direction::Received, false, 1_000));
        packets.push(stamped(at, Direction::Sent, false, 0));
    }
    let outcome = evaluate(&packets, &Card::wavelan(), SleepPolicy::ClientCentered, RTT);
    assert_eq!(outcome.missed, 0);
    let (awake, oracle) =
        (joules(&packets, SleepPolicy::AlwaysAwake), joules(&packets, SleepPolicy::Oracle));
    let tracked = outcome.energy().get();
    assert!(oracle < tracked && tracked < 0.8 * awake, "{oracle} < {tracked} < {awake}");
}

fn trace() -> impl Strategy<Value = Vec<Packet>> {
    prop::collection::vec((0..300_u64, any::<bool>()), 0..60).prop_map(|gaps| {
        let mut at = 0;
        let mut packets = Vec::new();
        for (gap, is_sent) in gaps {
            at += gap;
            packets.push(if is_sent { sent(at) } else { received(at) });
        }
        packets
    })
}

proptest! {
    #[test]
    fn no_policy_beats_the_oracle_at_its_time(packets in trace()) {
        let card = Card::wavelan();
        let oracle = evaluate(&packets, &card, SleepPolicy::Oracle, RTT);
        for policy in SleepPolicy::ALL {
            let outcome = evaluate(&packets, &card, policy, RTT);
            let parts = [outcome.idle, outcome.receive, outcome.transmit, outcome.sleep, outcome.wake];
            let in_states: Duration = parts.iter().map(|spent| spent.duration).sum();
            let off = in_states.abs_diff(outcome.duration);
            prop_assert!(off <= Duration::from_millis(2), "{policy:?} {outcome:?}");
            prop_assert!(outcome.duration >= oracle.duration, "{policy:?}");
            let slack = 0.003 + 0.001 * packets.len() as f64;
            prop_assert!(outcome.energy().get() >= oracle.energy().get() - slack, "{policy:?} {outcome:?} {oracle:?}");
        }
    }
}
