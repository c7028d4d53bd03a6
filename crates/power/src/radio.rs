//! Radio energy: one state machine, and the profiles that fill it with numbers.
//!
//! The machine has four states, after Huang et al. 2012, section 5: *idle*, *promotion* when
//! traffic wakes the radio, *active* while bytes move, and the *tail* in which the radio waits
//! for more before it sleeps again. It is pure: time and traffic are arguments.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes, Joules, Watts};

mod lte;
mod wifi;

pub use lte::lte;
pub use wifi::wifi;

/// A state that lasts a fixed time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// How long it lasts.
    pub duration: Duration,
    /// What the radio draws meanwhile.
    pub power: Watts,
}

/// An idle radio: it sleeps, and wakes in every period to listen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Idle {
    /// The listening part of each period.
    pub awake: Phase,
    /// From one listening to the next.
    pub period: Duration,
}

impl Idle {
    /// The mean over a period, sleep counted as nothing.
    pub fn mean_power(&self) -> Watts {
        (self.awake.power * self.awake.duration) / self.period
    }
}

/// How the power of an active radio grows with its throughput in one direction.
///
/// The line holds where it was fitted. Sun et al., "Modeling `WiFi` Active Power/Energy Consumption
/// in Smartphones", ICDCS 2014, find that it loses accuracy at high throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// mW for each Mbit/s.
    pub milliwatts_per_mbps: f64,
    /// Up to here the slope is taken as measured; above, it is extrapolated.
    pub fitted_up_to: BitRate,
}

impl Slope {
    /// What moving `bytes` adds: power that is linear in the rate is a fixed energy per bit.
    fn energy(&self, bytes: Bytes) -> Joules {
        // 1 mW / (Mbit/s) = 1 mJ / Mbit = 1 nJ / bit.
        const JOULES_PER_BIT: f64 = 1e-9;
        Joules::new(self.milliwatts_per_mbps * JOULES_PER_BIT * bytes.as_f64() * 8.0)
    }
}

/// The numbers of one radio. An own one must keep idle <= tail <= promotion <= active power, or
/// more traffic might cost less.
#[derive(Debug, Clone, PartialEq)]
pub struct RadioProfile {
    /// The name that a reading's source shows.
    pub name: String,
    /// From idle to active.
    pub promotion: Phase,
    /// Power while active, before throughput is added.
    pub active: Watts,
    /// Power added by sending.
    pub uplink: Slope,
    /// Power added by receiving.
    pub downlink: Slope,
    /// After the last byte, until idle.
    pub tail: Phase,
    /// Without traffic.
    pub idle: Idle,
}

/// The radios that pelton has numbers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Radio {
    /// No radio: a wired host.
    None,
    /// A smartphone's Wi-Fi: [`wifi`].
    #[default]
    Wifi,
    /// A smartphone's LTE modem: [`lte`].
    Lte,
}

impl Radio {
    /// Every radio, in the order in which help texts list them.
    pub const ALL: [Self; 3] = [Self::None, Self::Wifi, Self::Lte];

    /// The name, as written on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Wifi => "wifi",
            Self::Lte => "lte",
        }
    }

    /// Its numbers.
    pub fn profile(self) -> Option<RadioProfile> {
        match self {
            Self::None => None,
            Self::Wifi => Some(wifi()),
            Self::Lte => Some(lte()),
        }
    }
}

impl fmt::Display for Radio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No radio has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown radio `{name}`: choose one of {}", Radio::ALL.map(Radio::name).join(", "))]
pub struct UnknownRadio {
    /// What was asked for.
    pub name: String,
}

impl FromStr for Radio {
    type Err = UnknownRadio;

    fn from_str(name: &str) -> Result<Self, UnknownRadio> {
        Self::ALL
            .into_iter()
            .find(|radio| radio.name() == name)
            .ok_or_else(|| UnknownRadio { name: name.to_owned() })
    }
}

/// From the first byte after idle until the end of the tail.
#[derive(Debug, Clone, Copy)]
struct Session {
    promoted_at: Timestamp,
    last_byte: Timestamp,
}

/// A radio that has drawn energy since a moment. It starts idle.
#[derive(Debug, Clone)]
pub struct RadioMachine {
    profile: RadioProfile,
    now: Timestamp,
    session: Option<Session>,
    energy: Joules,
    sent: Bytes,
    received: Bytes,
    busy: Duration,
}

impl RadioMachine {
    /// An idle radio at `start`.
    pub fn new(profile: RadioProfile, start: Timestamp) -> Self {
        Self {
            profile,
            now: start,
            session: None,
            energy: Joules::ZERO,
            sent: Bytes::ZERO,
            received: Bytes::ZERO,
            busy: Duration::ZERO,
        }
    }

    /// Takes the bytes that moved since the last call as spread evenly until `now`. Call it
    /// several times a second: one byte makes the whole step an active one. A trace with
    /// longer gaps calls it with no bytes just before each packet.
    pub fn on_traffic(&mut self, now: Timestamp, sent: Bytes, received: Bytes) {
        let from = self.now;
        self.now = from.max(now);
        let drawn = if sent == Bytes::ZERO && received == Bytes::ZERO {
            self.quiet(from, self.now)
        } else {
            self.sent += sent;
            self.received += received;
            let moved = self.profile.uplink.energy(sent) + self.profile.downlink.energy(received);
            self.busy(from) + moved
        };
        self.energy += drawn;
    }

