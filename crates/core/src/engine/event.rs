//! The engine's vocabulary: facts that it takes and actions that it asks for.

use std::time::{Duration, SystemTime};

use pelton_algos::pace::Pace;
use pelton_algos::parts::Outset;
use pelton_algos::policy::Decision;
use pelton_algos::ranges::{ByteRange, StreamId};
use pelton_algos::units::{BitRate, Bytes, Joules};
use url::Url;

use super::UserLimits;
use super::facts::{Existing, Failure, Head, Resumable, Validator};
use crate::catalog::FileSpec;
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

/// What was found where a file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// Nothing.
    Fresh,
    /// A part that can be continued.
    Part(Resumable),
    /// A part that can't.
    Unusable {
        /// Bytes that an earlier run has written of it, as far as known.
        bytes: u64,
    },
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
    /// What a stream was asked for is asked for again, over another connection than before.
    Moved {
        /// The stream.
        stream: StreamId,
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
        /// These will surely be used, or are opened ahead.
        open: u32,
        /// So many TLS connections may be there or shake hands, or any number: further ones wait as they are until more may,
        /// and close where they are more than `open` by then.
        handshakes: Option<u32>,
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
