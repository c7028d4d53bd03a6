//! A response and its body.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use url::Url;

use super::failure;
use super::open::Body;
use super::origin::Origin;
use super::pace::Share;
use super::pool::Lease;
use super::scratch::{Piece, Scratch};
use super::telemetry::{ConnectionId, Protocol};
use crate::Result;

/// An answer that is not wanted is read up to this size, so that its connection can be used again; a new
/// connection costs more than that.
const DRAINED: usize = 16 * 1024;

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
    /// From sending the request, over a connection that was ready, to the head of the response, and where that says
    /// that it has what was asked for, to the first of it.
    pub response_time: Duration,
    /// How long the request waited before it was made: for the redirects that led to it, each like `response_time`, and for
    /// the connection that replaces one which its server ended. Zero where there were none.
    pub waited_before: Duration,
    // The body goes before the lease, so that a connection that is given free is at its end or
    // knows that it must close.
    body: Option<Body>,
    lease: Option<Lease>,
    scratch: Scratch,
    share: Share,
}

impl GetResponse {
    pub(super) fn new(
        head: http::Response<()>,
        body: Body,
        lease: Lease,
        response_time: Duration,
        final_url: Url,
        origin: Origin,
        scratch: Scratch,
    ) -> Self {
        let (head, ()) = head.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            final_url,
            origin,
            protocol: lease.protocol(),
            connection: lease.id(),
            body: Some(body),
            response_time,
            waited_before: lease.replacement_took(),
            lease: Some(lease),
            scratch,
            share: Share::default(),
        }
    }

    /// Another answer over the same connection, to a request for more of the same.
    pub(super) fn followed_by(
        &self,
        head: http::Response<()>,
        body: Body,
        lease: Lease,
        response_time: Duration,
    ) -> Self {
        let (url, origin, scratch) =
            (self.final_url.clone(), self.origin.clone(), self.scratch.clone());
        Self::new(head, body, lease, response_time, url, origin, scratch)
    }

    /// What holds its connection, until the end of the body.
    pub(super) const fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// Its body is read as fast as `share` allows.
    pub(super) fn paced(&mut self, share: Share) {
        self.share = share;
    }

    /// What its server may send beyond what was read, where it was promised that (HTTP/2).
    pub(crate) fn ahead(&self) -> Option<u64> {
        match &self.body {
            Some(Body::Http2(body)) => body.ahead(),
            _ => None,
        }
    }

    /// Whether the request before this one was refused over the same connection, too.
    pub(crate) fn is_refused_again(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.refusals() > 1)
    }

    /// Reads a body that nobody wants, if that is soon done.
    pub(crate) async fn drain(&mut self) {
        let mut left = DRAINED;
        while let Ok(Some(length)) = self.piece(<[u8]>::len).await {
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    }

    /// Gives the next piece of the body to `take` and tells what that said, or `None` at the end of
    /// the body. The connection is free for others as soon as the last piece was taken.
    ///
    /// # Errors
    /// `ShortBody` when the connection ends before the body, `Protocol` when what comes is not HTTP.
    pub async fn piece<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let in_memory = |piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => Some(take(bytes)),
            // There is no room for one.
            Piece::Piped(_) => None,
        };
        Ok(self.piece_or_pipe(|| u64::MAX, false, in_memory).await?.flatten())
    }

    /// The same of a body of which `wanted` bytes are still of use: over HTTP/2 no more is asked for.
    /// Where it `may_pipe` and the connection can do it, the piece stays in the kernel.
    pub(crate) async fn piece_or_pipe<R>(
        &mut self,
        wanted: impl Fn() -> u64,
        may_pipe: bool,
        take: impl FnOnce(Piece<'_>) -> R,
    ) -> Result<Option<R>> {
        if let Some(lease) = &self.lease {
            // Of one without a length nobody knows whether it is at its end.
            lease.note_to_come(Some(wanted()).filter(|wanted| *wanted < u64::MAX).unwrap_or(0));
        }
        let (taken, is_at_end) = match &mut self.body {
            None => return Ok(None),
            Some(Body::Http1(body)) => {
                let room = || if may_pipe { wanted() } else { 0 };
                let piece = body.piece(&self.scratch, &self.share, room, take).await;
                let taken = piece.map_err(|error| failure::short_body(&self.final_url, error))?;
                (taken, body.is_at_end())
            }
            Some(Body::Read(body)) => {
                let there = body.len();
                let length =
                    poll_fn(|cx| self.share.poll_read(cx, |_, turn| Poll::Ready(there.min(turn))));
                let length = length.await;
                self.share.spend(length);
                let piece = body.split_to(length);
                (Some(take(Piece::Bytes(&piece))), body.is_empty())
            }
            Some(Body::Http2(body)) => {
                let piece = body.piece(&self.scratch, &self.share, wanted, take).await;
                let taken = piece.map_err(|error| {
                    failure::short_http2_body(&self.final_url, error, body.has_length())
                })?;
                (taken, body.is_at_end())
            }
        };
        if taken.is_none() || is_at_end {
            if let Some(Body::Http2(body)) = self.body.take() {
                body.leave();
            }
            self.lease = None;
        }
        Ok(taken)
    }
}
