use pelton_algos::time::Timestamp;
use proptest::prelude::*;

use super::*;

fn assert_close(actual: Joules, expected: f64, tolerance: f64) {
    let off = (actual.get() - expected).abs();
    assert!(off <= tolerance * expected, "{} J is not {expected} J", actual.get());
}

/// Steps of (ms, bytes sent, bytes received).
fn run(profile: &RadioProfile, steps: &[(u64, u64, u64)]) -> RadioMachine {
    let mut radio = RadioMachine::new(profile.clone(), Timestamp::START).drawn();
    let mut now = Timestamp::START;
    for (millis, sent, received) in steps {
        now = now + Duration::from_millis(*millis);
        radio.on_traffic(now, Bytes(*sent), Bytes(*received));
    }
    radio
}

/// The states that `radio` went through, by name, with their milliseconds.
fn path(radio: &RadioMachine) -> Vec<(String, u128)> {
    let segments = radio.segments().iter();
    segments
        .map(|s| (radio.profile().state_name(s.state).to_owned(), (s.until - s.from).as_millis()))
        .collect()
}

fn named(path: &[(&str, u128)]) -> Vec<(String, u128)> {
    path.iter().map(|(name, millis)| ((*name).to_owned(), *millis)).collect()
}

#[test]
fn one_second_of_wifi_adds_up_by_hand() {
    // 1 s at 8 Mbit/s down: promotion, the rest active, the slope, and the tail.
    let mut radio = run(&wifi(), &[(1_000, 0, 1_000_000)]);
    radio.finish(Timestamp::from_millis(1_000));
    let promotion = 0.0791 * 0.1244;
    let active = (1.0 - 0.0791) * 0.132_86 + 8.0 * 0.137_01;
    let tail = 0.2381 * 0.1193;
    assert_close(radio.energy(), promotion + active + tail, 1e-9);
}

#[test]
fn lte_steps_down_through_drx() {
    let mut radio = run(&lte(), &[(0, 0, 1_000), (1_000, 0, 0)]);
    radio.finish(Timestamp::from_millis(1_000));
    let expected = [
        ("active", 0),
        ("promotion", 260),
        ("continuous reception", 100),
        ("short DRX", 20),
        ("long DRX", 10_000),
    ];
    assert_eq!(path(&radio), named(&expected));
    let long = (0.002 * 1.68 + 0.038 * 1.06) / 0.040;
    let by_hand = 0.26 * 1.21 + 0.1 * 1.2 + 0.02 * 1.122 + 10.0 * long + 8_000.0 * 51.97e-9;
    assert_close(radio.energy(), by_hand, 1e-9);
    assert_close(lte().tail_energy(), 0.1 * 1.2 + 0.02 * 1.122 + 10.0 * long, 1e-9);
}

#[test]
fn little_traffic_stays_on_the_shared_channel() {
    // A request of 337 bytes leaves, the answer of 300 comes 400 ms later.
    let mut radio = run(&n9_3g(), &[(0, 337, 0), (400, 0, 0), (0, 0, 300)]);
    radio.finish(Timestamp::from_millis(400));
    assert_eq!(path(&radio), named(&[("promotion", 1_000), ("FACH", 2_000)]));
    assert_close(radio.energy(), 3.0 * 0.489, 1e-9);
}

#[test]
fn more_than_the_threshold_makes_it_active() {
    // papers/000 Fig 14: 451 bytes and their TCP header, in an IP packet, pass 470, 337 do not.
    let mut radio = run(&n9_3g(), &[(0, 451 + 32 + 20, 0)]);
    radio.finish(Timestamp::START);
    let expected = [("active", 0), ("promotion", 1_500), ("DCH", 3_000), ("FACH", 2_000)];
    assert_eq!(path(&radio), named(&expected));
    let moved = 503.0 * 8.0 * 385e-9;
    assert_close(
        radio.energy(),
        1.489 + 0.5 * 1.085 - 1.0 + 3.0 * 1.085 + 2.0 * 0.489 + moved,
        1e-6,
    );
}

#[test]
fn bytes_that_wait_add_up_and_drain() {
    // Two packets at once wait together; 100 ms apart the first has left.
    let together = run(&n9_3g(), &[(0, 0, 300), (0, 0, 300)]);
    assert!(path(&together).iter().any(|(state, _)| state == "active"));
    let mut apart =
        run(&n9_3g(), &[(0, 0, 300), (100, 0, 0), (0, 0, 300), (100, 0, 0), (0, 0, 300)]);
    apart.finish(Timestamp::from_millis(200));
    assert!(path(&apart).iter().all(|(state, _)| state != "active"), "{:?}", path(&apart));
}

#[test]
fn from_the_shared_tail_the_way_up_is_short() {
    // 4 s after a large packet the radio is on FACH; the next large one costs 0.5 s more.
    let mut radio = run(&n9_3g(), &[(0, 0, 1_500), (5_500, 0, 0), (0, 0, 1_500)]);
    radio.finish(Timestamp::from_millis(5_500));
    let promotions: u128 =
        path(&radio).iter().filter(|(state, _)| state == "promotion").map(|(_, ms)| ms).sum();
    assert_eq!(promotions, 2_000);
    // A small one is answered on FACH.
    let mut radio = run(&n9_3g(), &[(0, 0, 1_500), (5_500, 0, 0), (0, 0, 100)]);
    radio.finish(Timestamp::from_millis(5_500));
    assert_eq!(path(&radio).last(), Some(&("FACH".to_owned(), 3_000)));
}

