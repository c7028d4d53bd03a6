//! The transfer engine: facts in, actions out. No sockets, no files, no clock.
//!
//! [`Engine::handle`] takes one [`Event`] and returns what has to be done about it. It owns the
//! policy, the ranges of every file, the budgets of every origin and all retries, so cancelling,
//! retrying, resuming and re-tuning are plain synchronous calls in tests and in the simulator.

mod active;
mod anew;
mod blame;
mod config;
mod connections;
mod control;
mod damage;
mod delayed;
mod descriptors;
mod dispatch;
mod ends;
mod event;
mod facts;
mod failure;
mod file;
mod growth;
mod heads;
mod hosts;
mod lanes;
mod learnt;
mod mirrors;
mod origin;
mod plan;
mod rates;
mod redirects;
mod room;
mod shares;
mod space;
mod splits;
mod streams;
mod transfer;
mod turns;
mod view;
mod waiting;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use pelton_algos::answers::Answers;
use pelton_algos::bodies::Bodies;
use pelton_algos::cluster::{Boundaries, SizeClass};
use pelton_algos::energy::{ConstantPower, EnergyModel};
use pelton_algos::free_path::FreePath;
use pelton_algos::growth::LaneGrowth;
use pelton_algos::limits::OriginBudget;
use pelton_algos::link::{LinkEstimate, LinkEstimator};
use pelton_algos::losses::Losses;
use pelton_algos::params::Allocation;
use pelton_algos::policy::{Decision, Policy};
use pelton_algos::ramp::Ramp;
use pelton_algos::ranges::StreamId;
use pelton_algos::retries::Jitter;
use pelton_algos::silence::AskedAnew;
use pelton_algos::sizes::SizeModel;
use pelton_algos::slump::Slump;
use pelton_algos::spread::Spread;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes, Joules};

use active::ActiveFiles;
pub use config::{EngineConfig, Totals, UserLimits};
use control::cancelled;
pub use event::{Action, Event, Fetch, FileId, Opened, Outcome};
pub use facts::{Existing, Failure, Head, Ranges, Resumable, Validator};
use file::{Entry, State};
pub use learnt::{Known, Learnt};
use origin::{OriginId, OriginState};
pub use plan::ClusterUse;
use room::Room;
use space::Full;
use waiting::Waiting;
use watch::Recent;

use crate::ErrorKind;
use crate::catalog::FileSpec;
use crate::connection::{ConnectionId, Origin};

/// One stream in flight.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Copy)]
struct Stream {
    file: FileId,
    origin: OriginId,
    /// The attempt at its file that it belongs to.
    attempt: u64,
    began: Timestamp,
    /// Asked for the whole file, not for a range.
    whole: bool,
    /// That in parts.
    in_parts: bool,
    /// Asked where a redirect has led to, or was led there and asks further.
    redirected: bool,
    /// What its first request is for is known.
    has_asked: bool,
    has_head: bool,
    /// The connection that brings it, where it is known and bears others.
    shares: Option<ConnectionId>,
    /// What connections had brought when it was asked for.
    brought_before: Bytes,
    /// How many requests its host had answered by then.
    answered_before: u64,
    /// How many others it had still to answer, where it may answer all at once.
    ahead: Option<u32>,
    /// For how long one was silent in whose place it was asked for.
    stands_in: Option<Duration>,
    recent: Recent,
}

impl Stream {
    /// One body brings the file from its first byte to its last.
    const fn is_plain(&self) -> bool {
        self.whole && !self.in_parts
    }

    /// Whether its host can't be reached, or lets it wait for an answer.
    const fn is_unreachable(&self, failure: ErrorKind) -> bool {
        !self.has_head
            && matches!(failure, ErrorKind::Connect | ErrorKind::Resolve | ErrorKind::Timeout)
    }

    /// Whether its connection was taken and closed without an answer.
    const fn is_turned_away(&self, failure: ErrorKind) -> bool {
        !self.has_head && matches!(failure, ErrorKind::Reset | ErrorKind::ShortBody)
    }
}

/// The model that predicts joules for the policy.
struct Model(Box<dyn EnergyModel + Send>);

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EnergyModel")
    }
}

