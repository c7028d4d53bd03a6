//! Turns the failures of an exchange into this crate's errors.

use std::io;

use h2::Reason;
use url::Url;

use super::config::ProtocolChoice;
use super::http1;
use super::open::SendFailure;
use super::origin::shown;
use super::tls;
use crate::{Error, ErrorKind};

/// A request that got no response, where the user chose the HTTP version like this.
pub(super) fn no_response(url: &Url, failure: SendFailure, choice: ProtocolChoice) -> Error {
    // With TLS 1.3 a server judges the client's certificate only after the handshake.
    if let Some(refusal) = transport_error(&failure).and_then(tls::cause) {
        let message = format!("{}: {}", shown(url), tls::explain(refusal));
        return Error::new(ErrorKind::Tls, message).with_source(failure);
    }
    let SendFailure::Http2(error) = &failure else {
        return broken(url, failure, BEFORE_A_RESPONSE);
    };
    if let Some(option) = option(choice).filter(|_| requires_http1(&failure)) {
        let message = format!("{}: the server wants HTTP/1.1 here: leave out {option}", shown(url));
        return Error::new(ErrorKind::Protocol, message).with_source(failure);
    }
    // In cleartext HTTP/2 is spoken without asking whether the server knows it.
    if is_no_http2(error) {
        let message = format!(
            "{}: the server does not speak HTTP/2: leave out `http2-prior-knowledge`",
            shown(url)
        );
        return Error::new(ErrorKind::Protocol, message).with_source(failure);
    }
    let ended = if url.scheme() == "http" {
        "the connection ended before a response (without HTTP/2 there, leave out \
         `http2-prior-knowledge`)"
    } else {
        BEFORE_A_RESPONSE
    };
    broken(url, failure, ended)
}

/// Whether the connection ended before anything came over it: many a TLS server does that when it gets a
/// request that is not encrypted. What else comes tells by itself whether it is TLS.
pub(super) fn is_silent_end(failure: &SendFailure) -> bool {
    matches!(failure, SendFailure::Http1(error) if error.get_ref().is_none())
}

/// `error` of an origin over http that has never answered and ends connections silently.
pub(super) fn perhaps_tls(error: &Error) -> Error {
    let message = format!("{} (if it speaks TLS there, ask for https://)", error.message());
    Error::new(error.kind(), message)
}

const BEFORE_A_RESPONSE: &str = "the connection ended before a response";

/// The option that leaves the server no other version than HTTP/2.
const fn option(choice: ProtocolChoice) -> Option<&'static str> {
    match choice {
        ProtocolChoice::Http2 => Some("`http2`"),
        ProtocolChoice::Http2PriorKnowledge => Some("`http2-prior-knowledge`"),
        ProtocolChoice::Auto | ProtocolChoice::Http1 => None,
    }
}

/// Whether the server wants to be asked over HTTP/1.1 instead (RFC 9113, section 7): some do where a
/// client certificate or NTLM is needed.
pub(super) fn requires_http1(failure: &SendFailure) -> bool {
    matches!(failure, SendFailure::Http2(error)
        if error.is_remote() && error.reason() == Some(Reason::HTTP_1_1_REQUIRED))
}

/// Whether what came was no frame. A server that does not know HTTP/2 takes its preface for a bad
/// request, and what it says of that begins like a frame of some impossible size.
fn is_no_http2(error: &h2::Error) -> bool {
    error.is_library() && error.reason() == Some(Reason::FRAME_SIZE_ERROR)
}

/// Whether the server says that it did nothing about the request, so that it may be sent again
/// (RFC 9113, section 8.7).
pub(super) fn is_unprocessed(failure: &SendFailure) -> bool {
    let SendFailure::Http2(error) = failure else { return false };
    // One that goes away tells so to the requests that it will not answer.
    error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM))
}

/// Whether its connection has ended, or ends.
pub(super) fn ends_connection(failure: &SendFailure) -> bool {
    goes_away(failure) || transport_error(failure).is_some()
}

/// Whether its connection goes away, and not because the server was asked for too much or what it could not take.
pub(super) fn goes_away(failure: &SendFailure) -> bool {
    matches!(failure, SendFailure::Http2(error)
        if error.is_remote() && error.is_go_away() && error.reason() == Some(Reason::NO_ERROR))
}

