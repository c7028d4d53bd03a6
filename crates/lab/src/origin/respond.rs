//! From a request to a response.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;

use super::body::{FileBody, OriginBody, Pacer};
use super::ranges::{self, Requested};
use super::state::{Rules, State};
use super::{LogEntry, OriginBehaviour, listing};
use crate::content::VirtualFile;

/// Answers one request and writes it to the log.
pub(super) async fn respond<B>(
    state: Arc<State>,
    pacer: Arc<Pacer>,
    request: Request<B>,
) -> Response<OriginBody> {
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
    let rules = state.rules(&path);
    if !rules.behaviour.latency.is_zero() {
        tokio::time::sleep(rules.behaviour.latency).await;
    }
    let response = answer(&state, rules, &pacer, &path, request.method(), request.headers())
        .unwrap_or_else(|error| text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()));
    let field = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    state.log(LogEntry {
        method: request.method().clone(),
        path,
        version: request.version(),
        range: field(header::RANGE).map(str::to_owned),
        status: response.status(),
    });
    response
}

fn answer(
    state: &State,
    rules: &Rules,
    pacer: &Arc<Pacer>,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> http::Result<Response<OriginBody>> {
    let behaviour = &rules.behaviour;
    if let Some(storm) = rules.next_of_storm() {
        let status = StatusCode::from_u16(storm.status)?;
        let mut response = text(status, format!("{status}\n"));
        if let Some(seconds) = storm.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        return Ok(response);
    }
    if !authorised(behaviour, headers) {
        return Response::builder()
            .status(StatusCode::UNAUTHORIZED)
            .header(header::WWW_AUTHENTICATE, "Basic realm=\"lab\"")
            .body(OriginBody::text("401 Unauthorized\n"));
    }
    if let Some(location) = &behaviour.redirect_to {
        return Response::builder()
            .status(StatusCode::FOUND)
            .header(header::LOCATION, location)
            .body(OriginBody::text("302 Found\n"));
    }
    if method != Method::GET && method != Method::HEAD {
        return Response::builder()
            .status(StatusCode::METHOD_NOT_ALLOWED)
            .header(header::ALLOW, "GET, HEAD")
            .body(OriginBody::text("405 Method Not Allowed\n"));
    }
    let files = state.files();
    if let Some(file) = files.get(path) {
        return serve(state, behaviour, pacer, file, method, headers);
    }
    match listing::page(path, &files).filter(|_| path.ends_with('/')) {
        Some(page) => Response::builder()
            .header(header::CONTENT_TYPE, "text/html")
            .body(OriginBody::text(page)),
        None => Ok(text(StatusCode::NOT_FOUND, "404 Not Found\n")),
    }
}

/// The whole file, a part of it, or 416.
fn serve(
    state: &State,
    behaviour: &OriginBehaviour,
    pacer: &Arc<Pacer>,
    file: &VirtualFile,
    method: &Method,
    headers: &HeaderMap,
) -> http::Result<Response<OriginBody>> {
    let mut response = Response::builder().header(header::CONTENT_TYPE, "application/octet-stream");
    if !behaviour.ignore_ranges && !behaviour.hide_ranges {
        response = response.header(header::ACCEPT_RANGES, "bytes");
    }
    if !behaviour.hide_validators {
        response = response
            .header(header::ETAG, file.etag())
            .header(header::LAST_MODIFIED, httpdate::fmt_http_date(file.modified()));
    }
    // A Range counts for GET alone (RFC 9110, section 14.2).
    let requested = if behaviour.ignore_ranges || method == Method::HEAD {
        Requested::Whole
    } else {
        requested(file, headers)
    };
    let (range, hide_length) = match requested {
        Requested::Whole => (0..file.size, behaviour.hide_length),
        Requested::Unsatisfiable => {
            return response
                .status(StatusCode::RANGE_NOT_SATISFIABLE)
                .header(header::CONTENT_RANGE, format!("bytes */{}", file.size))
                .body(OriginBody::text("416 Range Not Satisfiable\n"));
        }
        Requested::Part(range) => {
            let field = format!("bytes {}-{}/{}", range.start, range.end - 1, file.size);
            response =
                response.status(StatusCode::PARTIAL_CONTENT).header(header::CONTENT_RANGE, field);
            (range, false)
        }
    };
    if !hide_length {
        response = response.header(header::CONTENT_LENGTH, range.end - range.start);
    }
    if method == Method::HEAD {
        return response.body(OriginBody::empty());
    }
    response.body(OriginBody::File(FileBody {
        file: file.clone(),
        rest: range,
        hide_length,
        pace: behaviour.rate_per_connection.map(|rate| (Arc::clone(pacer), rate)),
        waiting: None,
        sent: state.sent_counter(),
    }))
}

/// What `Range` and `If-Range` together ask for.
fn requested(file: &VirtualFile, headers: &HeaderMap) -> Requested {
    let field = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(range) = field(header::RANGE) else {
        return Requested::Whole;
    };
    // RFC 9110, section 13.1.5: an entity tag must match strongly, a date exactly.
    let unchanged = field(header::IF_RANGE).is_none_or(|validator| {
        validator == file.etag() || validator == httpdate::fmt_http_date(file.modified())
    });
    if unchanged { ranges::parse(range, file.size) } else { Requested::Whole }
}

fn authorised(behaviour: &OriginBehaviour, headers: &HeaderMap) -> bool {
    let Some((user, password)) = &behaviour.basic_auth else {
        return true;
    };
    let expected = STANDARD.encode(format!("{user}:{password}"));
    headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .is_some_and(|(scheme, given)| scheme.eq_ignore_ascii_case("basic") && given == expected)
}

fn text(status: StatusCode, text: impl Into<bytes::Bytes>) -> Response<OriginBody> {
    let mut response = Response::new(OriginBody::text(text));
    *response.status_mut() = status;
    response
}
