//! What a link is like: numbers without state.

use std::sync::Arc;
use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes};

use super::{Loss, RateSchedule, ScheduleError, Trace};

/// A link between a server and a client.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// From the server to the client.
    pub down: DirectionSpec,
    /// From the client to the server.
    pub up: DirectionSpec,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionSpec {
    /// What it carries: whole IP packets count, headers included.
    pub capacity: Capacity,
    /// One-way delays, each from a moment on, in order; the first from the start.
    pub delays: Vec<(Duration, Duration)>,
    /// Up to so much is added to the delay, evenly distributed and drawn anew each `jitter`.
    /// Packets are never reordered by it.
    pub jitter: Duration,
    /// Which packets are lost.
    pub loss: Loss,
    /// The bytes that may wait, those of the packet that is being sent included.
    pub queue: Bytes,
}

/// What a direction carries.
#[derive(Debug, Clone, PartialEq)]
pub enum Capacity {
    /// A rate, and its changes.
    Rate(RateSchedule),
    /// What a recorded link delivered.
    Trace(Arc<Trace>),
}

impl LinkSpec {
    /// Equal both ways, without loss or jitter; the queues hold a bandwidth-delay product, at least 64 KiB.
    ///
    /// # Errors
    /// [`ScheduleError::ZeroRate`].
    pub fn plain(rate: BitRate, rtt: Duration) -> Result<Self, ScheduleError> {
        let direction = DirectionSpec {
            capacity: Capacity::Rate(RateSchedule::constant(rate)?),
            delays: vec![(Duration::ZERO, rtt / 2)],
            jitter: Duration::ZERO,
            loss: Loss::default(),
            queue: (rate * rtt).max(Bytes::kib(64)),
        };
        Ok(Self { down: direction.clone(), up: direction })
    }

    /// The round-trip time of an idle link at its start, without jitter.
    pub fn rtt(&self) -> Duration {
        self.down.delay_at(Duration::ZERO) + self.up.delay_at(Duration::ZERO)
    }

    /// [`rtt`](Self::rtt) with the mean of the jitter.
    pub fn mean_rtt(&self) -> Duration {
        self.rtt() + (self.down.jitter + self.up.jitter) / 2
    }
}

impl DirectionSpec {
    /// The highest rate it has; of a trace, the mean.
    pub fn peak_rate(&self) -> BitRate {
        match &self.capacity {
            Capacity::Rate(schedule) => schedule.peak(),
            Capacity::Trace(trace) => trace.mean_rate(),
        }
    }

    /// The one-way delay, without jitter, of a packet that leaves the queue at `at`.
    pub fn delay_at(&self, at: Duration) -> Duration {
        let current = self.delays.iter().rfind(|(from, _)| *from <= at);
        current.map_or(Duration::ZERO, |(_, delay)| *delay)
    }

    /// How long the direction needs to move `bytes` of IP packets from its start on, at full load.
    pub fn time_for(&self, bytes: Bytes) -> Duration {
        match &self.capacity {
            Capacity::Rate(schedule) => Duration::from_secs_f64(schedule.finish(0.0, bytes)),
            Capacity::Trace(trace) => {
                super::trace::Cursor::default().serve(trace, Duration::ZERO, bytes)
            }
        }
    }
}
