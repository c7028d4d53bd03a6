//! HTTP/1.1 over one connection (RFC 9112): one request at a time, its body straight from the stream.
//!
//! This is pelton's own because of what bodies cost. A client that reads them into buffers of
//! their own and passes those between tasks takes twice the CPU time on a fast link
//! (`cargo bench -p pelton-cli`); here every body of a thread goes through one buffer, and from
//! there to where it belongs before anything else happens.

mod body;
mod head;
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "no_pipe.rs")]
mod pipe;

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::BytesMut;
use futures_util::future::LocalBoxFuture;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

pub(super) use body::Http1Body;
pub(super) use pipe::Pipe;

/// What is read at once while a head is expected: more than nearly all heads, and many small files.
const HEAD_READ: usize = 16 * 1024;

/// Interim responses to one request: servers send one, or one for each hint that they have.
pub(super) const MOST_INTERIM: u32 = 100;

/// A byte stream, with or without TLS.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin {
    /// Fills `pipe` with what is there now, at least a byte and `most` at most; none at the end of
    /// the stream. `None` where its bytes are no socket's.
    fn poll_fill(
        &mut self,
        _cx: &mut Context<'_>,
        _pipe: &Pipe,
        _most: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        None
    }
}

/// A byte stream and what was read of it and not used.
struct Stream {
    io: Box<dyn Duplex>,
    buffer: BytesMut,
}

impl Stream {
    /// Reads more into the buffer.
    async fn read_more(&mut self) -> io::Result<()> {
        self.buffer.reserve(HEAD_READ);
        match self.io.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// An HTTP/1.1 connection.
pub(super) struct Http1 {
    /// Empty while a request has it.
    idle: RefCell<Option<Stream>>,
    is_closed: Cell<bool>,
    /// Wakes the task that watches the idle connection.
    watcher: RefCell<Option<Waker>>,
}

impl Http1 {
    /// Over `io`, which no request has used yet.
    pub(super) fn new(io: impl Duplex + 'static) -> Self {
        let stream = Stream { io: Box::new(io), buffer: BytesMut::new() };
        Self {
            idle: RefCell::new(Some(stream)),
            is_closed: Cell::new(false),
            watcher: RefCell::default(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Whether it takes a request now.
    pub(super) fn is_ready(&self) -> bool {
        self.idle.borrow().is_some()
    }

    /// Watches the connection; ready when it has ended. A server has nothing to say while no
    /// request waits, so whatever comes ends it.
    pub(super) fn poll_watch(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_closed.get() {
            return Poll::Ready(());
        }
        self.watcher.replace(Some(cx.waker().clone()));
        let mut idle = self.idle.borrow_mut();
        let Some(stream) = idle.as_mut() else { return Poll::Pending };
        let mut byte = [0];
        // How it ended makes no difference.
        let _ = ready!(Pin::new(&mut stream.io).poll_read(cx, &mut ReadBuf::new(&mut byte)));
        *idle = None;
        self.is_closed.set(true);
        Poll::Ready(())
    }

    /// Ends the connection, at once where it is idle.
    pub(super) fn close(&self) {
        self.idle.take();
        self.is_closed.set(true);
        self.wake_watcher();
    }

    /// Sends a request and reads the head of its response. Dropping the future ends the connection.
    pub(super) fn send(
        self: &Rc<Self>,
        request: Request<()>,
    ) -> LocalBoxFuture<'static, io::Result<(Response<()>, Http1Body)>> {
        let home = Home(Some(Rc::clone(self)));
        let lent = self.idle.take().map(|stream| Lent { stream, home });
        Box::pin(async move {
            let mut lent = lent.ok_or(io::ErrorKind::NotConnected)?;
            let stream = &mut lent.stream;
            stream.io.write_all(&head::written(&request)).await?;
            stream.io.flush().await?;
            let mut response = read_head(stream).await?;
            let body = Http1Body::new(lent, request.method(), &response)?;
            if response.headers().contains_key(TRANSFER_ENCODING) {
                // It says nothing of the body then (RFC 9112, section 6.3).
                response.headers_mut().remove(CONTENT_LENGTH);
            }
            Ok((response, body))
        })
    }

    fn wake_watcher(&self) {
        if let Some(waker) = self.watcher.take() {
            waker.wake();
        }
    }
}

async fn read_head(stream: &mut Stream) -> io::Result<Response<()>> {
    let mut interim = 0;
    loop {
        match head::read(&mut stream.buffer)? {
            // An interim response (RFC 9110, section 15.2).
            Some(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                return Err(head::malformed("a switch of protocols that was not asked for"));
            }
            Some(response) if response.status().is_informational() => {
                interim += 1;
                if interim > MOST_INTERIM {
                    return Err(head::malformed("one interim response after the other and no end"));
                }
            }
            Some(response) => return Ok(response),
            None => stream.read_more().await?,
        }
    }
}

/// Reads a head as a response's and tells its fields.
#[cfg(fuzzing)]
pub(crate) fn fuzz_head(buffer: &mut BytesMut) -> Option<http::HeaderMap> {
    let response = head::read(buffer).ok()??;
    let _ = head::framing(&http::Method::GET, &response);
    let _ = head::stays_open(&response);
    Some(response.into_parts().0.headers)
}

/// A stream that serves a request. Unless it is given back, the connection ends with it.
struct Lent {
    stream: Stream,
    home: Home,
}

impl Lent {
    fn give_back(self) {
        let Self { stream, mut home } = self;
        if let Some(connection) = home.0.take() {
            connection.idle.replace(Some(stream));
            connection.wake_watcher();
        }
    }
}

/// Closes the connection whose stream does not come back.
struct Home(Option<Rc<Http1>>);

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.close();
        }
    }
}
