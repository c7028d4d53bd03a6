//! The one loop that turns the world into events and actions into the world.

mod mailbox;
mod outputs;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Joules};
use pelton_power::{CpuClock, ProcessCpu, Traffic};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub(crate) use mailbox::Mailbox;

use crate::ErrorKind;
use crate::catalog::{FileSpec, Walked};
use crate::connection::{ConnectionId, Http, shown};
use crate::engine::{Action, Engine, Event, Fetch, FileId, Outcome};
use crate::events::Summary;
use crate::fetch::{self, SharedOutput};
use crate::job::Command;
use crate::metering::{METER_INTERVAL, Metering, traffic};
use crate::origins::OriginMemory;
use crate::panics;
use crate::report::{Ending, Gauges, Recorder, Report, throughput, throughput_per_joule};
use crate::sink::{self, Sink};

/// Progress at most four times a second.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

struct StreamTask {
    abort: AbortHandle,
    end: Rc<Cell<u64>>,
    /// The connection that bears it.
    over: Rc<Cell<Option<ConnectionId>>>,
}

/// Everything that a run holds.
pub(crate) struct Driver {
    pub(crate) engine: Engine,
    pub(crate) origins: Option<OriginMemory>,
    pub(crate) http: Http,
    pub(crate) sink: Box<dyn Sink>,
    pub(crate) metering: Metering,
    pub(crate) recorder: Recorder,
    pub(crate) mailbox: Rc<Mailbox>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) started: Instant,
    /// CPU time of this process by then.
    pub(crate) cpu_at_start: Duration,
}

/// The loop's own state.
struct Run {
    driver: Driver,
    outputs: HashMap<FileId, SharedOutput>,
    tasks: HashMap<StreamId, StreamTask>,
    served: Rc<RefCell<Vec<Served>>>,
    cancelled: bool,
    over: bool,
    /// The limit that all runs of the client share, as last seen, and whether it held this run.
    above: (Option<BitRate>, bool),
}

type Served = (FileId, ConnectionId, crate::connection::Protocol);

impl Driver {
    /// Downloads what was `found` to the end. `early` commands came while it was looked for.
    pub(crate) async fn run(self, found: Walked, early: Vec<Command>) -> Report {
        let mut run = Run {
            outputs: HashMap::new(),
            tasks: HashMap::new(),
            served: Rc::default(),
            cancelled: false,
            over: false,
            above: (None, false),
            driver: self,
        };
        run.obey_limits();
        run.look_above();
        run.read_meter();
        for command in early {
            run.obey(Some(command));
        }
        // Round trips that reading listings has shown.
        for event in run.driver.mailbox.take() {
            run.handle(event);
        }
        for (url, reason) in found.warnings {
            run.driver.recorder.warned(run.now(), &url, reason);
        }
        for (url, error) in found.failed {
            run.driver.recorder.listing_failed(run.now(), &url, error.into());
        }
        run.handle(Event::Files(found.files));
        run.handle(Event::ListEnded);
        run.drive().await;
        run.report()
    }
}

impl Run {
    fn now(&self) -> Timestamp {
        Timestamp::new(self.driver.started.elapsed())
    }

