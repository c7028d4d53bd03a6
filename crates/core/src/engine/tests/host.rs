//! An origin, and what the driver has of its files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, SystemTime};

use pelton_algos::ranges::ByteRange;
use pelton_algos::retries::Jitter;

use super::super::*;
use crate::connection::Protocol;

/// A file at a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remote {
    pub(super) size: u64,
    pub(super) version: u64,
}

impl Remote {
    pub(super) fn validator(self) -> Validator {
        Validator { etag: Some(format!("\"v{}\"", self.version)), ..Validator::default() }
    }

    pub(super) fn modified(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 * self.version)
    }
}

/// How the other one of two machines differs that answer under one name, each second request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    NoRanges,
    AnotherVersion,
    Nothing,
}

/// An origin, its files and its manners.
#[expect(clippy::struct_excessive_bools, reason = "manners are independent of each other")]
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) files: BTreeMap<String, Remote>,
    pub(super) rtt: Duration,
    /// What one stream can keep in flight.
    pub(super) window: u64,
    /// What all of its streams bring together, as a limit of the user's may make of it.
    pub(super) mbps: f64,
    pub(super) protocol: Protocol,
    /// Refuses connections.
    pub(super) refuses: bool,
    /// Accepts requests and never says anything more, not even in bodies under way.
    pub(super) silent: bool,
    /// Sends one body after the other.
    pub(super) in_turn: bool,
    /// Thinks about each answer for so long.
    pub(super) thinks: Duration,
    /// For a tenth of it about some, and for three times as long about others.
    pub(super) thinks_unevenly: bool,
    /// Answers one request after another, and takes so long for each.
    pub(super) takes_each: Duration,
    /// When it has done with all of them.
    pub(super) done_at: Timestamp,
    /// Pauses in each body after so many bytes, for so long at least and at most.
    pub(super) pauses: Option<(u64, (Duration, Duration))>,
    /// Ends each body so long after its last byte.
    pub(super) ends_late: Duration,
    /// Says that it takes ranges.
    pub(super) ranges: bool,
    /// Gives a whole file where it is asked for its first part.
    pub(super) gives_wholes: bool,
    /// Answers ranges with 500.
    pub(super) fails_ranges: bool,
    /// Closes the connection where it is asked for a range, or a first part.
    pub(super) resets_ranges: bool,
    /// More streams than this are answered with 403.
    pub(super) allows: usize,
    /// Answers a range with the whole file all the same.
    pub(super) ignores_ranges: bool,
    /// Sends a body whatever If-Modified-Since says.
    pub(super) always_sends_bodies: bool,
    /// Paths that are always answered with 500.
    pub(super) broken: BTreeSet<String>,
    /// Paths that are always answered with 403.
    pub(super) forbidden: BTreeSet<String>,
    /// Paths for which the connection is reset instead of an answer.
    pub(super) reset: BTreeSet<String>,
    /// Paths of which so many requests are never answered.
    pub(super) unanswered: BTreeMap<String, u32>,
    /// What it is promised of each stream over HTTP/2, beyond what has come.
    pub(super) promised: u64,
    /// So many connections bring all of it.
    pub(super) brought_over: u64,
    /// Answers requests in their order, or does not; nothing where that can't be found out.
    pub(super) in_order: Option<bool>,
    /// States sizes.
    pub(super) states_size: bool,
    /// More streams than this are answered with 503.
    pub(super) bears: usize,
    /// What 503 says.
    pub(super) retry_after: Option<Duration>,
    /// It is 429.
    pub(super) is_of_rate: bool,
    /// Files of which so many requests are answered with 503: they are made by then.
    pub(super) unready: BTreeMap<String, u32>,
    /// It closes their connections instead.
    pub(super) turns_away: bool,
    /// Whoever asks sooner after the last answer than this is answered with 503.
    pub(super) answers_each: Duration,
    /// When it has answered last.
    pub(super) answered: Option<Timestamp>,
    /// Whoever asks more often than this in such a time is refused, and what is refused counts.
    pub(super) most_in: Option<(usize, Duration)>,
    /// When it was asked in that time.
    pub(super) asked: VecDeque<Timestamp>,
    /// Every so manieth request is answered with 503, and so many were made.
    pub(super) refuses_each: Option<u64>,
    pub(super) requests: u64,
    /// Such a part of all requests is refused, whatever they are.
    pub(super) refuses_part: f64,
    pub(super) other: Option<Other>,
    /// Each request gets another version of the file.
    pub(super) keeps_changing: bool,
    /// Every body ends after this many bytes.
    pub(super) cuts_bodies_after: Option<u64>,
    /// The share of requests that fail in one way or another.
    pub(super) faults: f64,
    /// Answers come from this host.
    pub(super) redirects_to: Option<String>,
}

impl Host {
    /// How long what it is asked now waits until it has done with it.
    pub(super) fn takes_turn(&mut self, now: Timestamp) -> Duration {
        self.done_at = self.done_at.max(now) + self.takes_each;
        self.done_at.saturating_since(now)
    }

    /// How long it thinks about what it answers to this stream.
    pub(super) fn thinks_about(&self, stream: StreamId) -> Duration {
        let parts = [1.0, 0.1, 3.0, 0.5, 0.3];
        let part = parts[stream.0 as usize % parts.len()];
        if self.thinks_unevenly { self.thinks.mul_f64(part) } else { self.thinks }
    }

