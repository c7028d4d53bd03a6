//! HTTP/2 over one connection (RFC 9113), by hyper.
//!
//! Its task reads frames into memory of their own and another task uses them. Both take turns here,
//! a burst each: otherwise a full window lies in fresh memory before its first byte is written, and
//! CPU time goes into page faults and cache misses.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::open::NoBody;
use super::pace::Share;
use super::scratch::{Came, Piece, Scratch};

/// What one stream may have in flight: the bandwidth-delay product of 1 Gbit/s at 33 ms.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
/// What all streams of a connection may have in flight: eight full ones, so that an idle reader of
/// one does not starve the others.
const CONNECTION_WINDOW: u32 = 32 * 1024 * 1024;
/// Largest frame a server may send. Each frame costs a fixed effort; servers that choose larger
/// frames save it.
const FRAME: u32 = 256 * 1024;
/// Streams that are assumed to be allowed until the server says so: the least that section 6.5.2
/// recommends.
const INITIAL_STREAMS: usize = 100;
/// What is read before those that the bytes are for have their turn.
const BURST: usize = 64 * 1024;

/// Sends requests; how many at a time; and what must be polled for anything to happen.
pub(super) type Http2<F> = (SendRequest<NoBody>, Rc<Cell<usize>>, F);

/// Begins to speak HTTP/2 over `stream`.
///
/// What may be in flight is `window` at most, where it is given: the body's reader is limited, and
/// what a server sends before that waits in memory.
pub(super) async fn connect<S>(
    stream: S,
    window: Option<u64>,
) -> hyper::Result<Http2<impl Future<Output = ()> + 'static>>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let within = |most: u32| window.map_or(most, |window| window.min(most.into()) as u32);
    let (sender, mut connection) = Builder::new(LocalExecutor)
        .initial_stream_window_size(within(STREAM_WINDOW))
        .initial_connection_window_size(within(CONNECTION_WINDOW))
        .max_frame_size(FRAME)
        .initial_max_send_streams(INITIAL_STREAMS)
        .handshake(TokioIo::new(Bursts { io: stream, left: BURST }))
        .await?;
    let capacity = Rc::new(Cell::new(INITIAL_STREAMS));
    let known = Rc::clone(&capacity);
    let driver = async move {
        let ended = poll_fn(|cx| {
            known.set(connection.current_max_send_streams());
            Pin::new(&mut connection).poll(cx)
        });
        if let Err(error) = ended.await {
            tracing::debug!(%error, "HTTP/2 connection ended");
        }
    };
    Ok((sender, capacity, driver))
}

/// Runs hyper's tasks on this thread.
#[derive(Clone)]
struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future<Output: 'static> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// A body that is being read.
pub(super) struct Http2Body {
    incoming: Incoming,
    /// What of the last frame is not used yet.
    rest: Bytes,
    /// Met behind bytes that were used first.
    failure: Option<hyper::Error>,
}

impl Http2Body {
    pub(super) fn new(incoming: Incoming) -> Self {
        Self { incoming, rest: Bytes::new(), failure: None }
    }

    /// Whether the body has ended.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty() && self.failure.is_none() && self.incoming.is_end_stream()
    }

    /// Gives the next piece to `take`. `None` at the end.
    pub(super) async fn piece<R>(
        &mut self,
        scratch: &Scratch,
        share: &Share,
        take: impl FnOnce(Piece<'_>) -> R,
    ) -> hyper::Result<Option<R>> {
        let gathered = poll_fn(|cx| {
            share.poll_read(cx, |cx, most| scratch.poll_gather(most, |to| self.poll_read(cx, to)))
        });
        let length = gathered.await?;
        share.spend(length);
        Ok(if length == 0 { None } else { scratch.hand_over(Came::Buffer(length), take) })
    }

    /// Reads of one frame; nothing at the end.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<hyper::Result<()>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                // Trailers are no part of the file.
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
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
}

/// A stream whose reader is made to pause after each burst.
struct Bursts<S> {
    io: S,
    left: usize,
}

impl<S: AsyncRead + Unpin> AsyncRead for Bursts<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            self.left = BURST;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        self.left = match read {
            Poll::Pending => BURST,
            Poll::Ready(_) => self.left.saturating_sub(buffer.filled().len() - before),
        };
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bursts<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::task::spawn;
    use tokio_test::{assert_pending, assert_ready_ok};

    use super::*;

    #[test]
    fn a_reader_pauses_after_a_burst_and_is_woken_at_once() {
        let mut stream = Bursts { io: std::io::Cursor::new(vec![0; 3 * BURST]), left: BURST };
        let mut memory = vec![0; BURST];
        let mut task = spawn(());
        for _ in 0..3 {
            let mut buffer = ReadBuf::new(&mut memory);
            let read = task.enter(|cx, _| Pin::new(&mut stream).poll_read(cx, &mut buffer));
            assert_ready_ok!(read);
            assert_eq!(buffer.filled().len(), BURST);
            assert!(!task.is_woken());
            let mut buffer = ReadBuf::new(&mut memory);
            let read = task.enter(|cx, _| Pin::new(&mut stream).poll_read(cx, &mut buffer));
            assert_pending!(read);
            assert!(task.is_woken());
            task = spawn(());
        }
    }
}
