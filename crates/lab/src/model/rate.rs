//! A rate that changes when a schedule says so.

use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes};
use thiserror::Error;

/// A change of the link at a moment of its life.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Another rate from `at` on.
    Step {
        /// When.
        at: Duration,
        /// The new rate.
        rate: BitRate,
    },
    /// Nothing passes from `at` on for `lasting`; what waits in the queue stays there.
    Outage {
        /// When.
        at: Duration,
        /// For how long.
        lasting: Duration,
    },
    /// The rate moves evenly to `rate` in the time from `at` to `at + lasting`.
    Ramp {
        /// When it begins.
        at: Duration,
        /// How long it takes.
        lasting: Duration,
        /// The rate at its end.
        rate: BitRate,
    },
}

impl Change {
    fn span(&self) -> (Duration, Duration) {
        match *self {
            Self::Step { at, .. } => (at, at),
            Self::Outage { at, lasting } | Self::Ramp { at, lasting, .. } => (at, at + lasting),
        }
    }
}

/// Why a schedule can't be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// A rate is zero. An outage, which ends, is the way to stop a link.
    #[error("a rate must be above 0 (use an outage to stop the link for a time)")]
    ZeroRate,
    /// A change begins before the one listed above it is over.
    #[error("the change at {} s begins before the one listed above it is over", .at.as_secs_f64())]
    Order {
        /// When the change begins.
        at: Duration,
    },
    /// An outage or a ramp takes no time.
    #[error("the outage or ramp at {} s takes no time", .at.as_secs_f64())]
    Empty {
        /// When the change begins.
        at: Duration,
    },
}

/// The rate over time: straight pieces, the last of which is level, above zero and without end.
#[derive(Debug, Clone, PartialEq)]
pub struct RateSchedule {
    pieces: Vec<Piece>,
}

/// From `start` (seconds) to the start of the next piece: `rate` bit/s, growing by `slope` each
/// second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    start: f64,
    rate: f64,
    slope: f64,
}

impl RateSchedule {
    /// Always `rate`.
    ///
    /// # Errors
    /// [`ScheduleError::ZeroRate`].
    pub fn constant(rate: BitRate) -> Result<Self, ScheduleError> {
        Self::new(rate, &[])
    }

    /// `rate` until the first of `changes`, which are in order and do not overlap.
    ///
    /// # Errors
    /// When they overlap, or a rate is zero.
    pub fn new(rate: BitRate, changes: &[Change]) -> Result<Self, ScheduleError> {
        let level = |start: Duration, rate: BitRate| Piece {
            start: start.as_secs_f64(),
            rate: rate.bps(),
            slope: 0.0,
        };
        let mut current = positive(rate)?;
        let mut pieces = vec![level(Duration::ZERO, current)];
        let mut over = Duration::ZERO;
        for change in changes {
            let (at, end) = change.span();
            if at < over {
                return Err(ScheduleError::Order { at });
            }
            over = end;
            match *change {
                Change::Step { rate, .. } => current = positive(rate)?,
                _ if at == end => return Err(ScheduleError::Empty { at }),
                Change::Outage { .. } => pieces.push(level(at, BitRate::ZERO)),
                Change::Ramp { lasting, rate, .. } => {
                    let slope = (positive(rate)?.bps() - current.bps()) / lasting.as_secs_f64();
                    pieces.push(Piece { slope, ..level(at, current) });
                    current = rate;
                }
            }
            pieces.push(level(end, current));
        }
        Ok(Self { pieces })
    }

    /// The highest rate that it ever has.
    pub fn peak(&self) -> BitRate {
        BitRate::from_bps(self.pieces.iter().map(|piece| piece.rate).fold(0.0, f64::max))
    }

    /// The rate at `at`.
    pub fn rate_at(&self, at: Duration) -> BitRate {
        let at = at.as_secs_f64();
        let piece = self.pieces.iter().rfind(|piece| piece.start <= at);
        BitRate::from_bps(piece.map_or(0.0, |piece| piece.rate_at(at)))
    }