/// Decides what to transfer next.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    policy: Box<dyn Policy>,
    /// All that is asked for of short files leaves the path without a queue.
    free_path: FreePath,
    /// What came before anything was asked for.
    just_came: Bytes,
    energy_model: Model,
    link: LinkEstimator,
    goodput: BitRate,
    /// The limit that all runs of the client share.
    client_rate: Option<BitRate>,
    /// It is what holds this run.
    is_held: bool,
    growth: LaneGrowth,
    slump: Slump,
    answers: Answers,
    bodies: Bodies,
    /// What streams that had fallen silent were to bring.
    asked_anew: AskedAnew,
    spread: Spread,
    losses: Losses,
    room: Room,
    /// More lanes have not paid, and there are fewer again.
    has_shrunk: bool,
    /// No file waited when lanes were last filled.
    is_drained: bool,
    /// Servers seem to give each request its rate.
    are_slowed: bool,
    sizes: SizeModel,
    boundaries: Boundaries,
    /// The number of learnt sizes at which waiting files are clustered anew.
    recluster_at: u64,
    sizes_learnt: u64,
    jitter: Jitter,

    files: Vec<Entry>,
    waiting: Waiting,
    active: ActiveFiles,
    /// Those of them that have no stream.
    idle: BTreeSet<FileId>,
    /// Those of them whose host has answered others instead: they take no lane.
    passed_over: BTreeSet<FileId>,
    /// When a file that failed may have new streams. Those without any have left their lanes.
    delayed: BTreeSet<(Timestamp, FileId)>,
    streams: BTreeMap<StreamId, Stream>,
    next_stream: u64,
    /// When to look for streams that have stalled: none has before.
    stall_check: Option<Timestamp>,
    /// When to look for streams that have fallen silent.
    ends_check: Option<Timestamp>,
    /// When to look for streams that crawl or are too many.
    next_look: Option<Timestamp>,
    /// When to look for hosts that answer nothing.
    silence_check: Option<Timestamp>,
    /// From then on the first answers are late.
    thoughts_check: Option<Timestamp>,
    ramp: Ramp,
    /// When more may be asked for than was until now.
    ramp_at: Option<Timestamp>,
    /// When streams were looked at last.
    came_since: Timestamp,
    origins: Vec<OriginState>,
    origin_ids: HashMap<Origin, OriginId>,
    /// What earlier runs have learnt of origins.
    known: Known,

    decision: Option<Decision>,
    /// The decision that the driver was told of last: when, and what it dealt.
    announced: Option<(Timestamp, Vec<Allocation>)>,
    /// Lanes of each allocation of the decision: see [`Engine::widened_lanes`].
    lanes: Vec<lanes::Lanes>,
    /// What the present decision was made for.
    decided_for: Option<LinkEstimate>,
    redecide: bool,
    /// Since when no stream is in flight.
    idle_since: Option<Timestamp>,
    /// Lanes or streams may have become free.
    refill: bool,
    /// When the next origin may be asked again that wanted to be left alone, or more may be asked for than before.
    unblocked_at: Option<Timestamp>,
    energy: Option<Joules>,
    /// Files that wait for [`Event::Finished`].
    finishing: u32,
    totals: Totals,
    list_ended: bool,
    paused: bool,
    /// The disk was full lately.
    full: Option<Full>,
    /// How many streams this process can have open files and sockets for, as far as known.
    descriptors: OriginBudget,
    cancelled: bool,
    /// [`Action::Done`] was given.
    over: bool,
    actions: Vec<Action>,
}

impl Engine {
    /// An engine without files.
    pub fn new(mut config: EngineConfig, policy: Box<dyn Policy>) -> Self {
        config.limits = config.limits.usable();
        let link = LinkEstimator::new(config.link);
        let boundaries = config.clusters.boundaries(&link.estimate());
        Self {
            growth: LaneGrowth::default(),
            slump: Slump::default(),
            answers: Answers::default(),
            bodies: Bodies::default(),
            asked_anew: AskedAnew::default(),
            spread: Spread::default(),
            losses: Losses::default(),
            room: Room::default(),
            has_shrunk: false,
            is_drained: true,
            are_slowed: false,
            jitter: Jitter::new(config.seed),
            config,
            policy,
            free_path: FreePath::default(),
            just_came: Bytes::ZERO,
            energy_model: Model(Box::new(ConstantPower::default())),
            link,
            goodput: BitRate::ZERO,
            client_rate: None,
            is_held: false,
            sizes: SizeModel::default(),
            boundaries,
            recluster_at: 1,
            sizes_learnt: 0,
            files: Vec::new(),
            waiting: Waiting::default(),
            active: ActiveFiles::default(),
            idle: BTreeSet::new(),
            passed_over: BTreeSet::new(),
            delayed: BTreeSet::new(),
            streams: BTreeMap::new(),
            next_stream: 0,
            stall_check: None,
            ends_check: None,
            next_look: None,
            silence_check: None,
            thoughts_check: None,
            ramp: Ramp::default(),
            ramp_at: None,
            came_since: Timestamp::START,
            origins: Vec::new(),
            origin_ids: HashMap::new(),
            known: Known::new(),
            decision: None,
            announced: None,
            lanes: Vec::new(),
            decided_for: None,
            redecide: true,
            idle_since: Some(Timestamp::START),
            refill: true,
            unblocked_at: None,
            energy: None,
            finishing: 0,
            totals: Totals::default(),
            list_ended: false,
            paused: false,
            full: None,
            descriptors: OriginBudget::new(u32::MAX),
            cancelled: false,
            over: false,
            actions: Vec::new(),
        }
    }

