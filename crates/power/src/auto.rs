//! Which meters this machine has, and which of them a run gets when nobody named one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::meter::{MeterError, PowerMeter};
use crate::meters::{Battery, Hwmon, Rapl};
use crate::modelled::{Modelled, ModelledConfig};

/// A meter, and why it is this one.
pub struct Choice {
    /// The meter.
    pub meter: Box<dyn PowerMeter>,
    /// One line for people.
    pub reason: String,
    /// What tells policies joules where the meter is too slow for the windows that they compare.
    pub stand_in: Option<Box<dyn PowerMeter>>,
}

/// EHT compares windows of 0.8 s and more: a meter that changes less often than four times in one
/// says more about when it changed than about what was drawn.
const SLOW: Duration = Duration::from_millis(200);

impl Choice {
    /// `meter` for `reason`, and if it is slow the model of `config` beside it.
    pub fn new(meter: Box<dyn PowerMeter>, reason: String, config: ModelledConfig) -> Self {
        let slow = meter.resolution().interval > SLOW;
        let stand_in = slow.then(|| Box::new(Modelled::new(config)) as Box<dyn PowerMeter>);
        Self { meter, reason, stand_in }
    }
}

/// Where meters look for hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    /// `/sys`.
    fn default() -> Self {
        Self::at("/sys")
    }
}

impl Sysfs {
    /// A tree that is laid out as `/sys` is, such as a recorded one.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn class(&self, name: &str) -> PathBuf {
        self.root.join("class").join(name)
    }

    /// The processor packages.
    ///
    /// # Errors
    /// As for [`Rapl::open`].
    pub fn rapl(&self) -> Result<Rapl, MeterError> {
        Rapl::open(&self.class("powercap"))
    }

    /// The batteries.
    ///
    /// # Errors
    /// As for [`Battery::open`].
    pub fn battery(&self) -> Result<Battery, MeterError> {
        Battery::open(&self.class("power_supply"))
    }

    /// The first power sensor.
    ///
    /// # Errors
    /// As for [`Hwmon::open`].
    pub fn hwmon(&self) -> Result<Hwmon, MeterError> {
        Hwmon::open(&self.class("hwmon"))
    }

    /// A power sensor in a supply line.
    fn supply(&self) -> Result<Hwmon, MeterError> {
        let sensor = self.hwmon()?;
        if sensor.is_supply() {
            return Ok(sensor);
        }
        let name = sensor.source().name;
        Err(MeterError::unreadable(&name, "it measures one part and not the machine's supply"))
    }

    /// Where the counters of network interfaces are.
    pub fn interfaces(&self) -> PathBuf {
        self.class("net")
    }

    /// The root itself.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Picks the best meter of this machine, see [`auto_in`].
pub fn auto(config: ModelledConfig) -> Choice {
    auto_in(&Sysfs::default(), config)
}

/// Picks the best meter that `sysfs` shows and this user may read: what covers the whole device
/// before what covers a part, and what is fine before what is coarse. So a sensor in the supply
/// line, else the battery, else the processor packages, else the model of `config`. The reason
/// says what stood in the way of the better ones.
pub fn auto_in(sysfs: &Sysfs, config: ModelledConfig) -> Choice {
    let mut refused = Vec::new();
    let candidates: [(&str, Open); 3] = [
        ("it measures the machine's supply", |s| Ok(Box::new(s.supply()?))),
        ("it measures the whole device", |s| Ok(Box::new(s.battery()?))),
        ("it measures the processor packages", |s| Ok(Box::new(s.rapl()?))),
    ];
    for (why, open) in candidates {
        match open(sysfs) {
            Ok(meter) => {
                refused.insert(0, format!("{}, because {why}", meter.source()));
                return Choice::new(meter, refused.join("; "), config);
            }
            Err(MeterError::Absent { .. }) => {}
            Err(error) => refused.push(error.to_string()),
        }
    }
    let meter = Box::new(Modelled::new(config));
    if refused.is_empty() {
        refused.push("no sensor of power is found".to_owned());
    }
    let reason = format!("{}, because {}", meter.source(), refused.join("; "));
    Choice { meter, reason, stand_in: None }
}

type Open = fn(&Sysfs) -> Result<Box<dyn PowerMeter>, MeterError>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meters::tests::Tree;

    fn choice(tree: &Tree) -> String {
        auto_in(&Sysfs::at(tree.path()), ModelledConfig::default()).reason
    }

    #[test]
    fn without_sensors_it_is_the_model_and_says_why() {
        let reason = choice(&Tree::new(&[]));
        assert_eq!(reason, "modelled: wifi+cpu, because no sensor of power is found");
        let locked = Tree::new(&[
            ("class/powercap/intel-rapl:0/name", "package-0"),
            ("class/powercap/intel-rapl:0/energy_uj", "locked"),
        ]);
        let reason = choice(&locked);
        assert!(reason.starts_with("modelled: wifi+cpu, because rapl can't be read"), "{reason}");
    }

    #[test]
    fn what_covers_more_is_preferred() {
        let rapl = Tree::new(&[
            ("class/powercap/intel-rapl:0/name", "package-0"),
            ("class/powercap/intel-rapl:0/energy_uj", "1"),
            ("class/hwmon/hwmon0/name", "amdgpu"),
            ("class/hwmon/hwmon0/power1_input", "30000000"),
        ]);
        let reason = choice(&rapl);
        assert!(reason.starts_with("measured: rapl, because"), "{reason}");
        assert!(reason.contains("amdgpu can't be read: it measures one part"), "{reason}");
        rapl.write("class/power_supply/BAT0/type", "Battery");
        rapl.write("class/power_supply/BAT0/status", "Discharging");
        rapl.write("class/power_supply/BAT0/energy_now", "30000000");
        assert!(choice(&rapl).starts_with("measured: battery"));
        let sysfs = Sysfs::at(rapl.path());
        let slow = auto_in(&sysfs, ModelledConfig::default());
        assert_eq!(slow.stand_in.unwrap().source().to_string(), "modelled: wifi+cpu");
        rapl.write("class/power_supply/BAT0/status", "Charging");
        assert!(choice(&rapl).contains("unplug the device"));
        rapl.write("class/hwmon/hwmon1/name", "ina226");
        rapl.write("class/hwmon/hwmon1/power1_input", "4000000");
        assert!(choice(&rapl).starts_with("measured: hwmon ina226, because it measures"));
    }
}
