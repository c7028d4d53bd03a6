//! HTTP/1.1 where HTTP/2 was agreed on: because the server wants that, or because its connections bear too few requests to
//! be shared.

use std::cell::Cell;
use std::rc::Rc;

use http::StatusCode;
use pelton_algos::short_lives::ShortLives;

use super::super::failure;
use super::super::open::SendFailure;
use super::super::telemetry::Protocol;
use super::{Lease, OriginSet};

/// Whether HTTP/1.1 is spoken with an origin that may know HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Http1 {
    #[default]
    NotAsked,
    /// The next connection that is opened finds out whether it is answered as well, while those of HTTP/2 go on.
    ToBeTried,
    /// That one is there, or on its way.
    Tried,
    /// The server wants it, and has not answered over it yet.
    Wanted,
    /// It is, and connections of HTTP/2 end after few answers; or the server takes nothing else.
    Spoken,
    /// It is not, or it is refused.
    Refused,
}

/// What to speak with an origin.
#[derive(Debug, Default)]
pub(super) struct Choice {
    http1: Cell<Http1>,
    lives: Cell<ShortLives>,
}

impl Choice {
    /// Whether HTTP/1.1 alone is to be spoken over the connection that is opened now.
    pub(super) fn begin_opening(&self) -> bool {
        if self.http1.get() == Http1::ToBeTried {
            self.http1.set(Http1::Tried);
            return true;
        }
        self.is_http1()
    }

    /// Whether one that was opened for HTTP/1.1 alone, or not, is still of use.
    pub(super) fn takes(&self, is_http1: bool) -> bool {
        match self.http1.get() {
            Http1::Spoken | Http1::Wanted => is_http1,
            Http1::Tried => true,
            Http1::NotAsked | Http1::ToBeTried | Http1::Refused => !is_http1,
        }
    }

    fn is_http1(&self) -> bool {
        matches!(self.http1.get(), Http1::Spoken | Http1::Wanted)
    }

    /// Whether that it is answered is still to be seen.
    fn is_open(&self) -> bool {
        matches!(self.http1.get(), Http1::Tried | Http1::Wanted)
    }
}

impl OriginSet {
    /// The connection of `lease` gave this `failure` and no answer. Returns whether HTTP/1.1 is spoken by now: as the server wants
    /// that, or as HTTP/2 is not worth it.
    pub(in crate::connection) fn changes_to_http1(
        &self,
        lease: &Lease,
        failure: &SendFailure,
    ) -> bool {
        if failure::requires_http1(failure) {
            let is_refused = self.choice.http1.get() == Http1::Refused;
            if !is_refused && !self.choice.is_http1() {
                self.require_http1(Http1::Wanted);
            }
            return !is_refused;
        }
        failure::ends_connection(failure) && self.note_gone(lease)
    }

    /// From now on HTTP/1.1 alone is spoken; connections of HTTP/2 take no further request.
    fn require_http1(&self, http1: Http1) {
        self.choice.http1.set(http1);
        self.retain(|connection| connection.protocol == Protocol::Http11);
    }

    /// The connection of `lease` ends without an answer to it. Where those of HTTP/2 give few answers HTTP/1.1 is tried.
    /// Returns whether it is spoken by now.
    fn note_gone(&self, lease: &Lease) -> bool {
        if lease.protocol() != Protocol::Http2 {
            return false;
        }
        let state = self.state.borrow();
        let newest = state.connections.iter().map(|it| it.id.0).max().unwrap_or_default();
        drop(state);
        let mut lives = self.choice.lives.get();
        let is_silent = self.answered.is_nothing();
        let is_short = lives.on_end(lease.id().0, newest, lease.answers(), is_silent);
        self.choice.lives.set(lives);
        if is_short && self.choice.http1.get() == Http1::NotAsked {
            tracing::debug!(origin = %self.origin, "connections of HTTP/2 give few answers: trying HTTP/1.1");
            self.choice.http1.set(Http1::ToBeTried);
        }
        self.choice.is_http1()
    }

    /// What was asked for over the connection of `lease` was answered like this, or not at all. Returns whether that tells that
    /// HTTP/2 alone is of use, so that it is asked for again.
    pub(in crate::connection) fn refuses_http1(
        self: &Rc<Self>,
        lease: &Lease,
        answer: Option<StatusCode>,
    ) -> bool {
        let is_well = answer.is_some_and(|status| match self.choice.http1.get() {
            // Who wants it has other reasons for what else is refused.
            Http1::Wanted => status != StatusCode::UPGRADE_REQUIRED,
            _ => status.as_u16() < 400,
        });
        let is_trial = lease.protocol() == Protocol::Http11 && self.choice.is_open();
        if is_trial && is_well {
            self.require_http1(Http1::Spoken);
            self.pump();
        } else if is_trial {
            self.refuse_http1();
        }
        is_trial && !is_well
    }

    /// HTTP/1.1 was tried and is of no use.
    fn refuse_http1(&self) {
        self.choice.http1.set(Http1::Refused);
        self.retain(|connection| connection.protocol != Protocol::Http11);
    }

    /// A connection for HTTP/1.1 alone could not be opened. Returns whether that was only tried.
    pub(super) fn ends_trial(&self, is_http1: bool) -> bool {
        let is_trial = is_http1 && self.choice.is_open();
        if is_trial {
            self.refuse_http1();
        }
        is_trial
    }
}
