//! The energy counters of x86 processors (Intel RAPL, also of AMD), as Linux's powercap shows them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Joules, Watts};

use super::sysfs;
use crate::meter::{
    MeterError, PowerMeter, Reading, Resolution, Scope, Source, SourceKind, Traffic,
};

const NAME: &str = "rapl";

/// Watts that no package draws: a step beyond is no energy but a counter that started anew.
const IMPLAUSIBLE: f64 = 10_000.0;

/// The processor packages of this machine.
///
/// Counted are packages alone: their sub-domains (`core`, `uncore`) are parts of them,
/// `intel-rapl-mmio` shows the same packages once more, and `psys` contains them. Memory that a
/// server counts beside its packages is left out.
#[derive(Debug, Clone)]
pub struct Rapl {
    packages: Vec<Package>,
    last: Option<Timestamp>,
    total: Joules,
}

#[derive(Debug, Clone)]
struct Package {
    counter: PathBuf,
    /// Where the counter wraps, in microjoules; unknown where the file can't be read.
    range: Option<i64>,
    before: Option<i64>,
}

impl Rapl {
    /// The packages under `root`, `/sys/class/powercap` on a real machine.
    ///
    /// # Errors
    /// There are none, or this user may not read them: since Linux 5.10 the counters are for root
    /// alone, because they leak what a processor computes (CVE-2020-8694).
    pub fn open(root: &Path) -> Result<Self, MeterError> {
        let zones = sysfs::entries(root).map_err(|reason| MeterError::absent(NAME, reason))?;
        let packages: Vec<Package> = zones
            .iter()
            .filter(|zone| is_top_level(&sysfs::file_name(zone)))
            .filter(|zone| {
                sysfs::text(&zone.join("name")).is_ok_and(|name| name.starts_with("package"))
            })
            .map(|zone| Package {
                counter: zone.join("energy_uj"),
                range: sysfs::number(&zone.join("max_energy_range_uj")).ok(),
                before: None,
            })
            .collect();
        if packages.is_empty() {
            let reason = format!("no intel-rapl package under {}", root.display());
            return Err(MeterError::absent(NAME, reason));
        }
        let rapl = Self { packages, last: None, total: Joules::ZERO };
        rapl.counters()?;
        Ok(rapl)
    }

    fn counters(&self) -> Result<Vec<i64>, MeterError> {
        let counters = self.packages.iter().map(|package| sysfs::count(&package.counter));
        counters.collect::<Result<_, _>>().map_err(|reason| MeterError::unreadable(NAME, reason))
    }
}

/// `intel-rapl:0`, but not `intel-rapl:0:0` and not `intel-rapl-mmio:0`.
fn is_top_level(zone: &str) -> bool {
    zone.strip_prefix("intel-rapl:").is_some_and(|rest| rest.parse::<u32>().is_ok())
}

impl Package {
    /// Microjoules since the last value; none where the counter can't tell.
    fn step(&mut self, now: i64) -> Option<i64> {
        let step = now.checked_sub(self.before.replace(now)?)?;
        let step = if step < 0 { step.checked_add(self.range?)? } else { step };
        (step >= 0).then_some(step)
    }
}

impl PowerMeter for Rapl {
    fn source(&self) -> Source {
        Source { kind: SourceKind::Measured, name: NAME.to_owned() }
    }

    fn scope(&self) -> Scope {
        Scope::Package
    }

    /// The counters move every millisecond in steps of 61 uJ (Intel SDM volume 3, 15.10.1).
    fn resolution(&self) -> Resolution {
        Resolution { interval: Duration::from_millis(1), step: Joules::new(61e-6) }
    }

    fn read(&mut self, now: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
        let counters = self.counters()?;
        if let Some(at) = self.last.filter(|last| now <= *last) {
            return Ok(Reading { at, total: self.total, parts: None });
        }
        let most = self.last.map_or(Joules::ZERO, |last| Watts::new(IMPLAUSIBLE) * (now - last));
        for (package, counter) in self.packages.iter_mut().zip(counters) {
            let step =
                package.step(counter).map_or(Joules::ZERO, |uj| Joules::new(uj as f64 / 1e6));
            if step <= most {
                self.total += step;
            }
        }
        self.last = Some(now);
        Ok(Reading { at: now, total: self.total, parts: None })
    }
}