    async fn drive(&mut self) {
        let mut meter_due = Instant::now() + METER_INTERVAL;
        let mut progress_due = Instant::now() + PROGRESS_INTERVAL;
        let mailbox = Rc::clone(&self.driver.mailbox);
        while !self.over {
            let tell = self.driver.recorder.tell(Instant::now());
            let timeout = self.driver.engine.next_timeout(self.now());
            // What no clock reaches never comes.
            let timeout = timeout.and_then(|at| self.driver.started.checked_add(at.since_start()));
            let own = meter_due.min(progress_due);
            let wake = [timeout, tell].into_iter().flatten().fold(own, Instant::min);
            tokio::select! {
                biased;
                command = self.driver.commands.recv(), if !self.cancelled => self.obey(command),
                () = mailbox.arrived.notified() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
            for event in mailbox.take() {
                self.handle(event);
            }
            let now = Instant::now();
            if timeout.is_some_and(|at| now >= at) {
                self.handle(Event::Timeout);
            }
            if now >= meter_due {
                self.look_above();
                self.read_meter();
                meter_due = now + METER_INTERVAL;
            }
            if now >= progress_due {
                self.driver.recorder.progress(self.now(), &self.driver.engine, self.gauges());
                progress_due = now + PROGRESS_INTERVAL;
            }
        }
    }

    /// What of the limits binds connections.
    fn obey_limits(&self) {
        let limits = self.driver.engine.user_limits();
        self.driver.http.set_rates(limits.max_rate, limits.max_rate_per_origin);
        self.driver.http.set_memory(limits.max_memory, limits.max_connections);
    }

    /// A caller that is gone wants nothing more.
    fn obey(&mut self, command: Option<Command>) {
        match command {
            Some(Command::Pause) => self.handle(Event::Pause),
            Some(Command::Resume) => self.handle(Event::Resume),
            Some(Command::SetLimits(limits)) => {
                let limits = sink::bounded(limits, &*self.driver.sink);
                self.handle(Event::SetLimits(limits));
                self.obey_limits();
            }
            Some(Command::Cancel) | None => {
                self.cancelled = true;
                self.driver.commands.close();
                self.handle(Event::Cancel);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now();
        for (file, connection, protocol) in self.served.borrow_mut().drain(..) {
            self.driver.recorder.served_by(file, connection, protocol);
        }
        let mut ending = None;
        match &event {
            Event::Data { stream, bytes } => {
                if let Some(file) = self.driver.engine.file_of(*stream) {
                    self.driver.metering.moved(file, *bytes);
                }
            }
            Event::Head { stream, head } => {
                if head.compressed {
                    self.driver.recorder.came_compressed(now, &head.url);
                }
                if self.driver.engine.is_whole_for_want_of_version(*stream, head) {
                    self.driver.recorder.came_without_version(now, &head.url);
                }
            }
            Event::Ended { stream, .. } => {
                self.tasks.remove(stream);
            }
            Event::Finished { file, result } => {
                self.outputs.remove(file);
                ending = result.is_ok().then_some(*file);
            }
            _ => {}
        }
        let actions = self.driver.engine.handle(now, event);
        if let Some(file) = ending {
            let bytes = self.driver.engine.bytes_of(file);
            self.file_over(now, file, Ending::Complete { bytes });
        }
        for action in actions {
            self.perform(now, action);
        }
    }

    fn perform(&mut self, now: Timestamp, action: Action) {
        match action {
            Action::Open { file } => self.open(now, file),
            Action::Fetch(fetch) => self.fetch(*fetch),
            Action::Cut { stream, end } => {
                if let Some(task) = self.tasks.get(&stream) {
                    task.end.set(end);
                }
            }
            Action::Abort { stream, crawled } => {
                if let Some(task) = self.tasks.remove(&stream) {
                    task.abort.abort();
                    if let Some(connection) = task.over.get().filter(|_| crawled) {
                        self.driver.http.shun(connection);
                    }
                }
            }
            Action::Restart { file, bytes, reason } => {
                self.driver.recorder.restarted(now, file, &self.driver.engine, bytes, reason);
            }
            Action::Connections { origin, limit, open, handshakes, pipelined } => {
                self.driver.http.set_pipelined(&origin, pipelined);
                self.driver.http.set_limit(&origin, limit as usize);
                self.driver.http.open_early(&origin, open as usize);
                let handshakes = handshakes.map(|most| most as usize);
                self.driver.http.set_handshakes(&origin, handshakes, open as usize);
            }
            Action::Finish { file, modified } => self.finish(file, modified),
            Action::Checkpoint { file, part } => {
                if let Some(output) = self.outputs.get(&file)
                    && let Some(output) = output.borrow_mut().as_deref_mut()
                {
                    output.checkpoint(&part);
                }
            }
            Action::Kept { file, size } => {
                if let Some(output) = self.take_output(file) {
                    output.abandon(None);
                }
                self.file_over(now, file, Ending::Kept { bytes: size });
            }
            Action::GiveUp { file, failure } => {
                let engine = &self.driver.engine;
                // Pieces tell which bytes are right, and then these are all that is told of.
                let may_keep =
                    failure.kind != ErrorKind::Checksum || engine.spec(file).pieces.is_some();
                let part = engine.resumable(file).filter(|_| may_keep);
                if let Some(output) = self.take_output(file) {
                    output.abandon(part.as_ref());
                }
                let bytes = self.driver.engine.bytes_of(file);
                self.file_over(now, file, Ending::GivenUp { bytes, failure });
            }
            Action::Decided(decision) => {
                let gauges = self.gauges();
                self.driver.recorder.decided(now, &decision, &self.driver.engine, gauges);
            }
            Action::DiskFull { needed, is_quota } => {
                let patience = self.driver.engine.disk_patience();
                let space = self.driver.sink.space();
                let recorder = &self.driver.recorder;
                recorder.disk_full(now, space.as_ref(), is_quota, needed, patience);
            }
            Action::HostAway { failure } => {
                let waits_for = self.driver.engine.outstanding();
                self.driver.recorder.host_away(now, waits_for, &failure);
            }
            Action::LookForSpace => {
                let free = self.driver.sink.space().map(|space| space.free);
                self.driver.mailbox.put(Event::Space(free));
            }
            Action::Done => self.over = true,
        }
    }

    fn fetch(&mut self, fetch: Fetch) {
        let file = fetch.file;
        let Some(output) = self.outputs.get(&file) else { return };
        let end = Rc::new(Cell::new(fetch.range.as_ref().map_or(u64::MAX, |range| range.end)));
        let over = Rc::<Cell<_>>::default();
        let mailbox = Rc::clone(&self.driver.mailbox);
        let served = Rc::clone(&self.served);
        let context = fetch::Context {
            http: self.driver.http.clone(),
            output: Rc::clone(output),
            end: Rc::clone(&end),
            over: Rc::clone(&over),
            home: self.driver.engine.spec(file).url.clone(),
            headers: fetch::headers(self.driver.engine.spec(file)),
            tell: Rc::new(move |event| mailbox.put(event)),
            served_by: Rc::new(move |connection, protocol| {
                served.borrow_mut().push((file, connection, protocol));
            }),
        };
        let stream = fetch.stream;
        let task = tokio::task::spawn_local(async move {
            let run = async { Ok(fetch::run(&context, &fetch).await) };
            let result = panics::caught(|| shown(&fetch.url), run)
                .await
                .unwrap_or_else(|error| Outcome::Failed(error.into()));
            (context.tell)(Event::Ended { stream, result });
        });
        self.tasks.insert(stream, StreamTask { abort: task.abort_handle(), end, over });
    }

    fn traffic(&self) -> Traffic {
        traffic(&self.driver.http)
    }

    /// What the limit that all runs of the client share means for this one.
    fn look_above(&mut self) {
        let (rate, holds) = self.driver.http.look_above();
        if self.above != (rate, holds) {
            self.above = (rate, holds);
            self.handle(Event::ClientRate { rate, holds });
        }
    }

    fn read_meter(&mut self) {
        let (now, traffic) = (self.now(), self.traffic());
        self.driver.metering.read(now, &traffic);
        if let Some(energy) = self.driver.metering.for_policies(now, &traffic) {
            self.handle(Event::Energy(energy));
        }
    }

    /// Takes note of how a file ended, and of what it drew.
    fn file_over(&mut self, now: Timestamp, file: FileId, ending: Ending) {
        let traffic = self.traffic();
        self.driver.metering.read(now, &traffic);
        let energy = self.driver.metering.take_share(now, file);
        self.driver.recorder.file_over(now, file, &mut self.driver.engine, ending, energy);
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            energy_j: self.driver.metering.last().map(|reading| reading.total.get()),
            connections: self.driver.http.counters().open_now as u32,
        }
    }

    fn report(mut self) -> Report {
        if let Some(memory) = &self.driver.origins {
            memory.learn(self.driver.engine.learnt());
        }
        let (now, traffic) = (self.now(), self.traffic());
        if let Some(reason) = self.driver.metering.finish(now, &traffic) {
            self.driver.recorder.meter_lost(now, reason);
        }
        let totals = self.driver.engine.totals();
        if totals.files > 0 {
            self.driver.recorder.progress(now, &self.driver.engine, self.gauges());
        }
        let duration = now.since_start();
        let rate = throughput(totals.delivered, duration);
        let reading = self.driver.metering.last();
        let energy = reading.map(|reading| reading.total);
        let parts = reading.and_then(|reading| reading.parts);
        let summary = Summary {
            policy: self.driver.engine.policy_name().to_owned(),
            files: totals.files,
            files_done: totals.done,
            files_failed: totals.failed,
            bytes: totals.delivered.0,
            seconds: duration.as_secs_f64(),
            throughput_bps: rate,
            energy_j: energy.map(Joules::get),
            energy_radio_j: parts.map(|parts| parts.radio.get()),
            energy_cpu_j: parts.map(|parts| parts.cpu.get()),
            energy_base_j: parts.map(|parts| parts.base.get()),
            energy_source: self.driver.metering.source(),
            throughput_per_joule: energy
                .and_then(|energy| throughput_per_joule(totals.delivered, duration, energy)),
            clusters: Vec::new(),
            connections: traffic.connections_opened,
            requests: totals.requests,
            retries: totals.retries,
            cpu_s: ProcessCpu.cpu_time().saturating_sub(self.driver.cpu_at_start).as_secs_f64(),
            exit_code: self.driver.recorder.exit_code(&self.driver.engine, self.cancelled),
            error: None,
        };
        self.driver.recorder.finish(summary)
    }
}

/// What the engine would do first with `files`, without doing it. `None` without files.
pub(crate) fn plan(
    engine: &mut Engine,
    mailbox: &Mailbox,
    files: Vec<FileSpec>,
    started: Instant,
    energy_source: &str,
) -> Option<crate::events::Plan> {
    let now = Timestamp::new(started.elapsed());
    for event in mailbox.take() {
        engine.handle(now, event);
    }
    engine.handle(now, Event::Files(files));
    let decision = engine.decision()?.clone();
    Some(crate::report::plan(engine, &decision, energy_source))
}
