//! One request and its response, over a connection of its origin.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{HOST, PROXY_AUTHORIZATION, RANGE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use pelton_algos::connections::LONGEST_AHEAD;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};
use url::Url;

use super::config::ProtocolChoice;
use super::failure;
use super::http1::Http1Body;
use super::open::{Body, SendFailure};
use super::origin::{Scheme, shown};
use super::pace::Share;
use super::pool::batch::Batch;
use super::pool::elsewhere::Moved;
use super::pool::order::Facts;
use super::pool::{Lease, OriginSet, Proof};
use super::response::GetResponse;
use super::scratch::{Piece, Scratch};
use super::telemetry::{ConnectionId, Protocol};
use crate::{Error, ErrorKind, Result};

/// How long the answer behind the first one is waited for. It comes with it, unless the server forgets it.
const NEXT_ANSWER: Duration = Duration::from_secs(1);

/// A proof that has not come by then is none. Servers think about heads, too.
const LATEST_PROOF: Duration = Duration::from_secs(10);

/// So many connections that go away without any answer, and a request that they did nothing about (RFC 9113, section 8.7) is
/// not made again.
const MOST_GONE: u32 = 32;

/// What is asked for.
#[derive(Clone)]
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    /// Without user name and password.
    pub(super) url: Url,
    pub(super) headers: &'a HeaderMap,
    /// Over HTTP/2 no range of it is asked for.
    pub(super) is_part_of_http1: bool,
    pub(super) expected: Option<u64>,
}

impl Asked<'_> {
    /// Whether a request for the head of the same shows in time that the answer is one to this.
    fn is_provable(&self) -> bool {
        let is_long = self.expected.is_some_and(|bytes| bytes > LONGEST_AHEAD.0);
        *self.method == Method::GET && !self.headers.contains_key(RANGE) && !is_long
    }
}

/// Sends one request; `over` is told over which connection. A server may close a connection that
/// served before just as it is used again (RFC 9112, section 9.5): such a request is sent once more, and
/// so is one that the server has not begun with, or wants to have over HTTP/1.1, or that another connection
/// answers sooner.
pub(super) async fn exchange(
    set: &Rc<OriginSet>,
    choice: ProtocolChoice,
    asked: Asked<'_>,
    over: &dyn Fn(ConnectionId),
    scratch: Scratch,
) -> Result<GetResponse> {
    let mut elsewhere = None;
    let mut moved = None;
    let mut tries = Tries { may_follow: asked.is_provable(), is_repeated: false, gone: 0 };
    loop {
        let lease = match elsewhere.take() {
            Some(lease) => lease,
            None => set.acquire(tries.may_follow, asked.expected).await?,
        };
        over(lease.id());
        let began = Instant::now();
        let answer = lease.send(message(set, &asked, asked.method, lease.protocol())?);
        let check = if tries.may_follow { check(set, &lease, &asked)? } else { None };
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            better = set.better_elsewhere(&lease) => {
                tracing::debug!(url = %shown(&asked.url), "asking over another connection");
                elsewhere = Some(better);
                moved = Some(Moved::to_another(set, began.elapsed()));
                tries.may_follow = false;
                continue;
            }
        };
        let finds_out = check.as_ref().is_some_and(|check| check.proof == Proof::OfOrder);
        let error = match answer {
            Ok((head, body)) => {
                let (took, origin) = (began.elapsed(), set.origin().clone());
                let asks_to_wait = head.headers().contains_key(RETRY_AFTER);
                let is_served = !ErrorKind::of_status(head.status(), asks_to_wait).is_overload();
                set.note_answer(&lease, took, is_served);
                if set.refuses_http1(&lease, Some(head.status())) {
                    continue;
                }
                if let Some(moved) = moved.take() {
                    moved.end_answered();
                }
                // Over one that is shared faults of single files follow each other.
                let is_refused = match head.status().as_u16() {
                    403 | 429 | 503 => true,
                    500..=599 => lease.protocol() == Protocol::Http11,
                    _ => false,
                };
                lease.note_refusal(is_refused);
                let facts = Facts::of(head.status(), head.headers());
                if tries.may_follow && lease.protocol() == Protocol::Http11 && !lease.is_behind {
                    set.note_first(&facts);
                }
                let body = match check {
                    None => body,
                    Some(check) => {
                        let Some(body) = proven(check, facts, body, &scratch).await else {
                            tracing::debug!(url = %shown(&asked.url), "asking for it alone");
                            tries.may_follow = false;
                            continue;
                        };
                        Body::Read(body)
                    }
                };
                return Ok(GetResponse::new(head, body, lease, took, asked.url, origin, scratch));
            }
            Err(error) => {
                if let Some(check) = check.filter(|_| !failure::had_no_turn(&error)) {
                    check.batch.spoil();
                }
                error
            }
        };
        if failure::is_refusal(&error) {
            set.refuses(lease.id());
        }
        if !tries.may_be_repeated(set, choice, &lease, finds_out, &error).await {
            let may_speak_tls = set.origin().scheme == Scheme::Http
                && set.answered.is_nothing()
                && failure::is_silent_end(&error);
            let error = failure::no_response(&asked.url, error, choice);
            set.note_turned_away(&lease);
            return Err(if may_speak_tls { failure::perhaps_tls(&error) } else { error });
        }
        tracing::debug!(%error, origin = %set.origin(), "sending again");
    }
}

