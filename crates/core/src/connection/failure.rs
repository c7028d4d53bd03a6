//! Turns hyper's errors into this crate's.

use std::error::Error as StdError;
use std::io;

use url::Url;

use super::origin::shown;
use crate::{Error, ErrorKind};

/// A request that got no response.
pub(super) fn no_response(url: &Url, error: hyper::Error) -> Error {
    let url = shown(url);
    if broke_http(&error) {
        let message = format!("{url}: the server sent a malformed response");
        return Error::new(ErrorKind::Protocol, message).with_source(error);
    }
    let message = format!("{url}: the connection ended before a response");
    Error::new(ErrorKind::ShortBody, message).with_source(error)
}

/// A response whose body stopped before its end.
pub(super) fn short_body(url: &Url, error: hyper::Error) -> Error {
    let url = shown(url);
    if broke_http(&error) {
        let message = format!("{url}: the server sent a malformed body");
        return Error::new(ErrorKind::Protocol, message).with_source(error);
    }
    let message = format!("{url}: the connection ended before the body did");
    Error::new(ErrorKind::ShortBody, message).with_source(error)
}

/// Whether the peer spoke, but not HTTP. A lost connection is no fault of the protocol.
fn broke_http(error: &hyper::Error) -> bool {
    if error.is_parse() {
        return true;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            );
        }
        cause = error.source();
    }
    false
}
