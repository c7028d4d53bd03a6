//! One stream's way down: from the server through the window and the pipe to the reader.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use pelton_algos::time::Timestamp;
use pelton_algos::units;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::link::{Link, StreamWindow, Transit};

/// How much is read from the server at once. It may lie here before the window lets it go, as it
/// would in the server's send buffer.
const SEND_BUFFER: usize = 64 * 1024;

pub(super) struct Download {
    piece: usize,
    one_way: Duration,
    receive_buffer: usize,
    window: StreamWindow,
    /// What the server has given and the window not yet let go.
    waiting: BytesMut,
    /// The server had nothing when it was asked last.
    starved: bool,
    /// When the next piece may leave: what lets it go came then, though a timer told of it later.
    clock: Timestamp,
    /// Pieces on their way or in the receive buffer, and when they arrive.
    sent: VecDeque<(Timestamp, Bytes)>,
    /// Bytes in `sent`.
    unread: usize,
    /// The reader takes everything as it arrives. Else it counts as away, and its receive buffer
    /// bounds what the server may send.
    reader_waits: bool,
    /// The server closed or failed, and when the reader may know.
    end: Option<(Timestamp, io::Result<()>)>,
}

impl Download {
    pub(super) fn new(link: &Link, now: Timestamp) -> Self {
        Self {
            piece: link.piece().0 as usize,
            one_way: link.rtt / 2,
            receive_buffer: link.stream_window.0 as usize,
            window: StreamWindow::new(link),
            waiting: BytesMut::new(),
            starved: true,
            clock: now,
            sent: VecDeque::new(),
            unread: 0,
            reader_waits: false,
            end: None,
        }
    }

    /// Reads what has arrived by `now`. Pending with either the waker of `inner` set or
    /// [`next_event`](Self::next_event) known. `offer` sends bytes through the pipe.
    pub(super) fn poll<S: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        now: Timestamp,
        inner: &mut S,
        mut offer: impl FnMut(Timestamp, units::Bytes) -> Transit,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            self.advance(cx, now, inner, &mut offer);
            if self.deliver(now, buf) || buf.remaining() == 0 {
                self.reader_waits = false;
                return Poll::Ready(Ok(()));
            }
            if let Some((at, result)) = &mut self.end
                && *at <= now
                && self.sent.is_empty()
                && self.waiting.is_empty()
            {
                return Poll::Ready(std::mem::replace(result, Ok(())));
            }
            if self.reader_waits {
                return Poll::Pending;
            }
            self.reader_waits = true;
        }
    }

    /// Ends with `error` once the bytes that are under way have been read.
    pub(super) fn fail(&mut self, now: Timestamp, error: io::Error) {
        self.end.get_or_insert((now + self.one_way, Err(error)));
    }

    /// When polling again brings news that `inner` does not announce.
    pub(super) fn next_event(&self) -> Option<Timestamp> {
        let arrival = self.sent.front().map(|(at, _)| *at);
        let room = self.window.next_acknowledgement().filter(|_| !self.waiting.is_empty());
        let end = self.end.as_ref().map(|(at, _)| *at);
        // The end waits for the bytes before it.
        arrival.into_iter().chain(room).min().or(end)
    }

    /// Sends all that the window has let go by `now`.
    fn advance<S: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        now: Timestamp,
        inner: &mut S,
        offer: &mut impl FnMut(Timestamp, units::Bytes) -> Transit,
    ) {
        let mut asked_in_vain = false;
        loop {
            if self.waiting.len() < self.piece && self.end.is_none() && !asked_in_vain {
                asked_in_vain = self.poll_server(cx, now, inner).is_pending();
            }
            if self.send_piece(now, offer) {
                continue;
            }
            if self.waiting.is_empty() {
                return;
            }
            match self.window.acknowledge(now) {
                Some(at) => self.clock = self.clock.max(at),
                None => return,
            }
        }
    }

    fn poll_server<S: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        now: Timestamp,
        inner: &mut S,
    ) -> Poll<()> {
        let had_nothing = self.waiting.is_empty();
        self.waiting.reserve(SEND_BUFFER);
        let mut space = (&mut self.waiting).limit(SEND_BUFFER);
        match pin!(inner.read_buf(&mut space)).poll(cx) {
            Poll::Pending => {
                self.starved = true;
                return Poll::Pending;
            }
            Poll::Ready(Ok(0)) => self.end = Some((now + self.one_way, Ok(()))),
            Poll::Ready(Ok(_)) => {
                // A server that always has more has had these bytes ready in time.
                if had_nothing && self.starved {
                    self.clock = self.clock.max(now);
                }
                self.starved = false;
            }
            Poll::Ready(Err(error)) => self.fail(now, error),
        }
        Poll::Ready(())
    }

    /// Sends one piece, if there is one and window and receiver have room for it.
    fn send_piece(
        &mut self,
        now: Timestamp,
        offer: &mut impl FnMut(Timestamp, units::Bytes) -> Transit,
    ) -> bool {
        let mut room = self.window.available().0 as usize;
        if !self.reader_waits && self.receive_buffer.saturating_sub(self.unread) < room {
            room = self.receive_buffer.saturating_sub(self.unread);
            // The receiver has no more room than this until now.
            self.clock = self.clock.max(now);
        }
        let len = room.min(self.piece).min(self.waiting.len());
        if len == 0 {
            return false;
        }
        let bytes = units::Bytes(len as u64);
        let transit = offer(self.clock, bytes);
        self.window.sent(bytes, transit);
        self.sent.push_back((transit.arrives, self.waiting.split_to(len).freeze()));
        self.unread += len;
        true
    }

    /// Moves what has arrived by `now` to `buf`; whether that was anything.
    fn deliver(&mut self, now: Timestamp, buf: &mut ReadBuf<'_>) -> bool {
        let before = buf.remaining();
        while let Some((arrival, bytes)) = self.sent.front_mut()
            && *arrival <= now
            && buf.remaining() > 0
        {
            let len = bytes.len().min(buf.remaining());
            buf.put_slice(&bytes[..len]);
            bytes.advance(len);
            self.unread -= len;
            if bytes.is_empty() {
                self.sent.pop_front();
            }
        }
        buf.remaining() < before
    }
}
