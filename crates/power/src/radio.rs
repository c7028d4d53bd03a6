//! Radio energy: one state machine, and the profiles that fill it with numbers.
//!
//! The machine's states, after Huang et al. 2012, section 5: *idle*, *promotion* when traffic wakes
//! the radio, *active* while bytes move, and the *tail* phases in which the radio waits for more
//! before it sleeps again. 3G has a *shared* channel between idle and active, which little traffic
//! does not leave. It is pure: time and traffic are arguments.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes, Joules, Watts};

mod found;
mod lte;
mod machine;
mod n9;
mod nr;
mod ns3_wifi;
mod states;
mod three_g;
mod wavelan;
mod wifi;

pub use found::LastTraffic;
pub use lte::lte;
pub use machine::{RadioMachine, Segment, StateUse};
pub use n9::{Timers, n9_3g, n9_3g_with, n9_wlan};
pub use nr::{nr_low_band, nr_lte, nr_mmwave};
pub use ns3_wifi::ns3_wifi;
pub use states::{State, Transition};
pub use three_g::three_g;
pub use wavelan::wavelan;
pub use wifi::wifi;

/// A state that lasts a fixed time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// How long it lasts.
    pub duration: Duration,
    /// What the radio draws meanwhile.
    pub power: Watts,
}

/// A radio without traffic: it sleeps, and wakes in every period to listen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Idle {
    /// The listening part of each period.
    pub awake: Phase,
    /// From one listening to the next.
    pub period: Duration,
    /// What it draws in between.
    pub sleep: Watts,
}

impl Idle {
    /// A radio that draws the same power all the time.
    pub const fn constant(power: Watts) -> Self {
        let awake = Phase { duration: Duration::ZERO, power };
        Self { awake, period: Duration::from_secs(1), sleep: power }
    }

    /// The mean over a period.
    pub fn mean_power(&self) -> Watts {
        mean_power(self.awake, self.period, self.sleep)
    }
}

/// The mean power of a radio that is in phase `on` once in every `period` and else draws `base`.
fn mean_power(on: Phase, period: Duration, base: Watts) -> Watts {
    (on.power * on.duration + base * period.saturating_sub(on.duration)) / period
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
    /// The slope of a radio that draws `extra` more while it moves bytes, each at `rate`.
    pub(crate) fn of_airtime(extra: Watts, rate: BitRate) -> Self {
        Self { milliwatts_per_mbps: extra.get() * 1e3 / rate.mbps(), fitted_up_to: rate }
    }

    /// What moving `bytes` adds: power that is linear in the rate is a fixed energy per bit.
    fn energy(&self, bytes: Bytes) -> Joules {
        // 1 mW / (Mbit/s) = 1 mJ / Mbit = 1 nJ / bit.
        const JOULES_PER_BIT: f64 = 1e-9;
        Joules::new(self.milliwatts_per_mbps * JOULES_PER_BIT * bytes.as_f64() * 8.0)
    }
}

/// One step down after the last byte.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// What the literature calls it: `short DRX`, `DCH`.
    pub name: String,
    /// How long it lasts.
    pub duration: Duration,
    /// What the radio draws meanwhile, on average.
    pub power: Watts,
}

/// A channel that many devices share (3G's FACH): the radio stays on it as long as little moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// What the literature calls it.
    pub name: String,
    /// From idle to this channel.
    pub promotion: Phase,
    /// Power on it, with and without traffic.
    pub power: Watts,
    /// Bytes that may wait in the buffer of one direction; beyond, the radio becomes active.
    pub threshold: Bytes,
    /// What the channel carries in each direction: how fast the buffer empties.
    pub rate: BitRate,
    /// After the last byte, until idle.
    pub tail: Duration,
}

