//! The engine's vocabulary: facts that it takes and actions that it asks for.

use std::time::{Duration, SystemTime};

use pelton_algos::pace::Pace;
use pelton_algos::parts::Outset;
use pelton_algos::policy::Decision;
use pelton_algos::ranges::{ByteRange, StreamId};
use pelton_algos::units::{BitRate, Bytes, Joules};
use url::Url;

use super::UserLimits;
use crate::ErrorKind;
use crate::catalog::{Digest, FileSpec};
use crate::connection::{Origin, Protocol};

/// A file by its number in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u32);

impl FileId {
    pub(super) const fn new(index: usize) -> Self {
        Self(index as u32)
    }

    /// Its position in the list, from zero.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What tells one version of a file from another (RFC 9110 section 8.8).
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Validator {
    /// A strong entity tag, quotes included.
    pub etag: Option<String>,
    /// A weak one, without its `W/`. It joins no ranges; but beside a date that is the same, another one tells of another
    /// version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weak_etag: Option<String>,
    /// `Last-Modified` as the server wrote it, where it is a strong validator.
    pub last_modified: Option<String>,
}

impl Validator {
    /// Whether it can tell that two answers belong to one version.
    pub const fn is_strong(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// What the head of a response said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Size of the whole file in bytes, where it is stated.
    pub total: Option<u64>,
    /// Whether the server takes range requests, as far as this response tells.
    pub ranges: bool,
    /// It is itself the answer to one.
    pub partial: bool,
    /// What tells this version of the file from another.
    pub validator: Validator,
    /// What the whole file hashes to, where that was asked for and is told.
    pub digest: Option<Digest>,
    /// `Last-Modified`, parsed.
    pub modified: Option<SystemTime>,
    /// The server compressed it, and its name does not say so.
    pub compressed: bool,
    /// Where the response came from, after redirects.
    pub url: Url,
    /// The origin of `url`.
    pub origin: Origin,
    /// How it came.
    pub protocol: Protocol,
    /// From sending the request, over a connection that was ready, to the head of the response or, where it has what was
    /// asked for, to the first of that.
    pub response_time: Duration,
    /// How long it waited for redirects, and for a connection in place of one that its server ended; zero where there were none.
    pub waited_before: Duration,
}

/// Why a request or a file failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// One line for people: the URL or file, what failed, what to do.
    pub message: String,
    /// `Retry-After`, where the server sent it.
    pub retry_after: Option<Duration>,
    /// That is asked of all requests, as they come too soon one after the other (429).
    pub is_of_rate: bool,
    /// The disk has space, and the user's quota is used up.
    pub is_quota: bool,
    /// The server forbids it (403), which may be for who asks, or for how much is asked at once.
    pub is_forbidden: bool,
}

impl Failure {
    /// A failure without `Retry-After`, of no quota, and not forbidden.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            is_of_rate: false,
            is_quota: false,
            is_forbidden: false,
        }
    }
}

/// How a stream ended without fault, or why it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All of its range arrived; for a whole file of unknown size: the body ended cleanly.
    Complete,
    /// The file that is there is the server's: [`Fetch::existing`].
    NotModified,
    /// The server did not answer a range request as one: with the whole file, with other bytes, or
    /// not at all, as it says here. Nothing was kept.
    RangeRefused(Failure),
    /// The server's file is another one than that whose part is there, as it says here. Nothing was
    /// kept.
    Changed(String),
    /// It failed.
    Failed(Failure),
}

/// A file that is there under its final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Existing {
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified.
    pub modified: Option<SystemTime>,
    /// Its size tells whether it is the server's, where that tells no time: not enough for who wants it replaced.
    pub size_tells: bool,
    /// Where the server tells neither size nor time the whole file comes, and [`finish`](crate::sink::Output::finish)
    /// finds out whether its bytes are those that are there, which stay.
    pub bytes_tell: bool,
}

impl Existing {
    /// Whether a server's file of this size and time is the one that is there. HTTP dates have whole
    /// seconds; file systems have finer ones. Where the server tells only one of the two, that has to do: else
    /// what a run has finished would be in the way of its rerun.
    pub fn is_version(&self, size: Option<u64>, modified: Option<SystemTime>) -> bool {
        let seconds = |time: SystemTime| {
            time.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs())
        };
        let has_its_time = modified
            .map_or(self.size_tells, |theirs| self.modified.and_then(seconds) == seconds(theirs));
        size.map_or(modified.is_some(), |size| size == self.size) && has_its_time
    }
}

/// A part of a file that an earlier run left.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Resumable {
    /// Size of the whole file in bytes.
    pub size: u64,
    /// What tells its version.
    pub validator: Validator,
    /// Ranges that are there.
    pub done: Vec<ByteRange>,
}

