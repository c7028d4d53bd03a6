//! One range of one file: the request, the checks of its response, the body.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED,
    RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use url::Url;

use crate::catalog::FileSpec;
use crate::connection::{ConnectionId, GetRequest, GetResponse, Http, Piece, Protocol, shown};
use crate::engine::{Event, Existing, Failure, Fetch, Head, Outcome, Validator};
use crate::sink::Output;
use crate::{Error, ErrorKind, Result};

/// The output of a file, shared by its streams. Empty once the file is finished or given up.
pub(crate) type SharedOutput = Rc<RefCell<Option<Box<dyn Output>>>>;

/// What a stream's task is given besides its request.
pub(crate) struct Context {
    pub(crate) http: Http,
    pub(crate) output: SharedOutput,
    /// Where the stream stops (excluded); `u64::MAX` while nothing says so. The driver moves it.
    pub(crate) end: Rc<Cell<u64>>,
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
    let mut response = context.http.get(&request).await?;
    context.http.share(&mut response, fetch.file.index() as u64, fetch.stream);
    (context.served_by)(response.connection, response.protocol);
    let head = match judge(fetch, &response)? {
        Verdict::Go(head) => head,
        Verdict::Stop(outcome) => return Ok(outcome),
    };
    let mut position = fetch.range.as_ref().map_or(0, |range| range.start);
    let body_ends = fetch.range.as_ref().map(|range| range.end).or(head.total);
    if fetch.range.is_none()
        && let Some(total) = head.total
    {
        context.end.set(context.end.get().min(total));
        with_output(context, |output| output.set_size(total))?;
    }
    (context.tell)(Event::Head { stream: fetch.stream, head });
    let has_file = with_output(context, |output| Ok(output.file()?.is_some()))?;
    loop {
        let left = || context.end.get().saturating_sub(position);
        let room = || if has_file { left() } else { 0 };
        let keep = |piece: Piece<'_>| keep(context, position, left(), piece);
        let Some(kept) = response.piece_or_pipe(room, keep).await? else { break };
        let kept = kept?;
        if kept > 0 {
            position += kept;
            (context.tell)(Event::Data { stream: fetch.stream, bytes: kept });
        }
        if position >= context.end.get() && body_ends != Some(position) {
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
            if !kept.is_empty() {
                with_output(context, |output| output.write_at(position, kept))?;
            }
            return Ok(kept.len() as u64);
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
    request.headers.clone_from(&context.headers);
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

enum Verdict {
    Go(Head),
    Stop(Outcome),
}

/// Decides from the head of a response whether its body may be kept.
fn judge(fetch: &Fetch, response: &GetResponse) -> Result<Verdict> {
    let headers = &response.headers;
    let validator = validator(headers);
    let wrong = |kind, what: &str| Error::new(kind, format!("{}: {what}", shown(&fetch.url)));
    let total = match (&fetch.range, response.status) {
        (None, StatusCode::OK) => content_length(headers),
        (None, StatusCode::PARTIAL_CONTENT) => {
            return Err(wrong(
                ErrorKind::Protocol,
                "the server sent a part and was asked for the whole",
            ));
        }
        (Some(_), StatusCode::OK) => return Ok(Verdict::Stop(Outcome::RangeIgnored)),
        (Some(_), StatusCode::RANGE_NOT_SATISFIABLE) => {
            return Err(wrong(ErrorKind::Changed, "the server's file is shorter than before"));
        }
        (Some(range), StatusCode::PARTIAL_CONTENT) => {
            if encoded(headers) {
                return Err(wrong(ErrorKind::Protocol, "the server compressed a range"));
            }
            let stated = text(headers, &CONTENT_RANGE).and_then(parse_content_range);
            let Some((start, end, total)) = stated else {
                return Err(wrong(
                    ErrorKind::Protocol,
                    "a part came without a usable Content-Range",
                ));
            };
            if start != range.start || end > range.end || end <= start {
                let what = format!(
                    "bytes {start}-{} came and {}-{} were asked for",
                    end.saturating_sub(1),
                    range.start,
                    range.end.saturating_sub(1)
                );
                return Err(wrong(ErrorKind::Protocol, &what));
            }
            if total.is_some() && fetch.total.is_some() && total != fetch.total {
                return Err(wrong(
                    ErrorKind::Changed,
                    "the server's file has another size than before",
                ));
            }
            if fetch.validator.as_ref().is_some_and(|known| differ(known, &validator)) {
                return Err(wrong(
                    ErrorKind::Changed,
                    "the server's file is another one than before",
                ));
            }
            total.or(fetch.total)
        }
        (_, status) => return Err(status_error(&fetch.url, status, headers)),
    };
    Ok(Verdict::Go(Head {
        total,
        ranges: !encoded(headers)
            && (fetch.range.is_some()
                || text(headers, &ACCEPT_RANGES).is_some_and(|v| v.trim() == "bytes")),
        modified: modified(headers),
        validator,
        url: response.final_url.clone(),
        origin: response.origin.clone(),
        protocol: response.protocol,
        response_time: response.response_time,
    }))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    text(headers, &CONTENT_LENGTH)?.parse().ok()
}

fn modified(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, &LAST_MODIFIED)?).ok()
}

fn encoded(headers: &HeaderMap) -> bool {
    text(headers, &CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.trim().eq_ignore_ascii_case("identity"))
}

/// Only strong entity tags join ranges (RFC 9110 section 8.8.1).
fn validator(headers: &HeaderMap) -> Validator {
    let etag = text(headers, &ETAG).filter(|tag| tag.starts_with('"')).map(str::to_owned);
    Validator { etag, last_modified: text(headers, &LAST_MODIFIED).map(str::to_owned) }
}

/// Whether two validators cannot belong to the same version. Strong tags decide where both sides
/// have one.
fn differ(known: &Validator, now: &Validator) -> bool {
    match (&known.etag, &now.etag) {
        (Some(known), Some(now)) => known != now,
        _ => known.last_modified != now.last_modified,
    }
}

/// `bytes START-LAST/TOTAL` as (start, end excluded, total), RFC 9110 section 14.4.
fn parse_content_range(value: &str) -> Option<(u64, u64, Option<u64>)> {
    let (unit, rest) = value.trim().split_once(' ')?;
    let (range, total) = rest.split_once('/').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
    let (start, last) = range.split_once('-')?;
    let (start, last) = (start.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse::<u64>().ok()?),
    };
    let end = last.checked_add(1)?;
    (start <= last && total.is_none_or(|total| end <= total)).then_some((start, end, total))
}

