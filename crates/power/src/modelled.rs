//! Joules predicted from traffic and CPU time: the meter and the forecast, from the same numbers.

use std::time::Duration;

use pelton_algos::energy::{EnergyModel, Forecast};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{Bytes, Joules, Watts};

use crate::meter::{MeterError, Parts, PowerMeter, Reading, Scope, Source, SourceKind, Traffic};
use crate::radio::{LastTraffic, Radio, RadioMachine, RadioProfile, State};
use crate::wire::Wire;

/// What the modelled device draws. The defaults are assumptions about a phone, not measurements
/// of this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelledConfig {
    /// The radio; `None` for a wired host, whose network interface then counts as nothing.
    pub radio: Option<RadioProfile>,
    /// Power of one busy CPU core. 1 W: Android power profiles of 2024 give about 250 mA for a large core
    /// at its highest clock, at a nominal battery voltage of 3.85 V.
    pub cpu_per_core: Watts,
    /// Power of a device that is merely awake, so that crawling is not free. 0.15 W: suspend, idle, active
    /// and first cluster of the Pixel XL's power profile, 5.7 + 1.4 + 18.8 + 14.7 mA at 3.85 V. The
    /// screen is off.
    pub base: Watts,
    /// CPU time to receive one MiB, for forecasts; a meter reads the CPU clock instead. 4 ms, assumed: TCP,
    /// decryption of TLS records and one copy at about 2 Gbit/s a core.
    pub cpu_per_mib: Duration,
    /// CPU time to open one connection, for forecasts. 1 ms, assumed: key exchange and certificate check
    /// of a TLS 1.3 handshake.
    pub cpu_per_connection: Duration,
    /// What others have moved just before, where that is known: a radio that is still awake needs no
    /// promotion. Else it is taken to be asleep.
    pub last_traffic: Option<LastTraffic>,
}

impl ModelledConfig {
    /// What of `last` keeps the radio awake when a transfer begins, if it is.
    fn found_awake(&self, last: Option<LastTraffic>) -> Option<LastTraffic> {
        let profile = self.radio.as_ref()?;
        last.filter(|last| profile.after(*last) != State::Idle)
    }

    /// The radio as a transfer at `start` finds it after `last`.
    fn radio_at(&self, start: Timestamp, last: Option<LastTraffic>) -> Option<RadioMachine> {
        let profile = self.radio.clone()?;
        Some(match last {
            Some(last) => RadioMachine::found(profile, start, last),
            None => RadioMachine::new(profile, start),
        })
    }
}

impl Default for ModelledConfig {
    fn default() -> Self {
        Self {
            radio: Radio::default().profile(),
            cpu_per_core: Watts::new(1.0),
            base: Watts::new(0.15),
            cpu_per_mib: Duration::from_millis(4),
            cpu_per_connection: Duration::from_millis(1),
            last_traffic: None,
        }
    }
}

/// CPU time used so far, user and system, over all threads. It never decreases.
pub trait CpuClock: Send {
    /// The time now.
    fn cpu_time(&self) -> Duration;
}

/// The CPU time of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessCpu;

impl CpuClock for ProcessCpu {
    fn cpu_time(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        // A time that does not convert would be negative: nothing was used.
        Duration::try_from(time).unwrap_or_default()
    }
}

/// The CPU time of the whole machine: `/proc/stat` on Linux, elsewhere nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineCpu;

impl CpuClock for MachineCpu {
    fn cpu_time(&self) -> Duration {
        std::fs::read_to_string("/proc/stat").map(|text| busy_time(&text)).unwrap_or_default()
    }
}

