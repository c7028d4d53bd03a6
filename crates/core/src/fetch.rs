//! One range of one file: the request, the checks of its response, the body.

pub(crate) mod digests;
pub(crate) mod fields;
mod incoming;
mod judge;
mod status;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};
use pelton_algos::parts::Parts;
use pelton_algos::ranges::{ByteRange, StreamId};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use url::Url;

use crate::catalog::FileSpec;
use crate::connection::{
    ConnectionId, Further, GetRequest, GetResponse, Http, Origin, Protocol, shown,
};
use crate::engine::{Event, Existing, Fetch, Head, Outcome};
use crate::sink::Output;
use crate::{Error, ErrorKind, Result};
use fields::{content_length, content_range, encoded, modified};
use incoming::{Incoming, tell_of_promise};
use judge::{Verdict, judge};
pub(crate) use status::{asked_pause, status_error};

/// How long the body of an answer that brings no file is waited for: it mostly comes with its head.
const REFUSAL: Duration = Duration::from_millis(250);

/// The output of a file, shared by its streams. Empty once the file is finished or given up.
pub(crate) type SharedOutput = Rc<RefCell<Option<Box<dyn Output>>>>;

/// What a stream's task is given besides its request.
pub(crate) struct Context {
    pub(crate) http: Http,
    pub(crate) output: SharedOutput,
    /// Where the stream stops (excluded); `u64::MAX` while nothing says so. The driver moves it.
    pub(crate) end: Rc<Cell<u64>>,
    /// The connection that bears the stream, as soon as it has one.
    pub(crate) over: Rc<Cell<Option<ConnectionId>>>,
    /// The file's URL as the list has it: redirects may have led elsewhere since.
    pub(crate) home: Url,
    /// Headers of this file alone.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Takes events.
    pub(crate) tell: Rc<dyn Fn(Event)>,
    /// Takes note of the connection that serves the stream.
    pub(crate) served_by: Rc<dyn Fn(ConnectionId, Protocol)>,
}

impl Context {
    /// `stream` is asked for over `connection`.
    fn asks_over(&self, stream: StreamId, connection: ConnectionId) {
        let before = self.over.replace(Some(connection));
        if before.is_some_and(|before| before != connection) {
            (self.tell)(Event::Moved { stream });
        }
    }
}

/// Runs one stream to its end.
pub(crate) async fn run(context: &Context, fetch: &Fetch) -> Outcome {
    match transfer(context, fetch).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::debug!(message = error.message(), "failed");
            Outcome::Failed(error.into())
        }
    }
}

