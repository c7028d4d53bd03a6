//! One request and its response, over a connection of its origin.

use std::rc::Rc;

use http::header::{HOST, PROXY_AUTHORIZATION, RANGE};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use tokio::sync::oneshot;
use tokio::time::Instant;
use url::Url;

use super::config::ProtocolChoice;
use super::failure;
use super::origin::{Scheme, shown};
use super::pool::order::Facts;
use super::pool::{Lease, OriginSet};
use super::response::GetResponse;
use super::scratch::Scratch;
use super::telemetry::{ConnectionId, Protocol};
use crate::{Error, ErrorKind, Result};

/// What is asked for.
#[derive(Clone)]
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    /// Without user name and password.
    pub(super) url: Url,
    pub(super) headers: &'a HeaderMap,
}

/// Sends one request; `over` is told over which connection. A server may close a connection that
/// served before just as it is used again (RFC 9112, section 9.5): such a request is sent once more, and
/// so is one that the server has not begun with, or wants to have over HTTP/1.1.
pub(super) async fn exchange(
    set: &Rc<OriginSet>,
    choice: ProtocolChoice,
    asked: Asked<'_>,
    over: &dyn Fn(ConnectionId),
    scratch: Scratch,
) -> Result<GetResponse> {
    let mut is_repeated = false;
    loop {
        let lease = set.acquire().await?;
        over(lease.id());
        let began = Instant::now();
        let answer = lease.send(message(set, &asked, asked.method, lease.protocol())?);
        let order = find_order_out(set, &lease, &asked)?;
        let error = match answer.await {
            Ok((head, body)) => {
                set.has_answered.set(true);
                set.note_answer(&lease);
                let (took, origin) = (began.elapsed(), set.origin().clone());
                let facts = Facts::of(head.status(), head.headers());
                let url = asked.url;
                let mut response = GetResponse::new(head, body, lease, took, url, origin, scratch);
                if let Some(order) = order {
                    response.doubted(order.compare(facts));
                }
                return Ok(response);
            }
            Err(error) => error,
        };
        let is_unprocessed = failure::is_unprocessed(&error);
        if choice == ProtocolChoice::Auto && failure::requires_http1(&error) {
            // No connection of HTTP/2 is left after this, so it comes here once.
            set.require_http1();
        } else if lease.is_behind {
            // After a few of these none is sent behind another any more.
            set.note_unanswered(!failure::had_no_turn(&error));
        } else if is_repeated || !(lease.reused || is_unprocessed) {
            let error = failure::no_response(&asked.url, error, choice);
            let is_first = set.origin().scheme == Scheme::Http && !set.has_answered.get();
            return Err(if is_first { failure::perhaps_tls(error) } else { error });
        } else {
            is_repeated = true;
            if !is_unprocessed {
                // What idled as long as this one is as likely to be dead.
                set.close_idle();
            }
        }
        tracing::debug!(%error, origin = %set.origin(), "sending again");
    }
}

/// An origin's order is being found out.
struct Order {
    facts: oneshot::Sender<Facts>,
    is_confused: oneshot::Receiver<bool>,
}

impl Order {
    /// `facts` are those of the first of the two answers. Tells whether the second shows that the first
    /// was to something else.
    fn compare(self, facts: Facts) -> oneshot::Receiver<bool> {
        // Nobody compares where the second request has failed.
        let _ = self.facts.send(facts);
        self.is_confused
    }
}

/// Asks for the head of what `lease` has just been asked for, if that is of use and was not done yet.
fn find_order_out(set: &Rc<OriginSet>, lease: &Lease, asked: &Asked<'_>) -> Result<Option<Order>> {
    let is_plain = *asked.method == Method::GET && !asked.headers.contains_key(RANGE);
    let Some(beside) = set.lease_for_order(lease).filter(|_| is_plain) else { return Ok(None) };
    let answer = beside.send(message(set, asked, &Method::HEAD, lease.protocol())?);
    let (facts, first) = oneshot::channel();
    let (mut confused, is_confused) = oneshot::channel();
    let set = Rc::clone(set);
    tokio::task::spawn_local(async move {
        let answer = tokio::select! {
            biased;
            answer = answer => Some(answer),
            // Nobody waits for it any longer.
            () = confused.closed() => None,
        };
        let is_confused = matches!(&answer, Some(Err(error)) if failure::is_no_answer(error));
        let second = answer.and_then(std::result::Result::ok);
        let second = second.map(|(head, _)| Facts::of(head.status(), head.headers()));
        let first = first.await.ok();
        set.found_order_out(first.as_ref().zip(second.as_ref()));
        // Whoever asked may be gone.
        let _ = confused.send(is_confused);
        drop(beside);
    });
    Ok(Some(Order { facts, is_confused }))
}

/// The request as its receiver wants it: a path and a `Host` header over HTTP/1.1, the whole URL
/// over HTTP/2, and both for a proxy that forwards (RFC 9112, section 3.2).
fn message(
    set: &OriginSet,
    asked: &Asked<'_>,
    method: &Method,
    protocol: Protocol,
) -> Result<Request<()>> {
    let Asked { url, headers, .. } = asked;
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
    Ok(request)
}
