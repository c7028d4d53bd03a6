//! One direction of a link at work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::loss::{LossProcess, unit};
use super::trace::Cursor;
use super::{Capacity, DirectionSpec, RateSchedule, Trace};
use crate::content::next_random;

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It comes out of the link.
    Delivered {
        /// When.
        at: Timestamp,
    },
    /// It never does.
    Dropped(Cause),
}

/// Why a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The queue had no room for it.
    QueueFull,
    /// It was lost on the way.
    Lost,
}

/// A [`DirectionSpec`] with its state.
#[derive(Debug, Clone)]
pub struct Direction {
    spec: DirectionSpec,
    server: Server,
    loss: LossProcess,
    jitter_seed: u64,
    /// When which bytes leave the queue, in order.
    waiting: VecDeque<(Timestamp, Bytes)>,
    backlog: Bytes,
    last_delivery: Timestamp,
}

/// What takes packets out of the queue.
#[derive(Debug, Clone)]
enum Server {
    Rate {
        schedule: RateSchedule,
        /// When the last packet has left, in seconds.
        free: f64,
    },
    Trace {
        trace: Arc<Trace>,
        cursor: Cursor,
    },
}

impl Server {
    fn new(capacity: &Capacity) -> Self {
        match capacity {
            Capacity::Rate(schedule) => Self::Rate { schedule: schedule.clone(), free: 0.0 },
            Capacity::Trace(trace) => {
                Self::Trace { trace: Arc::clone(trace), cursor: Cursor::default() }
            }
        }
    }

    /// When a packet that joins the queue now has left it.
    fn serve(&mut self, now: Timestamp, bytes: Bytes) -> Timestamp {
        let now = now.since_start();
        Timestamp::new(match self {
            Self::Rate { schedule, free } => {
                *free = schedule.finish(free.max(now.as_secs_f64()), bytes);
                Duration::from_secs_f64(*free)
            }
            Self::Trace { trace, cursor } => cursor.serve(trace, now, bytes),
        })
    }
}

impl Direction {
    /// An idle direction at the start of its schedule.
    pub fn new(spec: &DirectionSpec, seed: u64) -> Self {
        let mut seeds = seed;
        Self {
            spec: spec.clone(),
            server: Server::new(&spec.capacity),
            loss: LossProcess::new(spec.loss, next_random(&mut seeds)),
            jitter_seed: next_random(&mut seeds),
            waiting: VecDeque::new(),
            backlog: Bytes::ZERO,
            last_delivery: Timestamp::START,
        }
    }

    /// Sends a packet of `bytes` (IP header included) into the link at `now`, which never goes
    /// back from one call to the next.
    pub fn offer(&mut self, now: Timestamp, bytes: Bytes) -> Verdict {
        if self.backlog(now) + bytes > self.spec.queue {
            return Verdict::Dropped(Cause::QueueFull);
        }
        let leaves = self.server.serve(now, bytes);
        self.waiting.push_back((leaves, bytes));
        self.backlog += bytes;
        if self.loss.loses_next() {
            return Verdict::Dropped(Cause::Lost);
        }
        let delay = self.spec.delay_at(leaves.since_start()) + self.jitter_at(leaves);
        let at = (leaves + delay).max(self.last_delivery);
        self.last_delivery = at;
        Verdict::Delivered { at }
    }

    /// The bytes in the queue at `now`.
    pub fn backlog(&mut self, now: Timestamp) -> Bytes {
        while let Some(&(_, bytes)) = self.waiting.front().filter(|(leaves, _)| *leaves <= now) {
            self.waiting.pop_front();
            self.backlog = self.backlog.saturating_sub(bytes);
        }
        self.backlog
    }

    /// The jitter of the time slot that `at` lies in: a function of the seed and the slot, so that
    /// it does not depend on what else is sent. Slots as long as the jitter keep the delay varying
    /// under load too, where a new number for each packet would leave the greatest one standing.
    fn jitter_at(&self, at: Timestamp) -> Duration {
        if self.spec.jitter.is_zero() {
            return Duration::ZERO;
        }
        let slot = at.since_start().as_nanos() / self.spec.jitter.as_nanos();
        let mut state = self.jitter_seed.wrapping_add(slot as u64);
        self.spec.jitter.mul_f64(unit(next_random(&mut state)))
    }
}
