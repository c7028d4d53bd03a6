//! The limits on rates, as the bodies that are read keep to them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use pelton_algos::ranges::StreamId;
use pelton_algos::rate::{CommonRate, RateBudget, Reader, Turn};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};
use tokio::time::{Instant, Sleep, sleep_until};

use super::origin::Origin;

/// What a server may have on its way: so long at the limit, or two round trips.
const AHEAD: Duration = Duration::from_millis(100);
/// Less than this makes packets small.
const LEAST_WINDOW: u64 = 16 * 1024;
/// From here on HTTP/2 finds the window by itself: it is ahead of no limit that matters.
const WIDE: u64 = 4 * 1024 * 1024;
/// A TCP connection that was opened with less than this never has a larger window (RFC 7323, section
/// 2), and one that was not is promised as much. What it has then is the kernel's to find: it follows
/// what is read.
const UNSCALED: u32 = 64 * 1024;

/// The limit of a client, which all of its runs share.
pub(crate) struct ClientRate {
    started: Instant,
    common: Mutex<CommonRate>,
    runs: AtomicU64,
}

impl Default for ClientRate {
    fn default() -> Self {
        let (common, runs) = Default::default();
        Self { started: Instant::now(), common, runs }
    }
}

impl ClientRate {
    /// Another limit from now on. Runs see it when they [`look`](Pace::look_above).
    pub(crate) fn set_rate(&self, rate: Option<BitRate>) {
        self.common().set_rate(self.now(), rate);
    }

    fn common(&self) -> MutexGuard<'_, CommonRate> {
        self.common.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        Timestamp::new(self.started.elapsed())
    }
}

/// The limits that all bodies of a run share.
#[derive(Clone)]
pub(super) struct Pace(Rc<Shared>);

struct Shared {
    above: Arc<ClientRate>,
    /// The run's number in it.
    run: u64,
    /// Its rate when it was looked at last.
    seen: Cell<Option<BitRate>>,
    budget: RefCell<RateBudget>,
    /// Of all connections that were opened with a small buffer.
    longest_rtt: Cell<Duration>,
    /// Origins by number.
    origins: RefCell<HashMap<Origin, u64>>,
    /// Streams that wait for their turn.
    wakers: RefCell<HashMap<StreamId, Waker>>,
}

impl Pace {
    /// No limits but those of `above`.
    pub(super) fn below(above: Arc<ClientRate>) -> Self {
        let run = above.runs.fetch_add(1, Ordering::Relaxed);
        let seen = Cell::new(above.common().rate());
        let budget = RefCell::new(RateBudget::new(run));
        let (longest_rtt, origins, wakers) = Default::default();
        Self(Rc::new(Shared { above, run, seen, budget, longest_rtt, origins, wakers }))
    }

    /// Other limits from now on: of all together, and of each origin.
    pub(super) fn set_rates(&self, all: Option<BitRate>, per_origin: Option<BitRate>) {
        let now = self.now();
        let mut budget = self.0.budget.borrow_mut();
        budget.set_rate(now, all);
        budget.set_rate_per_origin(now, per_origin);
        drop(budget);
        self.wake_all();
    }

    /// The limit above the run's, and whether it holds the run. To be looked at now and then: that it is
    /// another one is noticed here.
    pub(super) fn look_above(&self) -> (Option<BitRate>, bool) {
        let common = self.0.above.common();
        let (rate, holds) = (common.rate(), common.holds(self.now(), self.0.run));
        drop(common);
        if self.0.seen.replace(rate) != rate {
            self.wake_all();
        }
        (rate, holds)
    }

    /// The part of the limits that `stream` of `file` has, which comes from `origin`.
    pub(super) fn share(&self, origin: &Origin, file: u64, stream: StreamId) -> Share {
        let mut origins = self.0.origins.borrow_mut();
        let next = origins.len() as u64;
        let origin = *origins.entry(origin.clone()).or_insert(next);
        let reader = Reader { origin, file, stream };
        Share(Some(Part { pace: self.clone(), reader, timer: RefCell::default() }))
    }

    /// What one connection with this round-trip time may have on its way, so that the wire follows
    /// what is read. `None`: what it likes.
    pub(super) fn window(&self, rtt: Option<Duration>) -> Option<u64> {
        let rate = self.0.budget.borrow().rate(&self.0.above.common())?;
        let ahead = AHEAD.max(rtt.unwrap_or_default() * 2);
        let Bytes(window) = rate * ahead;
        (window < WIDE).then_some(window.max(LEAST_WINDOW))
    }

    /// The receive buffer that a TCP connection is to be opened with: a power of two, so that a path
    /// that is a little longer wants no other. `None`: the kernel's.
    ///
    /// That of an open one stays as it is. Linux drops what comes beyond a buffer that was made smaller,
    /// although it was promised, and the server waits for seconds until it sends that again.
    pub(super) fn buffer(&self) -> Option<u32> {
        let window = self.window(Some(self.0.longest_rtt.get()))?;
        u32::try_from(window.next_power_of_two()).ok().filter(|buffer| *buffer < UNSCALED)
    }

    /// A connection came up, with this round-trip time.
    pub(super) fn on_rtt(&self, rtt: Option<Duration>) {
        let longest = self.0.longest_rtt.get();
        self.0.longest_rtt.set(longest.max(rtt.unwrap_or_default()));
    }

    fn now(&self) -> Timestamp {
        self.0.above.now()
    }

    fn wake_all(&self) {
        for (_, waker) in self.0.wakers.borrow_mut().drain() {
            waker.wake();
        }
    }

    fn wake_next(&self) {
        let mut wakers = self.0.wakers.borrow_mut();
        if wakers.is_empty() {
            return;
        }
        let next = self.0.budget.borrow().next(self.now());
        if let Some(waker) = next.and_then(|stream| wakers.remove(&stream)) {
            waker.wake();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.above.common().forget(self.run);
    }
}

/// What one body may read.
#[derive(Default)]
pub(super) struct Share(Option<Part>);

struct Part {
    pace: Pace,
    reader: Reader,
    /// While it is told when to ask again.
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
        if let Some(Part { pace, reader, .. }) = &self.0 {
            let above = &pace.0.above;
            let mut budget = pace.0.budget.borrow_mut();
            budget.spend(pace.now(), *reader, bytes as u64, &mut above.common());
            drop(budget);
            pace.wake_next();
        }
    }
}

impl Part {
    fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<usize> {
        let Shared { above, budget, wakers, .. } = &*self.pace.0;
        let stream = self.reader.stream;
        loop {
            let now = self.pace.now();
            let turn = budget.borrow_mut().ask(now, self.reader, &mut above.common());
            // A change of a limit wakes whoever waits, for whatever.
            match turn {
                Turn::Now(most) => {
                    wakers.borrow_mut().remove(&stream);
                    return Poll::Ready(usize::try_from(most).unwrap_or(usize::MAX));
                }
                Turn::Later => {
                    wakers.borrow_mut().insert(stream, cx.waker().clone());
                    if self.timer.take().is_some() {
                        // It was the next until another one's origin was free again.
                        self.pace.wake_next();
                    }
                    return Poll::Pending;
                }
                Turn::At(at) => {
                    wakers.borrow_mut().insert(stream, cx.waker().clone());
                    let at = above.started + at.since_start();
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
        let above = &self.pace.0.above;
        self.pace.0.budget.borrow_mut().withdraw(self.reader, &mut above.common());
        self.pace.wake_next();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.pace.0.wakers.borrow_mut().remove(&self.reader.stream);
        self.withdraw();
    }
}