/// `Retry-After` as seconds or a date (RFC 9110 section 10.2.3), from now on.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = text(headers, &RETRY_AFTER)?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO))
}

/// What a status that brings no file means, and what to do.
pub(crate) fn status_error(url: &Url, status: StatusCode, headers: &HeaderMap) -> Error {
    let kind = status_kind(status);
    let advice = match kind {
        ErrorKind::NotFound => "; check the URL",
        ErrorKind::Auth => "; give credentials with --user, --netrc or --cookie-file",
        ErrorKind::Overloaded => "; wait, or ask for less at once with --polite",
        ErrorKind::ServerError => "; the failure is the server's: try again later",
        _ => "; this is no answer that holds a file: check the URL and the headers",
    };
    let reason = status.canonical_reason().unwrap_or("");
    let message = format!("{}: HTTP {} {reason}{advice}", shown(url), status.as_u16());
    let error = Error::new(kind, message);
    match retry_after(headers).filter(|_| kind == ErrorKind::Overloaded) {
        Some(pause) => error.with_source(RetryAfter(pause)),
        None => error,
    }
}

fn status_kind(status: StatusCode) -> ErrorKind {
    match status.as_u16() {
        404 | 410 => ErrorKind::NotFound,
        401 | 403 | 407 => ErrorKind::Auth,
        429 | 503 => ErrorKind::Overloaded,
        408 | 500..=599 => ErrorKind::ServerError,
        _ => ErrorKind::HttpStatus,
    }
}

/// Carries `Retry-After` inside an error.
#[derive(Debug, thiserror::Error)]
#[error("the server asks to wait {} s", .0.as_secs())]
struct RetryAfter(Duration);

/// How long the server asked to wait, where `error` came with that.
pub(crate) fn asked_pause(error: &Error) -> Option<Duration> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<RetryAfter>().map(|pause| pause.0)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let retry_after = asked_pause(&error);
        Self { kind: error.kind(), message: error.message(), retry_after }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn content_ranges() {
        assert_eq!(parse_content_range("bytes 0-99/1000"), Some((0, 100, Some(1000))));
        assert_eq!(parse_content_range("BYTES 5-5/*"), Some((5, 6, None)));
        for wrong in [
            "bytes */1000",
            "bytes 9-5/100",
            "bytes 0-100/100",
            "items 0-1/2",
            "bytes 0-1",
            "",
            "bytes -5/10",
            "bytes 0-18446744073709551615/*",
        ] {
            assert_eq!(parse_content_range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn weak_tags_never_join_ranges() {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, HeaderValue::from_static("W/\"a\""));
        assert_eq!(validator(&headers).etag, None);
        headers.insert(ETAG, HeaderValue::from_static("\"a\""));
        assert_eq!(validator(&headers).etag.as_deref(), Some("\"a\""));
    }

    #[test]
    fn retry_after_as_seconds_and_as_a_date() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(7)));
        headers.insert(RETRY_AFTER, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert_eq!(retry_after(&headers), Some(Duration::ZERO), "a date that has passed");
        headers.insert(RETRY_AFTER, HeaderValue::from_static("soon"));
        assert_eq!(retry_after(&headers), None);
    }

    proptest! {
        #[test]
        fn no_content_range_panics(value in ".{0,60}") {
            let _ = parse_content_range(&value);
        }

        #[test]
        fn well_formed_content_ranges_are_read(start in 0u64..1 << 60, length in 1u64..1 << 60, rest in 0u64..1 << 60) {
            let end = start + length;
            let value = format!("bytes {start}-{}/{}", end - 1, end + rest);
            prop_assert_eq!(parse_content_range(&value), Some((start, end, Some(end + rest))));
        }
    }
}
