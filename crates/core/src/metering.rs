//! Reads the meter of a run, and says which file drew what.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Bytes, Joules};
use pelton_power::{Choice, MeterError, PowerMeter, Reading, Traffic};
use tokio::time::Instant;

use crate::connection::Http;
use crate::engine::FileId;

/// How often the meter is read while a policy may search by it, and the client's limit is looked at.
pub(crate) const METER_INTERVAL: Duration = Duration::from_millis(100);

/// Up to so many readings in a row that fail at the end are nothing to speak of.
const READINGS_MISSED: u32 = 3;

/// A run of which more was not measured has no joules: they would be those of a part of it.
const MOST_LEFT_OUT: f64 = 0.05;

/// What the connections of a run have moved.
pub(crate) fn traffic(http: &Http) -> Traffic {
    let counters = http.counters();
    Traffic {
        received: Bytes(counters.received),
        sent: Bytes(counters.sent),
        connections_begun: counters.begun,
        connections_opened: counters.opened,
        connections_open: counters.open_now as u32,
        counted: counters.counted,
    }
}

/// A meter, what policies see of it, and what it showed.
pub(crate) struct Metering {
    meter: Option<Box<dyn PowerMeter>>,
    /// Tells policies joules where the meter is too slow for the windows that they compare.
    stand_in: Option<Box<dyn PowerMeter>>,
    label: String,
    last: Option<Reading>,
    /// When the first reading was true.
    first_at: Option<Timestamp>,
    /// Why there was none the last time.
    lost: Option<String>,
    /// It was one that can't be true.
    is_untrue: bool,
    shares: Shares,
}

impl Metering {
    /// No joules; `why` is for people.
    pub(crate) fn none(why: &str) -> Self {
        Self {
            meter: None,
            stand_in: None,
            label: why.to_owned(),
            last: None,
            first_at: None,
            lost: None,
            is_untrue: false,
            shares: Shares::default(),
        }
    }

    pub(crate) fn new(choice: Choice) -> Self {
        let Choice { meter, reason, stand_in } = choice;
        let label = match &stand_in {
            Some(model) => {
                format!("{reason}; too slow to decide by, which is done by {}", model.source())
            }
            None => reason,
        };
        Self { meter: Some(meter), stand_in, label, ..Self::none("") }
    }

