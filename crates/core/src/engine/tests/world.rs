//! A world in virtual time: hosts behind one shared link, and a driver that does at once what the
//! engine asks for. It checks at every step what must always hold.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use pelton_algos::policy::Policy;
use pelton_algos::ranges::{ByteRange, StreamId};
use pelton_algos::retries::Jitter;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Joules;
use url::Url;

use super::super::*;
use super::host::{Ending, Host, Local, Other, Remote};
use crate::ErrorKind;
use crate::connection::{ConnectionId, Protocol};

/// The link moves bytes in steps of this.
const TICK: Duration = Duration::from_millis(10);
/// No scenario is allowed to take longer: a week.
const TOO_LONG: Timestamp = Timestamp::new(Duration::from_secs(7 * 24 * 3600));
/// Nor may this many events pass at one moment.
const TOO_MANY_AT_ONCE: u32 = 100_000;

/// A request under way.
#[derive(Debug, Clone)]
pub(super) struct Live {
    /// How long its first answer takes.
    answers_after: Duration,
    pub(super) fetch: Fetch,
    pub(super) host: String,
    remote: Option<Remote>,
    streaming: bool,
    pub(super) position: u64,
    /// Where it stops: the end of its range or a cut.
    end: u64,
    /// It fails here.
    breaks_at: Option<u64>,
    /// Bytes that it may bring now, where it crawls.
    crawled: f64,
    /// Where its host pauses, and until when it does.
    pauses_at: Option<u64>,
    paused_until: Timestamp,
}

/// What is known to happen.
#[derive(Debug)]
enum Coming {
    Event(Box<Event>),
    Answer(StreamId),
}

/// What a host says to a request.
enum Verdict {
    Silence,
    Failed(ErrorKind, Option<Duration>),
    Ended(Outcome),
    Body { head: Box<Head>, remote: Remote, breaks_after: Option<u64> },
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) now: Timestamp,
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) local: Vec<Local>,
    pub(super) live: BTreeMap<StreamId, Live>,
    /// How many of them each file has.
    streams: BTreeMap<FileId, usize>,
    /// What the link carries, bits a second.
    pub(super) mbps: f64,
    /// Streams that bring only so many bytes a second.
    pub(super) crawling: BTreeMap<StreamId, f64>,
    /// Of these, what comes in one piece.
    pub(super) pieces: BTreeMap<StreamId, u64>,
    /// Streams that do not end with their last byte.
    pub(super) endless: BTreeSet<StreamId>,
    /// Streams whose answers never come.
    pub(super) lost: BTreeSet<StreamId>,
    /// More streams than this bring only a part of what it carries.
    pub(super) crowd: usize,
    pub(super) of_crowd: f64,
    pub(super) metered: bool,
    /// So many files more find the disk full when they are opened.
    pub(super) full_at_opening: u32,
    /// So many streams can have a socket and a file.
    pub(super) descriptors: usize,
    /// What lies where files go; nothing where this says nothing.
    pub(super) found: Vec<(usize, Opened)>,
    /// How long it takes to finish a file.
    pub(super) slow_finish: Option<Duration>,
    /// What is found to be wrong of the files that are finished, one after the other.
    pub(super) damages: VecDeque<Vec<ByteRange>>,
    /// What lies in the parts that an earlier run has left, file by file.
    pub(super) disk: Vec<BTreeMap<u64, (u64, u64)>>,
    /// What journals were told, file by file: what is there, or to forget it.
    pub(super) checkpoints: BTreeMap<usize, Vec<Option<Resumable>>>,
    pub(super) limits: UserLimits,
    /// Every fetch with its moment.
    pub(super) fetches: Vec<(Timestamp, Fetch)>,
    pub(super) decisions: Vec<(Timestamp, Decision)>,
    pub(super) aborts: Vec<StreamId>,
    /// What the file system says is free.
    pub(super) free: Option<u64>,
    /// When the disk was found full.
    pub(super) full_since: Vec<Timestamp>,
    /// When it was said that a host is away, and why.
    pub(super) away: Vec<(Timestamp, String)>,
    /// Limits that the engine told, by host.
    pub(super) told: BTreeMap<String, u32>,
    /// Connections that shall be there early, of each host.
    pub(super) early: BTreeMap<String, u32>,
    /// Requests that each connection shall bear, by host.
    pub(super) pipelined: BTreeMap<String, u32>,
    pub(super) done: bool,
    coming: BTreeMap<(Timestamp, u64), Coming>,
    sequence: u64,
    next_tick: Option<Timestamp>,
    random: Jitter,
    at_once: u32,
    /// Files beyond a ceiling that was lowered go on to their end.
    lowered: bool,
}

