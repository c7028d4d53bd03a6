//! HTTP/2 over one connection (RFC 9113): frames by the crate `h2`, credit by pelton.
//!
//! The task of a connection reads frames into memory of their own and the tasks of its bodies use
//! them. They take turns here, a burst each: otherwise a full window lies in fresh memory before its
//! first byte is written, and CPU time goes into page faults and cache misses.

mod body;
mod bursts;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, Stream};
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason};
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use pelton_algos::credit::{ConnectionCredit, FIRST_WINDOW};
use pelton_algos::memory::Http2Buffers;
use pelton_algos::time::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::http1::{LONGEST_HEAD, MOST_INTERIM};
pub(super) use body::Http2Body;
use bursts::Bursts;

/// The largest window that there is: section 6.9.1.
const MOST_WINDOW: u64 = (1 << 31) - 1;
/// What bodies may hold back before the connection is told: less than the least window, and so much
/// that a frame about it is nothing.
const UNTOLD: u64 = 16 * 1024;
/// Streams that are assumed to be allowed until the server says so: the least that section 6.5.2
/// recommends.
const INITIAL_STREAMS: usize = 100;

/// What a connection's task, its requests and its bodies share.
struct Shared {
    has_ended: Cell<bool>,
    /// Bodies that are being read.
    bodies: Cell<u64>,
    /// What each stream was given to begin with.
    window: Cell<u64>,
    /// The most that a body still wants, of those that were read since this was last taken.
    wanted: Cell<u64>,
    /// What was read and is not given back.
    held: Cell<u64>,
    /// How much of that the connection was given instead.
    made_up: Cell<u64>,
    /// Makes up for more.
    task: RefCell<Waker>,
    /// `None` where a limit on the rate keeps windows small: what is read is given back at once.
    credit: Option<RefCell<ConnectionCredit>>,
    /// Ends of streams that nobody else waits for.
    ends: RefCell<FuturesUnordered<LocalBoxFuture<'static, ()>>>,
}

impl Shared {
    /// One body holds back this much, and held back that much before.
    fn hold(&self, before: u64, now: u64) {
        let held = self.held.get() - before + now;
        self.held.set(held);
        if held.saturating_sub(self.made_up.get()) >= UNTOLD {
            self.task.borrow().wake_by_ref();
        }
    }

    /// The connection's task waits for this `end` of a stream.
    fn wait_for(&self, end: LocalBoxFuture<'static, ()>) {
        self.ends.borrow_mut().push(end);
        self.task.borrow().wake_by_ref();
    }

    fn poll_ends(&self, cx: &mut Context<'_>) {
        let mut ends = self.ends.borrow_mut();
        if ends.is_empty() {
            return;
        }
        while let Poll::Ready(Some(())) = Pin::new(&mut *ends).poll_next(cx) {}
    }
}

/// Sends requests over a connection, which ends when this is dropped and its last body with it.
pub(super) struct Http2 {
    requests: RefCell<SendRequest<Bytes>>,
    shared: Rc<Shared>,
}

/// A connection: what sends requests, how many it takes at a time, and what must be polled for
/// anything to happen.
pub(super) type Connected<F> = (Http2, Rc<Cell<usize>>, F);

/// Begins to speak HTTP/2 over `stream`, whose packets took `rtt` to come back where that is known.
///
/// What may be in flight is as `buffers` say, and `limit` at most, where it is given: the body's reader
/// is limited, and what a server sends before that waits in memory.
pub(super) async fn connect<S>(
    stream: S,
    rtt: Option<Duration>,
    buffers: Http2Buffers,
    limit: Option<u64>,
) -> Result<Connected<impl Future<Output = ()> + 'static>, h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let within = |most: u64| limit.map_or(most, |limit| limit.min(most));
    let window = within(buffers.window);
    let first = FIRST_WINDOW.min(window);
    let came = Rc::<Cell<u64>>::default();
    let (requests, mut connection) = Builder::new()
        .initial_window_size(first as u32)
        .initial_connection_window_size(window as u32)
        .max_frame_size(buffers.frame as u32)
        .max_header_list_size(LONGEST_HEAD as u32)
        .initial_max_send_streams(INITIAL_STREAMS)
        .enable_push(false)
        .handshake(Bursts::new(stream, Rc::clone(&came)))
        .await?;
    let mut credit = ConnectionCredit::new(Timestamp::START);
    if let Some(rtt) = rtt {
        credit.on_rtt(rtt);
    }
    let shared = Rc::new(Shared {
        has_ended: Cell::new(false),
        bodies: Cell::new(0),
        window: Cell::new(first),
        wanted: Cell::new(0),
        held: Cell::new(0),
        made_up: Cell::new(0),
        task: RefCell::new(Waker::noop().clone()),
        credit: limit.is_none().then_some(RefCell::new(credit)),
        ends: RefCell::default(),
    });
    let capacity = Rc::new(Cell::new(INITIAL_STREAMS));
    let round_trip = connection
        .ping_pong()
        .map(|pings| -> LocalBoxFuture<'static, _> { Box::pin(round_trip(pings)) });
    let mut task = Task {
        connection,
        window,
        capacity: Rc::clone(&capacity),
        shared: Rc::clone(&shared),
        began: Instant::now(),
        came,
        round_trip,
    };
    let driver = async move {
        let ended = poll_fn(|cx| task.poll(cx)).await;
        task.shared.has_ended.set(true);
        if let Err(error) = ended {
            tracing::debug!(%error, "HTTP/2 connection ended");
        }
    };
    Ok((Http2 { requests: RefCell::new(requests), shared }, capacity, driver))
}

