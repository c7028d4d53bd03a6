//! What a run did: per file, per decision, with joules and their source.

mod costs;
mod failures;
mod outbox;
mod plan;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use pelton_algos::policy::Decision;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes, Joules};
use serde::Serialize;
use tokio::time::Instant;

pub(crate) use failures::{common_code, not_begun};
pub(crate) use plan::plan;

use costs::Costs;
use failures::{error_report, naming};
use outbox::{Outbox, Tell};
use plan::allocations;

use crate::catalog::FileSpec;
use crate::connection::{ConnectionId, Protocol, shown};
use crate::engine::{Engine, Failure, FileId};
use crate::events::{
    ActiveFile, DecisionMade, FileReport, FileRestart, FileStart, Plan, Progress, RunEvent,
    Summary, Waiting, Warning,
};
use crate::sink::{Space, full};
use crate::{Error, ErrorKind};

/// Files in transfer that a progress event names.
const SHOWN_FILES: usize = 8;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was planned at the start; nothing when there was nothing to do.
    pub plan: Option<Plan>,
    /// Totals.
    pub summary: Summary,
    /// One entry a file that is over, in the order in which they ended.
    pub files: Vec<FileReport>,
    /// Every decision.
    pub decisions: Vec<DecisionMade>,
    /// The files that are not there, as they were asked for: another download takes them.
    #[serde(skip)]
    pub failed: Vec<FileSpec>,
}

impl Report {
    /// The report of a run under the policy of this name that `error` kept from beginning.
    pub fn not_begun(policy: &str, error: &Error) -> Self {
        let (code, failure) =
            (error.kind().exit_code(), Failure::new(error.kind(), error.message()));
        let error = Some(error_report(failure));
        let summary = Summary { exit_code: code, error, ..Summary::of_nothing(policy) };
        let (files, decisions, failed) = Default::default();
        Self { plan: None, summary, files, decisions, failed }
    }

    /// Whether every file is there.
    pub const fn is_complete(&self) -> bool {
        self.summary.exit_code == 0
    }
}

/// What is known of a file in transfer.
#[derive(Debug, Default)]
struct FileNotes {
    started: Timestamp,
    connections: BTreeSet<ConnectionId>,
    protocol: Option<Protocol>,
    resumed_from: u64,
    restarts: u32,
}

/// Collects what a run does, and says it.
pub(crate) struct Recorder {
    outbox: Outbox,
    energy_source: String,
    notes: HashMap<FileId, FileNotes>,
    plan: Option<Plan>,
    files: Vec<FileReport>,
    decisions: Vec<DecisionMade>,
    failures: Vec<ErrorKind>,
    failed: Vec<FileSpec>,
    /// Listings that could not be read count as files.
    failed_listings: u64,
    costs: Costs,
    /// It was told that a server compresses what is asked for.
    has_told_of_coding: bool,
    has_told_of_version: bool,
}

/// What the meter and the connections say at some moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gauges {
    pub(crate) energy_j: Option<f64>,
    pub(crate) connections: u32,
}

impl Recorder {
    pub(crate) fn new(energy_source: String, tell: Tell) -> Self {
        Self {
            outbox: Outbox::new(tell),
            energy_source,
            notes: HashMap::new(),
            plan: None,
            files: Vec::new(),
            decisions: Vec::new(),
            failures: Vec::new(),
            failed: Vec::new(),
            failed_listings: 0,
            costs: Costs::default(),
            has_told_of_coding: false,
            has_told_of_version: false,
        }
    }

    /// Tells what was noted, or when it will be due.
    pub(crate) fn tell(&self, now: Instant) -> Option<Instant> {
        self.outbox.tell(now)
    }

    pub(crate) fn file_started(&mut self, now: Timestamp, file: FileId, engine: &Engine) {
        if self.notes.contains_key(&file) {
            // It is opened again: the disk was full.
            return;
        }
        let spec = engine.spec(file);
        self.notes.insert(file, FileNotes { started: now, ..FileNotes::default() });
        let start =
            FileStart { at_s: seconds(now), name: spec.name.clone(), url: shown(&spec.url) };
        self.outbox.put(RunEvent::Start(start));
    }

    pub(crate) fn resumed(&mut self, file: FileId, bytes: u64) {
        self.notes.entry(file).or_default().resumed_from = bytes;
    }

    /// What was there of `file` is worth nothing.
    pub(crate) fn restarted(
        &mut self,
        now: Timestamp,
        file: FileId,
        engine: &Engine,
        bytes_lost: u64,
        reason: String,
    ) {
        let notes = self.notes.entry(file).or_default();
        notes.resumed_from = 0;
        notes.restarts += 1;
        let spec = engine.spec(file);
        self.outbox.put(RunEvent::Restart(FileRestart {
            at_s: seconds(now),
            name: spec.name.clone(),
            url: shown(engine.place(file)),
            bytes_lost,
            reason,
        }));
    }

