//! `pelton meter`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Joules, Watts};
use pelton_core::{Error, ErrorKind, Result};
use pelton_power::meters::Scpi;
use pelton_power::{
    Interface, MachineCpu, MeterError, Modelled, PowerMeter, Scope, Sysfs, Traffic,
};
use serde::Serialize;

use crate::args::MeterArgs;
use crate::energy::{self, MeterName};
use crate::exit::INTERRUPTED;
use crate::{logging, output, route, stop};

/// One meter, and what it showed so far.
struct Watched {
    meter: Box<dyn PowerMeter>,
    last: Option<(Timestamp, Joules)>,
    /// Since the reading before, if this one is newer.
    power: Option<Watts>,
    /// When the last one was true.
    fresh_at: Timestamp,
    lost: bool,
}

/// One line of `pelton meter --json`.
#[derive(Serialize)]
struct Line {
    event: &'static str,
    at_s: f64,
    source: String,
    scope: &'static str,
    watts: f64,
    joules: f64,
}

/// Shows watts and joules of every meter until a signal comes. It has failed where none is left at the end.
pub(crate) fn run(args: &MeterArgs) -> Result<ExitCode> {
    logging::start(&args.text, None)?;
    let (mut meters, refused) = meters(args)?;
    if !args.text.quiet {
        for error in &refused {
            output::tell(&error.to_string());
        }
        if meters.iter().all(|watched| is_model(&*watched.meter)) && !refused.is_empty() {
            output::tell("no sensor of power can be read: what follows is modelled");
        }
    }
    let is_read = stop::runtime()?.block_on(watch(args, &mut meters))?;
    if !is_read {
        return Ok(INTERRUPTED.into());
    }
    if !args.text.json {
        let total = |watched: &Watched| {
            let (at, joules) = watched.last.unwrap_or_default();
            let seconds = at.since_start().as_secs_f64();
            match watched.last {
                Some(_) => format!("{joules} in {seconds:.1} s ({})", watched.meter.source()),
                None => format!("no reading ({})", watched.meter.source()),
            }
        };
        for watched in &meters {
            output::tell(&total(watched));
        }
    }
    let is_lost = !meters.is_empty() && meters.iter().all(|watched| watched.lost);
    Ok(if is_lost { ErrorKind::Usage.exit_code().into() } else { ExitCode::SUCCESS })
}

fn is_model(meter: &dyn PowerMeter) -> bool {
    meter.source().kind == pelton_power::SourceKind::Modelled
}

/// The meters that were asked for; with `auto` all that can be read, and why others can't.
fn meters(args: &MeterArgs) -> Result<(Vec<Watched>, Vec<MeterError>)> {
    let sysfs = Sysfs::default();
    let boxed = |meter: Result<Box<dyn PowerMeter>, MeterError>| {
        meter.map(|meter| vec![Watched::new(meter)]).map_err(energy::unreadable)
    };
    let rapl = || sysfs.rapl().map(|meter| Box::new(meter) as Box<dyn PowerMeter>);
    let battery = || sysfs.battery().map(|meter| Box::new(meter) as Box<dyn PowerMeter>);
    let hwmon = || sysfs.hwmon().map(|meter| Box::new(meter) as Box<dyn PowerMeter>);
    let only = match &args.energy.power_meter {
        MeterName::Rapl => boxed(rapl())?,
        MeterName::Battery => boxed(battery())?,
        MeterName::Hwmon => boxed(hwmon())?,
        MeterName::Scpi(address) => {
            boxed(Scpi::connect(address).map(|meter| Box::new(meter) as Box<dyn PowerMeter>))?
        }
        MeterName::Model => vec![Watched::new(Box::new(model(args)))],
        MeterName::None => {
            let why = "--power-meter none shows nothing: name a meter, or leave it out for all";
            return Err(Error::new(ErrorKind::Usage, why));
        }
        MeterName::Auto => {
            let mut readable = Vec::new();
            let mut refused = Vec::new();
            for meter in [rapl(), battery(), hwmon()] {
                match meter {
                    Ok(meter) => readable.push(Watched::new(meter)),
                    Err(error) => refused.push(error),
                }
            }
            readable.push(Watched::new(Box::new(model(args))));
            return Ok((readable, refused));
        }
    };
    Ok((only, Vec::new()))
}

