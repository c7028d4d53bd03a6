//! Turns hyper's errors into this crate's.

use std::error::Error as StdError;
use std::io;

use url::Url;

use super::origin::shown;
use super::tls;
use crate::{Error, ErrorKind};

/// A request that got no response.
pub(super) fn no_response(url: &Url, error: hyper::Error) -> Error {
    // With TLS 1.3 a server judges the client's certificate only after the handshake.
    if let Some(refusal) = transport_error(&error).and_then(tls::cause) {
        let message = format!("{}: {}", shown(url), tls::explain(refusal));
        return Error::new(ErrorKind::Tls, message).with_source(error);
    }
    if is_no_http2(&error) {
        let message = format!(
            "{}: the server does not speak HTTP/2: leave out --http2-prior-knowledge",
            shown(url)
        );
        return Error::new(ErrorKind::Protocol, message).with_source(error);
    }
    // In cleartext HTTP/2 is spoken only without asking, and an error of h2's comes only then.
    let is_h2 = error.source().is_some_and(|cause| cause.to_string().contains("stream closed"));
    let ended = if is_h2 && url.scheme() == "http" {
        "the connection ended before a response (without HTTP/2 there, leave out \
         --http2-prior-knowledge)"
    } else {
        "the connection ended before a response"
    };
    broken(url, error, ended)
}

/// Whether what came was no frame. A server that does not know HTTP/2 takes its preface for a bad
/// request, and what it says of that begins like a frame of some impossible size.
fn is_no_http2(error: &hyper::Error) -> bool {
    error.source().is_some_and(|cause| cause.to_string().contains("frame with invalid size"))
}

/// A response whose body stopped before its end.
pub(super) fn short_body(url: &Url, error: hyper::Error) -> Error {
    broken(url, error, "the connection ended before the body did")
}

fn broken(url: &Url, error: hyper::Error, ended: &str) -> Error {
    let garbled = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
    let (kind, why) = if error.is_parse() || transport_error(&error).is_some_and(garbled) {
        (ErrorKind::Protocol, "what the server sent is malformed")
    } else {
        (ErrorKind::ShortBody, ended)
    };
    Error::new(kind, format!("{}: {why}", shown(url))).with_source(error)
}

/// The failure of the byte stream below `error`, if it was that.
fn transport_error(error: &hyper::Error) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}