    /// When the last of `bytes` has left a server that starts on them at `start`; both in seconds.
    /// Floating point, so that the roundings of a million packets do not add up: one is 10^-13 s
    /// after a quarter of an hour.
    pub(super) fn finish(&self, start: f64, bytes: Bytes) -> f64 {
        let mut at = start;
        let mut left = bytes.as_f64() * 8.0;
        for (index, piece) in self.pieces.iter().enumerate() {
            let end = self.pieces.get(index + 1).map_or(f64::INFINITY, |next| next.start);
            if end <= at {
                continue;
            }
            let (initial, span) = (piece.rate_at(at), end - at);
            let possible = if end.is_finite() {
                initial * span + piece.slope * span * span / 2.0
            } else {
                f64::INFINITY
            };
            if left <= possible {
                // The root of rate t + slope t^2 / 2 = left, in the form that slope 0 leaves exact.
                let root = (initial * initial + 2.0 * piece.slope * left).max(0.0).sqrt();
                return if left > 0.0 { at + 2.0 * left / (initial + root) } else { at };
            }
            left -= possible;
            at = end;
        }
        at
    }
}

impl Piece {
    fn rate_at(&self, at: f64) -> f64 {
        self.rate + self.slope * (at - self.start)
    }
}

fn positive(rate: BitRate) -> Result<BitRate, ScheduleError> {
    if rate > BitRate::ZERO { Ok(rate) } else { Err(ScheduleError::ZeroRate) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    /// 8 Mbit/s, so a megabyte a second.
    fn schedule(changes: &[Change]) -> RateSchedule {
        RateSchedule::new(BitRate::from_mbps(8.0), changes).unwrap()
    }

    #[test]
    fn a_step_an_outage_and_a_ramp() {
        let changes = [
            Change::Step { at: secs(1.0), rate: BitRate::from_mbps(16.0) },
            Change::Outage { at: secs(2.0), lasting: secs(3.0) },
            Change::Ramp { at: secs(6.0), lasting: secs(2.0), rate: BitRate::from_mbps(8.0) },
        ];
        let schedule = schedule(&changes);
        near(schedule.finish(0.0, Bytes(500_000)), 0.5);
        near(schedule.finish(0.0, Bytes(2_000_000)), 1.5);
        // 3 MB by the outage, 2 MB in the second after it, then 3 MB in two seconds of ramp.
        near(schedule.finish(0.0, Bytes(5_000_000)), 6.0);
        near(schedule.finish(0.0, Bytes(8_000_000)), 8.0);
        near(schedule.finish(0.0, Bytes(9_000_000)), 9.0);
        // Half way down the ramp: 2 - 0.25 = 1.75 MB.
        near(schedule.finish(6.0, Bytes(1_750_000)), 7.0);
        near(schedule.finish(3.0, Bytes(2)), 5.000_001);
        let rates = [(0.5, 8), (1.0, 16), (3.0, 0), (5.5, 16), (7.0, 12), (9.0, 8)];
        for (at, mbps) in rates {
            near(schedule.rate_at(secs(at)).mbps(), f64::from(mbps));
        }
        assert_eq!(schedule.peak(), BitRate::from_mbps(16.0));
    }

    #[test]
    fn impossible_schedules_are_named() {
        let rate = BitRate::from_mbps(8.0);
        let outage = Change::Outage { at: secs(1.0), lasting: secs(2.0) };
        let step = Change::Step { at: secs(2.5), rate };
        let order = ScheduleError::Order { at: secs(2.5) };
        assert_eq!(RateSchedule::new(rate, &[outage, step]), Err(order));
        assert_eq!(
            order.to_string(),
            "the change at 2.5 s begins before the one listed above it is over"
        );
        assert_eq!(RateSchedule::constant(BitRate::ZERO), Err(ScheduleError::ZeroRate));
        let empty = Change::Outage { at: secs(1.0), lasting: Duration::ZERO };
        assert_eq!(RateSchedule::new(rate, &[empty]), Err(ScheduleError::Empty { at: secs(1.0) }));
    }
}
