//! The byte stream of a connection: one answer is read from it while further requests are sent.

use std::cell::RefCell;
use std::io::{ErrorKind, Result};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Duplex, Pipe};

/// A byte stream that all clones share, until one of them closes it.
#[derive(Clone)]
pub(super) struct SharedIo(Rc<RefCell<Option<Box<dyn Duplex>>>>);

impl SharedIo {
    pub(super) fn new(io: impl Duplex + 'static) -> Self {
        Self(Rc::new(RefCell::new(Some(Box::new(io)))))
    }

    pub(super) fn close(&self) {
        self.0.take();
    }

    fn with<R>(
        &self,
        poll: impl FnOnce(Pin<&mut dyn Duplex>) -> Poll<Result<R>>,
    ) -> Poll<Result<R>> {
        match self.0.borrow_mut().as_deref_mut() {
            Some(io) => poll(Pin::new(io)),
            None => Poll::Ready(Err(ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncRead for SharedIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.with(|io| io.poll_read(cx, buffer))
    }
}

impl AsyncWrite for SharedIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.with(|io| io.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.with(|io| io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.with(|io| io.poll_shutdown(cx))
    }
}

impl Duplex for SharedIo {
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        most: usize,
    ) -> Option<Poll<Result<usize>>> {
        self.0.borrow_mut().as_deref_mut()?.poll_fill(cx, pipe, most)
    }
}
