//! A stream that is read a burst at a time.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is read before those that the bytes are for have their turn.
const BURST: usize = 64 * 1024;

/// A stream whose reader is made to pause after each burst.
pub(super) struct Bursts<S> {
    io: S,
    left: usize,
    /// Counts what is read.
    came: Rc<Cell<u64>>,
}

impl<S> Bursts<S> {
    pub(super) const fn new(io: S, came: Rc<Cell<u64>>) -> Self {
        Self { io, left: BURST, came }
    }
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
        let length = buffer.filled().len() - before;
        self.came.set(self.came.get() + length as u64);
        self.left = if read.is_pending() { BURST } else { self.left.saturating_sub(length) };
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
        let came = Rc::<Cell<u64>>::default();
        let mut stream = Bursts::new(io::Cursor::new(vec![0; 3 * BURST]), Rc::clone(&came));
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
        assert_eq!(came.get(), 3 * BURST as u64);
    }
}
