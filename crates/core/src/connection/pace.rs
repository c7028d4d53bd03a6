//! The limit on the rate of a run, as the bodies that are read keep to it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use pelton_algos::ranges::StreamId;
use pelton_algos::rate::{RateBudget, Turn};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// What a server may have on its way: so long at the limit, or two round trips.
const AHEAD: Duration = Duration::from_millis(100);
/// Less than this makes packets small.
const LEAST_WINDOW: u64 = 16 * 1024;
/// From here on the kernel finds the window by itself: it is ahead of no limit that matters.
const WIDE: u64 = 4 * 1024 * 1024;

/// The limit that all bodies of a run share.
#[derive(Clone, Default)]
pub(super) struct Pace(Rc<Shared>);

struct Shared {
    started: Instant,
    budget: RefCell<RateBudget>,
    /// Streams that wait for their turn.
    wakers: RefCell<HashMap<StreamId, Waker>>,
}

impl Default for Shared {
    fn default() -> Self {
        let (budget, wakers) = Default::default();
        Self { started: Instant::now(), budget, wakers }
    }
}

impl Pace {
    /// Another limit from now on.
    pub(super) fn set_rate(&self, rate: Option<BitRate>) {
        self.0.budget.borrow_mut().set_rate(self.now(), rate);
        for (_, waker) in self.0.wakers.borrow_mut().drain() {
            waker.wake();
        }
    }

    /// The part of the limit that `stream` of `file` has.
    pub(super) fn share(&self, file: u64, stream: StreamId) -> Share {
        Share(Some(Part { pace: self.clone(), file, stream, timer: RefCell::default() }))
    }

    /// What one connection with this round-trip time may have on its way, so that the wire follows
    /// what is read. `None`: what it likes.
    pub(super) fn window(&self, rtt: Option<Duration>) -> Option<u64> {
        let rate = self.0.budget.borrow().rate()?;
        let ahead = AHEAD.max(rtt.unwrap_or_default() * 2);
        let Bytes(window) = rate * ahead;
        (window < WIDE).then_some(window.max(LEAST_WINDOW))
    }

    /// Keeps the receive buffer of `socket` to [`window`](Self::window). It stays so when the limit is
    /// lifted, which ends the kernel's own search for the best size.
    pub(super) fn narrow(&self, socket: &TcpStream, rtt: Option<Duration>) {
        if let Some(window) = self.window(rtt) {
            // The kernel grants twice as much, for its own bookkeeping. If it does not: the wire is
            // ahead by more.
            let _ = SockRef::from(socket).set_recv_buffer_size(window as usize);
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::new(self.0.started.elapsed())
    }

    fn wake_next(&self) {
        let next = self.0.budget.borrow().next();
        if let Some(waker) = next.and_then(|stream| self.0.wakers.borrow_mut().remove(&stream)) {
            waker.wake();
        }
    }
}

/// What one body may read.
#[derive(Default)]
pub(super) struct Share(Option<Part>);

struct Part {
    pace: Pace,
    file: u64,
    stream: StreamId,
    timer: RefCell<Option<Pin<Box<Sleep>>>>,
}

impl Share {
    /// Reads with `read`, which is told how many bytes it may bring, as soon as it is this body's turn.
    /// What came is to be told with [`spend`](Self::spend).
    pub(super) fn poll_read<T>(
        &self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Context<'_>, usize) -> Poll<T>,
    ) -> Poll<T> {
        let Some(part) = &self.0 else { return read(cx, usize::MAX) };
        let most = ready!(part.poll_turn(cx));
        let read = read(cx, most);
        if read.is_pending() {
            part.withdraw();
        }
        read
    }

    /// `bytes` came.
    pub(super) fn spend(&self, bytes: usize) {
        if let Some(Part { pace, file, stream, .. }) = &self.0 {
            pace.0.budget.borrow_mut().spend(pace.now(), *file, *stream, bytes as u64);
            pace.wake_next();
        }
    }
}

impl Part {
    fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<usize> {
        let Shared { started, budget, wakers } = &*self.pace.0;
        loop {
            let turn = budget.borrow_mut().ask(self.pace.now(), self.file, self.stream);
            // A change of the limit wakes whoever waits, for whatever.
            match turn {
                Turn::Now(most) => {
                    wakers.borrow_mut().remove(&self.stream);
                    return Poll::Ready(usize::try_from(most).unwrap_or(usize::MAX));
                }
                Turn::Later => {
                    wakers.borrow_mut().insert(self.stream, cx.waker().clone());
                    return Poll::Pending;
                }
                Turn::At(at) => {
                    wakers.borrow_mut().insert(self.stream, cx.waker().clone());
                    let at = *started + at.since_start();
                    let mut timer = self.timer.borrow_mut();
                    let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
                    if timer.deadline() != at {
                        timer.as_mut().reset(at);
                    }
                    ready!(timer.as_mut().poll(cx));
                }
            }
        }
    }

    fn withdraw(&self) {
        self.pace.0.budget.borrow_mut().withdraw(self.file, self.stream);
        self.pace.wake_next();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.pace.0.wakers.borrow_mut().remove(&self.stream);
        self.withdraw();
    }
}
