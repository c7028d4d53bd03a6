//! A profile that its user wrote.

use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes, Watts};
use serde::Deserialize;

use super::Device;
use crate::radio::{Idle, Phase, RadioProfile, Shared, Slope, State, Tail};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    source: Option<String>,
    cpu_mw_per_core: Option<f64>,
    base_mw: Option<f64>,
    #[serde(default)]
    promotion: Timed,
    active: Active,
    #[serde(default)]
    tail: Vec<NamedPhase>,
    shared: Option<SharedChannel>,
    idle: IdleTable,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Timed {
    seconds: f64,
    mw: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedPhase {
    name: String,
    seconds: f64,
    mw: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Active {
    mw: f64,
    up_mw_per_mbps: f64,
    down_mw_per_mbps: f64,
    up_fitted_to_mbps: Option<f64>,
    down_fitted_to_mbps: Option<f64>,
    at_most_added_mw: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedChannel {
    name: String,
    promotion_seconds: f64,
    promotion_mw: f64,
    mw: f64,
    threshold_bytes: u64,
    mbps: f64,
    tail_seconds: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IdleTable {
    mw: f64,
    #[serde(default)]
    listens_seconds: f64,
    #[serde(default)]
    every_seconds: f64,
    #[serde(default)]
    listening_mw: f64,
}

/// No device draws more, in milliwatts, no radio waits for longer, and none is faster, in Mbit/s.
const MOST_MILLIWATTS: f64 = 1e6;
const LONGEST: f64 = 24.0 * 3600.0;
const FASTEST: f64 = 1e6;

/// A radio that listens does so no more often, seconds.
const SHORTEST_PERIOD: f64 = 1e-3;

/// Joules carry their source, and say so where it is not known.
const NO_SOURCE: &str = "its file names no source";

/// So many tails are more than any radio has.
const MOST_TAILS: usize = 32;

pub(super) fn parse(text: &str) -> Result<Device, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let own = |key, mw: Option<f64>| mw.map(|mw| power(key, mw)).transpose();
    let device = Device {
        cpu_per_core: own("cpu_mw_per_core", file.cpu_mw_per_core)?,
        base: own("base_mw", file.base_mw)?,
        radio: radio(file)?,
    };
    named(&device.radio)?;
    ranked(&device.radio)?;
    Ok(device)
}

fn radio(file: File) -> Result<RadioProfile, String> {
    let Active { up_mw_per_mbps, down_mw_per_mbps, .. } = file.active;
    let tail = |phase: NamedPhase| {
        let NamedPhase { name, seconds, mw } = phase;
        let (duration, power) = (time("tail.seconds", seconds)?, power("tail.mw", mw)?);
        Ok::<Tail, String>(Tail { name, duration, power })
    };
    if file.tail.len() > MOST_TAILS {
        return Err(format!("{} tails: {MOST_TAILS} at most", file.tail.len()));
    }
    let ceiling = file.active.at_most_added_mw;
    let source = file.source.filter(|source| !source.trim().is_empty());
    Ok(RadioProfile {
        name: file.name,
        origin: source.unwrap_or_else(|| NO_SOURCE.to_owned()),
        promotion: phase(
            ("promotion.seconds", file.promotion.seconds),
            ("promotion.mw", file.promotion.mw),
        )?,
        active: power("active.mw", file.active.mw)?,
        uplink: slope("active.up", up_mw_per_mbps, file.active.up_fitted_to_mbps)?,
        downlink: slope("active.down", down_mw_per_mbps, file.active.down_fitted_to_mbps)?,
        ceiling: ceiling.map(|mw| power("active.at_most_added_mw", mw)).transpose()?,
        tail: file.tail.into_iter().map(tail).collect::<Result<_, _>>()?,
        shared: file.shared.map(shared).transpose()?,
        idle: idle(&file.idle)?,
    })
}

fn shared(shared: SharedChannel) -> Result<Shared, String> {
    let mbps = within("shared.mbps", shared.mbps, FASTEST)?;
    if mbps <= 0.0 {
        return Err("shared.mbps = 0: what the channel carries is more than nothing".to_owned());
    }
    Ok(Shared {
        name: shared.name,
        promotion: phase(
            ("shared.promotion_seconds", shared.promotion_seconds),
            ("shared.promotion_mw", shared.promotion_mw),
        )?,
        power: power("shared.mw", shared.mw)?,
        threshold: Bytes(shared.threshold_bytes),
        rate: BitRate::from_mbps(mbps),
        tail: time("shared.tail_seconds", shared.tail_seconds)?,
    })
}

fn idle(listening: &IdleTable) -> Result<Idle, String> {
    let sleep = power("idle.mw", listening.mw)?;
    let awake = phase(
        ("idle.listens_seconds", listening.listens_seconds),
        ("idle.listening_mw", listening.listening_mw),
    )?;
    let period = time("idle.every_seconds", listening.every_seconds)?;
    if period.is_zero() && awake.duration.is_zero() {
        return Ok(Idle::constant(sleep));
    }
    if period.as_secs_f64() < SHORTEST_PERIOD {
        return Err(format!(
            "idle.every_seconds = {:?}: how often it listens, {SHORTEST_PERIOD} s at least",
            listening.every_seconds
        ));
    }
    if awake.duration > period {
        return Err("idle: it listens longer than a period".to_owned());
    }
    Ok(Idle { awake, period, sleep })
}

/// The keys of how long it lasts and what it draws, with their values.
fn phase(seconds: (&str, f64), mw: (&str, f64)) -> Result<Phase, String> {
    Ok(Phase { duration: time(seconds.0, seconds.1)?, power: power(mw.0, mw.1)? })
}

/// Without a limit, the slope is taken to hold at every rate.
fn slope(key: &str, milliwatts_per_mbps: f64, limit: Option<f64>) -> Result<Slope, String> {
    let limit = limit.map(|mbps| within(&format!("{key}_fitted_to_mbps"), mbps, FASTEST));
    let milliwatts_per_mbps =
        within(&format!("{key}_mw_per_mbps"), milliwatts_per_mbps, MOST_MILLIWATTS)?;
    let fitted_up_to = BitRate::from_mbps(limit.transpose()?.unwrap_or(f64::MAX));
    Ok(Slope { milliwatts_per_mbps, fitted_up_to })
}

fn power(key: &str, mw: f64) -> Result<Watts, String> {
    within(key, mw, MOST_MILLIWATTS).map(Watts::from_milliwatts)
}

fn time(key: &str, seconds: f64) -> Result<Duration, String> {
    within(key, seconds, LONGEST).map(Duration::from_secs_f64)
}

fn within(key: &str, value: f64, most: f64) -> Result<f64, String> {
    if (0.0..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{key} = {value:?}: numbers are not negative, and {most} at most"))
    }
}

/// Names are shown on terminals and in drawings, and tell states apart.
fn named(radio: &RadioProfile) -> Result<(), String> {
    let every_radio_has = [State::Idle, State::Promotion, State::Active];
    let shared = radio.shared.iter().map(|shared| shared.name.as_str());
    let own = radio.tail.iter().map(|tail| tail.name.as_str()).chain(shared);
    let mut states: Vec<&str> =
        every_radio_has.map(|state| radio.state_name(state)).into_iter().chain(own).collect();
    let names = states.iter().copied().chain([radio.name.as_str()]);
    if let Some(name) = names.clone().find(|name| name.trim().is_empty()) {
        return Err(format!("{name:?} is no name"));
    }
    let mut shown = names.chain([radio.origin.as_str()]);
    if let Some(name) = shown.find(|name| name.contains(char::is_control)) {
        return Err(format!("{name:?}: a name has no control characters"));
    }
    states.sort_unstable();
    let twice = states.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map_or(Ok(()), |pair| Err(format!("two states are called {:?}", pair[0])))
}

/// More traffic must not cost less: no power is below idle, and none above active.
fn ranked(radio: &RadioProfile) -> Result<(), String> {
    let idle = radio.idle.mean_power();
    for (state, power) in radio.states() {
        let name = radio.state_name(state);
        if power < idle {
            return Err(format!("{name} draws {power}, less than idle with {idle}"));
        }
        if power > radio.active && state != State::Promotion {
            return Err(format!("{name} draws {power}, more than active with {}", radio.active));
        }
    }
    Ok(())
}