    /// Counts the rest of the tail, which belongs to the transfer, and leaves the radio idle.
    pub fn finish(&mut self, now: Timestamp) {
        self.on_traffic(now, Bytes::ZERO, Bytes::ZERO);
        if let Some(end) = self.tail_end().filter(|end| *end > self.now) {
            self.energy += self.quiet(self.now, end);
            self.now = end;
        }
    }

    /// What the radio has drawn since the start.
    pub fn energy(&self) -> Joules {
        self.energy
    }

    /// Whether the mean throughput while busy lies above what the profile was fitted to, so that
    /// the joules are an extrapolation.
    pub fn extrapolates(&self) -> bool {
        self.sent / self.busy > self.profile.uplink.fitted_up_to
            || self.received / self.busy > self.profile.downlink.fitted_up_to
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.profile.name
    }

    fn tail_end(&self) -> Option<Timestamp> {
        self.session.map(|session| session.last_byte + self.profile.tail.duration)
    }

    /// Base power from `from` until now, with traffic all along.
    fn busy(&mut self, from: Timestamp) -> Joules {
        let promoted_at = match (self.session, self.tail_end()) {
            (Some(session), Some(end)) if from <= end => session.promoted_at,
            _ => from + self.profile.promotion.duration,
        };
        self.session = Some(Session { promoted_at, last_byte: self.now });
        let step = self.now - from;
        let promotion = step.min(promoted_at - from);
        self.busy += step;
        self.profile.promotion.power * promotion
            + self.profile.active * step.saturating_sub(promotion)
    }

    /// Base power from `from` until `until`, without traffic: first the tail, then idle.
    fn quiet(&self, from: Timestamp, until: Timestamp) -> Joules {
        let step = until - from;
        let tail = self.tail_end().map_or(Duration::ZERO, |end| step.min(end - from));
        self.profile.tail.power * tail + self.profile.idle.mean_power() * step.saturating_sub(tail)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_close(actual: Joules, expected: f64, tolerance: f64) {
        let off = (actual.get() - expected).abs();
        assert!(off <= tolerance * expected, "{} J is not {expected} J", actual.get());
    }

    fn run(profile: &RadioProfile, steps: &[(u64, u64, u64)]) -> RadioMachine {
        let mut radio = RadioMachine::new(profile.clone(), Timestamp::START);
        let mut now = Timestamp::START;
        for (millis, sent, received) in steps {
            now = now + Duration::from_millis(*millis);
            radio.on_traffic(now, Bytes(*sent), Bytes(*received));
        }
        radio
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
    }

    #[test]
    fn radios_are_parsed_by_name() {
        for radio in Radio::ALL {
            assert_eq!(radio.to_string().parse(), Ok(radio));
        }
        let error = "5g".parse::<Radio>().unwrap_err();
        assert_eq!(error.to_string(), "unknown radio `5g`: choose one of none, wifi, lte");
    }

    #[test]
    fn profiles_rank_their_states() {
        for profile in Radio::ALL.into_iter().filter_map(Radio::profile) {
            assert!(profile.idle.mean_power() <= profile.tail.power, "{}", profile.name);
            assert!(profile.tail.power <= profile.promotion.power, "{}", profile.name);
            assert!(profile.promotion.power <= profile.active, "{}", profile.name);
        }
    }

    fn profiles() -> impl Strategy<Value = RadioProfile> {
        prop_oneof![Just(wifi()), Just(lte())]
    }

    /// Steps of (ms, bytes sent, bytes received), with quiet ones among them.
    fn steps() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
        let bytes = || prop_oneof![Just(0), 0..5_000_000_u64];
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
        fn more_bytes_never_cost_less(profile in profiles(), steps in steps(), index: prop::sample::Index, extra in 1..5_000_000_u64) {
            let mut more = steps.clone();
            index.get_mut(&mut more).2 += extra;
            let end = Timestamp::from_millis(steps.iter().map(|step| step.0).sum());
            let (mut few, mut many) = (run(&profile, &steps), run(&profile, &more));
            few.finish(end);
            many.finish(end);
            prop_assert!(many.energy() > few.energy(), "{} < {}", many.energy().get(), few.energy().get());
        }

        #[test]
        fn finer_steps_give_the_same_joules(profile in profiles(), steps in steps(), pieces in 2..20_u64) {
            // Scaled so that every piece is a whole number of milliseconds and bytes.
            let coarse: Vec<_> = steps.iter().map(|(t, s, r)| (t * pieces, s * pieces, r * pieces)).collect();
            let fine: Vec<_> = steps.iter().flat_map(|step| std::iter::repeat_n(*step, pieces as usize)).collect();
            let (coarse, fine) = (run(&profile, &coarse).energy().get(), run(&profile, &fine).energy().get());
            prop_assert!((coarse - fine).abs() <= 0.01 * coarse, "{coarse} against {fine}");
        }
    }
}
