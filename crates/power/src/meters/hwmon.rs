//! Power sensors on the board (INA219, INA226, INA3221 and their kin): `/sys/class/hwmon`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::Joules;

use super::sum::{Rises, Trapezium};
use super::sysfs;
use crate::meter::{
    MeterError, PowerMeter, Reading, Resolution, Scope, Source, SourceKind, Traffic,
};

/// How the names of chips begin that people put into a supply line to measure it. Others, as in
/// graphics cards, measure one part of the machine.
const SUPPLY_MONITORS: [&str; 6] = ["ina2", "ina3", "ina4", "ltc29", "ltc42", "pac19"];

/// Chips convert some ten to a thousand times a second; ten is assumed.
const INTERVAL: Duration = Duration::from_millis(100);

/// Channels of a chip that are looked at.
const CHANNELS: u32 = 16;

/// One sensor of one chip.
///
/// Channels and chips are never added: on boards that have several, the first is the supply and the
/// others are parts of it.
#[derive(Debug, Clone)]
pub struct Hwmon {
    name: String,
    scope: Scope,
    sensor: Sensor,
    /// It has told nothing since then.
    failed_after: Option<Timestamp>,
    left_out: Duration,
    last: Option<Timestamp>,
}

#[derive(Debug, Clone)]
enum Sensor {
    /// `energyN_input`, uJ.
    Energy(PathBuf, Rises),
    /// `powerN_input` or `powerN_average`, uW.
    Power(PathBuf, Trapezium),
    /// `currN_input`, mA, times `inN_input`, mV.
    Pair(PathBuf, PathBuf, Trapezium),
}

impl Hwmon {
    /// The first sensor of the first chip under `root`, `/sys/class/hwmon` on a real machine; chips
    /// that monitor supplies go before others.
    ///
    /// # Errors
    /// No chip there has a readable sensor of power, or what the first tells is of no use.
    pub fn open(root: &Path) -> Result<Self, MeterError> {
        let absent = |reason| MeterError::absent("hwmon", reason);
        let chips = sysfs::entries(root).map_err(absent)?;
        let sensors = chips.iter().filter_map(|chip| Self::of_chip(chip));
        let first = sensors.min_by_key(|sensor| sensor.scope != Scope::Device);
        let first =
            first.ok_or_else(|| absent(format!("no sensor of power under {}", root.display())))?;
        let told = first.sensor.clone().read(Timestamp::START);
        told.map_err(|reason| MeterError::unreadable(&first.name, reason))?;
        Ok(first)
    }

    /// Whether the sensor's chip is one that monitors a supply line.
    pub fn is_supply(&self) -> bool {
        self.scope == Scope::Device
    }

    fn of_chip(directory: &Path) -> Option<Self> {
        let chip = sysfs::text(&directory.join("name")).ok()?;
        let is_supply = SUPPLY_MONITORS.iter().any(|known| chip.starts_with(known));
        let (channel, sensor) = Sensor::first_of(directory)?;
        let labels = ["in", "power", "curr", "energy"];
        let mut labels = labels.iter().map(|kind| directory.join(format!("{kind}{channel}_label")));
        let label = labels.find_map(|path| sysfs::text(&path).ok());
        let name = match label {
            Some(label) => format!("hwmon {chip} {label}"),
            None => format!("hwmon {chip}"),
        };
        let scope = if is_supply { Scope::Device } else { Scope::Package };
        Some(Self { name, scope, sensor, failed_after: None, left_out: Duration::ZERO, last: None })
    }
}

impl Sensor {
    /// Energy before power before current and voltage: they show the same line.
    fn first_of(directory: &Path) -> Option<(u32, Self)> {
        let readable = |name: String| {
            let path = directory.join(name);
            sysfs::number(&path).ok().map(|_| path)
        };
        let energy = |n: u32| {
            Some(Self::Energy(readable(format!("energy{n}_input"))?, Rises::new(INTERVAL)))
        };
        let power = |n: u32| {
            // Some chips tell only their own mean, as of graphics cards.
            let path = readable(format!("power{n}_input"))
                .or_else(|| readable(format!("power{n}_average")))?;
            Some(Self::Power(path, Trapezium::default()))
        };
        let pair = |n: u32| {
            let current = readable(format!("curr{n}_input"))?;
            let voltage = readable(format!("in{n}_input"))?;
            Some(Self::Pair(current, voltage, Trapezium::default()))
        };
        let first = |kind: &dyn Fn(u32) -> Option<Self>| {
            (1..=CHANNELS).find_map(|n| kind(n).map(|sensor| (n, sensor)))
        };
        first(&energy).or_else(|| first(&power)).or_else(|| first(&pair))
    }

    /// It was gone for a while. Returns whether what was drawn meanwhile is not counted: a counter tells it afterwards.
    fn interrupt(&mut self) -> bool {
        match self {
            Self::Energy(..) => false,
            Self::Power(_, sum) | Self::Pair(_, _, sum) => {
                sum.interrupt();
                true
            }
        }
    }

    fn read(&mut self, now: Timestamp) -> Result<Joules, String> {
        match self {
            Self::Energy(path, rises) => {
                rises.add(now, sysfs::count(path)? as f64 / 1e6);
                Ok(rises.total())
            }
            Self::Power(path, sum) => {
                let watts = sysfs::number(path)? as f64 / 1e6;
                sum.add(now, watts).map_err(|why| told(path, watts, why))?;
                Ok(sum.total())
            }
            Self::Pair(current, voltage, sum) => {
                let amperes = sysfs::number(current)? as f64 / 1e3;
                let watts = (amperes * sysfs::number(voltage)? as f64 / 1e3).abs();
                sum.add(now, watts).map_err(|why| told(current, watts, why))?;
                Ok(sum.total())
            }
        }
    }
}

fn told(path: &Path, watts: f64, why: &str) -> String {
    format!("{} tells {watts} W, {why}", path.display())
}

impl PowerMeter for Hwmon {
    fn source(&self) -> Source {
        Source { kind: SourceKind::Measured, name: self.name.clone() }
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    /// The step is that of power, the least of an INA219 at 0.1 ohm (2 mW), over an interval.
    fn resolution(&self) -> Resolution {
        Resolution { interval: INTERVAL, step: Joules::new(2e-4) }
    }

    fn read(&mut self, now: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
        let silent_for = self.failed_after.map_or(Duration::ZERO, |at| now.saturating_since(at));
        let was_gone = silent_for > self.resolution().longest_silence() && self.sensor.interrupt();
        let total = self.sensor.read(now).map_err(|reason| {
            self.failed_after = self.failed_after.or(self.last);
            MeterError::unreadable(&self.name, reason)
        })?;
        self.failed_after = None;
        if was_gone {
            self.left_out += silent_for;
        }
        let at = self.last.map_or(now, |last| last.max(now));
        self.last = Some(at);
        Ok(Reading { at, total, parts: None })
    }

    fn left_out(&self) -> Duration {
        self.left_out
    }
}
