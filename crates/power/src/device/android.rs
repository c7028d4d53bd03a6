//! Android's power profile: mean currents in mA, by the names of its documentation ("Measuring
//! power values", source.android.com).

use std::ops::RangeInclusive;
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
    modem: Option<ModemTable>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "@name")]
    name: String,
    #[serde(default, rename = "$text")]
    value: Option<String>,
}

#[derive(Deserialize)]
struct Array {
    #[serde(rename = "@name")]
    name: String,
    #[serde(default, rename = "value")]
    values: Vec<String>,
}

/// The modem's part since Android 13 (`com.android.internal.power.ModemPowerProfile`). What it lacks is looked for among the
/// items, as Android does.
#[derive(Deserialize)]
struct ModemTable {
    sleep: Option<String>,
    idle: Option<String>,
    #[serde(default)]
    active: Vec<ModemActive>,
}

/// With one radio access technology: `LTE`, `NR`, or `DEFAULT`, which an element without the attribute is, too.
#[derive(Deserialize)]
struct ModemActive {
    #[serde(rename = "@rat")]
    rat: Option<String>,
    receive: Option<String>,
    /// At levels of power from small to large.
    #[serde(default, rename = "transmit")]
    transmits: Vec<String>,
}

impl ModemTable {
    /// LTE's currents, for LTE's times are assumed, else those of any technology.
    fn of_lte(&self) -> Result<Option<&ModemActive>, String> {
        let with = |rat| {
            let found = self.active.iter().filter(move |it| it.rat() == rat);
            at_most_one(&format!("the modem's active part of {rat}"), found)
        };
        let lte = with("LTE")?;
        if lte.is_some() { Ok(lte) } else { with("DEFAULT") }
    }
}

impl ModemActive {
    fn rat(&self) -> &str {
        self.rat.as_deref().unwrap_or("DEFAULT")
    }
}

/// No phone draws more, in mA.
const MOST_MILLIAMPERES: f64 = 1e5;

/// Cells of batteries have some volts; the profile counts them in mV.
const VOLTAGES: RangeInclusive<f64> = 1_000.0..=60_000.0;

impl Profile {
    fn item(&self, name: &str) -> Result<Option<f64>, String> {
        let item = at_most_one(name, self.items.iter().filter(|item| item.name == name))?;
        let value = item.and_then(|item| item.value.as_deref());
        value.map(|text| current(name, text)).transpose()
    }

    /// An item of what the radio draws while it is awake.
    fn awake(&self, name: &str) -> Result<Option<f64>, String> {
        self.item(name)?.map(|ma| above_zero(name, ma)).transpose()
    }

    /// A single value, or the largest of a list: power levels are listed from small to large.
    fn largest(&self, name: &str) -> Result<Option<f64>, String> {
        let array = at_most_one(name, self.arrays.iter().filter(|array| array.name == name))?;
        let largest = largest_of(name, array.map_or(&[][..], |array| &array.values))?;
        if largest.is_some() { Ok(largest) } else { self.item(name) }
    }

    /// Volts by the item `name`, which has mV, and what is assumed where there is none.
    fn volts(&self, name: &str) -> Result<(f64, Option<String>), String> {
        match self.item(name)? {
            None => Ok((VOLTS, Some(format!("{VOLTS} V")))),
            Some(millivolts) if VOLTAGES.contains(&millivolts) => Ok((millivolts / 1e3, None)),
            Some(other) => Err(format!("{name} is {other}: it counts in mV")),
        }
    }
}

/// The only one of `found`, if there is any: nothing says which of two a device means.
fn at_most_one<T>(what: &str, mut found: impl Iterator<Item = T>) -> Result<Option<T>, String> {
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(format!("it has {what} more than once: leave the one that counts")),
    }
}

/// Profiles that nobody measured have zeros, and a radio that is awake draws something.
fn above_zero(name: &str, milliamperes: f64) -> Result<f64, String> {
    if milliamperes > 0.0 {
        return Ok(milliamperes);
    }
    Err(format!("{name} is 0, and a radio that is awake draws more: fill in what was measured"))
}

/// Where the numbers of a radio come from.
fn origin(assumed: impl IntoIterator<Item = String>) -> String {
    let assumed: Vec<_> = assumed.into_iter().collect();
    format!("power_profile.xml; assumed: {}", assumed.join(", "))
}

fn largest_of(name: &str, texts: &[String]) -> Result<Option<f64>, String> {
    let values: Vec<f64> =
        texts.iter().map(|text| current(name, text)).collect::<Result<_, _>>()?;
    Ok(values.into_iter().max_by(f64::total_cmp))
}

