//! What is known of a file: what its server says, what is there already, and why it failed.

use std::time::{Duration, SystemTime};

use pelton_algos::ranges::ByteRange;
use url::Url;

use crate::ErrorKind;
use crate::catalog::Digest;
use crate::connection::{ConnectionId, Origin, Protocol};

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
    pub ranges: Ranges,
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
    /// Over which connection.
    pub connection: ConnectionId,
    /// From sending the request, over a connection that was ready, to the head of the response or, where it has what was
    /// asked for, to the first of that.
    pub response_time: Duration,
    /// How long it waited for redirects, and for a connection in place of one that its server ended; zero where there were none.
    pub waited_before: Duration,
}

/// Whether a server gives ranges of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranges {
    /// It says so, or has given one.
    Given,
    /// It does not say (`Accept-Ranges` is missing), and tells a version by which ranges could be joined.
    Unsaid,
    /// Hardly.
    None,
}

/// Why a request or a file failed.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
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
    /// What came is no file: a page in place of a range.
    pub is_no_file: bool,
    /// Where a redirect has led to, if it failed there.
    pub led_to: Option<Origin>,
}

impl Failure {
    /// A failure without `Retry-After`, of no quota, not forbidden, of a file, and behind no redirect.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            is_of_rate: false,
            is_quota: false,
            is_forbidden: false,
            is_no_file: false,
            led_to: None,
        }
    }
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