async fn transfer(context: &Context, fetch: &Fetch) -> Result<Outcome> {
    if let Some(existing) = fetch.existing.filter(|existing| existing.modified.is_some())
        && is_unchanged(&context.http, &request(context, fetch, None), existing).await?
    {
        return Ok(Outcome::NotModified);
    }
    let mut fetch = Cow::Borrowed(fetch);
    let start = fetch.range.as_ref().map_or(0, |range| range.start);
    let outset = fetch.parts.filter(|_| context.http.may_ask_early(&fetch.url));
    let mut parts = outset.map(|outset| Parts::starting(start, outset));
    let First { mut response, mut asked, mut rest } =
        first_answer(context, &fetch, &mut parts).await?;
    let (mut is_first, mut is_early, mut is_beside, mut is_continued) = (true, false, false, false);
    let began = Instant::now();
    loop {
        context.http.share(&mut response, fetch.file.index() as u64, fetch.stream);
        (context.served_by)(response.connection, response.protocol);
        log_answer(asked.as_ref(), &response);
        let judged = judge(&fetch, asked.as_ref(), &response);
        if is_early && !is_beside {
            context.http.note_early(&response, matches!(judged, Ok(Verdict::Keep(..))));
        }
        let mut position = asked.as_ref().map_or(0, |range| range.start);
        let mut next = None;
        let mut told = 0;
        match judged {
            Ok(Verdict::Keep(head, body_ends)) => {
                if std::mem::take(&mut is_first) {
                    if let Some(parts) = &mut parts {
                        parts.on_answer(head.response_time, context.http.rtt(&head.origin));
                        let size = head.total.filter(|size| *size > parts.asked());
                        next = rest.take().zip(size).map(|(further, size)| {
                            let range = parts.asked()..size;
                            parts.begin_again(size);
                            (further, range)
                        });
                        if fetch.range.is_none() {
                            let fetch = fetch.to_mut();
                            fetch.url.clone_from(&head.url);
                            fetch.total = head.total;
                            fetch.validator = Some(head.validator.clone());
                        }
                    }
                    tell_of_promise(context, fetch.stream, position, &response, &mut told);
                    begin(context, &fetch, *head)?;
                    if let Some(parts) = &parts {
                        (context.tell)(Event::Asked { stream: fetch.stream, end: parts.asked() });
                    }
                }
                let is_further = fetch.range.is_none() && position > 0;
                if is_further && !std::mem::replace(&mut is_continued, true) {
                    (context.tell)(Event::Continued { stream: fetch.stream });
                }
                let fetch = &*fetch;
                let mut body =
                    Incoming { context, fetch, began, position, body_ends, parts, next, told };
                let is_over = body.read(&mut response).await;
                if is_over.is_err() && body.next.as_ref().is_some_and(|(it, _)| it.is_behind()) {
                    // Some servers end a connection over which more comes than they have answered.
                    context.http.note_early(&response, false);
                }
                if is_over? {
                    return Ok(Outcome::Complete);
                }
                Incoming { position, parts, next, .. } = body;
            }
            // In its turn, in one piece and wherever redirects lead it may be had.
            _ if is_early => parts = None,
            Ok(Verdict::Stop(outcome)) => return Ok(left(context, response, outcome).await),
            Err(error) => {
                leave_refused(context, &mut response).await;
                let is_led = Origin::of(&fetch.url).is_ok_and(|asked| asked != response.origin);
                return Err(if is_led { error.behind_redirect(&response.origin) } else { error });
            }
        }
        is_early = false;
        // An answer may bring less than it was asked for: what follows the rest of that is not next.
        if let Some((further, range)) = next.filter(|(_, range)| range.start == position) {
            is_beside = !further.is_behind();
            if let Some(answer) = further.answer(&response).await {
                context.over.set(Some(answer.connection));
                (response, asked, is_early) = (answer, Some(range), true);
                continue;
            }
            parts = None;
        }
        if response.protocol != Protocol::Http11 {
            parts = None;
        }
        // Its connection is free for others, or closed.
        drop(response);
        let rest = position..context.end.get();
        if rest.is_empty() {
            return Ok(Outcome::Complete);
        }
        // What could not be asked for before its turn, as others wait behind it, begins anew elsewhere.
        parts = parts.filter(|_| context.http.may_ask_early(&fetch.url));
        if let Some(parts) = &mut parts {
            parts.begin_again(position);
        }
        let rest = first_part(rest, parts.as_mut());
        (context.tell)(Event::Asked { stream: fetch.stream, end: rest.end });
        (response, asked) = (ask(context, &fetch, Some(&rest)).await?, Some(rest));
    }
}

fn log_answer(asked: Option<&ByteRange>, response: &GetResponse) {
    tracing::debug!(
        url = %shown(&response.final_url),
        bytes = asked.map(tracing::field::debug),
        status = response.status.as_u16(),
        protocol = %response.protocol,
        connection = response.connection.0,
        ms = response.response_time.as_millis(),
        "answered"
    );
}

/// Reads what a refusal says, so that its connection can be used again, if it may be.
async fn leave_refused(context: &Context, response: &mut GetResponse) {
    if response.status == StatusCode::MISDIRECTED_REQUEST {
        context.http.shun(response.connection);
    }
    // What was refused is asked for again, best over the same connection, unless it is that which is refused.
    if !response.is_refused_again() {
        let _ = timeout(REFUSAL, response.drain()).await;
    }
}

/// `outcome`, once its connection can be used again. An answer that brings something else than was wanted ends with it.
async fn left(context: &Context, mut response: GetResponse, outcome: Outcome) -> Outcome {
    if !response.status.is_success() {
        leave_refused(context, &mut response).await;
    }
    outcome
}

/// What of `range` is asked for first.
fn first_part(range: ByteRange, parts: Option<&mut Parts>) -> ByteRange {
    let end = parts.and_then(|parts| parts.next(range.start, range.end));
    range.start..end.unwrap_or(range.end)
}

/// The first answer to what was asked for.
struct First {
    response: GetResponse,
    /// The range that it is one to.
    asked: Option<ByteRange>,
    /// What follows it was asked for over another connection.
    rest: Option<Further>,
}

/// A whole file that can't be joined of parts is asked for in one piece.
async fn first_answer(
    context: &Context,
    fetch: &Fetch,
    parts: &mut Option<Parts>,
) -> Result<First> {
    let known = fetch.range.clone().or_else(|| parts.is_some().then_some(0..u64::MAX));
    let asked = known.map(|range| first_part(range, parts.as_mut()));
    let begins = fetch.range.is_none() && parts.is_some();
    let (mut response, rest) = match asked.as_ref().filter(|_| begins) {
        Some(asked) => ask_with_rest(context, fetch, asked).await?,
        None => (ask(context, fetch, asked.as_ref()).await?, None),
    };
    let is_whole = begins && response.protocol != Protocol::Http11;
    if !begins || !is_whole && is_part(fetch, asked.as_ref(), &response) {
        return Ok(First { response, asked, rest });
    }
    *parts = None;
    if is_whole || response.status == StatusCode::OK {
        return Ok(First { response, asked: None, rest: None });
    }
    let total = content_range(&response.headers).and_then(|(_, _, total)| total);
    if !response.status.is_success() {
        leave_refused(context, &mut response).await;
    }
    drop((response, rest));
    let response = ask(context, fetch, None).await?;
    match total.and_then(|total| judge::no_file(fetch, total, &response.headers)) {
        Some(error) => Err(error),
        None => Ok(First { response, asked: None, rest: None }),
    }
}