    pub(crate) fn served_by(&mut self, file: FileId, connection: ConnectionId, protocol: Protocol) {
        let notes = self.notes.entry(file).or_default();
        notes.connections.insert(connection);
        notes.protocol = Some(protocol);
    }

    pub(crate) fn decided(
        &mut self,
        now: Timestamp,
        decision: &Decision,
        engine: &Engine,
        gauges: Gauges,
    ) {
        if self.plan.is_none() {
            let plan = plan(engine, decision, &self.energy_source);
            self.plan = Some(plan.clone());
            self.outbox.put(RunEvent::Plan(plan));
        }
        let made = DecisionMade {
            at_s: seconds(now),
            allocations: allocations(decision, engine),
            wanted_connections: decision.wanted_connections,
            reason: decision.reason.clone(),
            throughput_bps: engine.goodput().bps(),
            energy_j: gauges.energy_j,
        };
        self.decisions.push(made.clone());
        self.outbox.put(RunEvent::Decision(made));
    }

    pub(crate) fn file_over(
        &mut self,
        now: Timestamp,
        file: FileId,
        engine: &mut Engine,
        ending: Ending,
        energy: Option<Joules>,
    ) {
        let notes =
            self.notes.remove(&file).unwrap_or(FileNotes { started: now, ..FileNotes::default() });
        let (bytes, already_there, failure) = match ending {
            Ending::Complete { bytes } => (bytes, false, None),
            Ending::Kept { bytes } => (bytes, true, None),
            Ending::GivenUp { bytes, failure } => (bytes, false, Some(failure)),
        };
        let took = now - notes.started;
        let received = bytes.saturating_sub(notes.resumed_from);
        if !already_there {
            let class = engine.class_of(file);
            self.costs.add(class, notes.started, now, Bytes(received), energy);
        }
        let url = shown(engine.place(file));
        let failure = failure.map(|failure| naming(&url, failure));
        let digest = engine.digest(file).filter(|_| failure.is_none()).map(ToString::to_string);
        let mut spec = engine.take_spec(file);
        let name = match &failure {
            None => std::mem::take(&mut spec.name),
            Some(failure) => {
                let name = spec.name.clone();
                self.failures.push(failure.kind);
                self.failed.push(spec);
                name
            }
        };
        let report = FileReport {
            at_s: seconds(now),
            name,
            url,
            bytes,
            seconds: took.as_secs_f64(),
            connections: notes.connections.len() as u32,
            protocol: notes.protocol,
            resumed_from: notes.resumed_from,
            restarts: notes.restarts,
            already_there,
            digest,
            energy_j: energy.map(Joules::get),
            throughput_per_joule: energy
                .and_then(|energy| throughput_per_joule(Bytes(received), took, energy)),
            ok: failure.is_none(),
            error: failure.map(|failure| Box::new(error_report(failure))),
        };
        self.outbox.put(RunEvent::File(report.clone()));
        self.files.push(report);
    }

    /// The disk is full, and the run waits for space.
    pub(crate) fn disk_full(
        &self,
        now: Timestamp,
        space: Option<&Space>,
        is_quota: bool,
        needed: Bytes,
        patience: Duration,
    ) {
        let full = full(space.map(|space| space.mount.as_path()), is_quota);
        // What the file system has is no answer to a quota.
        let free = space.filter(|_| !is_quota).map(|space| format!(" ({} free)", space.free));
        // How much that is, the server has yet to say.
        let is_known = needed > Bytes::ZERO;
        let needs = is_known.then(|| format!(", and {needed} are still to come"));
        let reason = format!(
            "{full}{}{}: waiting up to {} s for more",
            free.unwrap_or_default(),
            needs.unwrap_or_default(),
            patience.as_secs_f64()
        );
        self.outbox.put(RunEvent::Waiting(Waiting {
            at_s: seconds(now),
            bytes_needed: needed.0,
            bytes_free: space.map(|space| space.free.0),
            reason,
        }));
    }

    /// A host is waited for that failed with `failure`.
    pub(crate) fn host_away(&self, now: Timestamp, needed: Bytes, failure: &str) {
        self.outbox.put(RunEvent::Waiting(Waiting {
            at_s: seconds(now),
            bytes_needed: needed.0,
            bytes_free: None,
            reason: format!("{failure}: waiting for the host"),
        }));
    }

    /// Something is of no use, and the run goes on without it.
    pub(crate) fn warned(&self, now: Timestamp, url: &url::Url, reason: String) {
        self.warn(now, Some(shown(url)), reason);
    }

