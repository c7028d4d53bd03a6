//! How fast more requests are made than before.

use std::time::Duration;

use crate::connections::Together;
use crate::time::Timestamp;

/// Timers tick by the millisecond.
const TICK: Duration = Duration::from_millis(1);

/// A path that brings answers faster than this is hardly slower than its servers send.
const TELLING: Duration = Duration::from_micros(100);

/// What was asked for at once is waited for so many times as long as one takes.
const MOST_AHEAD: u32 = 32;

/// Answers that are asked for at once come at once, as fast as their server sends: a burst that a short queue does not hold. What
/// replaces an answer that has come follows it at the pace of the path; what is asked for beyond that need come no faster. But what
/// one flight of a connection brings is asked for in one piece: it can take no further request until all of that has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ramp {
    /// So many were in flight at once.
    most: u32,
    /// By then the path has brought what was asked for.
    next: Timestamp,
    /// When the present piece goes out, and how many requests of it are still to be made.
    piece: (Timestamp, u32),
}

impl Ramp {
    /// When one request more may be made beside so many that are `in_flight`: `now`, or later.
    #[inline]
    pub fn next(&self, now: Timestamp, in_flight: u32) -> Timestamp {
        let is_more = in_flight >= self.most;
        if is_more && self.left_of_piece(now) == 0 && self.next > now + TICK {
            self.next
        } else {
            now
        }
    }

    /// It was made, and its answer takes the path so long: so many are `in_flight` with it. Connections are asked for so
    /// many `together`.
    #[inline]
    pub fn on_request(
        &mut self,
        now: Timestamp,
        in_flight: u32,
        each: Duration,
        together: Together,
    ) {
        let is_more = in_flight > self.most;
        self.most = self.most.max(in_flight);
        let left = match self.left_of_piece(now) {
            // What replaces others goes out over a connection that has answered.
            0 if !is_more => together.warm,
            0 => together.new,
            left => left,
        };
        self.piece = (now, left.saturating_sub(1));
        if (is_more || self.next > now) && each >= TELLING {
            // What replaces others comes as fast as it may, and the path faster than was thought.
            self.next = (self.next.max(now) + each).min(now + each.saturating_mul(MOST_AHEAD));
        }
    }

    fn left_of_piece(&self, now: Timestamp) -> u32 {
        let (at, left) = self.piece;
        if at == now { left } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::START + Duration::from_micros(micros)
    }

    #[test]
    fn more_is_asked_for_at_the_pace_of_the_path() {
        let mut ramp = Ramp::default();
        // Nothing is known of the path.
        for in_flight in 1..=16 {
            assert_eq!(ramp.next(at(0), in_flight - 1), at(0));
            ramp.on_request(at(0), in_flight, Duration::ZERO, Together::ALONE);
        }
        let each = Duration::from_micros(500);
        let mut asked = Vec::new();
        let mut now = at(40_000);
        for in_flight in 17..=24 {
            now = ramp.next(now, in_flight - 1);
            ramp.on_request(now, in_flight, each, Together::ALONE);
            asked.push(now.since_start().as_micros());
        }
        // As many at once as the path brings between two ticks.
        assert_eq!(asked[..4], [40_000, 40_000, 40_000, 41_500]);
        assert!(asked[7] <= 43_500, "{asked:?}");
        // What takes the place of others follows them.
        assert_eq!(ramp.next(now, 20), now);
        ramp.on_request(now, 21, each, Together::ALONE);
        assert!(ramp.next(now, 24) > now, "but the path has to bring it, too");
        assert_eq!(ramp.next(at(90_000), 24), at(90_000));
        // The path brings twice as much as was thought.
        for n in 0..1_000 {
            ramp.on_request(at(100_000 + 250 * n), 24, each, Together::ALONE);
        }
        assert!(ramp.next(at(350_000), 24) <= at(366_000));
    }

    #[test]
    fn what_comes_together_is_asked_for_at_once() {
        let mut ramp = Ramp::default();
        for in_flight in 1..=16 {
            ramp.on_request(at(0), in_flight, Duration::ZERO, Together::ALONE);
        }
        let each = Duration::from_micros(500);
        let mut now = at(40_000);
        let together = Together { new: 4, warm: 6 };
        let mut asked = Vec::new();
        for in_flight in 17..=28 {
            now = ramp.next(now, in_flight - 1);
            ramp.on_request(now, in_flight, each, together);
            asked.push(now.since_start().as_micros());
        }
        assert_eq!(asked, [[40_000; 4], [42_000; 4], [44_000; 4]].concat());
        // What replaces others brings the rest of a piece with it.
        let now = at(44_500);
        ramp.on_request(now, 28, each, together);
        assert_eq!(ramp.next(now, 28), now);
        (29..=33).for_each(|in_flight| ramp.on_request(now, in_flight, each, together));
        assert!(ramp.next(now, 33) > now);
    }

    #[test]
    fn a_path_that_is_as_fast_as_its_servers_has_no_ramp() {
        let mut ramp = Ramp::default();
        for in_flight in 1..=500 {
            assert_eq!(ramp.next(at(0), in_flight - 1), at(0));
            ramp.on_request(at(0), in_flight, Duration::from_micros(30), Together::ALONE);
        }
        // As slow as a path may be.
        ramp.on_request(at(0), 501, Duration::MAX, Together::ALONE);
        assert!(ramp.next(at(0), 501) > at(0));
    }
}