    /// How long redirects take that lead to what it is asked for.
    pub(super) fn waited_before(&self) -> Duration {
        (self.rtt + self.thinks) * u32::from(self.redirects_to.is_some())
    }
}

impl Default for Host {
    fn default() -> Self {
        Self {
            files: BTreeMap::new(),
            rtt: Duration::from_millis(50),
            window: 256 * 1024,
            mbps: f64::INFINITY,
            protocol: Protocol::Http11,
            refuses: false,
            silent: false,
            in_turn: false,
            thinks: Duration::ZERO,
            thinks_unevenly: false,
            takes_each: Duration::ZERO,
            done_at: Timestamp::START,
            pauses: None,
            ends_late: Duration::ZERO,
            ranges: true,
            gives_wholes: false,
            fails_ranges: false,
            resets_ranges: false,
            allows: usize::MAX,
            ignores_ranges: false,
            always_sends_bodies: false,
            broken: BTreeSet::new(),
            forbidden: BTreeSet::new(),
            reset: BTreeSet::new(),
            unanswered: BTreeMap::new(),
            promised: 0,
            brought_over: u64::MAX,
            in_order: None,
            states_size: true,
            bears: usize::MAX,
            retry_after: None,
            is_of_rate: false,
            unready: BTreeMap::new(),
            turns_away: false,
            answers_each: Duration::ZERO,
            answered: None,
            most_in: None,
            asked: VecDeque::new(),
            refuses_each: None,
            requests: 0,
            refuses_part: 0.0,
            other: None,
            keeps_changing: false,
            cuts_bodies_after: None,
            faults: 0.0,
            redirects_to: None,
        }
    }
}

impl Host {
    /// Whether it answers a request for the first part of a file with that.
    pub(super) const fn gives_parts(&self) -> bool {
        self.ranges && !self.ignores_ranges && !self.gives_wholes
    }

    /// What its answers say of that, where the machine `has_ranges` that answers now.
    pub(super) const fn says_of_ranges(&self, has_ranges: bool) -> Ranges {
        if self.ranges && (has_ranges || self.ignores_ranges) {
            Ranges::Given
        } else {
            Ranges::None
        }
    }

    /// What the machine that answers now has under `path`, and whether it gives ranges of it.
    pub(super) fn find(&self, path: &str) -> Option<(Remote, bool)> {
        let mut remote = *self.files.get(path)?;
        let other = self.other.filter(|_| self.requests.is_multiple_of(2));
        remote.version += u64::from(other == Some(Other::AnotherVersion));
        let has_ranges = !self.ignores_ranges && other != Some(Other::NoRanges);
        (other != Some(Other::Nothing)).then_some((remote, has_ranges))
    }

    /// Whether it refuses a request for `path`, which counts.
    pub(super) fn refuses_now(&mut self, now: Timestamp, path: &str) -> bool {
        self.requests += 1;
        if let Some((most, time)) = self.most_in {
            self.asked.retain(|at| now.saturating_since(*at) < time);
            self.asked.push_back(now);
            if self.asked.len() > most {
                return true;
            }
        }
        if self.refuses_each.is_some_and(|each| self.requests.is_multiple_of(each)) {
            return true;
        }
        if Jitter::new(self.requests).fraction() < self.refuses_part {
            return true;
        }
        if self.answered.is_some_and(|at| now.saturating_since(at) < self.answers_each) {
            return true;
        }
        if let Some(left) = self.unready.get_mut(path).filter(|left| **left > 0) {
            *left -= 1;
            return true;
        }
        self.answered = Some(now);
        false
    }

    /// With `count` files `/0`, `/1`, ... whose sizes `size` gives.
    pub(super) fn files(mut self, count: u64, size: impl Fn(u64) -> u64) -> Self {
        for index in 0..count {
            self.files.insert(format!("/{index}"), Remote { size: size(index), version: 1 });
        }
        self
    }
}

/// How a file ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    Kept,
    GivenUp(Failure),
}

/// A file as the driver has it.
#[derive(Debug, Clone, Default)]
pub(super) struct Local {
    pub(super) host: String,
    pub(super) path: String,
    /// What lay where it goes.
    pub(super) opened: Option<Opened>,
    /// What was written: start, end and version.
    pub(super) written: BTreeMap<u64, (u64, u64)>,
    /// Bytes that the run brought, whatever became of them.
    pub(super) brought: u64,
    pub(super) restarts: u32,
    pub(super) modified: Option<SystemTime>,
    pub(super) ending: Option<Ending>,
}

impl Local {
    /// Writes `range` of `version` over whatever is there.
    pub(super) fn write(&mut self, mut range: ByteRange, version: u64) {
        let under: Vec<_> = self
            .written
            .range(..=range.end)
            .rev()
            .take_while(|(_, (end, _))| *end >= range.start)
            .map(|(start, (end, version))| (*start, *end, *version))
            .collect();
        for (start, end, before) in under {
            self.written.remove(&start);
            if before == version {
                range = range.start.min(start)..range.end.max(end);
                continue;
            }
            if start < range.start {
                self.written.insert(start, (range.start, before));
            }
            if end > range.end {
                self.written.insert(range.end, (end, before));
            }
        }
        if !range.is_empty() {
            self.written.insert(range.start, (range.end, version));
        }
    }

    /// Whether what was written is `remote`, whole and of one version.
    pub(super) fn is(&self, remote: Remote) -> bool {
        let whole = BTreeMap::from([(0, (remote.size, remote.version))]);
        self.written == if remote.size == 0 { BTreeMap::new() } else { whole }
    }
}
