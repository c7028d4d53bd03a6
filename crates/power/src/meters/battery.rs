//! The battery's own gauge: `/sys/class/power_supply`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Joules, Watts};

use super::sum::{Rises, Trapezium};
use super::sysfs;
use crate::meter::{
    MeterError, PowerMeter, Reading, Resolution, Scope, Source, SourceKind, Traffic,
};

const NAME: &str = "battery";

/// A uWh is 3.6 mJ.
const JOULES_PER_MICROWATT_HOUR: f64 = 3.6e-3;

/// No battery that this is for delivers more watts: power beyond is a driver's "unknown", and a gauge that falls faster has
/// corrected itself. What that tells is up to an interval old.
const MOST_WATTS: f64 = 500.0;
const INTERVAL: Duration = Duration::from_secs(30);

/// What the batteries of this machine give off while nothing charges them: the whole device.
#[derive(Debug, Clone)]
pub struct Battery {
    packs: Vec<Pack>,
    last: Option<Timestamp>,
    asked: Option<Timestamp>,
    /// It was charged, or is full, since the last reading.
    is_interrupted: bool,
    left_out: Duration,
}

#[derive(Debug, Clone)]
struct Pack {
    directory: PathBuf,
    gauge: Gauge,
}

/// How a pack tells its energy.
#[derive(Debug, Clone)]
enum Gauge {
    /// `energy_now`, in uWh: it falls as energy is used.
    Energy(Rises),
    /// `current_now` (uA) times `voltage_now` (uV).
    Power(Trapezium),
}

/// What a pack is doing.
enum Status {
    Discharging,
    Charging,
    /// Full, not charging, or unknown: nothing flows that would count.
    Resting,
}

impl Battery {
    /// The batteries under `root`, `/sys/class/power_supply` on a real machine. Those of peripherals
    /// (`scope` = `Device`) are not meant.
    ///
    /// # Errors
    /// There is none, it is charged at the moment, it tells neither energy nor current and
    /// voltage, or what it tells is of no use.
    pub fn open(root: &Path) -> Result<Self, MeterError> {
        let supplies = sysfs::entries(root).map_err(|reason| MeterError::absent(NAME, reason))?;
        let mut packs: Vec<Pack> = supplies
            .into_iter()
            .filter(|supply| is_battery(supply))
            .filter_map(|directory| {
                let gauge = Gauge::of(&directory)?;
                Some(Pack { directory, gauge })
            })
            .collect();
        if packs.is_empty() {
            let reason = format!("no battery with a gauge under {}", root.display());
            return Err(MeterError::absent(NAME, reason));
        }
        discharging(&packs)?;
        for pack in packs.iter_mut().filter(|pack| pack.is_discharging()) {
            pack.read(Timestamp::START).map_err(|reason| MeterError::unreadable(NAME, reason))?;
            pack.interrupt();
        }
        Ok(Self { packs, last: None, asked: None, is_interrupted: false, left_out: Duration::ZERO })
    }

    fn total(&self) -> Joules {
        self.packs.iter().map(Pack::total).sum()
    }
}

fn is_battery(supply: &Path) -> bool {
    let is = |name: &str, value: &str| sysfs::text(&supply.join(name)).is_ok_and(|t| t == value);
    is("type", "Battery") && !is("scope", "Device") && !is("present", "0")
}

/// Fails when what the packs tell is not what the device uses.
fn discharging(packs: &[Pack]) -> Result<(), MeterError> {
    let statuses: Vec<Status> = packs.iter().map(Pack::status).collect();
    let any = |wanted: fn(&Status) -> bool| statuses.iter().any(wanted);
    if any(|status| matches!(status, Status::Charging)) {
        return Err(MeterError::unreadable(NAME, "it is charging: unplug the device to measure"));
    }
    if !any(|status| matches!(status, Status::Discharging)) {
        let reason = "it is not discharging: unplug the device to measure";
        return Err(MeterError::unreadable(NAME, reason));
    }
    Ok(())
}

