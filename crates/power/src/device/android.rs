//! Android's power profile: mean currents in mA, by the names of its documentation ("Measuring
//! power values", source.android.com).

use std::time::Duration;

use pelton_algos::units::{BitRate, Watts};
use serde::Deserialize;

use super::{AndroidRadio, Device};
use crate::radio::{Idle, Phase, RadioProfile, Slope, Tail, lte};

/// Where the profile names no voltage: the nominal one of a lithium-ion cell.
const VOLTS: f64 = 3.85;

/// The profile names currents and no rates. Assumed are what phones of those profiles reach.
const WIFI_RATE: f64 = 50.0;
const MODEM_RATE: f64 = 20.0;

#[derive(Deserialize)]
struct Profile {
    #[serde(default, rename = "item")]
    items: Vec<Item>,
    #[serde(default, rename = "array")]
    arrays: Vec<Array>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "@name")]
    name: String,
    #[serde(default, rename = "$text")]
    value: Option<f64>,
}

#[derive(Deserialize)]
struct Array {
    #[serde(rename = "@name")]
    name: String,
    #[serde(default, rename = "value")]
    values: Vec<f64>,
}

impl Profile {
    fn item(&self, name: &str) -> Option<f64> {
        let item = self.items.iter().find(|item| item.name == name)?;
        item.value.filter(|value| value.is_finite() && *value >= 0.0)
    }

    /// A single value, or the largest of a list: power levels are listed from small to large.
    fn largest(&self, name: &str) -> Option<f64> {
        let array = self.arrays.iter().find(|array| array.name == name);
        let values = array.map(|array| array.values.iter().copied());
        let largest = values.and_then(|values| values.filter(|v| *v >= 0.0).max_by(f64::total_cmp));
        largest.or_else(|| self.item(name))
    }
}

pub(super) fn parse(text: &str, radio: AndroidRadio) -> Result<Device, String> {
    let profile: Profile = quick_xml::de::from_str(text).map_err(|error| error.to_string())?;
    if profile.items.is_empty() && profile.arrays.is_empty() {
        return Err("it has no items: is it a power_profile.xml?".to_owned());
    }
    let device = Device {
        radio: match radio {
            AndroidRadio::Wifi => wifi(&profile)?,
            AndroidRadio::Modem => modem(&profile)?,
        },
        cpu_per_core: core(&profile).map(|ma| watts(ma, VOLTS)),
        base: awake(&profile).map(|ma| watts(ma, VOLTS)),
    };
    Ok(device)
}

fn watts(milliamperes: f64, volts: f64) -> Watts {
    Watts::from_milliwatts(milliamperes * volts)
}

fn missing(name: &str) -> String {
    format!("it lacks {name}, so its numbers can't be used")
}

/// The controller draws its idle current all the time that it is on, and more while bytes move.
fn wifi(profile: &Profile) -> Result<RadioProfile, String> {
    let value = |name: &str| profile.item(name).ok_or_else(|| missing(name));
    let volts = profile.item("wifi.controller.voltage").map_or(VOLTS, |mv| mv / 1e3);
    let idle = watts(value("wifi.controller.idle")?, volts);
    let receive = watts(value("wifi.controller.rx")?, volts);
    let send = watts(value("wifi.controller.tx")?, volts);
    Ok(RadioProfile {
        name: "android-wifi".to_owned(),
        origin: format!("power_profile.xml, {WIFI_RATE} Mbit/s assumed"),
        promotion: Phase { duration: Duration::ZERO, power: idle },
        active: idle,
        uplink: Slope::of_airtime(send - idle, BitRate::from_mbps(WIFI_RATE)),
        downlink: Slope::of_airtime(receive - idle, BitRate::from_mbps(WIFI_RATE)),
        ceiling: Some(if send > receive { send } else { receive } - idle),
        tail: Vec::new(),
        shared: None,
        idle: Idle::constant(idle),
    })
}

/// The modem's own values, else the `radio.active` of older profiles. How long it stays awake after
/// the last byte stands nowhere: as long as LTE.
fn modem(profile: &Profile) -> Result<RadioProfile, String> {
    let volts = profile.item("modem.controller.voltage").map_or(VOLTS, |mv| mv / 1e3);
    let receive = profile.item("modem.controller.rx").or_else(|| profile.item("radio.active"));
    let receive = watts(receive.ok_or_else(|| missing("modem.controller.rx"))?, volts);
    let send = profile.largest("modem.controller.tx").map_or(receive, |ma| watts(ma, volts));
    let waiting = profile.item("modem.controller.idle").map_or(receive, |ma| watts(ma, volts));
    let asleep = profile.item("modem.controller.sleep").map_or(Watts::ZERO, |ma| watts(ma, volts));
    let waiting = if waiting > receive { receive } else { waiting };
    let rate = BitRate::from_mbps(MODEM_RATE);
    Ok(RadioProfile {
        name: "android-modem".to_owned(),
        origin: format!("power_profile.xml, {MODEM_RATE} Mbit/s and LTE's times assumed"),
        promotion: Phase { duration: lte().promotion.duration, power: waiting },
        active: waiting,
        uplink: Slope::of_airtime(send - waiting, rate),
        downlink: Slope::of_airtime(receive - waiting, rate),
        ceiling: Some(if send > receive { send } else { receive } - waiting),
        tail: vec![Tail {
            name: "tail".to_owned(),
            duration: lte().tail_duration(),
            power: waiting,
        }],
        shared: None,
        idle: Idle::constant(if asleep > waiting { waiting } else { asleep }),
    })
}

/// One core of the largest cluster at its highest clock.
fn core(profile: &Profile) -> Option<f64> {
    let clusters = (0..8).filter_map(|n| {
        let new = profile.largest(&format!("cpu.core_power.cluster{n}"));
        new.or_else(|| profile.largest(&format!("cpu.active.cluster{n}")))
    });
    clusters.max_by(f64::total_cmp).or_else(|| profile.largest("cpu.active"))
}

/// Awake with one cluster on: suspend + idle + active + cluster.
fn awake(profile: &Profile) -> Option<f64> {
    let names = ["cpu.suspend", "cpu.idle", "cpu.active", "cpu.cluster_power.cluster0"];
    let parts: Vec<f64> = names.iter().filter_map(|name| profile.item(name)).collect();
    (!parts.is_empty()).then(|| parts.iter().sum())
}