/// What became of a request so far that got no answer.
struct Tries {
    /// It may be sent behind others over HTTP/1.1.
    may_follow: bool,
    /// It was made again, and may itself be the reason if there is no answer to that either.
    is_repeated: bool,
    /// Connections that went away without any answer.
    gone: u32,
}

impl Tries {
    /// Whether it is made again after a `failure` over the connection of `lease`; there it `finds_out` whether answers come
    /// in order.
    async fn may_be_repeated(
        &mut self,
        set: &Rc<OriginSet>,
        choice: ProtocolChoice,
        lease: &Lease,
        finds_out: bool,
        failure: &SendFailure,
    ) -> bool {
        let is_unprocessed = failure::is_unprocessed(failure);
        let goes_away = failure::goes_away(failure);
        if goes_away {
            // Answers to others came in the same moment, and are seen first.
            yield_now().await;
        }
        let may_change = choice == ProtocolChoice::Auto;
        if set.refuses_http1(lease, None) || may_change && set.changes_to_http1(lease, failure) {
            // What speaks it no more gets no further request, so this one comes here once for that.
        } else if finds_out && !self.is_repeated {
            // Some servers close a connection over which two requests come at once, and answer neither.
            self.may_follow = false;
            self.is_repeated = true;
        } else if lease.is_behind {
            // After a few of these none is sent behind another any more.
            set.note_unanswered(!failure::had_no_turn(failure));
        } else if self.is_repeated || !(lease.reused || is_unprocessed) {
            return false;
        } else {
            // Each that answers others before brings the rest nearer to its turn.
            self.gone += u32::from(goes_away && lease.answers() == 0);
            self.is_repeated = !goes_away || self.gone >= MOST_GONE;
            if !is_unprocessed {
                // What idled as long as this one is as likely to be dead.
                set.close_idle();
            }
        }
        true
    }
}

/// A request whose answer is compared with that to one for its head behind it.
struct Check {
    proof: Proof,
    batch: Rc<Batch>,
    facts: oneshot::Sender<Facts>,
    is_proven: oneshot::Receiver<bool>,
}

impl Check {
    /// A response of which these are the facts has come.
    fn begin(self, facts: Facts) -> oneshot::Receiver<bool> {
        // Nobody compares where the second request has failed.
        let _ = self.facts.send(facts);
        self.is_proven
    }
}

/// The body of a response of which these are the facts, if it is short and surely that of what was asked for.
/// Nothing is kept of it before.
async fn proven(check: Check, facts: Facts, body: Body, scratch: &Scratch) -> Option<Bytes> {
    let Body::Http1(body) = body else { return None };
    if body.is_long() {
        return None;
    }
    let (proof, batch) = (check.proof, Rc::clone(&check.batch));
    // Some refuse what comes with something behind it.
    if facts.is_bad_request() {
        batch.spoil();
        return None;
    }
    let is_proven = check.begin(facts);
    let Some(whole) = whole(body, scratch).await else {
        batch.spoil();
        return None;
    };
    let is_proven = match proof {
        Proof::OfAnswer => matches!(timeout(LATEST_PROOF, is_proven).await, Ok(Ok(true))),
        // Only this one was asked for. What is behind it may never be answered.
        Proof::OfOrder => !matches!(timeout(NEXT_ANSWER, is_proven).await, Ok(Ok(false))),
    };
    let holds = match proof {
        Proof::OfAnswer => matches!(timeout(LATEST_PROOF, batch.holds()).await, Ok(true)),
        Proof::OfOrder => true,
    };
    (is_proven && holds).then_some(whole)
}