    /// The same engine with a model that predicts joules for its policy.
    #[must_use]
    pub fn with_energy_model(mut self, model: Box<dyn EnergyModel + Send>) -> Self {
        self.energy_model = Model(model);
        self
    }

    /// The same engine after so many bytes came, as of listings.
    #[must_use]
    pub const fn with_just_come(mut self, bytes: Bytes) -> Self {
        self.just_came = bytes;
        self
    }

    /// Takes note of `event` at `now` and returns what has to be done.
    pub fn handle(&mut self, now: Timestamp, event: Event) -> Vec<Action> {
        // Bytes, readings and round trips are many and free no lane; all else may.
        self.refill |= !matches!(
            event,
            Event::Data { .. }
                | Event::Rtt(_)
                | Event::RoundTrip(_)
                | Event::Loss
                | Event::Proxied { .. }
                | Event::Reached { .. }
                | Event::Connected { .. }
                | Event::Energy(_)
                | Event::ClientRate { .. }
        ) && !self.is_look_at_ends(now, &event);
        // Whatever comes first at that moment.
        if self.unblocked_at.is_some_and(|at| now >= at) {
            self.refill = true;
            self.ramp_at = None;
        }
        match event {
            Event::Files(specs) => self.on_files(specs),
            Event::ListEnded => self.list_ended = true,
            Event::Opened { file, opened } => self.on_opened(now, file, opened),
            Event::Head { stream, head } => self.on_head(now, stream, head),
            Event::Moved { stream } => self.on_moved(now, stream),
            Event::Asked { stream, end } => self.on_asked(stream, end),
            Event::Promised { stream, end } => self.on_promised(stream, end),
            Event::Continued { stream } => self.on_continued(now, stream),
            Event::Data { stream, bytes } => self.on_data(now, stream, bytes),
            Event::Ended { stream, result } => self.on_ended(now, stream, result),
            Event::Finished { file, result } => self.on_finished(file, result),
            Event::Damaged { file, ranges, failure } => self.on_damaged(file, &ranges, failure),
            Event::Rtt(rtt) => self.on_rtt(now, rtt),
            Event::RoundTrip(took) => self.on_round_trip(now, took),
            Event::Proxied { origin, proxy } => {
                let id = self.origin_id(&origin);
                self.origin(id).proxy = Some(proxy);
            }
            Event::Reached { origin, rtt } => self.on_reached(now, &origin, rtt),
            Event::Connected { origin, protocol } => self.on_connected(now, &origin, protocol),
            Event::Pace(pace) => self.on_pace(now, pace),
            Event::Loss => self.on_loss(now),
            Event::Unserved { origin, served } => self.on_unserved(now, &origin, served),
            Event::Pipelines { origin, does } => self.on_pipelines(now, &origin, does),
            Event::Energy(total) => self.energy = Some(total),
            Event::Timeout => {
                self.drop_stalled(now);
                self.hasten_ends(now);
                self.look_at_streams(now);
                self.look_for_space(now);
            }
            Event::Pause => self.on_pause(now),
            Event::Resume => self.paused = false,
            Event::SetLimits(limits) => self.on_limits(limits),
            Event::ClientRate { rate, holds } => self.on_client_rate(rate, holds),
            Event::Space(free) => self.on_space(free),
            Event::Cancel => self.on_cancel(now),
        }
        self.wake_delayed(now);
        self.decide_if_due(now);
        self.announce(now);
        self.look_for_silence(now);
        if std::mem::take(&mut self.refill) {
            self.fill(now);
        }
        let blocked = self.origins.iter().filter_map(|o| o.budget.next_timeout(now));
        self.unblocked_at = blocked.min();
        if self.ramp_at.is_some() {
            self.unblocked_at = [self.unblocked_at, self.ramp_at].into_iter().flatten().min();
        }
        self.idle_since = self.streams.is_empty().then(|| self.idle_since.unwrap_or(now));
        if !self.over && self.is_over() {
            self.over = true;
            self.actions.push(Action::Done);
        }
        std::mem::take(&mut self.actions)
    }