    /// The meter could not tell the joules of the run.
    pub(crate) fn meter_lost(&self, now: Timestamp, reason: String) {
        self.warn(now, None, reason);
    }

    fn warn(&self, now: Timestamp, url: Option<String>, reason: String) {
        self.outbox.put(RunEvent::Warning(Warning { at_s: seconds(now), url, reason }));
    }

    /// A server compressed what was not asked for like that: told once, of the first.
    pub(crate) fn came_compressed(&mut self, now: Timestamp, url: &url::Url) {
        const WHY: &str =
            "the server compressed it, which was not asked for: it is stored as it came";
        if !std::mem::replace(&mut self.has_told_of_coding, true) {
            self.warned(now, url, format!("{}: {WHY}", shown(url)));
        }
    }

    /// A server tells no version of a file that is long: told once, of the first.
    pub(crate) fn came_without_version(&mut self, now: Timestamp, url: &url::Url) {
        const WHY: &str = "the server tells no version of it that could be relied on (neither a strong ETag nor a \
                           Last-Modified older than its Date), and parts of two might be joined: files like that \
                           come over one stream each. A digest in the list splits them safely, and \
                           `assume-unchanged` without";
        if !std::mem::replace(&mut self.has_told_of_version, true) {
            self.warned(now, url, format!("{}: {WHY}", shown(url)));
        }
    }

    /// A listing could not be read: what it names is not in the list.
    pub(crate) fn listing_failed(&mut self, now: Timestamp, url: &url::Url, failure: Failure) {
        self.failures.push(failure.kind);
        self.failed_listings += 1;
        let report = not_begun(seconds(now), String::new(), url, failure);
        self.outbox.put(RunEvent::File(report.clone()));
        self.files.push(report);
    }

    pub(crate) fn progress(&self, now: Timestamp, engine: &Engine, gauges: Gauges) {
        let totals = engine.totals();
        let left = totals.expected.saturating_sub(totals.delivered);
        let active = engine.active_files().take(SHOWN_FILES).map(|(file, bytes, size)| {
            ActiveFile { name: engine.spec(file).name.clone(), bytes, size }
        });
        let goodput = engine.goodput_at(now);
        let moving = goodput > BitRate::ZERO;
        self.outbox.put(RunEvent::Progress(Progress {
            at_s: seconds(now),
            files: totals.files + self.failed_listings,
            files_done: totals.done,
            files_failed: totals.failed + self.failed_listings,
            bytes: totals.delivered.0,
            bytes_expected: totals.expected.0,
            throughput_bps: goodput.bps(),
            energy_j: gauges.energy_j,
            connections: gauges.connections,
            clusters: engine
                .decision()
                .map(|decision| allocations(decision, engine))
                .unwrap_or_default(),
            active: active.collect(),
            remaining_s: moving.then(|| (left / goodput).as_secs_f64()),
        }));
    }

    /// The exit code of the whole run: one for all when failures agree, 7 when they are mixed or
    /// some files are merely unfinished.
    pub(crate) fn exit_code(&self, engine: &Engine, cancelled: bool) -> u8 {
        let totals = engine.totals();
        // Without any file it was cancelled while the list was read.
        if cancelled && (totals.done < totals.files || totals.files == 0) {
            return ErrorKind::Cancelled.exit_code();
        }
        common_code(self.failures.iter().map(|kind| kind.exit_code()))
    }

    pub(crate) fn finish(self, mut summary: Summary) -> Report {
        summary.files += self.failed_listings;
        summary.files_failed += self.failed_listings;
        summary.clusters = self.costs.clusters(summary.energy_j);
        self.outbox.put(RunEvent::Summary(summary.clone()));
        self.outbox.flush();
        let Self { plan, mut files, decisions, failed, .. } = self;
        if summary.energy_j.is_none() {
            // What was told of them before their meter was lost sums up to no run.
            for file in &mut files {
                (file.energy_j, file.throughput_per_joule) = (None, None);
            }
        }
        Report { plan, summary, files, decisions, failed }
    }
}

/// Equation 1 of papers/001; nothing where nothing was drawn.
pub(crate) fn throughput_per_joule(bytes: Bytes, time: Duration, energy: Joules) -> Option<f64> {
    (energy > Joules::ZERO).then(|| throughput(bytes, time) / energy.get())
}

/// How a file ended.
pub(crate) enum Ending {
    Complete { bytes: u64 },
    Kept { bytes: u64 },
    GivenUp { bytes: u64, failure: Failure },
}

pub(crate) fn seconds(now: Timestamp) -> f64 {
    now.since_start().as_secs_f64()
}

/// Bits a second over `duration`.
pub(crate) fn throughput(bytes: Bytes, duration: Duration) -> f64 {
    (bytes / duration).bps()
}