/// The busy time in the first line of `/proc/stat` (proc(5)): all but idle and waiting for I/O, and
/// not guests, which are in user time already. Linux counts it in hundredths of a second for users.
fn busy_time(stat: &str) -> Duration {
    let line = stat.lines().next().unwrap_or_default();
    let ticks = line.split_whitespace().skip(1).take(8).enumerate();
    let busy = ticks.filter(|(index, _)| ![3, 4].contains(index));
    let sum: u64 = busy.filter_map(|(_, ticks)| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(sum.saturating_mul(10))
}

/// A meter that reads no hardware: the radio model fed with the run's traffic, CPU time times
/// power per core, and base power times elapsed time.
#[derive(Debug, Clone)]
pub struct Modelled<C = ProcessCpu> {
    config: ModelledConfig,
    clock: C,
    run: Option<Run>,
}

/// What is known since the first reading.
#[derive(Debug, Clone)]
struct Run {
    began: Timestamp,
    now: Timestamp,
    cpu_before: Duration,
    wire: Wire,
    radio: Option<RadioMachine>,
}

impl Modelled {
    /// A meter for this process.
    pub fn new(config: ModelledConfig) -> Self {
        Self::with_clock(config, ProcessCpu)
    }
}

impl<C: CpuClock> Modelled<C> {
    /// A meter that takes its CPU time from `clock`.
    pub fn with_clock(config: ModelledConfig, clock: C) -> Self {
        Self { config, clock, run: None }
    }

    /// The reading at `now`; the `last` one counts the radio's tail. The first call begins the
    /// run: what came before is not counted.
    fn update(&mut self, now: Timestamp, traffic: &Traffic, last: bool) -> Reading {
        let cpu_time = self.clock.cpu_time();
        let wire = Wire::of(traffic);
        let run = self.run.get_or_insert_with(|| Run {
            began: now,
            now,
            cpu_before: cpu_time,
            wire,
            radio: self.config.radio_at(now, self.config.last_traffic),
        });
        if let Some(radio) = &mut run.radio {
            // Counting corrects an estimate downwards at times: what was drawn for it stays drawn.
            let fed = run.wire;
            run.wire = wire.max(fed);
            let moved = run.wire.since(fed);
            radio.on_traffic(now, moved.sent, moved.received);
            if last {
                radio.finish(now);
            }
        }
        run.now = run.now.max(now);
        let parts = Parts {
            radio: run.radio.as_ref().map_or(Joules::ZERO, RadioMachine::energy),
            cpu: self.config.cpu_per_core * cpu_time.saturating_sub(run.cpu_before),
            base: self.config.base * (run.now - run.began),
        };
        Reading { at: run.now, total: parts.radio + parts.cpu + parts.base, parts: Some(parts) }
    }
}

impl<C: CpuClock> PowerMeter for Modelled<C> {
    /// `modelled: wifi+cpu`; `wifi (awake already)` where the run found it so, and `wifi (extrapolated)`
    /// once the mean throughput lies above what the radio's profile was fitted to.
    fn source(&self) -> Source {
        let extrapolates = self
            .run
            .as_ref()
            .and_then(|run| run.radio.as_ref())
            .is_some_and(RadioMachine::extrapolates);
        let awake = self.config.found_awake(self.config.last_traffic).map(|_| "awake already");
        let remarks: Vec<&str> =
            awake.into_iter().chain(extrapolates.then_some("extrapolated")).collect();
        let name = match &self.config.radio {
            None => "cpu".to_owned(),
            Some(radio) if remarks.is_empty() => format!("{}+cpu", radio.name),
            Some(radio) => format!("{} ({})+cpu", radio.name, remarks.join(", ")),
        };
        Source { kind: SourceKind::Modelled, name }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn read(&mut self, now: Timestamp, traffic: &Traffic) -> Result<Reading, MeterError> {
        Ok(self.update(now, traffic, false))
    }

    fn finish(&mut self, now: Timestamp, traffic: &Traffic) -> Result<Reading, MeterError> {
        Ok(self.update(now, traffic, true))
    }
}

/// Predicts what [`Modelled`] would read, for policies.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetworkEnergyModel {
    config: ModelledConfig,
}

impl NetworkEnergyModel {
    /// A model of the device that `config` describes.
    pub fn new(config: ModelledConfig) -> Self {
        Self { config }
    }

    fn cpu(&self, bytes: Bytes, connections: u32) -> Joules {
        let per_mib = self.config.cpu_per_core * self.config.cpu_per_mib;
        let per_connection = self.config.cpu_per_core * self.config.cpu_per_connection;
        let mib = bytes.as_f64() / Bytes::mib(1).as_f64();
        Joules::new(per_mib.get() * mib + per_connection.get() * f64::from(connections))
    }
}

/// A GET and the head of its response over HTTP/1.1: rounded from what pelton and nginx exchange.
const REQUEST: Bytes = Bytes(220);
const HEAD: Bytes = Bytes(280);

impl NetworkEnergyModel {
    /// What the run itself has just moved.
    fn own_traffic(forecast: &Forecast) -> Option<LastTraffic> {
        let bytes = forecast.just_came;
        (bytes > Bytes::ZERO).then_some(LastTraffic { quiet: Duration::ZERO, bytes })
    }

    /// That or what others have, whichever is more: a few bytes put no radio to rest.
    fn just_before(&self, forecast: &Forecast) -> Option<LastTraffic> {
        let both = [self.config.last_traffic, Self::own_traffic(forecast)];
        both.into_iter().flatten().max_by_key(|last| last.bytes)
    }

    /// The radio after the transfer and its tail: one step, since with power linear in the rate,
    /// bytes and duration determine the energy.
    fn radio(&self, forecast: &Forecast) -> Option<RadioMachine> {
        let mut radio = self.config.radio_at(Timestamp::START, self.just_before(forecast))?;
        let end = Timestamp::START + forecast.duration;
        let times = |bytes: Bytes, count: u64| Bytes(bytes.0.saturating_mul(count));
        let connections = u64::from(forecast.connections);
        let received = forecast.bytes
            + times(HEAD, forecast.requests)
            + times(forecast.handshake, connections);
        let sent = times(REQUEST, forecast.requests);
        let wire = Wire::estimate(sent, received, connections);
        radio.on_bursts(end, wire.sent, wire.received, forecast.burst);
        radio.finish(end);
        Some(radio)
    }
}

impl EnergyModel for NetworkEnergyModel {
    fn predict(&self, forecast: &Forecast) -> Joules {
        self.radio(forecast).map_or(Joules::ZERO, |radio| radio.energy())
            + self.cpu(forecast.bytes, forecast.connections)
            + self.config.base * forecast.duration
    }

    fn remark(&self, forecast: &Forecast) -> Option<String> {
        let radio = self.radio(forecast)?;
        let active = radio.uses().iter().any(|used| used.state == State::Active);
        let shared = radio.profile().shared.as_ref().filter(|_| !active);
        let tail = match shared {
            Some(shared) => shared.power * shared.tail,
            None => radio.profile().tail_energy(),
        };
        let tail = (tail > Joules::ZERO).then(|| format!("{tail} of it the tail"));
        let awake = self.config.found_awake(self.just_before(forecast)).map(|last| {
            let millis = last.quiet.as_millis();
            let what = match last.bytes {
                bytes if Some(last) == Self::own_traffic(forecast) => {
                    return format!("the radio is awake already, after {bytes}");
                }
                Bytes::ZERO => "something".to_owned(),
                bytes => bytes.to_string(),
            };
            format!("the radio is awake already: others moved {what} within {millis} ms")
        });
        let stays = shared.map(|shared| format!("the radio stays on {}", shared.name));
        let parts: Vec<String> = awake.into_iter().chain(stays).chain(tail).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use pelton_algos::units::BitRate;
    use proptest::prelude::*;

    use super::*;

    /// CPU time that the test sets, in microseconds.
    #[derive(Clone, Default)]
    struct SetCpu(Arc<AtomicU64>);

    impl CpuClock for SetCpu {
        fn cpu_time(&self) -> Duration {
            Duration::from_micros(self.0.load(Ordering::Relaxed))
        }
    }

    fn wired(cpu: f64, base: f64) -> ModelledConfig {
        ModelledConfig {
            radio: None,
            cpu_per_core: Watts::new(cpu),
            base: Watts::new(base),
            ..ModelledConfig::default()
        }
    }

    fn received(bytes: u64) -> Traffic {
        Traffic { received: Bytes(bytes), ..Traffic::default() }
    }

    #[test]
    fn cpu_and_base_are_counted_from_the_first_reading() {
        let cpu = SetCpu::default();
        cpu.0.store(7_000_000, Ordering::Relaxed);
        let mut meter = Modelled::with_clock(wired(2.0, 0.5), cpu.clone());
        let first = meter.read(Timestamp::from_millis(3_000), &received(1_000)).unwrap();
        assert_eq!(first.total, Joules::ZERO);
        cpu.0.store(8_500_000, Ordering::Relaxed);
        let second = meter.finish(Timestamp::from_millis(7_000), &received(2_000)).unwrap();
        let parts = Parts { radio: Joules::ZERO, cpu: Joules::new(3.0), base: Joules::new(2.0) };
        assert_eq!(
            second,
            Reading {
                at: Timestamp::from_millis(7_000),
                total: Joules::new(5.0),
                parts: Some(parts)
            }
        );
    }

    #[test]
    fn the_last_reading_holds_the_tail() {
        let mut meter = Modelled::with_clock(ModelledConfig::default(), SetCpu::default());
        meter.read(Timestamp::START, &Traffic::default()).unwrap();
        let end = Timestamp::from_millis(500);
        let before = meter.read(end, &received(1_000_000)).unwrap();
        let last = meter.finish(end, &received(1_000_000)).unwrap();
        let tail = last.total.get() - before.total.get();
        assert!((tail - 0.2381 * 0.1193).abs() < 1e-9, "{tail} J");
    }

    #[test]
    fn a_radio_is_awake_for_what_has_just_come() {
        let model = NetworkEnergyModel::new(ModelledConfig {
            radio: Radio::N93g.profile(),
            ..ModelledConfig::default()
        });
        let few = Forecast {
            bytes: Bytes(100),
            duration: Duration::from_secs(1),
            requests: 1,
            burst: Bytes(400),
            ..Forecast::default()
        };
        assert!(model.remark(&few).unwrap().starts_with("the radio stays on FACH"));
        let listed = Forecast { just_came: Bytes(2_500), ..few };
        let said = model.remark(&listed).unwrap();
        assert!(said.starts_with("the radio is awake already, after 2.50 kB"), "{said}");
        assert!(!said.contains("FACH"), "{said}");
    }

    #[test]
    fn a_radio_that_is_awake_needs_no_promotion_and_says_so() {
        let lte = ModelledConfig { radio: Radio::Lte.profile(), ..ModelledConfig::default() };
        let last = LastTraffic { quiet: Duration::from_millis(100), bytes: Bytes(1_500) };
        let awake = ModelledConfig { last_traffic: Some(last), ..lte.clone() };
        let long_ago = LastTraffic { quiet: Duration::from_secs(11), ..last };
        let cold = ModelledConfig { last_traffic: Some(long_ago), ..lte.clone() };
        let forecast = Forecast {
            bytes: Bytes(1_000_000),
            duration: Duration::from_secs(2),
            connections: 1,
            ..Forecast::default()
        };
        let [asleep, awake, cold] = [lte, awake, cold].map(|config| {
            let model = NetworkEnergyModel::new(config.clone());
            let (joules, remark) = (model.predict(&forecast).get(), model.remark(&forecast));
            let mut meter = Modelled::with_clock(config, SetCpu::default());
            meter.read(Timestamp::START, &Traffic::default()).unwrap();
            let metered = meter.finish(Timestamp::from_millis(2_000), &received(1_000_000));
            (joules, remark.unwrap(), metered.unwrap().total.get())
        });
        // 0.26 s at 1.21 W, in which the radio else draws the 1.2 W of being active.
        let saved = 0.26 * (1.21 - 1.2);
        assert!((asleep.0 - awake.0 - saved).abs() < 1e-9, "{asleep:?} {awake:?}");
        assert!((asleep.2 - awake.2 - saved).abs() < 1e-9, "{asleep:?} {awake:?}");
        let says =
            "the radio is awake already: others moved 1.50 kB within 100 ms, 11.1 J of it the tail";
        assert_eq!(awake.1, says);
        assert_eq!(cold, asleep);
    }

    #[test]
    fn the_source_says_what_is_modelled() {
        let name = |meter: &Modelled<SetCpu>| meter.source().to_string();
        let last = LastTraffic { quiet: Duration::from_millis(5), bytes: Bytes::ZERO };
        let awake = ModelledConfig { last_traffic: Some(last), ..ModelledConfig::default() };
        let woken = Modelled::with_clock(awake.clone(), SetCpu::default());
        assert_eq!(name(&woken), "modelled: wifi (awake already)+cpu");
        let said = NetworkEnergyModel::new(awake).remark(&Forecast::default()).unwrap();
        assert!(said.starts_with("the radio is awake already: others moved something"), "{said}");
        let mut meter = Modelled::with_clock(ModelledConfig::default(), SetCpu::default());
        assert_eq!(name(&meter), "modelled: wifi+cpu");
        meter.read(Timestamp::START, &Traffic::default()).unwrap();
        meter.read(Timestamp::from_millis(1_000), &received(50_000_000)).unwrap();
        assert_eq!(name(&meter), "modelled: wifi (extrapolated)+cpu");
        assert_eq!(
            name(&Modelled::with_clock(wired(1.0, 1.0), SetCpu::default())),
            "modelled: cpu"
        );
    }

    #[test]
    fn the_machine_is_busy_but_for_idle_and_waiting() {
        let stat = "cpu  100 20 30 9000 500 4 6 10 99 99\ncpu0 1 2 3\n";
        assert_eq!(busy_time(stat), Duration::from_millis(1_700));
        assert_eq!(busy_time(""), Duration::ZERO);
    }

    #[test]
    fn this_process_uses_cpu_time() {
        let before = ProcessCpu.cpu_time();
        let mut work = 0_u64;
        while ProcessCpu.cpu_time() == before {
            work = std::hint::black_box(work.wrapping_add(1));
        }
        assert!(ProcessCpu.cpu_time() > before);
    }

    /// A meter that watches a steady transfer in readings of 250 ms, and spends the CPU time that
    /// the model assumes.
    fn metered(config: &ModelledConfig, forecast: &Forecast) -> Joules {
        let cpu = SetCpu::default();
        let mut meter = Modelled::with_clock(config.clone(), cpu.clone());
        meter.read(Timestamp::START, &Traffic::default()).unwrap();
        let steps = (forecast.duration.as_millis() / 250) as u64;
        for step in 1..=steps {
            let share = step as f64 / steps as f64;
            let traffic = Traffic {
                received: forecast.bytes.scale(share),
                connections_opened: forecast.connections.into(),
                ..Traffic::default()
            };
            let mib = traffic.received.as_f64() / Bytes::mib(1).as_f64();
            let used =
                config.cpu_per_mib.mul_f64(mib) + config.cpu_per_connection * forecast.connections;
            cpu.0.store(used.as_micros() as u64, Ordering::Relaxed);
            let now = Timestamp::START + forecast.duration.mul_f64(share);
            let reading =
                if step == steps { meter.finish(now, &traffic) } else { meter.read(now, &traffic) };
            if step == steps {
                return reading.unwrap().total;
            }
        }
        Joules::ZERO
    }

    proptest! {
        #[test]
        fn forecast_and_meter_agree(
            radio in prop::sample::select(Radio::ALL.to_vec()),
            mbps in 1.0..200.0_f64,
            millis in 500..60_000_u64,
            connections in 1..64_u32,
        ) {
            let config = ModelledConfig { radio: radio.profile(), ..ModelledConfig::default() };
            let duration = Duration::from_millis(millis);
            let rate = BitRate::from_mbps(mbps);
            let forecast = Forecast { bytes: rate * duration, rate, duration, connections, burst: Bytes(u64::MAX), ..Forecast::default() };
            let predicted = NetworkEnergyModel::new(config.clone()).predict(&forecast).get();
            let metered = metered(&config, &forecast).get();
            prop_assert!((predicted - metered).abs() <= 0.05 * metered, "{predicted} against {metered}");
        }

        #[test]
        fn any_forecast_costs_something_finite(bytes: u64, bps: f64, duration: Duration, connections: u32) {
            let forecast = Forecast { bytes: Bytes(bytes), rate: BitRate::from_bps(bps), duration, connections, ..Forecast::default() };
            let joules = NetworkEnergyModel::default().predict(&forecast).get();
            prop_assert!(joules > 0.0 && joules.is_finite());
        }

        #[test]
        fn readings_never_decrease(steps in prop::collection::vec((0..5_000_u64, any::<u64>(), any::<u64>()), 1..30)) {
            let mut meter = Modelled::with_clock(ModelledConfig::default(), SetCpu::default());
            let (mut traffic, mut last) = (Traffic::default(), Joules::ZERO);
            for (at, sent, received) in steps {
                // Times run backwards too; traffic only grows.
                traffic.sent += Bytes(sent >> 30);
                traffic.received += Bytes(received >> 20);
                let reading = meter.read(Timestamp::from_millis(at), &traffic).unwrap();
                prop_assert!(reading.total >= last && reading.total.get().is_finite());
                last = reading.total;
            }
        }
    }
}