/// Asks for the first part of a file, and where that takes the server long for everything behind it as well: it
/// thinks about both at the same time.
async fn ask_with_rest(
    context: &Context,
    fetch: &Fetch,
    asked: &ByteRange,
) -> Result<(GetResponse, Option<Further>)> {
    let is_asked = Notify::new();
    let over = |connection| {
        context.asks_over(fetch.stream, connection);
        is_asked.notify_one();
    };
    let first = GetRequest { is_part_of_http1: true, ..request(context, fetch, Some(asked)) };
    let mut first = pin!(context.http.get_over(&first, &over));
    let mut rest = request(context, fetch, None);
    rest.range = Some((asked.end, None));
    let rest = async {
        is_asked.notified().await;
        context.http.get_beside(&rest).await
    };
    tokio::select! {
        biased;
        answer = &mut first => Ok((answer?, None)),
        further = rest => {
            (context.tell)(Event::Asked { stream: fetch.stream, end: u64::MAX });
            Ok((first.await?, Some(further)))
        }
    }
}

/// Whether `answer` is a part of a file to which others can be joined, all of it, or an error that has nothing
/// to do with parts.
fn is_part(fetch: &Fetch, asked: Option<&ByteRange>, answer: &GetResponse) -> bool {
    match judge(fetch, asked, answer) {
        Ok(Verdict::Keep(head, end)) => {
            head.total.is_some() && (end == head.total || head.validator.is_strong())
        }
        Ok(Verdict::Stop(_)) => false,
        Err(_) => true,
    }
}

async fn ask(context: &Context, fetch: &Fetch, range: Option<&ByteRange>) -> Result<GetResponse> {
    let over = |connection| context.asks_over(fetch.stream, connection);
    context.http.get_over(&request(context, fetch, range), &over).await
}

/// The first answer is one to what was asked for.
fn begin(context: &Context, fetch: &Fetch, head: Head) -> Result<()> {
    if fetch.anew {
        with_output(context, |output| output.restart())?;
    }
    if let Some(digest) = &head.digest {
        with_output(context, |output| {
            output.expect(digest);
            Ok(())
        })?;
    }
    let total = head.total;
    // First: what a full disk has no room for is then known.
    (context.tell)(Event::Head { stream: fetch.stream, head });
    if fetch.range.is_none()
        && let Some(total) = total
    {
        context.end.set(context.end.get().min(total));
        with_output(context, |output| output.set_size(total))?;
    }
    Ok(())
}

/// Whether the server's file is the one that is there. `If-Modified-Since` would not tell: servers
/// answer 304 to every later date (RFC 9110, section 13.1.3) and say nothing of the size.
async fn is_unchanged(http: &Http, request: &GetRequest, existing: Existing) -> Result<bool> {
    let response = http.head(request).await?;
    let headers = &response.headers;
    Ok(response.status == StatusCode::OK
        && !encoded(headers)
        && existing.is_version(content_length(headers), modified(headers)))
}

fn with_output<R>(
    context: &Context,
    action: impl FnOnce(&mut dyn Output) -> Result<R>,
) -> Result<R> {
    match context.output.borrow_mut().as_deref_mut() {
        Some(output) => action(output),
        None => Err(Error::new(ErrorKind::Cancelled, "the file is no longer wanted")),
    }
}

fn request(context: &Context, fetch: &Fetch, range: Option<&ByteRange>) -> GetRequest {
    let mut request = GetRequest::new(fetch.url.clone());
    request.range = range.map(|range| (range.start, Some(range.end.saturating_sub(1))));
    request.home = Some(context.home.clone());
    request.expected = fetch.expected;
    request.headers.clone_from(&context.headers);
    if fetch.wants_digest {
        request.headers.push((digests::WANT_REPR_DIGEST, digests::WANTED));
    }
    request
}

/// Headers of one file. Those that the engine owns are left out: they would contradict its own.
pub(crate) fn headers(spec: &FileSpec) -> Vec<(HeaderName, HeaderValue)> {
    const OWNED: [&str; 8] = [
        "range",
        "if-range",
        "host",
        "accept-encoding",
        "connection",
        "content-length",
        "transfer-encoding",
        "expect",
    ];
    spec.headers
        .iter()
        .filter(|(name, _)| !OWNED.contains(&name.to_ascii_lowercase().as_str()))
        .filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)))
        .collect()
}
