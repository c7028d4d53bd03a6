//! Runs the [link model](crate::link) in real time, around any connector: all streams of one
//! [`ShapedConnector`] share one downlink.
//!
//! Every moment is computed from the schedule and not from when a timer fired. Timers are coarse
//! (1 ms); a late one delivers everything that was due, and what an acknowledgement allowed counts
//! from the moment the acknowledgement came.

mod download;

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use pelton_algos::time::Timestamp;
use pelton_algos::units;
use pelton_core::Result;
use pelton_core::connection::{Connected, Connector, Io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::link::{Link, SharedPipe, Transit};
use download::Download;

/// Puts a link between the streams of `inner` and those who read them.
pub struct ShapedConnector<C> {
    inner: C,
    path: Arc<Path>,
}

impl<C: Connector> ShapedConnector<C> {
    /// Shapes the streams that `inner` opens. One connector is one link.
    pub fn new(link: Link, inner: C) -> Self {
        let path = Path { link, epoch: Instant::now(), pipe: Mutex::new(SharedPipe::new(&link)) };
        Self { inner, path: Arc::new(path) }
    }

    /// The link.
    pub fn link(&self) -> &Link {
        &self.path.link
    }
}

impl<C: Connector> Connector for ShapedConnector<C> {
    /// Opens a stream. Takes one round trip of the link, the handshake's, and reports it.
    fn connect<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>> {
        Box::pin(async move {
            let established = Instant::now() + self.path.link.rtt;
            let inner = self.inner.connect(host, port).await?.io;
            tokio::time::sleep_until(established).await;
            let rtt = Some(self.path.link.rtt);
            Ok(Connected { io: Box::new(ShapedStream::new(inner, Arc::clone(&self.path))), rtt })
        })
    }
}

/// The link and its one pipe.
struct Path {
    link: Link,
    /// When the virtual time of the pipe began.
    epoch: Instant,
    pipe: Mutex<SharedPipe>,
}

impl Path {
    fn now(&self) -> Timestamp {
        Timestamp::new(self.epoch.elapsed())
    }

    fn instant(&self, at: Timestamp) -> Instant {
        self.epoch + at.since_start()
    }

    fn offer(&self, at: Timestamp, bytes: units::Bytes) -> Transit {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner).offer(at, bytes)
    }
}

/// A stream whose bytes take the time that the link needs.
///
/// Made for HTTP requests: what is written is kept without bound until it has reached the server,
/// and it leaves while the stream is polled for reading or to shut it down.
struct ShapedStream<S> {
    inner: S,
    path: Arc<Path>,
    download: Download,
    /// Requests under way, and when they reach the server.
    upload: VecDeque<(Timestamp, Bytes)>,
    timer: Pin<Box<Sleep>>,
    /// Who waits for bytes, to be told when a write gives the timer more to do.
    reader: Option<Waker>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ShapedStream<S> {
    fn new(inner: S, path: Arc<Path>) -> Self {
        Self {
            inner,
            download: Download::new(&path.link, path.now()),
            upload: VecDeque::new(),
            timer: Box::pin(tokio::time::sleep_until(path.epoch)),
            reader: None,
            path,
        }
    }

    /// Hands over what has reached the server. Ready with the moment at which more will, pending
    /// while the server takes nothing.
    fn poll_upload(
        &mut self,
        cx: &mut Context<'_>,
        now: Timestamp,
    ) -> Poll<io::Result<Option<Timestamp>>> {
        while let Some((due, bytes)) = self.upload.front_mut() {
            if *due > now {
                return Poll::Ready(Ok(Some(*due)));
            }
            match ready!(Pin::new(&mut self.inner).poll_write(cx, bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => bytes.advance(written),
            }
            if bytes.is_empty() {
                self.upload.pop_front();
            }
        }
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        Poll::Ready(Ok(None))
    }

    /// Ready when `next` has come; pending for good when it is nothing.
    fn poll_timer(&mut self, cx: &mut Context<'_>, next: Option<Timestamp>) -> Poll<()> {
        let Some(next) = next else {
            return Poll::Pending;
        };
        let deadline = self.path.instant(next);
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        self.timer.as_mut().poll(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ShapedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let now = this.path.now();
            let upload = match this.poll_upload(cx, now) {
                Poll::Ready(Ok(next)) => next,
                Poll::Ready(Err(error)) => {
                    this.upload.clear();
                    this.download.fail(now, error);
                    None
                }
                Poll::Pending => None,
            };
            let offer = |at, bytes| this.path.offer(at, bytes);
            if let Poll::Ready(read) = this.download.poll(cx, now, &mut this.inner, offer, buf) {
                return Poll::Ready(read);
            }
            let next = upload.into_iter().chain(this.download.next_event()).min();
            if this.poll_timer(cx, next).is_pending() {
                this.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ShapedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let arrival = this.path.now() + this.path.link.rtt / 2;
        this.upload.push_back((arrival, Bytes::copy_from_slice(buf)));
        if let Some(reader) = this.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(buf.len()))
    }

    /// Bytes on their way are out of the sender's hands: there is nothing to wait for.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while let Some(next) = ready!(this.poll_upload(cx, this.path.now()))? {
            ready!(this.poll_timer(cx, Some(next)));
        }
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Io for ShapedStream<S> {
    fn min_rtt(&self) -> Option<Duration> {
        Some(self.path.link.rtt)
    }
}
