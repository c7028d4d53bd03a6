//! A profile that its user wrote.

use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes, Watts};
use serde::Deserialize;

use super::Device;
use crate::radio::{Idle, Phase, RadioProfile, Shared, Slope, Tail};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    source: String,
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

pub(super) fn parse(text: &str) -> Result<Device, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let device = Device {
        cpu_per_core: file.cpu_mw_per_core.map(power).transpose()?,
        base: file.base_mw.map(power).transpose()?,
        radio: radio(file)?,
    };
    ranked(&device.radio)?;
    Ok(device)
}

fn radio(file: File) -> Result<RadioProfile, String> {
    let Active { up_mw_per_mbps, down_mw_per_mbps, .. } = file.active;
    let tail = |phase: NamedPhase| {
        let NamedPhase { name, seconds, mw } = phase;
        Ok::<Tail, String>(Tail { name, duration: time(seconds)?, power: power(mw)? })
    };
    Ok(RadioProfile {
        name: file.name,
        origin: file.source,
        promotion: phase(file.promotion.seconds, file.promotion.mw)?,
        active: power(file.active.mw)?,
        uplink: slope(up_mw_per_mbps, file.active.up_fitted_to_mbps)?,
        downlink: slope(down_mw_per_mbps, file.active.down_fitted_to_mbps)?,
        ceiling: file.active.at_most_added_mw.map(power).transpose()?,
        tail: file.tail.into_iter().map(tail).collect::<Result<_, _>>()?,
        shared: file.shared.map(shared).transpose()?,
        idle: idle(&file.idle)?,
    })
}

fn shared(shared: SharedChannel) -> Result<Shared, String> {
    Ok(Shared {
        name: shared.name,
        promotion: phase(shared.promotion_seconds, shared.promotion_mw)?,
        power: power(shared.mw)?,
        threshold: Bytes(shared.threshold_bytes),
        rate: BitRate::from_mbps(number(shared.mbps)?),
        tail: time(shared.tail_seconds)?,
    })
}

fn idle(listening: &IdleTable) -> Result<Idle, String> {
    let sleep = power(listening.mw)?;
    let period = time(listening.every_seconds)?;
    if period.is_zero() {
        return Ok(Idle::constant(sleep));
    }
    let awake = phase(listening.listens_seconds, listening.listening_mw)?;
    if awake.duration > period {
        return Err("idle: it listens longer than a period".to_owned());
    }
    Ok(Idle { awake, period, sleep })
}

fn phase(seconds: f64, mw: f64) -> Result<Phase, String> {
    Ok(Phase { duration: time(seconds)?, power: power(mw)? })
}

/// Without a limit, the slope is taken to hold at every rate.
fn slope(milliwatts_per_mbps: f64, limit: Option<f64>) -> Result<Slope, String> {
    let fitted_up_to = BitRate::from_mbps(limit.map_or(Ok(f64::MAX), number)?);
    Ok(Slope { milliwatts_per_mbps: number(milliwatts_per_mbps)?, fitted_up_to })
}

fn power(mw: f64) -> Result<Watts, String> {
    number(mw).map(Watts::from_milliwatts)
}

fn time(seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(seconds)?).map_err(|error| format!("{seconds} s: {error}"))
}

fn number(value: f64) -> Result<f64, String> {
    let sane = value.is_finite() && value >= 0.0;
    if sane { Ok(value) } else { Err(format!("{value}: numbers are finite and not negative")) }
}

/// More traffic must not cost less: no power is below idle, and none above active.
fn ranked(radio: &RadioProfile) -> Result<(), String> {
    let idle = radio.idle.mean_power();
    for (state, power) in radio.states() {
        let name = radio.state_name(state);
        if power < idle {
            return Err(format!("{name} draws {power}, less than idle with {idle}"));
        }
        if power > radio.active && state != crate::radio::State::Promotion {
            return Err(format!("{name} draws {power}, more than active with {}", radio.active));
        }
    }
    Ok(())
}