    /// When [`Event::Timeout`] is due if nothing else happens.
    pub fn next_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.ends_check.filter(|_| !self.streams.is_empty());
        let next = [self.next_beside_ends(), ends].into_iter().flatten().min();
        next.map(|at| at.max(now))
    }

    fn next_beside_ends(&self) -> Option<Timestamp> {
        let watched =
            [self.stall_check, self.next_look, self.silence_check].into_iter().flatten().min();
        let watched = watched.filter(|_| !self.streams.is_empty());
        let delayed = self.delayed.first().map(|(at, _)| *at);
        let policy = self.policy.next_timeout().filter(|_| self.may_decide());
        let space = self.next_look_for_space().filter(|_| !self.over);
        // Also where that moment has passed and nobody has looked since.
        let blocked = self.unblocked_at;
        [watched, delayed, blocked, policy, space].into_iter().flatten().min()
    }

    /// Silent streams are looked for many times a second. Nothing else has happened then, and no lane is free
    /// for waiting files; but connections that idle without them may have a range to split by now.
    fn is_look_at_ends(&self, now: Timestamp, event: &Event) -> bool {
        let is_due = || self.next_beside_ends().is_some_and(|at| now >= at);
        matches!(event, Event::Timeout) && !self.is_drained && !is_due()
    }

    fn is_over(&self) -> bool {
        let finishing = self.finishing > 0;
        if self.cancelled {
            return self.streams.is_empty() && !finishing;
        }
        self.list_ended
            && self.waiting.is_empty()
            && self.active.is_empty()
            && self.delayed.is_empty()
            && !finishing
    }

    fn on_files(&mut self, specs: Vec<FileSpec>) {
        self.files.reserve(specs.len());
        for spec in specs {
            let (origin, unusable) = match Origin::of(&spec.url) {
                Ok(origin) => (self.origin_id(&origin), None),
                Err(error) => (OriginId(0), Some(Failure::from(error))),
            };
            let group = self.sizes.group_of(spec.url.path());
            let id = FileId::new(self.files.len());
            if let Some(size) = spec.size.or(spec.size_hint) {
                self.sizes.on_size(group, Bytes(size));
            }
            self.files.push(Entry::new(spec, origin, group));
            self.totals.files += 1;
            match unusable {
                None if self.cancelled => self.give_up(id, cancelled()),
                None => self.enqueue(id),
                Some(failure) => self.give_up(id, failure),
            }
        }
        self.redecide = true;
    }

    /// The class that a file has by its known, hinted or predicted size.
    fn classify(&self, file: FileId) -> (SizeClass, u64) {
        let size = self.files[file.index()].expected_size(&self.sizes);
        (self.boundaries.classify(Bytes(size)), size)
    }

    fn enqueue(&mut self, file: FileId) {
        let (class, expected) = self.classify(file);
        let entry = &mut self.files[file.index()];
        entry.state = State::Waiting;
        entry.class = class;
        entry.expected = expected;
        let guessed = entry.size_is_guessed() && !self.sizes.knows(entry.group);
        let group = Some(entry.group).filter(|_| guessed);
        let refused = entry.refused.max(entry.doubts).max(entry.unanswered);
        self.waiting.push((class, entry.origin), file, entry.outstanding(), group, refused);
    }

    fn origin_id(&mut self, origin: &Origin) -> OriginId {
        if let Some(id) = self.origin_ids.get(origin) {
            return *id;
        }
        let id = OriginId(self.origins.len() as u32);
        let budget = self.budget_of(origin);
        self.origins.push(OriginState::new(origin.clone(), budget));
        self.origin_ids.insert(origin.clone(), id);
        id
    }

    fn origin(&mut self, id: OriginId) -> &mut OriginState {
        &mut self.origins[id.0 as usize]
    }

    /// Stops `stream` on our own account: no failure is counted.
    fn abort(&mut self, stream: StreamId) {
        self.actions.push(Action::Abort { stream, crawled: false });
        self.remove_stream(stream);
    }

    /// The same for one that crawls or has stalled.
    fn abort_crawling(&mut self, stream: StreamId) {
        self.actions.push(Action::Abort { stream, crawled: true });
        self.remove_stream(stream);
    }

    fn remove_stream(&mut self, stream: StreamId) -> Option<Stream> {
        let removed = self.streams.remove(&stream)?;
        self.files[removed.file.index()].ranges.release(stream);
        let origin = self.origin(removed.origin);
        origin.streams = origin.streams.saturating_sub(1);
        origin.served = origin.served.saturating_sub(removed.has_head.into());
        if let Some(connection) = removed.shares {
            origin.bearers.remove(connection.0);
        }
        self.note_streams(removed.file);
        Some(removed)
    }
}
