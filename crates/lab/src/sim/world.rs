//! The world of one run: pelton-core's engine, a link, a server, and what happens between them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use pelton_algos::pace::FirstPace;
use pelton_algos::policy::Decision;
use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;
use pelton_core::connection::Origin;
use pelton_core::engine::{Action, Engine, Event, Opened};
use pelton_power::{Modelled, ModelledConfig, NetworkEnergyModel, PowerMeter, Reading, Traffic};

use super::agenda::Agenda;
use super::connection::Connection;
use super::exchange::Live;
use super::meter::{SimulatedCpu, Work};
use super::origin::OriginConfig;
use super::pool::{ConnectionIndex, Pool};
use super::tcp::Chunk;
use super::trajectory::Sample;
use super::transport::Message;
use super::{Ending, Scenario};
use crate::model::LinkModel;

/// How often the meter is read, as pelton-core's driver does.
const METER_INTERVAL: Duration = Duration::from_millis(100);
/// No run is allowed to take longer: a day.
const TOO_LONG: Timestamp = Timestamp::new(Duration::from_secs(24 * 3600));

/// What is known to happen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Happening {
    Upload { index: ConnectionIndex, message: Message, attempt: u32 },
    AtServer { index: ConnectionIndex, message: Message, sent: Timestamp },
    SynAck { index: ConnectionIndex, sent: Timestamp },
    Respond { index: ConnectionIndex, stream: StreamId },
    Pump { index: ConnectionIndex },
    Arrival { index: ConnectionIndex, chunk: Chunk, number: u64 },
    Ack { index: ConnectionIndex, number: u64, cumulative: u64 },
    DelayedAck { index: ConnectionIndex },
    SenderTimer { index: ConnectionIndex, planned: Timestamp },
}

/// What the client's connections did so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) packets: u64,
    pub(super) opened: u64,
}

pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) agenda: Agenda<Happening>,
    pub(super) link: LinkModel,
    pub(super) origin: OriginConfig,
    pub(super) name: Origin,
    pub(super) receive_window: u64,
    pub(super) sizes: Vec<u64>,
    pub(super) connections: Vec<Connection>,
    pub(super) pool: Pool,
    pub(super) live: BTreeMap<StreamId, Live>,
    pub(super) responses_under_way: u32,
    /// How long the last handshake took.
    pub(super) handshake_took: Option<Duration>,
    pub(super) origin_paced_until: Timestamp,
    pub(super) pace: FirstPace,
    pub(super) counters: Counters,
    pub(super) segments: u64,
    pub(super) lost_segments: u64,
    pub(super) mailbox: VecDeque<Event>,
    engine: Engine,
    cpu: SimulatedCpu,
    meter: Modelled<SimulatedCpu>,
    power: ModelledConfig,
    energy: Option<Reading>,
    decisions: Vec<(Timestamp, Decision)>,
    samples: Option<Vec<Sample>>,
    over: bool,
}

impl World {
    pub(super) fn new(scenario: &Scenario<'_>, engine: Engine) -> Self {
        let cpu = SimulatedCpu::default();
        let power = scenario.power.clone();
        Self {
            now: Timestamp::START,
            agenda: Agenda::default(),
            link: LinkModel::new(scenario.link, scenario.seed),
            origin: scenario.origin,
            name: scenario.files.origin(scenario.origin.tls),
            receive_window: scenario.receive_window.0,
            sizes: scenario.files.sizes.clone(),
            connections: Vec::new(),
            pool: Pool { limit: 6, ..Pool::default() },
            live: BTreeMap::new(),
            responses_under_way: 0,
            handshake_took: None,
            origin_paced_until: Timestamp::START,
            pace: FirstPace::default(),
            counters: Counters::default(),
            segments: 0,
            lost_segments: 0,
            mailbox: VecDeque::new(),
            engine: engine.with_energy_model(Box::new(NetworkEnergyModel::new(power.clone()))),
            meter: Modelled::with_clock(power.clone(), cpu.clone()),
            cpu,
            power,
            energy: None,
            decisions: Vec::new(),
            samples: scenario.traced.then(Vec::new),
            over: false,
        }
    }