/// The model of the whole machine: its CPU, and its radio with what the default route's interface
/// moves.
fn model(args: &MeterArgs) -> Machine {
    let config = energy::model(args.energy.radio.as_ref());
    let interface = route::interface()
        .and_then(|name| Interface::open(&Sysfs::default().interfaces(), &name).ok());
    let has_radio = config.radio.is_some();
    Machine { model: Modelled::with_clock(config, MachineCpu), has_radio, interface }
}

struct Machine {
    model: Modelled<MachineCpu>,
    has_radio: bool,
    interface: Option<Interface>,
}

impl PowerMeter for Machine {
    fn source(&self) -> pelton_power::Source {
        let mut source = self.model.source();
        if let Some(interface) = self.interface.as_ref().filter(|_| self.has_radio) {
            source.name = format!("{}, traffic of {}", source.name, interface.name());
        }
        source
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn read(
        &mut self,
        now: Timestamp,
        _traffic: &Traffic,
    ) -> Result<pelton_power::Reading, MeterError> {
        let traffic = self.interface.as_mut().map(Interface::traffic).transpose()?;
        self.model.read(now, &traffic.unwrap_or_default())
    }
}

/// Reads and shows until a signal asks to stop, or the time is over.
/// Until a signal comes, or the time is over; false when nobody reads any more.
async fn watch(args: &MeterArgs, meters: &mut [Watched]) -> Result<bool> {
    let began = Instant::now();
    let stopped = stop::asked()?;
    tokio::pin!(stopped);
    let interval = args.interval.max(Duration::from_millis(10));
    for meter in &mut *meters {
        meter.read(Timestamp::START);
    }
    let mut due = interval;
    loop {
        let end = args.duration.filter(|end| *end <= due);
        let wait = end.unwrap_or(due).saturating_sub(began.elapsed());
        tokio::select! {
            () = &mut stopped => return Ok(true),
            () = tokio::time::sleep(wait) => {}
        }
        let now = Timestamp::new(began.elapsed());
        for meter in &mut *meters {
            meter.read(now);
            if !meter.show(now, args)? {
                return Ok(false);
            }
        }
        if end.is_some() {
            return Ok(true);
        }
        due += interval;
    }
}

impl Watched {
    fn new(meter: Box<dyn PowerMeter>) -> Self {
        Self { meter, last: None, power: None, fresh_at: Timestamp::START, lost: false }
    }

    fn read(&mut self, now: Timestamp) {
        match self.meter.read(now, &Traffic::default()) {
            Ok(reading) => {
                let (before, joules) = self.last.unwrap_or((reading.at, Joules::ZERO));
                if reading.at > before {
                    let drawn = reading.total.saturating_sub(joules);
                    self.power = Some(drawn / (reading.at - before));
                    self.fresh_at = reading.at;
                }
                self.last = Some((reading.at, reading.total));
                let silent_for = now.saturating_since(self.fresh_at);
                let is_late = silent_for > self.meter.resolution().longest_silence();
                let name = self.meter.source().name;
                self.note_lost(is_late, || format!("{name} tells nothing new"));
            }
            Err(error) => self.note_lost(true, || error.to_string()),
        }
    }

    /// Says once why nothing is shown any more.
    fn note_lost(&mut self, is_lost: bool, why: impl Fn() -> String) {
        if is_lost && !self.lost {
            output::tell(&why());
        }
        self.lost = is_lost;
    }

    /// Shows the last reading; false when nobody reads any more.
    fn show(&self, now: Timestamp, args: &MeterArgs) -> Result<bool> {
        let (Some((_, joules)), Some(power)) = (self.last.filter(|_| !self.lost), self.power)
        else {
            return Ok(true);
        };
        let at_s = now.since_start().as_secs_f64();
        let scope = match self.meter.scope() {
            Scope::Radio => "radio",
            Scope::Cpu => "cpu",
            Scope::Package => "package",
            Scope::Device => "device",
        };
        let source = self.meter.source().to_string();
        let (watts, joules_so_far) = (power.get(), joules.get());
        if args.text.json {
            let event = "power";
            return output::json_line(&Line {
                event,
                at_s,
                source,
                scope,
                watts,
                joules: joules_so_far,
            });
        }
        let line = format!("{at_s:8.1} s {power:>9} {joules:>9}  {source} ({scope})\n");
        output::print(line.as_bytes())
    }
}