/// The numbers of one radio. An own one must keep idle below every other power and active above, or
/// more traffic might cost less.
#[derive(Debug, Clone, PartialEq)]
pub struct RadioProfile {
    /// The name that a reading's source shows.
    pub name: String,
    /// Where the numbers come from, in a line.
    pub origin: String,
    /// From idle, or from the shared channel, to active.
    pub promotion: Phase,
    /// Power while active, before throughput is added.
    pub active: Watts,
    /// Power added by sending.
    pub uplink: Slope,
    /// Power added by receiving.
    pub downlink: Slope,
    /// What throughput adds at most, where that is known.
    pub ceiling: Option<Watts>,
    /// After the last byte, one after the other, until the shared channel or idle.
    pub tail: Vec<Tail>,
    /// The shared channel between idle and active.
    pub shared: Option<Shared>,
    /// Without traffic.
    pub idle: Idle,
}

impl RadioProfile {
    /// The time from the last byte of an active radio until it is idle.
    pub fn tail_duration(&self) -> Duration {
        let shared = self.shared.as_ref().map_or(Duration::ZERO, |shared| shared.tail);
        self.tail.iter().map(|tail| tail.duration).sum::<Duration>() + shared
    }

    /// Energy of the whole tail of an active radio.
    pub fn tail_energy(&self) -> Joules {
        let shared = self.shared.as_ref().map_or(Joules::ZERO, |shared| shared.power * shared.tail);
        self.tail.iter().map(|tail| tail.power * tail.duration).sum::<Joules>() + shared
    }
}

/// The radios that pelton has numbers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Radio {
    /// No radio: a wired host.
    None,
    /// A smartphone's Wi-Fi: [`wifi()`].
    #[default]
    Wifi,
    /// A smartphone's LTE modem: [`lte()`].
    Lte,
    /// A smartphone's 3G modem: [`three_g()`].
    ThreeG,
    /// Wi-Fi of a Nokia N9: [`n9_wlan()`].
    N9Wlan,
    /// 3G of a Nokia N9: [`n9_3g()`].
    N93g,
    /// An early 802.11 card that is always awake: [`wavelan()`].
    Wavelan,
    /// 5G beside LTE, low band: [`nr_low_band()`].
    NrLowBand,
    /// 5G beside LTE, millimetre waves: [`nr_mmwave()`].
    NrMmWave,
    /// LTE of a 5G phone: [`nr_lte()`].
    NrLte,
    /// The radio of ns-3's `WifiRadioEnergyModel`: [`ns3_wifi()`].
    Ns3Wifi,
}

impl Radio {
    /// Every radio, in the order in which help texts list them.
    pub const ALL: [Self; 11] = [
        Self::None,
        Self::Wifi,
        Self::Lte,
        Self::ThreeG,
        Self::N9Wlan,
        Self::N93g,
        Self::Wavelan,
        Self::NrLowBand,
        Self::NrMmWave,
        Self::NrLte,
        Self::Ns3Wifi,
    ];

    /// The name, as written on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Wifi => "wifi",
            Self::Lte => "lte",
            Self::ThreeG => "3g",
            Self::N9Wlan => "n9-wlan",
            Self::N93g => "n9-3g",
            Self::Wavelan => "wavelan",
            Self::NrLowBand => "nr-low-band",
            Self::NrMmWave => "nr-mmwave",
            Self::NrLte => "nr-lte",
            Self::Ns3Wifi => "ns3-wifi",
        }
    }

    /// Its numbers.
    pub fn profile(self) -> Option<RadioProfile> {
        match self {
            Self::None => None,
            Self::Wifi => Some(wifi()),
            Self::Lte => Some(lte()),
            Self::ThreeG => Some(three_g()),
            Self::N9Wlan => Some(n9_wlan()),
            Self::N93g => Some(n9_3g()),
            Self::Wavelan => Some(wavelan()),
            Self::NrLowBand => Some(nr_low_band()),
            Self::NrMmWave => Some(nr_mmwave()),
            Self::NrLte => Some(nr_lte()),
            Self::Ns3Wifi => Some(ns3_wifi()),
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

#[cfg(test)]
mod tests;