impl Resumable {
    /// What of it lies before `length`.
    #[must_use]
    pub fn shortened_to(&self, length: u64) -> Self {
        let before = self.done.iter().filter(|range| range.start < length);
        let done = before.map(|range| range.start..range.end.min(length)).collect();
        Self { done, validator: self.validator.clone(), ..*self }
    }
}

/// What was found where a file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// Nothing.
    Fresh,
    /// A part that can be continued.
    Part(Resumable),
    /// A file of that name; whether it is the server's is not known yet.
    Existing(Existing),
    /// A file of that name with the digest that was promised.
    Verified {
        /// Its size in bytes.
        size: u64,
    },
    /// It can't be written.
    Failed(Failure),
}

/// A fact that the engine takes note of.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Files to fetch.
    Files(Vec<FileSpec>),
    /// No more files will come.
    ListEnded,
    /// The answer to [`Action::Open`].
    Opened {
        /// The file.
        file: FileId,
        /// What was found.
        opened: Opened,
    },
    /// The head of a response arrived and fits its request.
    Head {
        /// The stream.
        stream: StreamId,
        /// What it said.
        head: Head,
    },
    /// A stream that asks for its range in parts has asked for everything up to `end`.
    Asked {
        /// The stream.
        stream: StreamId,
        /// The end of the last part (excluded).
        end: u64,
    },
    /// The server of a stream over HTTP/2 may send everything up to `end`, as far as it is wanted.
    Promised {
        /// The stream.
        stream: StreamId,
        /// The end of what it may send (excluded).
        end: u64,
    },
    /// Such a stream was given a part beyond its first.
    Continued {
        /// The stream.
        stream: StreamId,
    },
    /// Body bytes arrived and were written.
    Data {
        /// The stream.
        stream: StreamId,
        /// How many.
        bytes: u64,
    },
    /// A stream ended.
    Ended {
        /// The stream.
        stream: StreamId,
        /// How.
        result: Outcome,
    },
    /// The answer to [`Action::Finish`].
    Finished {
        /// The file.
        file: FileId,
        /// Whether it is verified and under its final name.
        result: Result<(), Failure>,
    },
    /// The other answer to [`Action::Finish`]: the bytes are not those that were promised.
    Damaged {
        /// The file.
        file: FileId,
        /// Where they are wrong, as far as can be told.
        ranges: Vec<ByteRange>,
        /// The failure that it is if there is nobody else to ask.
        failure: Failure,
    },
    /// The transport measured a round-trip time.
    Rtt(Duration),
    /// Round trips take longer of late, and so long at least, queues included.
    RoundTrip(Duration),
    /// The transport saw at what pace the first answers come.
    Pace(Pace),
    /// Something was lost of what comes over a connection.
    Loss,
    /// Whether an origin answers requests in their order over HTTP/1.1 became known: where it does,
    /// several may be under way over one connection (RFC 9112 section 9.3.2).
    Pipelines {
        /// The origin.
        origin: Origin,
        /// It does.
        does: bool,
    },
    /// An origin has left a connection without an answer while it answered over others.
    Unserved {
        /// The origin.
        origin: Origin,
        /// How many connections it served at a time.
        served: u32,
    },
    /// All that is asked of an origin goes through a proxy.
    Proxied {
        /// The origin.
        origin: Origin,
        /// Its proxy, as messages name it.
        proxy: String,
    },
    /// A host was reached, and it took one round trip: what is spoken with it is still open.
    Reached {
        /// Whom the connection shall lead to.
        origin: Origin,
        /// How long one took.
        rtt: Duration,
    },
    /// A connection is ready for requests.
    Connected {
        /// Whom it leads to.
        origin: Origin,
        /// What is spoken over it.
        protocol: Protocol,
    },
    /// Cumulative energy since the run began.
    Energy(Joules),
    /// Time has passed: see [`super::Engine::next_timeout`].
    Timeout,
    /// Stop all streams and start none until [`Event::Resume`].
    Pause,
    /// Go on after [`Event::Pause`].
    Resume,
    /// Other ceilings from now on.
    SetLimits(UserLimits),
    /// The limit on the rate that all runs of the client share, where there is one, and whether it is
    /// what holds this run.
    ClientRate {
        /// The limit.
        rate: Option<BitRate>,
        /// This run has to wait for it.
        holds: bool,
    },
    /// The answer to [`Action::LookForSpace`]: bytes that are free, where that can be known.
    Space(Option<Bytes>),
    /// Stop for good.
    Cancel,
}

