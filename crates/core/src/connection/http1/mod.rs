//! HTTP/1.1 over one connection (RFC 9112): bodies straight from the stream, one after the other.
//!
//! This is pelton's own because of what bodies cost. A client that reads them into buffers of
//! their own and passes those between tasks takes twice the CPU time on a fast link
//! (`cargo bench -p pelton-cli`); here every body of a thread goes through one buffer, and from
//! there to where it belongs before anything else happens.

mod body;
mod head;
mod io;
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "no_pipe.rs")]
mod pipe;
#[cfg(test)]
mod tests;
mod turns;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use futures_util::future::LocalBoxFuture;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

pub(super) use body::Http1Body;
pub(super) use head::LONGEST_HEAD;
use io::SharedIo;
pub(super) use pipe::Pipe;
use turns::{Home, Lent, Place, Turn};

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
    ) -> Option<Poll<Result<usize>>> {
        None
    }
}

/// A byte stream and what was read of it and not used.
struct Stream {
    io: SharedIo,
    buffer: BytesMut,
}

impl Stream {
    /// Reads more into the buffer.
    async fn read_more(&mut self) -> Result<()> {
        self.buffer.reserve(HEAD_READ);
        match self.io.read_buf(&mut self.buffer).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// An HTTP/1.1 connection. A request may be sent before those ahead of it are answered (section
/// 9.3.2): it gets the stream when they have read their answers.
pub(super) struct Http1 {
    io: SharedIo,
    /// Empty while a request has it.
    idle: RefCell<Option<Stream>>,
    /// Requests that are sent and wait for their turn with the stream.
    behind: RefCell<VecDeque<Place>>,
    /// Requests were sent, and not all of them are answered.
    is_under_way: Cell<bool>,
    /// The answer that is being read takes long.
    is_long: Cell<bool>,
    /// An answer will come that nobody wants: the connection ends before it.
    is_spoilt: Cell<bool>,
    /// Requests that the stream has not taken yet.
    unsent: RefCell<BytesMut>,
    /// So many further ones are about to be sent: they go out in one piece with those.
    due: Cell<usize>,
    /// The watcher has met requests that wait for those.
    is_held: Cell<bool>,
    is_closed: Cell<bool>,
    /// Wakes the task that watches the connection.
    watcher: RefCell<Option<Waker>>,
}

/// The connection ended before the answers ahead of this one had come: none of its own has begun.
#[derive(Debug, thiserror::Error)]
#[error("the connection ended with an answer to a request before this one")]
pub(super) struct NoTurn;

/// Whether `error` says that a request never had its turn.
pub(super) fn had_no_turn(error: &Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<NoTurn>)
}

impl Http1 {
    /// Over `io`, which no request has used yet.
    pub(super) fn new(io: impl Duplex + 'static) -> Self {
        let io = SharedIo::new(io);
        let stream = Stream { io: io.clone(), buffer: BytesMut::new() };
        Self {
            io,
            idle: RefCell::new(Some(stream)),
            behind: RefCell::default(),
            is_under_way: Cell::default(),
            is_long: Cell::default(),
            is_spoilt: Cell::default(),
            unsent: RefCell::default(),
            due: Cell::default(),
            is_held: Cell::default(),
            is_closed: Cell::default(),
            watcher: RefCell::default(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Whether it takes a request now: at once, or behind others that are not sent yet, and whose answers
    /// are all wanted. What is sent later is answered later than over a connection of its own: servers
    /// hold back a last packet while that of the answer before it is not acknowledged (RFC 1122, section
    /// 4.2.3.4), and what was asked for in one piece has one such packet.
    pub(super) fn is_ready(&self) -> bool {
        !self.is_under_way.get() && self.may_be_used()
    }

    /// Whether nothing has come that was not asked for: it would be taken for the answer to the next request. The
    /// connection is closed if it has.
    pub(super) fn is_quiet(&self) -> bool {
        let mut idle = self.idle.borrow_mut();
        let Some(stream) = idle.as_mut() else { return true };
        let (mut byte, mut cx) = ([0], Context::from_waker(Waker::noop()));
        let read = Pin::new(&mut stream.io).poll_read(&mut cx, &mut ReadBuf::new(&mut byte));
        let is_quiet = read.is_pending() && stream.buffer.is_empty();
        drop(idle);
        if is_quiet {
            // The stream has forgotten whom to wake.
            self.wake_watcher();
        } else {
            self.close();
        }
        is_quiet
    }

    /// Whether the answer that is being read is the last that is to come, and wanted to its end.
    pub(super) fn may_be_followed(&self) -> bool {
        let is_being_read = self.idle.borrow().is_none();
        is_being_read
            && self.behind.borrow().is_empty()
            && !self.is_closed.get()
            && !self.is_spoilt.get()
    }

    /// Whether what is sent now will be answered: as is all that is ahead of it, and wanted.
    fn may_be_used(&self) -> bool {
        let is_wanted = |place: &Place| !place.turn.is_closed();
        !self.is_closed.get()
            && !self.is_long.get()
            && !self.is_spoilt.get()
            && self.behind.borrow().iter().all(is_wanted)
    }

    /// Sends what is to be sent and watches the connection while it is idle; ready when it has ended. A
    /// server has nothing to say while no request waits, so whatever comes ends it.
    pub(super) fn poll_watch(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_closed.get() {
            return Poll::Ready(());
        }
        self.watcher.replace(Some(cx.waker().clone()));
        if self.due.get() > 0 {
            self.is_held.set(true);
            return Poll::Pending;
        }
        if let Poll::Ready(Err(_)) = self.poll_send(cx) {
            // Who reads from the stream meets the failure there.
            self.close();
            return Poll::Ready(());
        }
        let mut idle = self.idle.borrow_mut();
        let Some(stream) = idle.as_mut() else { return Poll::Pending };
        let mut byte = [0];
        // How it ended makes no difference.
        let _ = ready!(Pin::new(&mut stream.io).poll_read(cx, &mut ReadBuf::new(&mut byte)));
        *idle = None;
        self.is_closed.set(true);
        self.io.close();
        Poll::Ready(())
    }

    /// A request will be sent, and until then, or until it is [known](Self::end_wait) that it won't be, what others send
    /// waits for it.
    pub(super) fn begin_wait(&self) {
        self.due.set(self.due.get() + 1);
    }

    /// The request that was waited for is there, or will not come.
    pub(super) fn end_wait(&self) {
        self.due.set(self.due.get() - 1);
        if self.due.get() == 0 && self.is_held.take() {
            self.wake_watcher();
        }
    }

    /// Ends the connection, at once unless an answer is being read. Requests behind that have no turn.
    pub(super) fn close(&self) {
        let (idle, behind) = (self.idle.take(), self.behind.take());
        self.is_closed.set(true);
        if idle.is_some() {
            self.io.close();
        }
        drop(behind);
        self.wake_watcher();
    }

    /// Sends a request and reads the head of its response. Dropping the future ends the connection,
    /// where others are ahead of it after they have read their answers.
    pub(super) fn send(
        self: &Rc<Self>,
        request: Request<()>,
    ) -> LocalBoxFuture<'static, Result<(Response<()>, Http1Body)>> {
        // Now: answers come in the order in which requests are sent.
        let turn = self.next_turn(request.method() == Method::HEAD);
        self.send_in_turn(request, turn)
    }

    /// The same behind an answer that may be long, of one who waits for its end: see
    /// [`may_be_followed`](Self::may_be_followed).
    pub(super) fn send_behind(
        self: &Rc<Self>,
        request: Request<()>,
    ) -> LocalBoxFuture<'static, Result<(Response<()>, Http1Body)>> {
        let turn = self.place_behind(false);
        let sent = self.send_in_turn(request, turn);
        // Who waits for the answer reads another one first.
        self.wake_watcher();
        sent
    }

    fn send_in_turn(
        self: &Rc<Self>,
        request: Request<()>,
        turn: Turn,
    ) -> LocalBoxFuture<'static, Result<(Response<()>, Http1Body)>> {
        let connection = Rc::clone(self);
        if !matches!(turn, Turn::Now(None)) {
            self.unsent.borrow_mut().extend_from_slice(&head::written(&request));
        }
        Box::pin(async move {
            let begun = poll_fn(|cx| connection.poll_begin(cx)).await;
            let lent = match turn {
                Turn::Now(lent) => begun.map(|()| lent)?,
                // Who is ahead meets the same failure.
                Turn::Behind(turn) => turn.await.ok(),
            };
            let no_turn = || Error::new(ErrorKind::ConnectionAborted, NoTurn);
            let mut lent = lent.ok_or_else(no_turn)?;
            let mut response = read_head(&mut lent.stream).await?;
            let body = Http1Body::new(lent, request.method(), &response)?;
            if body.is_long() {
                connection.send_others_elsewhere();
            }
            if response.headers().contains_key(TRANSFER_ENCODING) {
                // It says nothing of the body then (RFC 9112, section 6.3).
                response.headers_mut().remove(CONTENT_LENGTH);
            }
            Ok((response, body))
        })
    }

