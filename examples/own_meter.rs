//! A meter of one's own: reads a power sensor in microwatts, such as Linux has them, and adds up
//! joules. Without a sensor it says that five watts are assumed.
//!
//! `cargo run --example own_meter -- /sys/class/hwmon/hwmon0/power1_input`

use std::error::Error;
use std::path::PathBuf;

use pelton::algos::time::Timestamp;
use pelton::algos::units::{Joules, Watts};
use pelton::core::connection::Proxies;
use pelton::power::{MeterError, PowerMeter, Reading, Scope, Source, SourceKind, Traffic};
use pelton::{Client, HttpConfig};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginConfig};

#[derive(Debug, Clone)]
struct Sensor {
    file: Option<PathBuf>,
    before: Option<Reading>,
}

impl Sensor {
    fn power(&self) -> Result<Watts, MeterError> {
        let Some(file) = &self.file else { return Ok(Watts::new(5.0)) };
        let unreadable = |reason: String| {
            let reason = format!("{}: {reason}", file.display());
            MeterError::Unreadable { meter: self.source().name, reason }
        };
        let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
        let microwatts =
            text.trim().parse::<f64>().map_err(|error| unreadable(error.to_string()))?;
        Ok(Watts::new(microwatts / 1e6))
    }
}

impl PowerMeter for Sensor {
    fn source(&self) -> Source {
        match self.file {
            Some(_) => Source { kind: SourceKind::Measured, name: "sensor".to_owned() },
            None => Source { kind: SourceKind::Modelled, name: "five watts".to_owned() },
        }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn read(&mut self, at: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
        let power = self.power()?;
        let total = self.before.map_or(Joules::ZERO, |r| r.total + power * (at - r.at));
        let reading = Reading { at, total, parts: None };
        self.before = Some(reading);
        Ok(reading)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let files = vec![VirtualFile::new("/f", 200_000_000, 1)];
    let origin = Origin::start(OriginConfig { files, ..OriginConfig::default() })?;
    let out = tempfile::tempdir()?;
    let file = std::env::args_os().nth(1).map(PathBuf::from);
    let report = Client::builder()
        .meter(Sensor { file, before: None })
        .http(HttpConfig { proxies: Proxies::Direct, ..HttpConfig::default() })
        .build()?
        .download([origin.url("/f")])
        .into_dir(out.path())
        .start()?
        .blocking_report()?;
    let done = report.summary;
    let joules = done.energy_j.ok_or("the sensor gave no reading")?;
    let source = done.energy_source.unwrap_or_default();
    println!("{} bytes in {:.2} s: {joules:.2} J ({source})", done.bytes, done.seconds);
    Ok(())
}