    /// Runs to the end of the engine.
    pub(super) fn run(mut self, scenario: &Scenario<'_>) -> Ending {
        self.read_meter();
        self.tell(Event::Files(scenario.files.specs(scenario.origin.tls)));
        self.tell(Event::ListEnded);
        self.drain();
        let mut meter_due = self.now + METER_INTERVAL;
        while !self.over && self.now < TOO_LONG {
            let timeout = self.engine.next_timeout(self.now).map(|at| at.max(self.now));
            let next = self.agenda.next_at();
            let until = [timeout, next].into_iter().flatten().fold(meter_due, Timestamp::min);
            self.now = until;
            if next == Some(until) {
                if let Some(happening) = self.agenda.pop() {
                    self.happen(happening);
                }
            } else if timeout == Some(until) {
                self.tell(Event::Timeout);
            } else {
                self.read_meter();
                self.sample();
                meter_due = self.now + METER_INTERVAL;
            }
            self.drain();
        }
        self.end()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Upload { index, message, attempt } => self.upload(index, message, attempt),
            Happening::AtServer { index, message, sent } => self.on_message(index, message, sent),
            Happening::SynAck { index, sent } => self.on_syn_ack(index, sent),
            Happening::Respond { index, stream } => self.respond(index, stream),
            Happening::Pump { index } => {
                self.connections[index as usize].pump_planned = false;
                self.pump(index);
            }
            Happening::Arrival { index, chunk, number } => self.on_arrival(index, chunk, number),
            Happening::Ack { index, number, cumulative } => self.on_ack(index, number, cumulative),
            Happening::DelayedAck { index } => self.on_delayed_ack(index),
            Happening::SenderTimer { index, planned } => self.on_sender_timer(index, planned),
        }
    }

    /// An event on its way to the engine.
    pub(super) fn tell(&mut self, event: Event) {
        self.mailbox.push_back(event);
    }

    /// Hands the engine what has happened, in order, and does what it asks for.
    fn drain(&mut self) {
        while let Some(event) = self.mailbox.pop_front() {
            for action in self.engine.handle(self.now, event) {
                self.perform(action);
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Open { file } => self.tell(Event::Opened { file, opened: Opened::Fresh }),
            Action::Fetch(fetch) => self.fetch(*fetch),
            Action::Cut { stream, end } => {
                if let Some(live) = self.live.get_mut(&stream) {
                    live.end = end;
                }
            }
            Action::Abort { stream, crawled } => {
                if crawled {
                    self.shun_connection_of(stream);
                }
                self.abort(stream);
            }
            Action::Connections { limit, open, handshakes, pipelined, .. } => {
                self.pool.pipelined = pipelined;
                self.set_limit(limit);
                self.open_early(open);
                self.set_handshakes(handshakes, open);
            }
            Action::Finish { file, .. } => self.tell(Event::Finished { file, result: Ok(()) }),
            Action::Decided(decision) => self.decisions.push((self.now, decision)),
            Action::Done => self.over = true,
            Action::Restart { .. }
            | Action::Checkpoint { .. }
            | Action::Kept { .. }
            | Action::DiskFull { .. }
            | Action::HostAway { .. }
            | Action::LookForSpace
            | Action::GiveUp { .. } => {}
        }
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            received: Bytes(self.counters.received),
            sent: Bytes(self.counters.sent),
            connections_opened: self.counters.opened,
            connections_open: self.pool.open.len() as u32,
            ..Traffic::default()
        }
    }

    fn note_work(&self) {
        let Counters { received, sent, packets, opened } = self.counters;
        let work = Work { bytes: received + sent, connections: opened, packets };
        self.cpu.set(&self.power, work);
    }

    fn read_meter(&mut self) {
        self.note_work();
        let traffic = self.traffic();
        if let Ok(reading) = self.meter.read(self.now, &traffic) {
            self.energy = Some(reading);
            self.tell(Event::Energy(reading.total));
        }
    }

    fn sample(&mut self) {
        if let Some(samples) = &mut self.samples {
            samples.push(Sample {
                at: self.now,
                delivered: self.engine.totals().delivered,
                connections: self.pool.open.len() as u32,
                clusters: self.engine.usage(),
                energy: self.energy.map(|reading| reading.total).unwrap_or_default(),
            });
        }
    }

    fn end(mut self) -> Ending {
        self.sample();
        self.note_work();
        let traffic = self.traffic();
        if let Ok(reading) = self.meter.finish(self.now, &traffic) {
            self.energy = Some(reading);
        }
        let totals = self.engine.totals();
        Ending {
            is_complete: self.over && totals.failed == 0,
            seconds: self.now.since_start().as_secs_f64(),
            bytes: totals.delivered,
            received: Bytes(self.counters.received),
            energy: self.energy.map(|reading| reading.total).unwrap_or_default(),
            connections: self.counters.opened,
            requests: totals.requests,
            retries: totals.retries,
            segments: self.segments,
            lost_segments: self.lost_segments,
            decisions: self.decisions,
            samples: self.samples.unwrap_or_default(),
        }
    }
}