    /// The stream, or a place behind those that are to have it.
    fn next_turn(self: &Rc<Self>, is_head: bool) -> Turn {
        match self.idle.take() {
            Some(stream) => {
                let home = Home(Some(Rc::clone(self)));
                Turn::Now(Some(Lent { stream, home }))
            }
            // It was, when it was chosen for this request.
            None if !self.may_be_used() => Turn::Now(None),
            None => self.place_behind(is_head),
        }
    }

    fn place_behind(&self, is_head: bool) -> Turn {
        let (sender, turn) = oneshot::channel();
        self.behind.borrow_mut().push_back(Place { turn: sender, is_head });
        Turn::Behind(turn)
    }

    /// Sends as much as the stream takes now; the watcher sends what is left, and, after all who are to
    /// send now, what several have to say.
    fn poll_begin(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.due.get() > 0 || !self.behind.borrow().is_empty() {
            self.wake_watcher();
            return Poll::Ready(Ok(()));
        }
        let sent = self.poll_send(cx);
        if sent.is_ready() {
            return sent;
        }
        self.wake_watcher();
        Poll::Ready(Ok(()))
    }

    fn poll_send(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut unsent = self.unsent.borrow_mut();
        let mut io = self.io.clone();
        while !unsent.is_empty() {
            match ready!(Pin::new(&mut io).poll_write(cx, &unsent))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                length => unsent.advance(length),
            }
            self.is_under_way.set(true);
        }
        Pin::new(&mut io).poll_flush(cx)
    }

    /// The answer that is being read takes long: who waits behind it is better served by another
    /// connection, and this one ends with it if there was anybody. What asks for its head again stays.
    fn send_others_elsewhere(&self) {
        self.is_long.set(true);
        let mut behind = self.behind.borrow_mut();
        let kept = usize::from(behind.front().is_some_and(|place| place.is_head));
        let others = behind.split_off(kept);
        self.is_spoilt.set(self.is_spoilt.get() || !others.is_empty());
        drop(behind);
        drop(others);
    }

    fn wake_watcher(&self) {
        if let Some(waker) = self.watcher.take() {
            waker.wake();
        }
    }
}

/// The connection ended when a head had begun.
#[derive(Debug, thiserror::Error)]
#[error("in the middle of its head")]
struct MidHead;

async fn read_head(stream: &mut Stream) -> Result<Response<()>> {
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
            None => {
                let has_begun = !stream.buffer.is_empty();
                stream.read_more().await.map_err(|error| match error.kind() {
                    ErrorKind::UnexpectedEof if has_begun => Error::new(error.kind(), MidHead),
                    _ => error,
                })?;
            }
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