#[test]
fn traffic_adds_no_more_than_the_ceiling() {
    let busy = run(&n9_3g(), &[(10_000, 0, 100_000_000)]);
    let by_hand = 0.489 + 0.5 * 1.085 + 8.5 * 1.085 + 10.0 * 0.385;
    assert_close(busy.energy(), by_hand, 1e-9);
}

#[test]
fn bursts_cost_as_much_packet_by_packet_as_in_steps() {
    // 4 Mbit/s in bursts of 16 kB, whose packets come ten microseconds apart, for ten seconds.
    let mut by_packet = RadioMachine::new(n9_3g(), Timestamp::START);
    for burst in 0..312_u64 {
        let packets = (0..11).map(|packet| burst * 32_000 + packet * 10);
        for at in packets.map(|micros| Timestamp::new(Duration::from_micros(micros))) {
            by_packet.on_traffic(at, Bytes::ZERO, Bytes(1_500));
        }
    }
    let mut in_steps = RadioMachine::new(n9_3g(), Timestamp::START);
    for step in 1..=100 {
        in_steps.on_traffic(Timestamp::from_millis(step * 100), Bytes::ZERO, Bytes(51_480));
    }
    let end = Timestamp::from_millis(10_000);
    by_packet.finish(end);
    in_steps.finish(end);
    let apart = by_packet.energy().get() / in_steps.energy().get();
    assert!((apart - 1.0).abs() < 0.01, "{apart}");
}

#[test]
fn wavelan_draws_what_the_paper_states() {
    // One second of sending at the full 20 Mbit/s, one of receiving, one idle.
    let card = wavelan();
    let radio = run(&card, &[(1_000, 2_500_000, 0), (1_000, 0, 2_500_000), (1_000, 0, 0)]);
    assert_close(radio.energy(), 1.675 + 1.425 + 1.319, 1e-9);
}

#[test]
fn n9_wlan_reaches_its_full_rate_power() {
    let radio = run(&n9_wlan(), &[(1_000, 0, 1_500_000)]);
    assert_close(radio.energy(), 1.380, 1e-9);
}

#[test]
fn the_tail_is_counted_once() {
    let mut radio = run(&wifi(), &[(1_000, 0, 1_000), (100, 0, 0)]);
    let before = radio.energy();
    radio.finish(Timestamp::from_millis(1_100));
    assert_close(radio.energy().saturating_sub(before), 0.1381 * 0.1193, 1e-6);
    let after = radio.energy();
    radio.finish(Timestamp::from_millis(1_200));
    assert_eq!(radio.energy(), after);
}

#[test]
fn a_gap_longer_than_the_tail_costs_a_promotion() {
    let packet = (0, 0, 1_000);
    let together = run(&lte(), &[packet, packet, (20_000, 0, 0)]).energy();
    let apart = run(&lte(), &[packet, (15_000, 0, 0), packet, (5_000, 0, 0)]).energy();
    assert!(apart.get() > together.get() + 5.0, "{apart} against {together}");
}

#[test]
fn an_idle_radio_draws_its_beacons() {
    // 77.2 mW for 7.6 ms of every 308.2 ms is about 1.9 mW.
    assert_close(run(&wifi(), &[(10_000, 0, 0)]).energy(), 0.019_04, 0.001);
}

#[test]
fn a_rate_beyond_the_fit_is_said() {
    assert!(!run(&wifi(), &[(1_000, 0, 1_000_000)]).extrapolates());
    assert!(run(&wifi(), &[(1_000, 0, 10_000_000)]).extrapolates());
    assert!(run(&wifi(), &[(1_000, 2_000_000, 0)]).extrapolates());
    // As much in less time is no less of an extrapolation.
    assert!(run(&wifi(), &[(500, 0, 10_000_000)]).extrapolates());
}

#[test]
fn a_few_bytes_at_once_are_no_rate() {
    // 26 Mbit/s for a millisecond, and packets that pass in no time.
    assert!(!run(&three_g(), &[(1, 0, 3_300)]).extrapolates());
    assert!(!run(&n9_3g(), &[(0, 328, 0), (0, 0, 328)]).extrapolates());
}

#[test]
fn radios_are_parsed_by_name() {
    for radio in Radio::ALL {
        assert_eq!(radio.to_string().parse(), Ok(radio));
        if let Some(profile) = radio.profile() {
            assert_eq!(profile.name, radio.name());
        }
    }
    let error = "5g".parse::<Radio>().unwrap_err().to_string();
    assert!(error.starts_with("unknown radio `5g`: choose one of none, wifi, lte, 3g"), "{error}");
}

fn all_profiles() -> Vec<RadioProfile> {
    Radio::ALL.into_iter().filter_map(Radio::profile).collect()
}