/// One request to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetch {
    /// The stream that it becomes.
    pub stream: StreamId,
    /// Its file.
    pub file: FileId,
    /// Where from.
    pub url: Url,
    /// Which bytes; `None` asks for the whole file without a range.
    pub range: Option<ByteRange>,
    /// What is asked for is better asked for in parts, as [`Parts`](pelton_algos::parts::Parts) says, over HTTP/1.1. Of a
    /// whole file they count as long as they can be joined; else it comes in one piece.
    pub parts: Option<Outset>,
    /// What the response must belong to, where a version is already known.
    pub validator: Option<Validator>,
    /// The size that the response must state, where it is already known.
    pub total: Option<u64>,
    /// The size of the file as far as anything tells, surely or not.
    pub expected: Option<u64>,
    /// What is there already: without a body when it is the server's.
    pub existing: Option<Existing>,
    /// The file comes anew: what was written of it goes before the first byte of the answer is
    /// written, and stays if there is none.
    pub anew: bool,
    /// What the server says that the file hashes to counts: nothing else tells.
    pub wants_digest: bool,
}

/// Something that has to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Look at what is where `file` goes; answer with [`Event::Opened`].
    Open {
        /// The file.
        file: FileId,
    },
    /// Make a request.
    Fetch(Box<Fetch>),
    /// Stop `stream` at `end`: others bring the rest. An end later than the one before takes it
    /// back.
    Cut {
        /// The stream.
        stream: StreamId,
        /// Its new end.
        end: u64,
    },
    /// Stop `stream` now; nothing more is expected of it.
    Abort {
        /// The stream.
        stream: StreamId,
        /// It crawled or stalled: where there is or may be another connection, its own takes no further
        /// request.
        crawled: bool,
    },
    /// Bytes of `file` that are there are worth nothing and come again. Tell why. If it starts anew,
    /// its next fetch throws away what is there.
    Restart {
        /// The file.
        file: FileId,
        /// Bytes that are lost.
        bytes: u64,
        /// Why, in words.
        reason: String,
    },
    /// Hold at most `limit` connections to `origin`, and have `open` of them soon.
    Connections {
        /// The origin.
        origin: Origin,
        /// At most so many.
        limit: u32,
        /// These will surely be used.
        open: u32,
        /// Requests that each shall bear over HTTP/1.1, once it is known that the origin answers them in
        /// their order; unless it is one, find that out and tell it by [`Event::Pipelines`]. With 0 that is
        /// all.
        pipelined: u32,
    },
    /// Every byte of `file` is there: verify and rename it; answer with [`Event::Finished`] or
    /// [`Event::Damaged`].
    Finish {
        /// The file.
        file: FileId,
        /// `Last-Modified`, to be set on the file.
        modified: Option<SystemTime>,
    },
    /// `part` is there of `file`: note it, for a rerun if this process ends now.
    Checkpoint {
        /// The file.
        file: FileId,
        /// What is there. Its bytes were written.
        part: Resumable,
    },
    /// `file` was there already and is left alone.
    Kept {
        /// The file.
        file: FileId,
        /// Its size in bytes.
        size: u64,
    },
    /// `file` will not be tried again. Keep what a rerun needs.
    GiveUp {
        /// The file.
        file: FileId,
        /// Why.
        failure: Failure,
    },
    /// A decision was made.
    Decided(Decision),
    /// The disk is full: nothing moves until there is space.
    DiskFull {
        /// Bytes still to come.
        needed: Bytes,
        /// It is the user's quota that is used up.
        is_quota: bool,
    },
    /// A host can't be reached, or refuses whatever it is asked: its files wait.
    HostAway {
        /// What it failed with last, in words.
        failure: String,
    },
    /// See how much space there is; answer with [`Event::Space`].
    LookForSpace,
    /// Nothing is left to do.
    Done,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_there_is_told_by_size_and_by_the_time_that_the_server_tells() {
        let at = |millis| Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        let there = Existing { size: 10, modified: at(5_700), size_tells: true, bytes_tell: false };
        assert!(there.is_version(Some(10), at(5_000)), "the same second");
        assert!(there.is_version(Some(10), None), "the server tells no time");
        assert!(!there.is_version(Some(10), at(6_000)));
        assert!(!there.is_version(Some(11), None));
        assert!(there.is_version(None, at(5_000)), "the server tells no size");
        assert!(!there.is_version(None, at(6_000)));
        assert!(!there.is_version(None, None), "nothing to compare");
        let timeless = Existing { modified: None, ..there };
        assert!(!timeless.is_version(Some(10), at(5_000)));
        let to_be_replaced = Existing { size_tells: false, ..there };
        assert!(!to_be_replaced.is_version(Some(10), None));
        assert!(to_be_replaced.is_version(Some(10), at(5_000)));
    }
}
