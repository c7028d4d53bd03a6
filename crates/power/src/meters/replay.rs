//! Energy that was recorded before, for tests and for looking again.

use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::Joules;

use crate::meter::{
    MeterError, PowerMeter, Reading, Resolution, Scope, Source, SourceKind, Traffic,
};

/// A record that can't be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ReplayError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// A recorded series. Between two entries energy grows evenly; after the last it stays.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    source: Source,
    scope: Scope,
    series: Vec<(Timestamp, Joules)>,
    began: Option<Timestamp>,
    last: Timestamp,
}

impl Replay {
    /// Replays `series`: time since its start, and energy until then. Entries that go back in time
    /// or energy are left out.
    pub fn new(
        source: Source,
        scope: Scope,
        series: impl IntoIterator<Item = (Duration, Joules)>,
    ) -> Self {
        let mut kept: Vec<(Timestamp, Joules)> = Vec::new();
        for (at, energy) in series {
            let at = Timestamp::new(at);
            if kept.last().is_none_or(|(before, least)| at > *before && energy >= *least) {
                kept.push((at, energy));
            }
        }
        Self { source, scope, series: kept, began: None, last: Timestamp::START }
    }

    /// Reads a record: lines of `SECONDS,JOULES`; empty lines and those that begin with `#` are
    /// left out.
    ///
    /// # Errors
    /// A line is not two numbers that are finite and not negative.
    pub fn parse(source: Source, scope: Scope, text: &str) -> Result<Self, ReplayError> {
        let mut series = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = || ReplayError {
                line: index + 1,
                reason: format!("{line:?} is not SECONDS,JOULES"),
            };
            let (seconds, joules) = line.split_once(',').ok_or_else(bad)?;
            let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| *n >= 0.0);
            let at = number(seconds).and_then(|s| Duration::try_from_secs_f64(s).ok());
            let joules = number(joules).filter(|j| j.is_finite());
            series.push((at.ok_or_else(bad)?, Joules::new(joules.ok_or_else(bad)?)));
        }
        Ok(Self::new(source, scope, series))
    }

    fn energy_at(&self, at: Timestamp) -> Joules {
        let next = self.series.partition_point(|(time, _)| *time <= at);
        match (next.checked_sub(1).map(|index| self.series[index]), self.series.get(next)) {
            (Some((from, before)), Some((until, after))) => {
                let share = (at - from).as_secs_f64() / (*until - from).as_secs_f64();
                before + Joules::new(after.saturating_sub(before).get() * share)
            }
            (Some((_, before)), None) => before,
            (None, first) => first.map_or(Joules::ZERO, |(_, energy)| *energy),
        }
    }
}

impl PowerMeter for Replay {
    fn source(&self) -> Source {
        let name = format!("replay of {}", self.source.name);
        Source { kind: self.source.kind, name }
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn resolution(&self) -> Resolution {
        let gaps = self.series.windows(2).map(|pair| pair[1].0 - pair[0].0);
        Resolution { interval: gaps.max().unwrap_or_default(), step: Joules::ZERO }
    }

    fn read(&mut self, now: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
        let began = *self.began.get_or_insert(now);
        self.last = self.last.max(now);
        let elapsed = |at: Timestamp| Timestamp::new(at - began);
        let start = self.energy_at(Timestamp::START);
        let total = self.energy_at(elapsed(self.last)).saturating_sub(start);
        Ok(Reading { at: self.last, total, parts: None })
    }
}

impl Default for Replay {
    /// Nothing was recorded.
    fn default() -> Self {
        let source = Source { kind: SourceKind::Measured, name: "nothing".to_owned() };
        Self::new(source, Scope::Device, [])
    }
}
