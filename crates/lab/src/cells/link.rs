//! A link as `cells.toml` writes it, and its way to a [`LinkSpec`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes};
use pelton_power::Radio;
use serde::Deserialize;

use super::{CellsError, NamedLink};
use crate::model::{
    Capacity, Change, DirectionSpec, GilbertElliott, LinkSpec, Loss, OPPORTUNITY, RateSchedule,
    Trace,
};

/// Longer than any run; beyond it a duration may overflow.
const LONGEST_MILLIS: f64 = 1e9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkText {
    about: String,
    radio: Option<String>,
    down: DirectionText,
    up: DirectionText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DirectionText {
    mbps: Option<f64>,
    trace: Option<PathBuf>,
    delay_ms: f64,
    #[serde(default)]
    jitter_ms: f64,
    queue_kb: f64,
    #[serde(default)]
    loss_percent: f64,
    bursts: Option<BurstsText>,
    #[serde(default)]
    changes: Vec<ChangeText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BurstsText {
    enter: f64,
    leave: f64,
    loss: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeText {
    at_s: f64,
    mbps: Option<f64>,
    delay_ms: Option<f64>,
    outage_s: Option<f64>,
    ramp_s: Option<f64>,
}

impl LinkText {
    pub(super) fn parse(self, name: &str, dir: &Path) -> Result<NamedLink, CellsError> {
        let parse = |direction, text: DirectionText| {
            text.parse(dir).map_err(|what| CellsError::Link {
                link: name.to_owned(),
                direction,
                what,
            })
        };
        let spec = LinkSpec { down: parse("down", self.down)?, up: parse("up", self.up)? };
        let radio = self.radio.map_or(Ok(Radio::Wifi), |radio| radio.parse());
        let radio = radio.map_err(|error| CellsError::Radio { link: name.to_owned(), error })?;
        Ok(NamedLink { about: self.about, radio, spec })
    }
}

impl DirectionText {
    fn parse(&self, dir: &Path) -> Result<DirectionSpec, String> {
        let mut changes = Vec::new();
        let mut delays = vec![(Duration::ZERO, millis("delay_ms", self.delay_ms)?)];
        for change in &self.changes {
            let at = millis("at_s", change.at_s * 1e3)?;
            changes.extend(change.parse(at)?);
            if let Some(delay) = change.delay_ms {
                delays.push((at, millis("delay_ms", delay)?));
            }
        }
        let capacity = match (self.mbps, &self.trace) {
            (Some(mbps), None) => {
                let schedule = RateSchedule::new(BitRate::from_mbps(mbps), &changes);
                Capacity::Rate(schedule.map_err(|error| error.to_string())?)
            }
            (None, Some(_)) if !changes.is_empty() => {
                return Err("a trace has its own changes of rate; remove them".to_owned());
            }
            (None, Some(file)) => Capacity::Trace(Arc::new(read_trace(&dir.join(file))?)),
            _ => return Err("give either mbps or trace".to_owned()),
        };
        let queue = Bytes((self.queue_kb * 1e3) as u64);
        if queue < OPPORTUNITY {
            return Err(format!("queue_kb {} holds no packet of 1500 bytes", self.queue_kb));
        }
        Ok(DirectionSpec {
            capacity,
            delays,
            jitter: millis("jitter_ms", self.jitter_ms)?,
            loss: Loss {
                random: probability("loss_percent", self.loss_percent, 100.0)?,
                bursts: self.bursts.as_ref().map(BurstsText::parse).transpose()?,
            },
            queue,
        })
    }
}

impl BurstsText {
    fn parse(&self) -> Result<GilbertElliott, String> {
        if self.enter <= 0.0 || self.leave <= 0.0 {
            return Err("bursts: enter and leave must be above 0".to_owned());
        }
        Ok(GilbertElliott {
            enter: probability("bursts.enter", self.enter, 1.0)?,
            leave: probability("bursts.leave", self.leave, 1.0)?,
            loss: probability("bursts.loss", self.loss, 1.0)?,
        })
    }
}

impl ChangeText {
    /// The change of rate, if the delay is not all that changes.
    fn parse(&self, at: Duration) -> Result<Option<Change>, String> {
        let seconds = |name, value: f64| millis(name, value * 1e3);
        Ok(match (self.mbps.map(BitRate::from_mbps), self.outage_s, self.ramp_s, self.delay_ms) {
            (Some(rate), None, None, _) => Some(Change::Step { at, rate }),
            (None, Some(time), None, None) => {
                Some(Change::Outage { at, lasting: seconds("outage_s", time)? })
            }
            (Some(rate), None, Some(time), None) => {
                Some(Change::Ramp { at, lasting: seconds("ramp_s", time)?, rate })
            }
            (None, None, None, Some(_)) => None,
            _ => {
                return Err(format!(
                    "the change at {} s is neither a step (mbps, delay_ms) nor an outage (outage_s) nor a ramp (ramp_s, mbps)",
                    self.at_s
                ));
            }
        })
    }
}

fn read_trace(file: &Path) -> Result<Trace, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Trace::parse(&text).map_err(|error| format!("{}, {error}", file.display()))
}

fn millis(name: &str, value: f64) -> Result<Duration, String> {
    if (0.0..LONGEST_MILLIS).contains(&value) {
        Ok(Duration::from_secs_f64(value / 1e3))
    } else {
        Err(format!("{name} is {value}: give a time that is not negative and below 11 days"))
    }
}

fn probability(name: &str, value: f64, whole: f64) -> Result<f64, String> {
    if (0.0..=whole).contains(&value) {
        Ok(value / whole)
    } else {
        Err(format!("{name} is {value}: give a number from 0 to {whole}"))
    }
}