#[test]
fn profiles_rank_their_states() {
    for profile in all_profiles() {
        let idle = profile.idle.mean_power();
        for (state, power) in profile.states() {
            // ARO rounds LTE's active power below its promotion; 10 mW over 0.26 s are left so.
            let most = profile.active.get() + 0.011;
            assert!(power >= idle && power.get() <= most, "{} {state:?}", profile.name);
        }
        let mut tails = profile.tail.windows(2);
        assert!(tails.all(|pair| pair[0].power >= pair[1].power), "{}", profile.name);
    }
}

#[test]
fn states_and_transitions_are_listed_from_idle_to_idle() {
    for profile in all_profiles() {
        let states: Vec<State> = profile.states().iter().map(|(state, _)| *state).collect();
        let ways = profile.transitions();
        for state in &states {
            assert!(ways.iter().any(|way| way.from == *state), "{} leaves {state:?}", profile.name);
            assert!(ways.iter().any(|way| way.to == *state), "{} enters {state:?}", profile.name);
        }
        assert!(ways.iter().all(|way| states.contains(&way.from) && states.contains(&way.to)));
    }
    let shown: Vec<String> = n9_3g()
        .transitions()
        .iter()
        .map(|way| {
            let name = |state| n9_3g().state_name(state).to_owned();
            format!("{} -> {}: {}", name(way.from), name(way.to), way.when)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "idle -> FACH: traffic, 1 s",
            "FACH -> idle: 2 s without traffic",
            "FACH -> promotion: more than 490 B wait",
            "promotion -> active: after 0.5 s",
            "active -> DCH: no traffic",
            "DCH -> active: traffic",
            "DCH -> FACH: after 3 s",
        ]
    );
}

fn profiles() -> impl Strategy<Value = RadioProfile> {
    prop::sample::select(all_profiles())
}

/// Steps of (ms, bytes sent, bytes received), with quiet ones among them.
fn steps() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let bytes = || prop_oneof![Just(0), 0..1_000_u64, 0..5_000_000_u64];
    prop::collection::vec((0..2_000_u64, bytes(), bytes()), 1..40)
}

proptest! {
    #[test]
    fn energy_is_finite_and_never_decreases(profile in profiles(), steps in steps(), late in 0..30_000_u64) {
        let mut radio = RadioMachine::new(profile, Timestamp::START);
        let mut last = Joules::ZERO;
        for (at, sent, received) in steps {
            // The step is taken as a moment, so that time also runs backwards.
            radio.on_traffic(Timestamp::from_millis(at), Bytes(sent), Bytes(received));
            prop_assert!(radio.energy() >= last && radio.energy().get().is_finite());
            last = radio.energy();
        }
        radio.finish(Timestamp::from_millis(late));
        prop_assert!(radio.energy() >= last && radio.energy().get().is_finite());
    }

    #[test]
    fn every_moment_is_in_one_state(profile in profiles(), steps in steps()) {
        let radio = run(&profile, &steps);
        let total: u64 = steps.iter().map(|step| step.0).sum();
        let in_states: Duration = radio.uses().iter().map(|used| used.duration).sum();
        prop_assert_eq!(in_states, Duration::from_millis(total));
        let drawn: Joules = radio.segments().iter().map(|segment| segment.energy).sum();
        prop_assert!((drawn.get() - radio.energy().get()).abs() < 1e-6);
        let mut at = Timestamp::START;
        for segment in radio.segments() {
            prop_assert_eq!(segment.from, at);
            at = segment.until;
        }
    }

    #[test]
    fn more_bytes_never_cost_less(profile in profiles(), steps in steps(), index: prop::sample::Index, extra in 1..5_000_000_u64) {
        let mut more = steps.clone();
        index.get_mut(&mut more).2 += extra;
        let end = Timestamp::from_millis(steps.iter().map(|step| step.0).sum());
        let (mut few, mut many) = (run(&profile, &steps), run(&profile, &more));
        few.finish(end);
        many.finish(end);
        // 10 mW over a promotion: see `profiles_rank_their_states`.
        let slack = 0.003 * steps.len() as f64;
        prop_assert!(many.energy().get() >= few.energy().get() - slack, "{} < {}", many.energy().get(), few.energy().get());
    }

    #[test]
    fn finer_steps_give_the_same_joules(profile in profiles(), steps in steps(), pieces in 2..20_u64) {
        // What a burst is depends on the step; on a dedicated channel it does not matter.
        prop_assume!(profile.shared.is_none());
        // Scaled so that every piece is a whole number of milliseconds and bytes.
        let coarse: Vec<_> = steps.iter().map(|(t, s, r)| (t * pieces, s * pieces, r * pieces)).collect();
        let fine: Vec<_> = steps.iter().flat_map(|step| std::iter::repeat_n(*step, pieces as usize)).collect();
        let (coarse, fine) = (run(&profile, &coarse).energy().get(), run(&profile, &fine).energy().get());
        prop_assert!((coarse - fine).abs() <= 0.01 * coarse, "{coarse} against {fine}");
    }
}
