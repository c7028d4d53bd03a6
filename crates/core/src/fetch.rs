//! One range of one file: the request, the checks of its response, the body.

pub(crate) mod digests;
pub(crate) mod fields;
mod judge;
mod status;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use http::{HeaderName, HeaderValue, StatusCode};
use url::Url;

use crate::catalog::FileSpec;
use crate::connection::{ConnectionId, GetRequest, Http, Piece, Protocol, shown};
use crate::engine::{Event, Existing, Fetch, Outcome};
use crate::sink::Output;
use crate::{Error, ErrorKind, Result};
use fields::{content_length, encoded, modified};
use judge::{Verdict, judge};
pub(crate) use status::{asked_pause, status_error};

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

/// Runs one stream to its end.
pub(crate) async fn run(context: &Context, fetch: &Fetch) -> Outcome {
    match transfer(context, fetch).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(error.into()),
    }
}

async fn transfer(context: &Context, fetch: &Fetch) -> Result<Outcome> {
    let request = request(context, fetch);
    if let Some(existing) = fetch.existing.filter(|existing| existing.modified.is_some())
        && is_unchanged(&context.http, &request, existing).await?
    {
        return Ok(Outcome::NotModified);
    }
    let over = |connection| context.over.set(Some(connection));
    let mut response = context.http.get_over(&request, &over).await?;
    context.http.share(&mut response, fetch.file.index() as u64, fetch.stream);
    (context.served_by)(response.connection, response.protocol);
    let (head, body_ends) = match judge(fetch, &response)? {
        Verdict::Keep(head, body_ends) => (head, body_ends),
        Verdict::Stop(outcome) => return Ok(outcome),
    };
    let mut position = fetch.range.as_ref().map_or(0, |range| range.start);
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
    (context.tell)(Event::Head { stream: fetch.stream, head: *head });
    if fetch.range.is_none()
        && let Some(total) = total
    {
        context.end.set(context.end.get().min(total));
        with_output(context, |output| output.set_size(total))?;
    }
    let has_file = with_output(context, |output| Ok(output.file()?.is_some()))?;
    loop {
        let end = || context.end.get().min(body_ends.unwrap_or(u64::MAX));
        let left = || end().saturating_sub(position);
        let keep = |piece: Piece<'_>| keep(context, position, left(), piece);
        let Some(kept) = response.piece_or_pipe(left, has_file, keep).await? else { break };
        let kept = kept?;
        if kept > 0 {
            position += kept;
            (context.tell)(Event::Data { stream: fetch.stream, bytes: kept });
        }
        // The end of the body is waited for, so that the connection can be used again; a body that
        // is longer than it should be is not.
        if position >= end() && (kept == 0 || body_ends != Some(position)) {
            return Ok(Outcome::Complete);
        }
    }
    match body_ends {
        Some(end) if position < end.min(context.end.get()) => {
            let message =
                format!("{}: the body ended {} bytes early", shown(&fetch.url), end - position);
            Err(Error::new(ErrorKind::ShortBody, message))
        }
        _ => Ok(Outcome::Complete),
    }
}

/// Writes what of `piece`, which begins at `position`, is among the `left` bytes that this stream is
/// still to bring.
fn keep(context: &Context, position: u64, left: u64, piece: Piece<'_>) -> Result<u64> {
    let pipe = match piece {
        Piece::Bytes(bytes) => {
            let kept = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            let length = kept.len() as u64;
            if !kept.is_empty() {
                with_output(context, |output| {
                    output.write_at(position, kept)?;
                    output.wrote(position..position + length);
                    Ok(())
                })?;
            }
            return Ok(length);
        }
        Piece::Piped(pipe) => pipe,
    };
    let length = pipe.waiting() as u64;
    with_output(context, |output| {
        if let Some(file) = output.file()? {
            pipe.move_to(file, position);
        }
        // A file system without splice, or a failure that the output can name.
        let mut buffer = [0; 16 * 1024];
        while pipe.waiting() > 0 {
            let offset = position + (length - pipe.waiting() as u64);
            let read = pipe.read(&mut buffer).map_err(|error| {
                Error::new(ErrorKind::FileIo, "a pipe of this process is broken").with_source(error)
            })?;
            output.write_at(offset, &buffer[..read])?;
        }
        output.wrote(position..position + length);
        Ok(())
    })?;
    Ok(length)
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

fn request(context: &Context, fetch: &Fetch) -> GetRequest {
    let mut request = GetRequest::new(fetch.url.clone());
    request.range =
        fetch.range.as_ref().map(|range| (range.start, Some(range.end.saturating_sub(1))));
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
