//! HTTP/1.1 where HTTP/2 was agreed on: because the server wants that, or because its connections bear too few requests to
//! be shared.

use std::cell::Cell;

use pelton_algos::short_lives::ShortLives;

use super::super::telemetry::Protocol;
use super::{Lease, OriginSet};
use crate::{Error, ErrorKind};

/// Whether HTTP/1.1 is spoken with an origin that may know HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Http1 {
    #[default]
    NotAsked,
    /// The server does not take over HTTP/2 what it is asked for.
    Required,
    /// Its connections end after few answers.
    Preferred,
    /// It does not speak it.
    Unknown,
}

/// What to speak with an origin.
#[derive(Debug, Default)]
pub(super) struct Choice {
    http1: Cell<Http1>,
    lives: Cell<ShortLives>,
}

impl Choice {
    pub(super) fn is_http1(&self) -> bool {
        matches!(self.http1.get(), Http1::Required | Http1::Preferred)
    }

    /// HTTP/1.1 was tried and this came of it. Returns whether HTTP/2 is spoken again for that.
    pub(super) fn is_http2_after(&self, failure: &Error) -> bool {
        let is_unknown = self.http1.get() == Http1::Preferred && failure.kind() == ErrorKind::Tls;
        if is_unknown {
            self.http1.set(Http1::Unknown);
        }
        is_unknown
    }
}

impl OriginSet {
    /// From now on HTTP/1.1 alone is spoken; connections of HTTP/2 take no further request.
    pub(in crate::connection) fn require_http1(&self) {
        self.speak_http1(Http1::Required);
    }

    /// The connection of `lease` ends without an answer to it. Returns whether HTTP/1.1 is spoken from now on, as those of
    /// HTTP/2 give few answers.
    pub(in crate::connection) fn note_gone(&self, lease: &Lease) -> bool {
        if lease.protocol() != Protocol::Http2 || self.choice.http1.get() == Http1::Unknown {
            return false;
        }
        let state = self.state.borrow();
        let newest = state.connections.iter().map(|it| it.id.0).max().unwrap_or_default();
        drop(state);
        let mut lives = self.choice.lives.get();
        let is_short = lives.on_end(lease.id().0, newest, lease.answers());
        self.choice.lives.set(lives);
        if is_short && !self.choice.is_http1() {
            tracing::debug!(origin = %self.origin, "HTTP/1.1, as connections of HTTP/2 give few answers");
            self.speak_http1(Http1::Preferred);
        }
        self.choice.is_http1()
    }

    fn speak_http1(&self, why: Http1) {
        self.choice.http1.set(why);
        self.retain(|connection| connection.protocol == Protocol::Http11);
    }
}