impl Http2 {
    /// Whether no further request can be sent: the connection has ended, or its server goes away.
    pub(super) fn is_closed(&self) -> bool {
        let mut no_one = Context::from_waker(Waker::noop());
        self.shared.has_ended.get()
            || matches!(self.requests.borrow_mut().poll_ready(&mut no_one), Poll::Ready(Err(_)))
    }

    /// Sends a request. Dropping the future, or the body before its end, resets the stream.
    pub(super) fn send(
        &self,
        request: Request<()>,
    ) -> LocalBoxFuture<'static, Result<(Response<()>, Http2Body), h2::Error>> {
        let sent = self.requests.borrow_mut().send_request(request, true);
        let shared = Rc::clone(&self.shared);
        Box::pin(async move {
            let (mut response, _) = sent?;
            pass_interim(&mut response).await?;
            let (head, incoming) = response.await?.into_parts();
            let head = Response::from_parts(head, ());
            let length = length_of(&head);
            Ok((head, Http2Body::new(incoming, length, shared)))
        })
    }
}

/// What a body will have, by its head.
fn length_of<T>(head: &Response<T>) -> Option<u64> {
    head.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads interim responses up to the final one, or to a failure that this will meet again.
async fn pass_interim(response: &mut ResponseFuture) -> Result<(), h2::Error> {
    let mut interim = 0;
    while let Some(Ok(_)) = poll_fn(|cx| response.poll_informational(cx)).await {
        interim += 1;
        if interim > MOST_INTERIM {
            return Err(Reason::ENHANCE_YOUR_CALM.into());
        }
    }
    Ok(())
}

/// What reads and writes the frames of a connection.
struct Task<S> {
    connection: Connection<Bursts<S>, Bytes>,
    /// What may wait to be read of all streams together.
    window: u64,
    capacity: Rc<Cell<usize>>,
    shared: Rc<Shared>,
    began: Instant,
    /// Bytes that were read from the stream since this was last taken.
    came: Rc<Cell<u64>>,
    /// Until it is known.
    round_trip: Option<LocalBoxFuture<'static, Result<Duration, h2::Error>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Task<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        if let Some(credit) = &self.shared.credit
            && let Some(round_trip) = &mut self.round_trip
            && let Poll::Ready(measured) = round_trip.as_mut().poll(cx)
        {
            self.round_trip = None;
            if let Ok(rtt) = measured {
                credit.borrow_mut().on_rtt(rtt);
            }
        }
        self.shared.poll_ends(cx);
        self.make_up(cx);
        let ended = Pin::new(&mut self.connection).poll(cx);
        self.capacity.set(self.connection.max_concurrent_send_streams());
        if ended.is_pending() && self.widen() {
            cx.waker().wake_by_ref();
        }
        ended
    }

    /// What is held back of one stream was read, so it takes no memory, and must not stop the others: the
    /// connection as a whole gets it back.
    fn make_up(&mut self, cx: &Context<'_>) {
        let shared = &self.shared;
        if !shared.task.borrow().will_wake(cx.waker()) {
            shared.task.replace(cx.waker().clone());
        }
        let held = shared.held.get();
        if held != shared.made_up.replace(held) {
            let target = (self.window + held).min(MOST_WINDOW);
            self.connection.set_target_window_size(target as u32);
        }
    }

    /// Takes note of what came. Returns whether the server is to be told of a larger window.
    fn widen(&mut self) -> bool {
        let Some(credit) = &self.shared.credit else { return false };
        let mut credit = credit.borrow_mut();
        credit.on_bytes(Timestamp::new(self.began.elapsed()), self.came.take());
        // A wider one reaches every stream at once: not beyond the end of the longest.
        let window = credit.window().min(self.shared.wanted.take()).min(self.window);
        // It is refused while the last change is not acknowledged.
        let is_told = window > self.shared.window.get()
            && self.connection.set_initial_window_size(window as u32).is_ok();
        if is_told {
            self.shared.window.set(window);
        }
        is_told
    }
}

/// How long a server takes to answer a ping. Behind a proxy, opening the connection does not tell.
async fn round_trip(mut pings: PingPong) -> Result<Duration, h2::Error> {
    let asked = Instant::now();
    pings.ping(Ping::opaque()).await?;
    Ok(asked.elapsed())
}