/// Whether the server says that it is asked for too much (RFC 9113, section 7).
pub(super) fn is_refusal(failure: &SendFailure) -> bool {
    let reasons = [Some(Reason::REFUSED_STREAM), Some(Reason::ENHANCE_YOUR_CALM)];
    matches!(failure, SendFailure::Http2(error) if error.is_remote() && reasons.contains(&error.reason()))
}

/// Whether a request that was sent behind another never had its turn: the connection ended before.
pub(super) fn had_no_turn(failure: &SendFailure) -> bool {
    matches!(failure, SendFailure::Http1(error) if http1::had_no_turn(error))
}

/// Whether what came in the place of a response is none.
pub(super) fn is_no_answer(failure: &SendFailure) -> bool {
    matches!(failure, SendFailure::Http1(error) if error.kind() == io::ErrorKind::InvalidData)
}

/// A response whose body stopped before its end.
pub(super) fn short_body(url: &Url, failure: impl Into<SendFailure>) -> Error {
    broken(url, failure.into(), "the connection ended before the body did")
}

/// The same over HTTP/2 of a body that has a Content-Length or not.
pub(super) fn short_http2_body(url: &Url, error: h2::Error, has_length: bool) -> Error {
    // h2 does not tell which of the two it was. It ends streams for malformed trailers like this, too: before
    // the last byte those make the body shorter.
    let is_about_length = error.is_library() && error.is_reset();
    if has_length && is_about_length && error.reason() == Some(Reason::PROTOCOL_ERROR) {
        let message =
            format!("{}: the body is longer or shorter than its Content-Length", shown(url));
        return Error::new(ErrorKind::ShortBody, message);
    }
    short_body(url, error)
}

fn broken(url: &Url, failure: SendFailure, ended: &str) -> Error {
    let (kind, why) = match &failure {
        SendFailure::Http2(error) if is_refusal(&failure) => {
            let by = if error.is_go_away() { "connection" } else { "stream" };
            let reason = error.reason().unwrap_or(Reason::NO_ERROR);
            let why = format!(
                "the server refused the {by} ({}); wait, or ask for less at once with `polite`",
                reason.description()
            );
            (ErrorKind::Overloaded, why)
        }
        SendFailure::Http2(error) if error.get_io().is_none() => {
            (ErrorKind::ShortBody, ended_by_frame(error).unwrap_or_else(|| ended.to_owned()))
        }
        _ => match transport_error(&failure).map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                (ErrorKind::Reset, "the server reset the connection".to_owned())
            }
            Some(io::ErrorKind::InvalidData) => {
                (ErrorKind::Protocol, "what the server sent is malformed".to_owned())
            }
            _ => (ErrorKind::ShortBody, ended.to_owned()),
        },
    };
    let error = Error::new(kind, format!("{}: {why}", shown(url)));
    if says_no_more(&failure, &why) { error } else { error.with_source(failure) }
}

/// Whether `why` has all that `failure` says: of frames, unless a server has a word of its own in them, that is
/// their reason.
fn says_no_more(failure: &SendFailure, why: &str) -> bool {
    let SendFailure::Http2(error) = failure else { return false };
    error.reason().is_some_and(|reason| {
        let reason = reason.description();
        why.contains(reason) && error.to_string().ends_with(reason)
    })
}

/// How a stream or its connection was ended by a frame, and the reason in it.
fn ended_by_frame(error: &h2::Error) -> Option<String> {
    let reason = error.reason()?;
    let reason = reason.description();
    Some(match (error.is_remote(), error.is_go_away()) {
        (true, true) => format!("the server ended the connection ({reason})"),
        (true, false) => format!("the server ended the stream ({reason})"),
        (false, _) => format!("what the server sent breaks the rules of HTTP/2 ({reason})"),
    })
}

/// The failure of the byte stream, if it was that.
fn transport_error(failure: &SendFailure) -> Option<&io::Error> {
    match failure {
        SendFailure::Http1(error) => Some(error),
        SendFailure::Http2(error) => error.get_io(),
    }
}
