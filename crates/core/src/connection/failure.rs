//! Turns the failures of an exchange into this crate's errors.

use std::error::Error as StdError;
use std::io;

use url::Url;

use super::open::SendFailure;
use super::origin::shown;
use super::tls;
use crate::{Error, ErrorKind};

/// A request that got no response.
pub(super) fn no_response(url: &Url, failure: impl Into<SendFailure>) -> Error {
    let failure = failure.into();
    // With TLS 1.3 a server judges the client's certificate only after the handshake.
    if let Some(refusal) = transport_error(&failure).and_then(tls::cause) {
        let message = format!("{}: {}", shown(url), tls::explain(refusal));
        return Error::new(ErrorKind::Tls, message).with_source(failure);
    }
    let SendFailure::Http2(error) = &failure else {
        return broken(url, failure, "the connection ended before a response");
    };
    // In cleartext HTTP/2 is spoken without asking whether the server knows it.
    if is_no_http2(error) {
        let message = format!(
            "{}: the server does not speak HTTP/2: leave out --http2-prior-knowledge",
            shown(url)
        );
        return Error::new(ErrorKind::Protocol, message).with_source(failure);
    }
    let ended = if url.scheme() == "http" {
        "the connection ended before a response (without HTTP/2 there, leave out \
         --http2-prior-knowledge)"
    } else {
        "the connection ended before a response"
    };
    broken(url, failure, ended)
}

/// Whether what came was no frame. A server that does not know HTTP/2 takes its preface for a bad
/// request, and what it says of that begins like a frame of some impossible size.
fn is_no_http2(error: &hyper::Error) -> bool {
    error.source().is_some_and(|cause| cause.to_string().contains("frame with invalid size"))
}

/// A response whose body stopped before its end.
pub(super) fn short_body(url: &Url, failure: impl Into<SendFailure>) -> Error {
    broken(url, failure.into(), "the connection ended before the body did")
}

fn broken(url: &Url, failure: SendFailure, ended: &str) -> Error {
    let garbled = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
    let reset = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionReset;
    if transport_error(&failure).is_some_and(reset) {
        let message = format!("{}: the server reset the connection", shown(url));
        return Error::new(ErrorKind::Reset, message).with_source(failure);
    }
    let is_no_http = matches!(&failure, SendFailure::Http2(error) if error.is_parse());
    let (kind, why) = if is_no_http || transport_error(&failure).is_some_and(garbled) {
        (ErrorKind::Protocol, "what the server sent is malformed")
    } else {
        (ErrorKind::ShortBody, ended)
    };
    Error::new(kind, format!("{}: {why}", shown(url))).with_source(failure)
}

/// The failure of the byte stream, if it was that.
fn transport_error(failure: &SendFailure) -> Option<&io::Error> {
    let error = match failure {
        SendFailure::Http1(error) => return Some(error),
        SendFailure::Http2(error) => error,
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}