impl World {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self::with(EngineConfig::default(), policy)
    }

    pub(super) fn with(config: EngineConfig, policy: Box<dyn Policy>) -> Self {
        Self {
            limits: config.limits,
            random: Jitter::new(config.seed),
            engine: Engine::new(config, policy),
            now: Timestamp::START,
            hosts: BTreeMap::new(),
            local: Vec::new(),
            live: BTreeMap::new(),
            streams: BTreeMap::new(),
            mbps: 50.0,
            crawling: BTreeMap::new(),
            pieces: BTreeMap::new(),
            endless: BTreeSet::new(),
            lost: BTreeSet::new(),
            crowd: usize::MAX,
            of_crowd: 1.0,
            metered: false,
            full_at_opening: 0,
            descriptors: usize::MAX,
            found: Vec::new(),
            slow_finish: None,
            damages: VecDeque::new(),
            disk: Vec::new(),
            checkpoints: BTreeMap::new(),
            fetches: Vec::new(),
            decisions: Vec::new(),
            aborts: Vec::new(),
            free: None,
            full_since: Vec::new(),
            away: Vec::new(),
            told: BTreeMap::new(),
            early: BTreeMap::new(),
            pipelined: BTreeMap::new(),
            done: false,
            coming: BTreeMap::new(),
            sequence: 0,
            next_tick: None,
            at_once: 0,
            lowered: false,
        }
    }

    pub(super) fn host(mut self, name: &str, host: Host) -> Self {
        self.hosts.insert(name.to_owned(), host);
        self
    }

    pub(super) fn host_mut(&mut self, name: &str) -> &mut Host {
        self.hosts.get_mut(name).unwrap()
    }

    /// The specs of every file of every host, in turn from each.
    pub(super) fn specs(&self) -> Vec<FileSpec> {
        let mut lists: Vec<VecDeque<FileSpec>> = self
            .hosts
            .iter()
            .map(|(name, host)| {
                let url = |path: &str| Url::parse(&format!("http://{name}{path}")).unwrap();
                let mut paths: Vec<&String> = host.files.keys().collect();
                paths.sort_by_key(|path| (path.len(), path.as_str()));
                paths.into_iter().map(|path| FileSpec::from_url(url(path)).unwrap()).collect()
            })
            .collect();
        let mut specs = Vec::new();
        while lists.iter().any(|list| !list.is_empty()) {
            specs.extend(lists.iter_mut().filter_map(VecDeque::pop_front));
        }
        specs
    }

    /// Hands all files of all hosts over as a bare list.
    pub(super) fn get_all(&mut self) {
        let specs = self.specs();
        self.get(specs);
    }

    /// The same with sizes that the list states.
    pub(super) fn get_all_with_sizes(&mut self) {
        let mut specs = self.specs();
        for spec in &mut specs {
            let host = &self.hosts[spec.url.host_str().unwrap()];
            spec.size = host.files.get(spec.url.path()).map(|remote| remote.size);
        }
        self.get(specs);
    }

    pub(super) fn get(&mut self, specs: Vec<FileSpec>) {
        self.add(specs);
        self.send(Event::ListEnded);
    }

    pub(super) fn add(&mut self, specs: Vec<FileSpec>) {
        if self.metered {
            self.send(Event::Energy(Joules::ZERO));
        }
        for spec in &specs {
            self.local.push(Local {
                host: spec.url.host_str().unwrap().to_owned(),
                path: spec.url.path().to_owned(),
                ..Local::default()
            });
        }
        self.send(Event::Files(specs));
    }

    /// Runs to the end of the engine.
    pub(super) fn run(&mut self) {
        while !self.done {
            self.step(TOO_LONG);
        }
        assert!(self.live.is_empty(), "Done with streams in flight");
        for (index, local) in self.local.iter().enumerate() {
            assert!(local.ending.is_some(), "Done and file {index} has no ending");
        }
        let totals = self.engine.totals();
        let there = self.local.iter().filter(|f| !matches!(f.ending, Some(Ending::GivenUp(_))));
        assert_eq!(totals.done, there.count() as u64);
        assert_eq!(totals.done + totals.failed, self.local.len() as u64);
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    /// Lets the next thing happen, unless it is later than `until`.
    fn step(&mut self, until: Timestamp) -> bool {
        if self.done {
            return false;
        }
        let coming = self.coming.first_key_value().map(|((at, _), _)| *at);
        let timeout = self.engine.next_timeout(self.now).map(|at| at.max(self.now));
        let Some(next) = [coming, self.next_tick, timeout].into_iter().flatten().min() else {
            assert!(until < TOO_LONG, "stuck: nothing will ever happen again: {}", self.picture());
            return false;
        };
        if next > until {
            assert!(until < TOO_LONG, "it takes too long: {}", self.picture());
            return false;
        }
        self.at_once = if next == self.now { self.at_once + 1 } else { 0 };
        assert!(self.at_once < TOO_MANY_AT_ONCE, "it goes round in circles: {}", self.picture());
        self.now = next;
        if coming == Some(next) {
            match self.coming.pop_first().unwrap().1 {
                Coming::Event(event) => self.send(*event),
                Coming::Answer(stream) => self.answer(stream),
            }
        } else if self.next_tick == Some(next) {
            self.tick();
        } else {
            self.send(Event::Timeout);
        }
        true
    }

    fn picture(&self) -> String {
        let open: Vec<_> =
            (0..self.local.len()).filter(|i| self.local[*i].ending.is_none()).take(5).collect();
        let entries: Vec<_> = open.iter().map(|i| &self.engine.files[*i]).collect();
        format!(
            "{:?}, live {:?}, decision {:?}, {entries:#?}",
            self.now,
            self.live.keys(),
            self.engine.decision()
        )
    }

    fn later(&mut self, after: Duration, coming: Coming) {
        self.sequence += 1;
        self.coming.insert((self.now + after, self.sequence), coming);
    }

    pub(super) fn set_limits(&mut self, limits: UserLimits) {
        self.lowered = true;
        self.limits = limits;
        self.send(Event::SetLimits(limits));
    }

    pub(super) fn send(&mut self, event: Event) {
        if let Event::Ended { stream, .. } = &event {
            self.take(*stream);
        }
        if let Event::Finished { file, .. } = &event {
            self.local[file.index()].ending = Some(Ending::Complete);
        }
        let actions = self.engine.handle(self.now, event);
        for action in actions {
            assert!(!self.done, "{action:?} after Done");
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Open { file } if self.full_at_opening > 0 => {
                self.full_at_opening -= 1;
                let failure = Failure::new(ErrorKind::DiskFull, "its directory can't be made");
                let event = Event::Opened { file, opened: Opened::Failed(failure) };
                self.later(Duration::ZERO, Coming::Event(Box::new(event)));
            }
            Action::Open { file } => {
                let found = self.found.iter().find(|(index, _)| *index == file.index());
                let opened = found.map_or(Opened::Fresh, |(_, opened)| opened.clone());
                let local = &mut self.local[file.index()];
                if let (Opened::Part(_), Some(written)) = (&opened, self.disk.get(file.index())) {
                    local.written.clone_from(written);
                } else if let Opened::Part(part) = &opened {
                    let version = part.validator.etag.as_ref().unwrap()[2..3].parse().unwrap();
                    let there = part.done.iter().filter(|range| range.end <= part.size).cloned();
                    for range in there {
                        local.write(range, version);
                    }
                }
                assert_eq!(local.opened.replace(opened.clone()), None);
                self.later(Duration::ZERO, Coming::Event(Box::new(Event::Opened { file, opened })));
            }
            Action::Fetch(fetch) => self.fetch(*fetch),
            Action::Cut { stream, end } => {
                let live = self.live.get_mut(&stream).expect("a cut of a stream in flight");
                live.end = end;
            }
            Action::Abort { stream, .. } => {
                self.take(stream).expect("an abort of a stream in flight");
                self.aborts.push(stream);
                // What was on its way arrives all the same.
                self.later(
                    Duration::ZERO,
                    Coming::Event(Box::new(Event::Data { stream, bytes: 7 })),
                );
                let result = Outcome::Failed(Failure::new(ErrorKind::ShortBody, "late"));
                self.later(TICK, Coming::Event(Box::new(Event::Ended { stream, result })));
            }
            Action::Restart { file, .. } => {
                let local = &mut self.local[file.index()];
                assert_eq!(local.ending, None);
                local.restarts += 1;
            }
            Action::Checkpoint { file, part } => {
                // A rerun is told of nothing that is not there. The parts of earlier runs count.
                let local = &self.local[file.index()];
                for range in &part.done {
                    let mut reached = range.start;
                    for (start, (end, _)) in &local.written {
                        if *start <= reached {
                            reached = reached.max(*end);
                        }
                    }
                    assert!(reached >= range.end, "{file:?}: {range:?} is not there");
                }
                self.checkpoints.entry(file.index()).or_default().push(Some(part));
            }
            Action::Connections { origin, limit, open, pipelined, .. } => {
                assert!(open <= limit);
                let host = origin.host.to_string();
                if let Some(Host { rtt, in_order: Some(does), .. }) = self.hosts.get(&host)
                    && pipelined != 1
                {
                    let found_out = Event::Pipelines { origin, does: *does };
                    self.later(*rtt, Coming::Event(Box::new(found_out)));
                }
                self.pipelined.insert(host.clone(), pipelined);
                self.early.insert(host.clone(), open);
                self.told.insert(host, limit);
            }
            Action::Finish { file, modified } => {
                self.local[file.index()].modified = modified;
                self.finish(file);
            }
            Action::Kept { file, size } => {
                let local = &self.local[file.index()];
                let there = match &local.opened {
                    Some(Opened::Existing(existing)) => existing.size,
                    Some(Opened::Verified { size }) => *size,
                    other => panic!("{other:?} was kept"),
                };
                assert_eq!(there, size);
                self.end(file, Ending::Kept);
            }
            Action::GiveUp { file, failure } => self.end(file, Ending::GivenUp(failure)),
            Action::Decided(decision) => self.decisions.push((self.now, decision)),
            Action::DiskFull { needed, .. } => {
                assert!(self.live.is_empty() && needed.0 > 0);
                self.full_since.push(self.now);
            }
            Action::HostAway { failure } => self.away.push((self.now, failure)),
            Action::LookForSpace => {
                let space = Event::Space(self.free.map(Bytes));
                self.later(Duration::ZERO, Coming::Event(Box::new(space)));
            }
            Action::Done => self.done = true,
        }
    }

    fn end(&mut self, file: FileId, ending: Ending) {
        let before = self.local[file.index()].ending.replace(ending);
        assert_eq!(before, None, "{file:?} ended twice");
        assert_eq!(self.streams_of(file.index()), 0);
    }

    fn finish(&mut self, file: FileId) {
        assert_eq!(self.streams_of(file.index()), 0);
        let local = &self.local[file.index()];
        assert_eq!(local.ending, None);
        let host = &self.hosts[&local.host];
        let host = host.redirects_to.as_ref().map_or(host, |to| &self.hosts[to]);
        let remote = host.files[&local.path];
        // A file that has changed since is as good as it was, and one machine's as another's.
        let latest = remote.version + u64::from(host.other == Some(Other::AnotherVersion));
        let mut versions = (1..=latest).map(|version| Remote { version, ..remote });
        assert!(
            versions.any(|remote| local.is(remote)),
            "{file:?} is finished with {:?} instead of {remote:?}",
            local.written
        );
        let after = self.slow_finish.unwrap_or_default();
        if let Some(mut ranges) = self.damages.pop_front() {
            let size = self.engine.bytes_of(file);
            for range in &mut ranges {
                *range = range.start.min(size)..range.end.min(size);
            }
            if ranges.iter().all(std::ops::Range::is_empty) {
                let whole = 0..size;
                ranges = [whole].into();
            }
            let failure = Failure::new(ErrorKind::Checksum, "other bytes than promised");
            self.checkpoints.entry(file.index()).or_default().push(None);
            let damaged = Event::Damaged { file, ranges, failure };
            self.later(after, Coming::Event(Box::new(damaged)));
            return;
        }
        self.later(after, Coming::Event(Box::new(Event::Finished { file, result: Ok(()) })));
    }

    fn fetch(&mut self, fetch: Fetch) {
        let local = &self.local[fetch.file.index()];
        assert!(local.opened.is_some() && local.ending.is_none());
        let host = fetch.url.host_str().unwrap().to_owned();
        if !self.engine.spec(fetch.file).mirrors.is_empty() {
            self.local[fetch.file.index()].host.clone_from(&host);
        }
        let range = fetch.range.clone();
        if let Some(range) = &range {
            assert!(!range.is_empty());
            // A digest tells whether the bytes of several places belong together.
            let has_digest = self.engine.spec(fetch.file).digest.is_some();
            assert!(fetch.total.is_some() && (fetch.validator.is_some() || has_digest));
        }
        let asked = self.hosts.get_mut(&host).unwrap();
        let answers_after =
            asked.rtt + asked.thinks_about(fetch.stream) + asked.takes_turn(self.now);
        let live = Live {
            host: host.clone(),
            answers_after,
            remote: None,
            streaming: false,
            position: range.as_ref().map_or(0, |range| range.start),
            end: range.map_or(u64::MAX, |range| range.end),
            breaks_at: None,
            crawled: 0.0,
            pauses_at: None,
            paused_until: self.now,
            fetch: fetch.clone(),
        };
        let rtt = self.hosts[&host].rtt;
        if !self.fetches.iter().any(|(_, before)| before.url.host_str() == Some(&host)) {
            self.later(rtt, Coming::Event(Box::new(Event::Rtt(rtt))));
        }
        assert!(self.live.insert(fetch.stream, live).is_none());
        *self.streams.entry(fetch.file).or_default() += 1;
        let waits = self.hosts[&host].waited_before() + answers_after;
        self.later(waits, Coming::Answer(fetch.stream));
        self.check_budgets(&host, fetch.file);
        if self.live.len() > self.descriptors {
            let failed = Outcome::Failed(Failure::new(ErrorKind::Descriptors, "too many open"));
            let ended = Event::Ended { stream: fetch.stream, result: failed };
            self.later(Duration::ZERO, Coming::Event(Box::new(ended)));
        }
        self.fetches.push((self.now, fetch));
    }

    fn take(&mut self, stream: StreamId) -> Option<Live> {
        let live = self.live.remove(&stream)?;
        let streams = self.streams.get_mut(&live.fetch.file).unwrap();
        *streams -= 1;
        if *streams == 0 {
            self.streams.remove(&live.fetch.file);
        }
        Some(live)
    }

    /// After a new stream of `file` to `host`.
    fn check_budgets(&self, host: &str, file: FileId) {
        let limits = self.limits.usable();
        if self.hosts[host].protocol != Protocol::Http2 && self.hosts[host].redirects_to.is_none() {
            let here = self.live.values().filter(|live| live.host == host).count();
            let here = here.div_ceil(self.pipelined(host));
            assert!(here <= limits.max_connections_per_origin as usize, "{here} to {host}");
            assert!(here <= self.told[host] as usize, "{here} to {host}, told {:?}", self.told);
            let alone = |live: &&Live| self.hosts[&live.host].protocol != Protocol::Http2;
            let mut streams = BTreeMap::<&str, usize>::new();
            for live in self.live.values().filter(alone) {
                *streams.entry(&live.host).or_default() += 1;
            }
            let connections =
                |(host, streams): (&&str, &usize)| streams.div_ceil(self.pipelined(host));
            let connections: usize = streams.iter().map(connections).sum();
            assert!(connections <= limits.max_connections as usize);
        }
        let most = limits.max_streams_per_file.map_or(usize::MAX, |most| most as usize);
        let streams = self.streams_of(file.index());
        assert!(streams <= most, "{streams} streams of {file:?}");
        if let Some(most) = limits.max_files {
            assert!(self.streams.len() <= most as usize || self.lowered);
        }
    }

    /// Requests that a connection to `host` bears.
    pub(super) fn pipelined(&self, host: &str) -> usize {
        match self.hosts[host].in_order {
            Some(true) => self.pipelined.get(host).copied().unwrap_or(1).max(1) as usize,
            _ => 1,
        }
    }

    fn fail(&mut self, stream: StreamId, kind: ErrorKind, retry_after: Option<Duration>) {
        let message = format!("{}: {kind:?}", self.live[&stream].fetch.url);
        let is_forbidden = kind == ErrorKind::Auth;
        let is_of_rate = self.hosts[&self.live[&stream].host].is_of_rate;
        let failure =
            Failure { retry_after, is_of_rate, is_forbidden, ..Failure::new(kind, message) };
        self.send(Event::Ended { stream, result: Outcome::Failed(failure) });
    }

    /// The host's answer to a request, one round trip after it was made.
    fn answer(&mut self, stream: StreamId) {
        let Some(live) = self.live.get(&stream).cloned() else { return };
        let host = self.hosts.get_mut(&live.host).unwrap();
        if host.keeps_changing {
            host.files.values_mut().for_each(|remote| remote.version += 1);
        }
        match self.verdict(&live) {
            Verdict::Silence => {}
            Verdict::Failed(kind, retry_after) => self.fail(stream, kind, retry_after),
            Verdict::Ended(result) => self.send(Event::Ended { stream, result }),
            Verdict::Body { head, remote, breaks_after } => {
                let live = self.live.get_mut(&stream).unwrap();
                live.host = head.origin.host.to_string();
                let file = live.fetch.file.index();
                if live.fetch.anew {
                    self.local[file].written.clear();
                    self.checkpoints.entry(file).or_default().push(None);
                }
                live.remote = Some(remote);
                live.streaming = true;
                live.breaks_at = breaks_after.map(|after| live.position + after);
                let pauses = self.hosts[&live.host].pauses;
                live.pauses_at = pauses.map(|(after, _)| live.position + after);
                self.next_tick.get_or_insert(self.now + TICK);
                let promised = self.hosts[&live.host].promised;
                let end = live.position + promised;
                if promised > 0 {
                    self.send(Event::Promised { stream, end });
                }
                self.send(Event::Head { stream, head: *head });
            }
        }
    }

    fn verdict(&mut self, live: &Live) -> Verdict {
        let unanswered = self
            .hosts
            .get_mut(&live.host)
            .and_then(|it| it.unanswered.get_mut(live.fetch.url.path()));
        if let Some(left) = unanswered.filter(|left| **left > 0) {
            *left -= 1;
            return Verdict::Silence;
        }
        let host = &self.hosts[&live.host];
        let path = live.fetch.url.path();
        let streaming = || self.live.values().filter(|l| l.host == live.host && l.streaming);
        if host.silent || self.lost.contains(&live.fetch.stream) {
            return Verdict::Silence;
        }
        if host.refuses {
            return Verdict::Failed(ErrorKind::Connect, None);
        }
        if host.reset.contains(path) {
            return Verdict::Failed(ErrorKind::Reset, None);
        }
        if host.broken.contains(path) || host.fails_ranges && live.fetch.range.is_some() {
            return Verdict::Failed(ErrorKind::ServerError, None);
        }
        if host.forbidden.contains(path) {
            return Verdict::Failed(ErrorKind::Auth, None);
        }
        let asks_part = live.fetch.parts.is_some() && host.protocol == Protocol::Http11;
        let is_range = live.fetch.range.is_some() || asks_part;
        if host.resets_ranges && is_range {
            return Verdict::Failed(ErrorKind::Reset, None);
        }
        if host.allows < usize::MAX && streaming().count() >= host.allows {
            let refusal = Failure::new(ErrorKind::Auth, "403");
            return match live.fetch.range {
                Some(_) => Verdict::Ended(Outcome::RangeRefused(refusal)),
                None => Verdict::Failed(ErrorKind::Auth, None),
            };
        }
        if host.bears < usize::MAX && streaming().count() >= host.bears {
            return Verdict::Failed(ErrorKind::Overloaded, host.retry_after);
        }
        let (turns_away, retry_after) = (host.turns_away, host.retry_after);
        let mut breaks_after = host.cuts_bodies_after;
        let now = self.now;
        if self.hosts.get_mut(&live.host).is_some_and(|host| host.refuses_now(now, path)) {
            let kind = if turns_away { ErrorKind::Reset } else { ErrorKind::Overloaded };
            return Verdict::Failed(kind, retry_after);
        }
        let host = &self.hosts[&live.host];
        if self.random.fraction() < host.faults {
            match (self.random.fraction() * 6.0) as u32 {
                0 => return Verdict::Failed(ErrorKind::Connect, None),
                1 => return Verdict::Failed(ErrorKind::ServerError, None),
                2 => return Verdict::Failed(ErrorKind::Overloaded, Some(TICK * 30)),
                3 => return Verdict::Silence,
                _ => breaks_after = Some((self.random.fraction() * 100_000.0) as u64),
            }
        }
        let answering = host.redirects_to.as_ref().unwrap_or(&live.host);
        let Some((remote, has_ranges)) = self.hosts[answering].find(path) else {
            return Verdict::Failed(ErrorKind::NotFound, None);
        };
        let existing = live.fetch.existing.filter(|_| !host.always_sends_bodies);
        if existing.is_some_and(|it| it.is_version(Some(remote.size), Some(remote.modified()))) {
            return Verdict::Ended(Outcome::NotModified);
        }
        if let Some(range) = &live.fetch.range {
            let known = live.fetch.validator.as_ref();
            if known.is_some_and(|known| *known != remote.validator())
                || live.fetch.total != Some(remote.size)
            {
                return Verdict::Ended(Outcome::Changed("another version".to_owned()));
            }
            if !has_ranges {
                let refusal = Failure::new(ErrorKind::Protocol, "the whole for a range");
                return Verdict::Ended(Outcome::RangeRefused(refusal));
            }
            assert!(range.end <= remote.size);
        }
        let mut url = live.fetch.url.clone();
        url.set_host(Some(answering)).unwrap();
        let head = Box::new(Head {
            total: (host.states_size || live.fetch.range.is_some()).then_some(remote.size),
            ranges: host.says_of_ranges(has_ranges),
            partial: live.fetch.range.is_some() || host.gives_parts() && asks_part && has_ranges,
            validator: remote.validator(),
            digest: None,
            modified: Some(remote.modified()),
            compressed: false,
            origin: Origin::of(&url).unwrap(),
            url,
            protocol: host.protocol,
            connection: ConnectionId(live.fetch.stream.0 % host.brought_over),
            response_time: live.answers_after,
            waited_before: host.waited_before(),
        });
        Verdict::Body { head, remote, breaks_after }
    }

    /// Moves bytes: streams share the link evenly, each within its window.
    fn tick(&mut self) {
        let ids: Vec<StreamId> = self
            .live
            .iter()
            .filter(|(_, live)| live.streaming && !self.hosts[&live.host].silent)
            .filter(|(id, live)| !self.hosts[&live.host].in_turn || self.has_turn(**id, live))
            .map(|(id, _)| *id)
            .collect();
        self.next_tick = self.live.values().any(|l| l.streaming).then(|| self.now + TICK);
        let part = if ids.len() > self.crowd { self.of_crowd } else { 1.0 };
        let mut left = self.mbps * part * 1e6 / 8.0 * TICK.as_secs_f64();
        for (index, id) in ids.iter().enumerate() {
            let share = left / (ids.len() - index) as f64;
            left -= self.move_bytes(*id, share.min(self.share_of_host(*id))) as f64;
        }
        if self.metered {
            let joules = self.now.since_start().as_secs_f64() * 2.0;
            self.send(Event::Energy(Joules::new(joules)));
        }
    }

    /// Whether no other body of its host comes before that of `stream`.
    fn has_turn(&self, stream: StreamId, live: &Live) -> bool {
        let of_host = |other: &Live| other.streaming && other.host == live.host;
        self.live.iter().find(|(_, other)| of_host(other)).is_some_and(|(id, _)| *id == stream)
    }

    /// What `stream` may bring in a tick of what its host sends.
    fn share_of_host(&self, stream: StreamId) -> f64 {
        let Some(live) = self.live.get(&stream) else { return 0.0 };
        let streams = self.live.values().filter(|other| other.streaming && other.host == live.host);
        let bytes = self.hosts[&live.host].mbps * 1e6 / 8.0 * TICK.as_secs_f64();
        if self.hosts[&live.host].in_turn { bytes } else { bytes / streams.count() as f64 }
    }

    fn move_bytes(&mut self, stream: StreamId, share: f64) -> u64 {
        // Aborted by what another stream has just brought.
        let Some(live) = self.live.get_mut(&stream) else { return 0 };
        if self.now < live.paused_until {
            return 0;
        }
        let host = &self.hosts[&live.host];
        let of_window = host.window as f64 * TICK.as_secs_f64() / host.rtt.as_secs_f64();
        let remote = live.remote.unwrap();
        let end = live.end.min(remote.size);
        let stops = [live.breaks_at, live.pauses_at].into_iter().flatten();
        let stop = stops.fold(end, u64::min).max(live.position);
        let mut bytes = (share.min(of_window).ceil() as u64).min(stop - live.position);
        if let Some(rate) = self.crawling.get(&stream) {
            live.crawled += rate * TICK.as_secs_f64();
            let piece = self.pieces.get(&stream).copied().unwrap_or(1).min(stop - live.position);
            let has_come = live.crawled as u64;
            bytes = if has_come >= piece { bytes.min(has_come) } else { 0 };
            live.crawled -= bytes as f64;
        }
        let from = live.position;
        live.position += bytes;
        if live.pauses_at.take_if(|at| *at == live.position).is_some() {
            let (shortest, longest) =
                host.pauses.map_or((Duration::ZERO, Duration::ZERO), |(_, it)| it);
            let pause = shortest + longest.saturating_sub(shortest).mul_f64(self.random.fraction());
            live.paused_until = self.now + pause;
        }
        let (at, file) = (live.position, live.fetch.file);
        let local = &mut self.local[file.index()];
        local.brought += bytes;
        local.write(from..at, remote.version);
        if bytes > 0 {
            self.send(Event::Data { stream, bytes });
        }
        // The engine may have cut or aborted it.
        let Some(live) = self.live.get(&stream) else { return bytes };
        if at >= live.end.min(remote.size) {
            let ends_late = self.hosts[&live.host].ends_late;
            if ends_late > Duration::ZERO && self.endless.insert(stream) {
                let ended = Event::Ended { stream, result: Outcome::Complete };
                self.later(ends_late, Coming::Event(Box::new(ended)));
            }
            if self.endless.contains(&stream) {
                return bytes;
            }
            self.send(Event::Ended { stream, result: Outcome::Complete });
        } else if live.breaks_at.is_some_and(|breaks| at >= breaks) {
            self.fail(stream, ErrorKind::ShortBody, None);
        }
        bytes
    }

    /// Every stream in flight breaks now.
    pub(super) fn break_all(&mut self, kind: ErrorKind) {
        for stream in self.live.keys().copied().collect::<Vec<_>>() {
            if self.live.contains_key(&stream) {
                self.fail(stream, kind, None);
            }
        }
    }

    /// The newest stream of `file` breaks now.
    pub(super) fn break_one(&mut self, file: usize, kind: ErrorKind) {
        let newest = self.live.iter().rfind(|(_, live)| live.fetch.file.index() == file);
        if let Some(stream) = newest.map(|(id, _)| *id) {
            self.fail(stream, kind, None);
        }
    }

    // What the scripts ask.

    pub(super) fn seconds(&self) -> f64 {
        self.now.since_start().as_secs_f64()
    }

    pub(super) fn ending(&self, file: usize) -> &Ending {
        self.local[file].ending.as_ref().unwrap()
    }

    pub(super) fn failure(&self, file: usize) -> &Failure {
        match self.ending(file) {
            Ending::GivenUp(failure) => failure,
            other => panic!("file {file} is {other:?}"),
        }
    }

    pub(super) fn assert_all_complete(&self) {
        for (index, local) in self.local.iter().enumerate() {
            assert_eq!(local.ending, Some(Ending::Complete), "file {index}");
        }
    }

    /// Every byte of every file came, and none twice.
    pub(super) fn assert_each_byte_once(&self) {
        self.assert_all_complete();
        for local in &self.local {
            assert_eq!(local.brought, self.hosts[&local.host].files[&local.path].size);
        }
    }

    /// Streams in flight of the file with this number.
    pub(super) fn streams_of(&self, file: usize) -> usize {
        self.streams.get(&FileId::new(file)).copied().unwrap_or(0)
    }

    pub(super) fn files_in_transfer(&self) -> usize {
        self.streams.len()
    }

    /// Body bytes that arrived.
    pub(super) fn brought(&self) -> u64 {
        self.local.iter().map(|local| local.brought).sum()
    }

    pub(super) fn fetches_of(&self, file: usize) -> Vec<(Timestamp, &Fetch)> {
        self.fetches
            .iter()
            .filter(|(_, fetch)| fetch.file.index() == file)
            .map(|(at, fetch)| (*at, fetch))
            .collect()
    }
}