impl Gauge {
    /// `energy_now` where there is one, else current and voltage.
    fn of(directory: &Path) -> Option<Self> {
        let has = |name: &str| sysfs::number(&directory.join(name)).is_ok();
        if sysfs::count(&directory.join("energy_now")).is_ok() {
            Some(Self::Energy(Rises::within(Watts::new(MOST_WATTS), INTERVAL)))
        } else if has("current_now") && has("voltage_now") {
            Some(Self::Power(Trapezium::default()))
        } else {
            None
        }
    }
}

impl Pack {
    fn status(&self) -> Status {
        match sysfs::text(&self.directory.join("status")).as_deref() {
            Ok("Discharging") => Status::Discharging,
            Ok("Charging") => Status::Charging,
            _ => Status::Resting,
        }
    }

    fn read(&mut self, now: Timestamp) -> Result<(), String> {
        let file = |name: &str| self.directory.join(name);
        match &mut self.gauge {
            Gauge::Energy(used) => {
                // What is left falls as energy is used; a rise is the gauge correcting itself.
                let left = sysfs::count(&file("energy_now"))? as f64;
                used.add(now, -left * JOULES_PER_MICROWATT_HOUR);
                Ok(())
            }
            Gauge::Power(power) => {
                // Drivers differ in the sign of a discharge: the status tells the direction.
                let current = sysfs::number(&file("current_now"))?;
                let voltage = sysfs::count(&file("voltage_now"))?;
                let watts = current.unsigned_abs() as f64 / 1e6 * (voltage as f64 / 1e6);
                if voltage == 0 || watts > MOST_WATTS {
                    let directory = self.directory.display();
                    return Err(format!(
                        "{directory} tells {current} uA at {voltage} uV, which no battery delivers: its driver \
                         does not know"
                    ));
                }
                power.add(now, watts).map_err(str::to_owned)
            }
        }
    }

    fn is_discharging(&self) -> bool {
        matches!(self.status(), Status::Discharging)
    }

    /// Forgets the last sample: between it and the next the pack was charged, or is not known.
    fn interrupt(&mut self) {
        match &mut self.gauge {
            Gauge::Energy(used) => used.interrupt(),
            Gauge::Power(power) => power.interrupt(),
        }
    }

    fn total(&self) -> Joules {
        match &self.gauge {
            Gauge::Energy(used) => used.total(),
            Gauge::Power(power) => power.total(),
        }
    }
}

impl PowerMeter for Battery {
    fn source(&self) -> Source {
        Source { kind: SourceKind::Measured, name: NAME.to_owned() }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    /// Gauges are asked by the kernel every one to thirty seconds. Energy is told in mWh by most
    /// firmware (ACPI 6.5, 10.2.2), and in steps of 10 mWh by much of it: 36 J. Current and voltage
    /// differ by the driver; the step is that of 1 mA at 3.7 V for a second.
    fn resolution(&self) -> Resolution {
        let counts = self.packs.iter().any(|pack| matches!(pack.gauge, Gauge::Energy(_)));
        if counts {
            Resolution { interval: INTERVAL, step: Joules::new(36.0) }
        } else {
            Resolution { interval: Duration::from_secs(1), step: Joules::new(3.7e-3) }
        }
    }

    fn read(&mut self, now: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
        let before = self.asked.replace(now).unwrap_or(now);
        let discharging = discharging(&self.packs);
        if self.is_interrupted || discharging.is_err() {
            self.left_out += now.saturating_since(before);
        }
        self.is_interrupted = discharging.is_err();
        if let Err(error) = discharging {
            self.packs.iter_mut().for_each(Pack::interrupt);
            return Err(error);
        }
        for pack in &mut self.packs {
            if pack.is_discharging() {
                pack.read(now).map_err(|reason| MeterError::unreadable(NAME, reason))?;
            } else {
                pack.interrupt();
            }
        }
        let at = self.last.map_or(now, |last| last.max(now));
        self.last = Some(at);
        Ok(Reading { at, total: self.total(), parts: None })
    }

    fn left_out(&self) -> Duration {
        self.left_out
    }
}
