//! The seat for a sensor that another language or an application reads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pelton_algos::time::Timestamp;

use super::sum::{Rises, Trapezium};
use crate::meter::{
    MeterError, PowerMeter, Reading, Resolution, Scope, Source, SourceKind, Traffic,
};

/// What an application tells may be as old, whatever interval it names.
const LEAST_LAG: Duration = Duration::from_millis(100);

/// What a callback tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    /// Energy used since any fixed moment, joules. Where it falls, or rises by more than 100 kW would, it begins anew.
    Energy(f64),
    /// Power at this moment, watts. What is negative or beyond 100 kW is no value.
    Power(f64),
}

/// A meter that asks a function, which may tell nothing.
#[derive(Clone)]
pub struct Callback {
    source: Source,
    scope: Scope,
    resolution: Resolution,
    ask: Arc<dyn Fn() -> Option<Sample> + Send + Sync>,
    energy: Rises,
    power: Trapezium,
    last: Option<Timestamp>,
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callback").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Callback {
    /// A measuring meter called `name` that covers `scope`. `ask` is called a few times a second on
    /// the thread of the download and must return at once.
    pub fn new(
        name: &str,
        scope: Scope,
        resolution: Resolution,
        ask: impl Fn() -> Option<Sample> + Send + Sync + 'static,
    ) -> Self {
        Self {
            source: Source { kind: SourceKind::Measured, name: name.to_owned() },
            scope,
            resolution,
            ask: Arc::new(ask),
            energy: Rises::new(resolution.interval.max(LEAST_LAG)),
            power: Trapezium::default(),
            last: None,
        }
    }
}

impl PowerMeter for Callback {
    fn source(&self) -> Source {
        self.source.clone()
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn resolution(&self) -> Resolution {
        self.resolution
    }

    fn read(&mut self, now: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
        let unreadable = |reason: String| MeterError::unreadable(&self.source.name, reason);
        match (self.ask)() {
            Some(Sample::Energy(joules)) if joules.is_finite() => self.energy.add(now, joules),
            Some(Sample::Power(watts)) if watts.is_finite() => {
                let told = self.power.add(now, watts);
                told.map_err(|why| unreadable(format!("it gave {watts} W, {why}")))?;
            }
            _ => return Err(unreadable("it gave no value".to_owned())),
        }
        let at = self.last.map_or(now, |last| last.max(now));
        self.last = Some(at);
        Ok(Reading { at, total: self.energy.total() + self.power.total(), parts: None })
    }
}
