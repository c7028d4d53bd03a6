//! Parsers that only fuzz targets reach from outside.

use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::engine::Resumable;
use crate::fetch::{digests, fields};
use crate::{catalog, connection, journal, origins};

/// Start, end (excluded) and total of a `Content-Range`.
pub fn content_range(value: &str) -> Option<(u64, u64, Option<u64>)> {
    fields::parse_content_range(value)
}

/// The pause of a `Retry-After`.
pub fn retry_after(value: &[u8]) -> Option<Duration> {
    let value = HeaderValue::from_bytes(value).ok()?;
    fields::retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value)]), SystemTime::UNIX_EPOCH)
}

/// What the fields of a response say of its version and its bytes.
pub fn response_fields(fields: &[u8]) {
    let head = [b"HTTP/1.1 200 OK\r\n", fields, b"\r\n\r\n"].concat();
    if let Some(headers) = connection::fuzz_head(&mut BytesMut::from(&head[..])) {
        let _ = fields::validator(&headers, SystemTime::UNIX_EPOCH);
        for status in [StatusCode::OK, StatusCode::PARTIAL_CONTENT] {
            let _ = digests::promised(status, &headers);
        }
    }
}

/// A response's head with its framing.
pub fn http1_head(bytes: &[u8]) {
    let _ = connection::fuzz_head(&mut BytesMut::from(bytes));
}

/// What a journal is trusted for.
pub fn journal(bytes: &[u8]) -> Option<Resumable> {
    journal::trusted(bytes, Some("boot"))
}

/// What an origin memory says of how many origins.
pub fn origin_memory(bytes: &[u8]) -> usize {
    let now = Duration::from_secs(1_800_000_000);
    let found = origins::record::read(bytes, now);
    assert_eq!(
        origins::record::read(origins::record::written(&found).as_bytes(), now).len(),
        found.len().min(1_000)
    );
    found.len()
}

/// Panics for a name that is not safe to join to a directory.
pub fn assert_safe(name: &str) {
    assert_eq!(catalog::relative_name(name).ok().as_deref(), Some(name), "{name:?}");
}