fn current(name: &str, text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.trim().parse().ok();
    let value = value.filter(|value| (0.0..=MOST_MILLIAMPERES).contains(value));
    value.ok_or_else(|| {
        let shown: String = text.trim().chars().take(40).collect();
        format!("{name} is {shown:?}: values are numbers from 0 to {MOST_MILLIAMPERES}")
    })
}

pub(super) fn parse(text: &str, radio: AndroidRadio) -> Result<Device, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let profile: Profile = quick_xml::de::from_str(text)
        .map_err(|error| format!("it is no power_profile.xml in words: {error}"))?;
    if profile.items.is_empty() && profile.arrays.is_empty() && profile.modem.is_none() {
        return Err("it has no items: is it a power_profile.xml?".to_owned());
    }
    let device = Device {
        radio: match radio {
            AndroidRadio::Wifi => wifi(&profile)?,
            AndroidRadio::Modem => modem(&profile)?,
        },
        cpu_per_core: core(&profile)?.map(|ma| watts(ma, VOLTS)),
        base: awake(&profile)?.map(|ma| watts(ma, VOLTS)),
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
    let value = |name: &str| profile.awake(name)?.ok_or_else(|| missing(name));
    let (volts, assumed) = profile.volts("wifi.controller.voltage")?;
    let idle = watts(value("wifi.controller.idle")?, volts);
    let receive = watts(value("wifi.controller.rx")?, volts);
    let send = watts(value("wifi.controller.tx")?, volts);
    Ok(RadioProfile {
        name: "android-wifi".to_owned(),
        origin: origin([format!("{WIFI_RATE} Mbit/s")].into_iter().chain(assumed)),
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
    let (volts, assumed) = profile.volts("modem.controller.voltage")?;
    let table = profile.modem.as_ref();
    let lte_active = table.map_or(Ok(None), ModemTable::of_lte)?;
    let awake = |text: Option<&String>, name: &str| match text {
        Some(text) => above_zero(name, current(name, text)?).map(Some),
        None => profile.awake(name),
    };
    let receive = lte_active.and_then(|active| active.receive.as_ref());
    let receive = match awake(receive, "modem.controller.rx")? {
        None => profile.awake("radio.active")?.ok_or_else(|| missing("modem.controller.rx"))?,
        Some(receive) => receive,
    };
    let levels = lte_active.map_or(&[][..], |active| &active.transmits);
    let (sends, name) = match largest_of("modem.active.transmit", levels)? {
        None => (profile.largest("modem.controller.tx")?, "modem.controller.tx"),
        sends => (sends, "modem.active.transmit"),
    };
    let send = sends.map_or(Ok(receive), |ma| above_zero(name, ma))?;
    let waiting = table.and_then(|table| table.idle.as_ref());
    let waiting = awake(waiting, "modem.controller.idle")?.unwrap_or(receive);
    let asleep = match table.and_then(|table| table.sleep.as_ref()) {
        Some(text) => Some(current("modem.controller.sleep", text)?),
        None => profile.item("modem.controller.sleep")?,
    };
    let asleep = asleep.unwrap_or_default();
    let [receive, send, waiting, asleep] =
        [receive, send, waiting, asleep].map(|ma| watts(ma, volts));
    let waiting = if waiting > receive { receive } else { waiting };
    let rate = BitRate::from_mbps(MODEM_RATE);
    Ok(RadioProfile {
        name: "android-modem".to_owned(),
        origin: origin(
            [format!("{MODEM_RATE} Mbit/s"), "LTE's times".to_owned()].into_iter().chain(assumed),
        ),
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
fn core(profile: &Profile) -> Result<Option<f64>, String> {
    let mut largest: Option<f64> = None;
    for n in 0..8 {
        let new = profile.largest(&format!("cpu.core_power.cluster{n}"))?;
        let old = profile.largest(&format!("cpu.active.cluster{n}"))?;
        largest = [largest, new.or(old)].into_iter().flatten().max_by(f64::total_cmp);
    }
    if largest.is_some() { Ok(largest) } else { profile.largest("cpu.active") }
}

/// Awake with one cluster on: suspend + idle + active + cluster.
fn awake(profile: &Profile) -> Result<Option<f64>, String> {
    let names = ["cpu.suspend", "cpu.idle", "cpu.active", "cpu.cluster_power.cluster0"];
    let mut sum: Option<f64> = None;
    for name in names {
        if let Some(part) = profile.item(name)? {
            sum = Some(sum.unwrap_or_default() + part);
        }
    }
    Ok(sum)
}