/// All bytes of a body, unless they are many or do not come.
async fn whole(mut body: Http1Body, scratch: &Scratch) -> Option<Bytes> {
    let (mut whole, share) = (BytesMut::new(), Share::default());
    let mut keep = |piece: Piece<'_>| {
        if let Piece::Bytes(bytes) = piece {
            whole.extend_from_slice(bytes);
        }
        whole.len()
    };
    while let Some(length) = body.piece(scratch, &share, || 0, &mut keep).await.ok()? {
        if length as u64 > LONGEST_AHEAD.0 {
            return None;
        }
    }
    Some(whole.freeze())
}

/// Asks for the head of what `lease` has just been asked for, if that is of use.
fn check(set: &Rc<OriginSet>, lease: &Lease, asked: &Asked<'_>) -> Result<Option<Check>> {
    if !asked.is_provable() {
        return Ok(None);
    }
    let Some((beside, proof, batch)) = set.lease_for_proof(lease) else { return Ok(None) };
    let answer = beside.send(message(set, asked, &Method::HEAD, lease.protocol())?);
    let (facts, first) = oneshot::channel();
    let (mut proven, is_proven) = oneshot::channel();
    let (set, is_behind) = (Rc::clone(set), lease.is_behind);
    let joined = Rc::clone(&batch);
    tokio::task::spawn_local(async move {
        let answer = tokio::select! {
            biased;
            answer = answer => Some(answer),
            // Nobody waits for it any longer.
            () = proven.closed() => None,
        };
        let is_over = answer.is_some();
        let (second, error) = match answer {
            Some(Ok((head, _))) => (Some(Facts::of(head.status(), head.headers())), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let first = first.await.ok();
        let answers = first.as_ref().zip(second.as_ref());
        let is_proven = match proof {
            Proof::OfOrder => {
                set.found_order_out(answers);
                !error.as_ref().is_some_and(failure::is_no_answer)
            }
            Proof::OfAnswer => match (answers, &error) {
                (Some((first, second)), _) => set.is_proven(&joined, first, second),
                // The server ended the connection with an answer that no other one came before.
                (None, Some(error)) if failure::had_no_turn(error) => !is_behind,
                (None, _) => {
                    set.note_unanswered(first.is_some());
                    false
                }
            },
        };
        if is_over && !is_proven && !error.as_ref().is_some_and(failure::had_no_turn) {
            joined.spoil();
        }
        joined.leave();
        // Whoever asked may be gone.
        let _ = proven.send(is_proven);
        drop(beside);
    });
    Ok(Some(Check { proof, batch, facts, is_proven }))
}

/// The request as its receiver wants it: a path and a `Host` header over HTTP/1.1, the whole URL
/// over HTTP/2, and both for a proxy that forwards (RFC 9112, section 3.2).
pub(super) fn message(
    set: &OriginSet,
    asked: &Asked<'_>,
    method: &Method,
    protocol: Protocol,
) -> Result<Request<()>> {
    let Asked { url, headers, is_part_of_http1, .. } = asked;
    let forwarded = set.is_forwarded();
    let target = if protocol == Protocol::Http2 || forwarded {
        url.as_str()
    } else {
        &url[url::Position::BeforePath..]
    };
    let unsendable = |error: http::Error| {
        let message = format!("{}: cannot be put into a request", shown(url));
        Error::new(ErrorKind::Usage, message).with_source(error)
    };
    let mut request = Request::new(());
    *request.method_mut() = method.clone();
    *request.uri_mut() = Uri::try_from(target).map_err(|error| unsendable(error.into()))?;
    let all = request.headers_mut();
    all.reserve(headers.len() + 2);
    if protocol == Protocol::Http11 {
        let host = HeaderValue::try_from(set.origin().authority());
        all.insert(HOST, host.map_err(|error| unsendable(error.into()))?);
    }
    if let Some(authorization) = set.proxy_authorization().filter(|_| forwarded) {
        all.insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    all.extend((*headers).clone());
    if protocol == Protocol::Http2 && *is_part_of_http1 {
        all.remove(RANGE);
    }
    Ok(request)
}
