//! The body of one stream, and the credit that its server is given.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h2::RecvStream;
use pelton_algos::credit::StreamCredit;
use tokio::io::ReadBuf;
use tokio::time::timeout;

use super::Shared;
use crate::connection::pace::Share;
use crate::connection::scratch::{Came, Piece, Scratch};

/// A stream of which all has come that its head tells of is left after so long, whether its server ends it or not. A
/// stream that is left sooner is reset, and servers go away from whoever resets many (CVE-2023-44487).
const LATEST_END: Duration = Duration::from_secs(1);

/// A body that is being read.
pub(in crate::connection) struct Http2Body {
    incoming: RecvStream,
    /// What of the last frame is not used yet.
    rest: Bytes,
    /// Bytes that are still to come, where its head tells.
    left: Option<u64>,
    /// Met behind bytes that were used first.
    failure: Option<h2::Error>,
    given: Given,
}

/// The credit that the server of a body was given.
struct Given {
    credit: StreamCredit,
    shared: Rc<Shared>,
}

impl Http2Body {
    pub(super) fn new(incoming: RecvStream, length: Option<u64>, shared: Rc<Shared>) -> Self {
        shared.bodies.set(shared.bodies.get() + 1);
        let given = Given { credit: StreamCredit::default(), shared };
        Self { incoming, rest: Bytes::new(), left: length, failure: None, given }
    }

    /// Whether the body has ended, or all of it has come, whenever its server ends it.
    pub(in crate::connection) fn is_at_end(&self) -> bool {
        let has_ended = || self.failure.is_none() && self.incoming.is_end_stream();
        self.rest.is_empty() && (self.left == Some(0) || has_ended())
    }

    /// Whether its head told how long it is.
    pub(in crate::connection) const fn has_length(&self) -> bool {
        self.left.is_some()
    }

    /// Leaves a body that is at its end. The connection waits for the server to end it.
    pub(in crate::connection) fn leave(self) {
        let Self { mut incoming, given, .. } = self;
        if !incoming.is_end_stream() {
            let ends = async move {
                let end = poll_fn(|cx| incoming.poll_data(cx));
                let _ = timeout(LATEST_END, end).await;
            };
            given.shared.wait_for(Box::pin(ends));
        }
    }

    /// What its server may send beyond what was read, where pelton decides on that.
    pub(in crate::connection) fn ahead(&self) -> Option<u64> {
        let Given { credit, shared } = &self.given;
        shared.credit.is_some().then(|| credit.ahead(shared.window.get()))
    }

    /// Waits until something of it has come, or nothing will.
    pub(in crate::connection) async fn begin(&mut self) {
        match poll_fn(|cx| self.incoming.poll_data(cx)).await {
            Some(Ok(bytes)) => self.rest = bytes,
            Some(Err(failure)) => self.failure = Some(failure),
            None => {}
        }
    }

    /// Gives the next piece to `take`. `None` at the end. Of what is beyond the `wanted` bytes, the
    /// server is asked for nothing.
    pub(in crate::connection) async fn piece<R>(
        &mut self,
        scratch: &Scratch,
        share: &Share,
        wanted: impl FnOnce() -> u64,
        take: impl FnOnce(Piece<'_>) -> R,
    ) -> Result<Option<R>, h2::Error> {
        if self.left == Some(0) {
            return Ok(None);
        }
        let length = poll_fn(|cx| {
            share.poll_read(cx, |cx, most| scratch.poll_gather(most, |to| self.poll_read(cx, to)))
        })
        .await?;
        self.left = self.left.map(|left| left.saturating_sub(length as u64));
        share.spend(length);
        self.give_credit(length as u64, wanted());
        Ok(if length == 0 { None } else { scratch.hand_over(Came::Buffer(length), take) })
    }

    /// Reads of one frame; nothing at the end.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), h2::Error>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        while self.rest.is_empty() {
            match ready!(self.incoming.poll_data(cx)) {
                Some(Ok(bytes)) => self.rest = bytes,
                Some(Err(failure)) if buffer.filled().is_empty() => {
                    return Poll::Ready(Err(failure));
                }
                Some(Err(failure)) => {
                    self.failure = Some(failure);
                    return Poll::Ready(Ok(()));
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..length]);
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }

    /// `length` bytes were read, with which `wanted` bytes were still to come.
    fn give_credit(&mut self, length: u64, wanted: u64) {
        let wanted = wanted.saturating_sub(length);
        // What is wanted to its end needs no bound. Some servers end it with a frame of its own, for which they want
        // room, be it empty (nghttp2, so Apache and Node.js).
        let is_cut = self.left.is_some_and(|left| wanted < left);
        let more = self.given.more(length, wanted, if is_cut { wanted } else { u64::MAX });
        // Nothing more is news too: h2 puts small amounts off until it is asked again. It refuses
        // what it has not handed out.
        let _ = self.incoming.flow_control().release_capacity(more as usize);
    }
}

impl Given {
    /// What is given after `length` bytes were read, while `wanted` are to come, of which at most `bound` may come.
    fn more(&mut self, length: u64, wanted: u64, bound: u64) -> u64 {
        let shared = &self.shared;
        let Some(credit) = &shared.credit else { return length };
        shared.wanted.set(shared.wanted.get().max(wanted));
        let share = credit.borrow().share(shared.bodies.get());
        let before = self.credit.held();
        self.credit.on_received(length);
        let more = self.credit.release(shared.window.get(), share, bound);
        shared.hold(before, self.credit.held());
        more
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.shared.bodies.set(self.shared.bodies.get() - 1);
        self.shared.hold(self.credit.held(), 0);
    }
}