    /// Where joules come from, and why from there.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) fn source(&self) -> Option<String> {
        self.meter.as_ref().map(|meter| meter.source().to_string())
    }

    /// Whether policies are told joules.
    pub(crate) fn serves_policies(&self) -> bool {
        self.meter.is_some()
    }

    /// Bytes have moved for `file`.
    pub(crate) fn moved(&mut self, file: FileId, bytes: u64) {
        *self.shares.moved.entry(file).or_default() += bytes;
    }

    /// Reads the meter, and deals what was drawn since the last time to the files that moved.
    pub(crate) fn read(&mut self, now: Timestamp, traffic: &Traffic) {
        let Some(meter) = &mut self.meter else { return };
        let read = meter.read(now, traffic);
        self.note(read);
    }

    /// Reads the meter while listings are read, from when the run `started`.
    pub(crate) async fn watch(&mut self, started: Instant, http: &Http) -> Infallible {
        loop {
            self.read(Timestamp::new(started.elapsed()), &traffic(http));
            tokio::time::sleep(METER_INTERVAL).await;
        }
    }

    /// The last reading, which holds the tail. What is wrong with it, where it does not tell of the whole run: then the run
    /// has no joules.
    pub(crate) fn finish(&mut self, now: Timestamp, traffic: &Traffic) -> Option<String> {
        let meter = self.meter.as_mut()?;
        let read = meter.finish(now, traffic);
        let (resolution, left_out) = (meter.resolution(), meter.left_out());
        let name = meter.source().name;
        self.note(read);
        let first_at = self.first_at;
        let at = self.last.map(|last| last.at);
        let all = now.since_start();
        let little = all.mul_f64(MOST_LEFT_OUT);
        // One reading that fails at the end is no worse than one that fails before.
        let late = if self.lost.is_some() {
            little.max(resolution.interval.max(METER_INTERVAL) * READINGS_MISSED)
        } else {
            resolution.longest_silence()
        };
        let is_late = at.is_none_or(|at| now.saturating_since(at) > late);
        if !self.is_untrue && !is_late && left_out <= little {
            // A run that was over before the meter told anything new has no joules, either.
            let last = self.last.filter(|last| first_at.is_none_or(|at| last.at > at || at >= now));
            self.last = last.filter(|last| last.total >= resolution.step);
            let (step, is_less) = (resolution.step.get(), self.last.is_none() && last.is_some());
            return is_less.then(|| {
                format!(
                    "{name} shows no less than {step} J, and the run drew less: it has no joules"
                )
            });
        }
        self.last = None;
        let wrong = match self.lost.take() {
            Some(why) => why,
            None if is_late => format!("{name} has told nothing new"),
            None => format!("{name} was gone in between"),
        };
        let silent_at_end = now.saturating_since(at.unwrap_or_default());
        let told = all.saturating_sub(left_out.max(silent_at_end)).as_secs_f64();
        let all = all.as_secs_f64();
        Some(format!("{wrong}: {told:.1} s of {all:.1} s were measured, so the run has no joules"))
    }

    fn note(&mut self, read: Result<Reading, MeterError>) {
        self.is_untrue = read.as_ref().is_ok_and(|reading| !self.may_follow(*reading));
        match read {
            Ok(reading) if self.is_untrue => {
                self.lost =
                    Some(format!("a reading of {} joules can't be true", reading.total.get()));
            }
            Ok(reading) => {
                self.lost = None;
                self.first_at.get_or_insert(reading.at);
                self.take(reading);
            }
            Err(error) => {
                tracing::debug!(%error, "no reading this time");
                self.lost = Some(error.to_string());
            }
        }
    }

    /// Energy so far as policies see it.
    pub(crate) fn for_policies(&mut self, now: Timestamp, traffic: &Traffic) -> Option<Joules> {
        match &mut self.stand_in {
            Some(model) => model.read(now, traffic).ok().map(|reading| reading.total),
            None => self.last.map(|reading| reading.total),
        }
    }

    /// What the meter showed last.
    pub(crate) fn last(&self) -> Option<Reading> {
        self.last
    }

    /// What `file` drew while it moved; nothing without a meter, or where it has told nothing for too long by `now`.
    pub(crate) fn take_share(&mut self, now: Timestamp, file: FileId) -> Option<Joules> {
        let late = self.meter.as_ref()?.resolution().longest_silence();
        let share = self.shares.drawn.remove(&file).unwrap_or_default();
        let is_told = now.saturating_since(self.last?.at) <= late;
        is_told.then_some(share)
    }

    /// Energy does not become less, nor endless.
    fn may_follow(&self, reading: Reading) -> bool {
        let before = self.last.map_or(Joules::ZERO, |last| last.total);
        reading.total >= before && reading.total.get() < f64::MAX
    }

    fn take(&mut self, reading: Reading) {
        let before = self.last.map_or(Joules::ZERO, |last| last.total);
        self.shares.deal(reading.total.saturating_sub(before));
        self.last = Some(reading);
    }
}

/// Energy by file: what is drawn between two readings belongs to the files that moved in between,
/// by their bytes; what is drawn while nothing moves, as in a handshake, to those that move next.
#[derive(Debug, Default)]
struct Shares {
    moved: HashMap<FileId, u64>,
    undealt: Joules,
    drawn: HashMap<FileId, Joules>,
}

