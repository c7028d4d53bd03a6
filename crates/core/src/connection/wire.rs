//! Counts what goes over a stream, and reads its round-trip time and segments now and then.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connector::{Io, Segments};
use super::http1::{Duplex, Pipe};
use super::origin::Origin;
use super::telemetry::{ConnectionEvent, Telemetry};

/// Reads between two looks at the transport: two system calls in 64, about three percent of them.
const READS_PER_LOOK: u32 = 64;

/// A stream that counts.
pub(super) struct Wire {
    io: Box<dyn Io>,
    origin: Origin,
    telemetry: Rc<Telemetry>,
    reads: u32,
    rtt: Option<Duration>,
    /// What comes are answers, and no handshake.
    is_open: Rc<Cell<bool>>,
    /// Segments at the last look.
    segments: Option<Segments>,
    /// Bytes received and sent since then.
    uncounted: [u64; 2],
}

impl Wire {
    pub(super) fn new(
        io: Box<dyn Io>,
        rtt: Option<Duration>,
        origin: Origin,
        telemetry: Rc<Telemetry>,
    ) -> Self {
        let is_open = Rc::default();
        Self { io, origin, telemetry, reads: 0, rtt, is_open, segments: None, uncounted: [0; 2] }
    }

    /// Set it as soon as requests may be sent.
    pub(super) fn is_open(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.is_open)
    }

    fn received(&mut self, bytes: usize) {
        self.telemetry.received(bytes);
        if let Some(rtt) = self.rtt {
            self.telemetry.came(bytes, rtt, self.is_open.get());
        }
        self.uncounted[0] += bytes as u64;
        self.reads += 1;
        if self.reads == READS_PER_LOOK {
            self.reads = 0;
            self.count_segments();
            self.look_at_rtt();
        }
    }

    fn sent(&mut self, bytes: usize) {
        self.telemetry.sent(bytes);
        self.uncounted[1] += bytes as u64;
    }

    fn count_segments(&mut self) {
        let Some(now) = self.io.segments() else { return };
        let before = self.segments.replace(now);
        self.telemetry.counted(before, now, std::mem::take(&mut self.uncounted));
    }

    fn look_at_rtt(&mut self) {
        let Some(rtt) = self.io.min_rtt() else { return };
        if self.rtt.is_none_or(|before| rtt < before) {
            self.rtt = Some(rtt);
            self.telemetry.tell(ConnectionEvent::Rtt { origin: self.origin.clone(), rtt });
        }
    }
}

impl Duplex for Wire {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        most: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        let socket = self.io.socket()?;
        let filled = loop {
            match socket.poll_read_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => return Some(Poll::Pending),
            }
            match pipe.fill(socket, most) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                filled => break filled,
            }
        };
        if let Ok(length) = &filled {
            self.received(*length);
        }
        Some(Poll::Ready(filled))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.count_segments();
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        self.received(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, bytes))?;
        self.sent(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, slices))?;
        self.sent(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
