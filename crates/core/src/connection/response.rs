//! A response and its body.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use url::Url;

use super::failure;
use super::origin::Origin;
use super::pool::Lease;
use super::telemetry::{ConnectionId, Protocol};
use crate::Result;

/// A response whose body is read piece by piece. Dropped before the end of its body it closes an
/// HTTP/1.1 connection and resets the stream of an HTTP/2 connection.
pub struct GetResponse {
    /// The status; one that is not 2xx is not an error here.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// Where redirects led, without user name, password and fragment.
    pub final_url: Url,
    /// The origin of `final_url`.
    pub origin: Origin,
    /// What the connection speaks.
    pub protocol: Protocol,
    /// Which connection it came over.
    pub connection: ConnectionId,
    /// From sending the request, over a connection that was ready, to the head of the response.
    pub response_time: Duration,
    // The body goes before the lease, so that a connection that is given free is at its end or
    // knows that it must close.
    body: Incoming,
    lease: Option<Lease>,
}

impl GetResponse {
    pub(super) fn new(
        response: http::Response<Incoming>,
        lease: Lease,
        response_time: Duration,
        final_url: Url,
        origin: Origin,
    ) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            final_url,
            origin,
            protocol: lease.protocol(),
            connection: lease.id(),
            response_time,
            body,
            lease: Some(lease),
        }
    }

    /// The next piece of the body, or `None` at its end. The connection is free for others as soon
    /// as the last piece was taken.
    ///
    /// # Errors
    /// `ShortBody` when the connection ends before the body, `Protocol` when what comes is not HTTP.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| failure::short_body(&self.final_url, error))?;
            if let Ok(data) = frame.into_data() {
                if self.body.is_end_stream() {
                    self.lease = None;
                }
                return Ok(Some(data));
            }
        }
        self.lease = None;
        Ok(None)
    }
}