impl Shares {
    fn deal(&mut self, energy: Joules) {
        self.undealt += energy;
        let bytes: u64 = self.moved.values().sum();
        if bytes == 0 {
            return;
        }
        let energy = std::mem::take(&mut self.undealt).get();
        for (file, part) in self.moved.drain() {
            let share = Joules::new(energy * part as f64 / bytes as f64);
            *self.drawn.entry(file).or_default() += share;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pelton_power::meters::Replay;
    use pelton_power::{Resolution, Scope, Source, SourceKind};

    use super::*;

    fn replay(series: &[(u64, f64)]) -> Box<dyn PowerMeter> {
        let source = Source { kind: SourceKind::Measured, name: "test".to_owned() };
        let series = series.iter().map(|(at, j)| (Duration::from_secs(*at), Joules::new(*j)));
        Box::new(Replay::new(source, Scope::Device, series))
    }

    fn read(metering: &mut Metering, second: u64) {
        metering.read(Timestamp::new(Duration::from_secs(second)), &Traffic::default());
    }

    #[test]
    fn energy_goes_to_the_files_that_moved() {
        let meter = replay(&[(0, 0.0), (1, 2.0), (2, 6.0), (3, 10.0)]);
        let choice = Choice { meter, reason: "a test".to_owned(), stand_in: None };
        let mut metering = Metering::new(choice);
        read(&mut metering, 0);
        // Nothing moves in the first second: its 2 J go with the next 4 J.
        read(&mut metering, 1);
        metering.moved(FileId(0), 300);
        metering.moved(FileId(1), 100);
        read(&mut metering, 2);
        metering.moved(FileId(1), 7);
        read(&mut metering, 3);
        assert_eq!(
            metering.take_share(Timestamp::from_millis(3_000), FileId(0)),
            Some(Joules::new(4.5))
        );
        assert_eq!(
            metering.take_share(Timestamp::from_millis(3_000), FileId(1)),
            Some(Joules::new(5.5))
        );
        assert_eq!(
            metering.take_share(Timestamp::from_millis(3_000), FileId(2)),
            Some(Joules::ZERO)
        );
    }

    #[test]
    fn a_slow_meter_is_shown_and_another_decides() {
        let meter = replay(&[(0, 0.0), (30, 60.0)]);
        let stand_in = Some(replay(&[(0, 0.0), (1, 7.0)]));
        let mut metering = Metering::new(Choice { meter, reason: "slow".to_owned(), stand_in });
        assert!(metering.label().contains("done by measured: replay of test"));
        let mut policies = Vec::new();
        for second in 0..2 {
            read(&mut metering, second);
            let now = Timestamp::new(Duration::from_secs(second));
            policies.push(metering.for_policies(now, &Traffic::default()).unwrap().get());
        }
        assert_eq!(policies, [0.0, 7.0]);
        assert_eq!(metering.last().unwrap().total, Joules::new(2.0));
    }

    #[test]
    fn a_meter_that_ends_before_the_run_has_measured_none_of_it() {
        struct Ends(Box<dyn PowerMeter>);
        impl PowerMeter for Ends {
            fn source(&self) -> Source {
                self.0.source()
            }
            fn scope(&self) -> Scope {
                self.0.scope()
            }
            fn read(&mut self, now: Timestamp, traffic: &Traffic) -> Result<Reading, MeterError> {
                // It stands still from the second second on.
                self.0.read(now.min(Timestamp::from_millis(1_000)), traffic)
            }
        }
        let told = |meter, until: u64| {
            let choice = Choice { meter, reason: "a test".to_owned(), stand_in: None };
            let mut metering = Metering::new(choice);
            (0..until).for_each(|second| read(&mut metering, second));
            let end = Timestamp::new(Duration::from_secs(until));
            read(&mut metering, until);
            let share = metering.take_share(end, FileId(0));
            let wrong = metering.finish(end, &Traffic::default());
            assert_eq!(share.is_some(), wrong.is_none());
            (wrong, metering.last().map(|last| last.total.get()))
        };
        let series = [(0, 0.0), (9, 18.0)];
        assert_eq!(told(replay(&series), 5), (None, Some(10.0)));
        assert_eq!(told(Box::new(Ends(replay(&series))), 1), (None, Some(2.0)));
        let (wrong, energy) = told(Box::new(Ends(replay(&series))), 5);
        let wrong = wrong.unwrap();
        assert!(wrong.contains("1.0 s of 5.0 s were measured"), "{wrong}");
        assert_eq!(energy, None);
    }

    #[test]
    fn one_reading_that_fails_at_the_end_costs_no_joules() {
        struct Fails(u32);
        impl PowerMeter for Fails {
            fn source(&self) -> Source {
                replay(&[(0, 0.0)]).source()
            }
            fn scope(&self) -> Scope {
                replay(&[(0, 0.0)]).scope()
            }
            fn read(&mut self, at: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
                self.0 += 1;
                let total = Joules::new(f64::from(self.0) * 5.0);
                let reading = Reading { at, total, parts: None };
                let reason = "no value".to_owned();
                let failed = MeterError::Unreadable { meter: "it".to_owned(), reason };
                if self.0 < 4 { Ok(reading) } else { Err(failed) }
            }
        }
        let told = |seconds: &[f64]| {
            let choice =
                Choice { meter: Box::new(Fails(0)), reason: "a test".to_owned(), stand_in: None };
            let mut metering = Metering::new(choice);
            let (last, before) = seconds.split_last().unwrap();
            let at = |second: &f64| Timestamp::new(Duration::from_secs_f64(*second));
            for second in before {
                metering.read(at(second), &Traffic::default());
            }
            let wrong = metering.finish(at(last), &Traffic::default());
            (wrong.is_none(), metering.last().map(|last| last.total.get()))
        };
        assert_eq!(told(&[0.0, 0.25, 0.5, 0.6]), (true, Some(15.0)));
        assert_eq!(told(&[0.0, 0.25, 0.5, 3.0]), (false, None), "it had ended");
    }

    #[test]
    fn a_run_of_which_a_part_was_not_measured_has_no_joules() {
        struct Gauge {
            watts: f64,
            left_out: Duration,
            fails_from: Timestamp,
        }
        impl PowerMeter for Gauge {
            fn source(&self) -> Source {
                replay(&[(0, 0.0)]).source()
            }
            fn scope(&self) -> Scope {
                Scope::Device
            }
            fn resolution(&self) -> Resolution {
                Resolution { interval: Duration::from_millis(100), step: Joules::new(36.0) }
            }
            fn read(&mut self, at: Timestamp, _traffic: &Traffic) -> Result<Reading, MeterError> {
                let reason = "it is gone".to_owned();
                let total = Joules::new(self.watts * at.since_start().as_secs_f64());
                if at < self.fails_from {
                    Ok(Reading { at, total, parts: None })
                } else {
                    Err(MeterError::Unreadable { meter: "it".to_owned(), reason })
                }
            }
            fn left_out(&self) -> Duration {
                self.left_out
            }
        }
        let told = |left_out: u64, fails_from: u64, end: u64, watts: f64| {
            let left_out = Duration::from_millis(left_out);
            let fails_from = Timestamp::from_millis(fails_from);
            let meter = Box::new(Gauge { watts, left_out, fails_from });
            let mut metering =
                Metering::new(Choice { meter, reason: "a test".to_owned(), stand_in: None });
            for millis in (0..end).step_by(100) {
                metering.read(Timestamp::from_millis(millis), &Traffic::default());
            }
            let wrong = metering.finish(Timestamp::from_millis(end), &Traffic::default());
            (metering.last().is_some(), wrong.unwrap_or_default())
        };
        assert_eq!(told(200, 9_000, 5_000, 50.0), (true, String::new()));
        assert_eq!(told(0, 4_900, 5_000, 50.0), (true, String::new()), "one reading was missed");
        let (has_joules, wrong) = told(3_000, 9_000, 5_300, 50.0);
        assert!(!has_joules && wrong.contains("gone in between: 2.3 s of 5.3 s"), "{wrong}");
        let (has_joules, wrong) = told(0, 600, 1_100, 90.0);
        assert!(
            !has_joules && wrong.contains("it is gone: 0.5 s of 1.1 s were measured"),
            "{wrong}"
        );
        let (has_joules, wrong) = told(0, 9_000, 1_200, 10.0);
        assert!(!has_joules && wrong.contains("no less than 36 J"), "{wrong}");
    }

    #[test]
    fn without_a_meter_there_are_no_joules() {
        let mut metering = Metering::none("none");
        metering.moved(FileId(0), 1);
        read(&mut metering, 1);
        assert_eq!(metering.take_share(Timestamp::from_millis(3_000), FileId(0)), None);
        assert_eq!(metering.for_policies(Timestamp::START, &Traffic::default()), None);
    }
}
