//! The next part of a range, asked for before the part before it has come (HTTP/1.1): over the same connection,
//! or beside it where the server thinks.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture};
use http::{Method, Request};
use pelton_algos::answers::{lone_thinks_after, thinks_after};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::client::{GetRequest, Http};
use super::credentials;
use super::exchange::{Asked, message};
use super::open::Sent;
use super::origin::{Origin, without_userinfo};
use super::pool::{Lease, OriginSet};
use super::response::GetResponse;
use super::telemetry::Protocol;
use crate::Result;

/// An answer is waited for so long after the one before it has ended: it is under way, unless the server
/// forgets what comes before it has answered.
const NEXT_ANSWER: Duration = Duration::from_secs(1);
/// Servers think about parts as about wholes: so many times as long as about the first is long enough.
const THINKS: u32 = 4;
/// Where others wait for their turn, too, it is waited for as long as they do, but no longer.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// After so many requests in a row that were not answered none is sent before its turn.
const MOST_MISSED: u32 = 2;

/// Beside so many requests at most more of the same files is asked for: where there are many files most are short, and a
/// server thinks about as many of them at a time.
const FEW: usize = 8;

/// How requests that were sent before their turn went.
#[derive(Debug, Default)]
pub(super) struct Missed(Cell<u32>);

impl Missed {
    fn is_too_often(&self) -> bool {
        self.0.get() >= MOST_MISSED
    }

    fn note(&self, was_answered: bool) {
        self.0.set(if was_answered { 0 } else { self.0.get().saturating_add(1) });
    }
}

/// A request for more of the same file than another one, which was not answered yet when it was sent.
pub(crate) struct Further {
    /// It waits for its turn.
    is_behind: bool,
    answer: LocalBoxFuture<'static, Sent>,
    lease: Lease,
    set: Rc<OriginSet>,
    patience: Duration,
}

impl OriginSet {
    /// What proxies make of it is another matter for each file.
    fn may_be_asked_early(&self) -> bool {
        !self.is_forwarded() && !self.missed.is_too_often()
    }
}

impl Http {
    /// Whether parts of files at `url` may be asked for before their turn: answers to such requests have been
    /// what was asked for, or none has come yet.
    pub(crate) fn may_ask_early(&self, url: &Url) -> bool {
        Origin::of(url).is_ok_and(|origin| self.set(&origin).may_be_asked_early())
    }

    /// The round-trip time of the path to `origin`, once a connection was opened.
    pub(crate) fn rtt(&self, origin: &Origin) -> Option<Duration> {
        self.set(origin).rtt.get()
    }

    /// `answer`, to a request that was sent before its turn, was one to that, or not.
    pub(crate) fn note_early(&self, answer: &GetResponse, is_right: bool) {
        self.set(&answer.origin).missed.note(is_right);
    }

    /// Sends `request` over the connection of `before`, behind it (RFC 9112, section 9.3.2). `None` where
    /// that is not to be.
    ///
    /// # Errors
    /// `Usage` for what cannot be sent.
    pub(crate) fn get_further(
        &self,
        request: &GetRequest,
        before: &GetResponse,
    ) -> Result<Option<Further>> {
        let Some(lease) = before.lease().filter(|_| before.protocol == Protocol::Http11) else {
            return Ok(None);
        };
        let set = self.set(&before.origin);
        if !set.may_be_asked_early() {
            return Ok(None);
        }
        let message = self.message(&set, request, &before.final_url)?;
        let Some((lease, answer)) = lease.send_behind(message) else { return Ok(None) };
        let patience = NEXT_ANSWER.max(before.response_time * THINKS);
        Ok(Some(Further { is_behind: true, answer, lease, set, patience }))
    }

    /// Waits until a server that has answered nothing at all has thought about what it was asked for so long that it
    /// is of use to ask for more beside it, and sends `request` over a connection of its own. Never ready where
    /// that is of no use, or cannot be done.
    pub(crate) async fn get_beside(&self, request: &GetRequest) -> Further {
        let Ok(origin) = Origin::of(&request.url) else { return pending().await };
        let set = self.set(&origin);
        let Some(rtt) = set.rtt.get() else { return pending().await };
        sleep(lone_thinks_after(rtt)).await;
        if set.outstanding() > 1 {
            sleep(thinks_after(rtt).saturating_sub(lone_thinks_after(rtt))).await;
        }
        let is_of_use = set.answered.is_nothing() && set.outstanding() <= FEW;
        if !is_of_use || !set.may_be_asked_early() || !set.has_room() {
            return pending().await;
        }
        let mut url = without_userinfo(&request.url);
        url.set_fragment(None);
        let (Ok(message), Ok(lease)) =
            (self.message(&set, request, &url), set.acquire(false, request.expected).await)
        else {
            return pending().await;
        };
        if lease.protocol() != Protocol::Http11 {
            return pending().await;
        }
        let mut answer = lease.send(message);
        // It goes out now, and is waited for later.
        if answer.as_mut().now_or_never().is_some() {
            return pending().await;
        }
        Further { is_behind: false, answer, lease, set, patience: thinks_after(rtt) }
    }

    /// `request`, which is for `url`, as HTTP/1.1 has it.
    fn message(&self, set: &OriginSet, request: &GetRequest, url: &Url) -> Result<Request<()>> {
        let headers =
            credentials::headers(self.config(), &self.cookies(), request, url, set.origin())?;
        let GetRequest { is_part_of_http1, expected, .. } = *request;
        let (method, url) = (&Method::GET, url.clone());
        let asked = Asked { method, url, headers: &headers, is_part_of_http1, expected };
        message(set, &asked, &Method::GET, Protocol::Http11)
    }
}

impl Further {
    /// Whether it was sent over the connection of the one before.
    pub(crate) const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// The answer, once that to `before` was read. `None` where none comes: then the connection is closed.
    pub(crate) async fn answer(mut self, before: &GetResponse) -> Option<GetResponse> {
        let began = Instant::now();
        // Who answers one request after the other thinks about this one from now on.
        let thoughts = if self.is_behind { 1 } else { 2 };
        let mut patience = self.patience.max(before.response_time * thoughts);
        let answer = loop {
            if let Ok(answer) = timeout_at(began + patience, &mut self.answer).await {
                break answer.ok();
            }
            // Others have waited longer by now.
            let longer = self.set.answered.at_longest().min(LONGEST_TURN);
            if longer <= patience {
                break None;
            }
            patience = longer;
        };
        let Some((head, body)) = answer else {
            if self.is_behind {
                self.set.missed.note(false);
            }
            return None;
        };
        Some(before.followed_by(head, body, self.lease, began.elapsed()))
    }
}
