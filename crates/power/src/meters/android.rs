//! From what Android tells to [`Sample`]s; the Java side reads the values and hands them over
//! through a [`Callback`](super::Callback).

use super::callback::Sample;

/// Amperes times 10^-6 or 10^-3: a phone that is awake draws between 10 mA and 10 A, so a smaller
/// number is one of a vendor that tells mA instead of the documented uA.
const LEAST_MICROAMPERES: u64 = 10_000;

/// A nWh is 3.6 uJ.
const JOULES_PER_NANOWATT_HOUR: f64 = 3.6e-6;

/// What `BatteryManager` tells. Properties that a device lacks read as `Integer.MIN_VALUE`,
/// `Long.MIN_VALUE`, 0 or -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatteryManager {
    /// `BATTERY_PROPERTY_CURRENT_NOW`: uA. Vendors differ in the sign of a discharge, and some tell mA.
    pub current_now: i64,
    /// `BATTERY_PROPERTY_CHARGE_COUNTER`: uAh that are left.
    pub charge_counter: i64,
    /// `BATTERY_PROPERTY_ENERGY_COUNTER`: nWh that are left.
    pub energy_counter: i64,
    /// `EXTRA_VOLTAGE` of `ACTION_BATTERY_CHANGED`: mV.
    pub millivolts: i64,
    /// Whether the battery is being charged: then nothing of this is what the device uses.
    pub charging: bool,
}

impl BatteryManager {
    /// The best of what is told: the energy counter, else power, else charge at the present voltage.
    pub fn sample(&self) -> Option<Sample> {
        if self.charging {
            return None;
        }
        if let Some(left) = supported(self.energy_counter).filter(|left| *left > 0) {
            return Some(Sample::Energy(-(left as f64) * JOULES_PER_NANOWATT_HOUR));
        }
        let volts = supported(self.millivolts).filter(|mv| *mv > 0)? as f64 / 1e3;
        if let Some(current) = supported(self.current_now) {
            let current = current.unsigned_abs();
            let scale = if current < LEAST_MICROAMPERES { 1e3 } else { 1e6 };
            return Some(Sample::Power(current as f64 / scale * volts));
        }
        let left = supported(self.charge_counter).filter(|left| *left > 0)?;
        Some(Sample::Energy(-(left as f64) * 3600e-6 * volts))
    }
}

fn supported(value: i64) -> Option<i64> {
    let unsupported = [i64::MIN, i64::from(i32::MIN), -1, 0];
    (!unsupported.contains(&value)).then_some(value)
}

/// Accumulated energy of `PowerMonitor` rails (API 35), uWs each. Which rails make up the device
/// differs by device, so the caller chooses ones that do not contain each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rails(pub Vec<i64>);

impl Rails {
    /// Their sum; nothing when one of them tells nothing (`ENERGY_UNAVAILABLE`, -1).
    pub fn sample(&self) -> Option<Sample> {
        let each = self.0.iter().map(|rail| (*rail >= 0).then_some(*rail as f64 / 1e6));
        let sum: f64 = each.collect::<Option<Vec<_>>>()?.iter().sum();
        (!self.0.is_empty()).then_some(Sample::Energy(sum))
    }
}
