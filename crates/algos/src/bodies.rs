//! How fast bodies come, from their servers' first words on.

use std::time::Duration;

use crate::units::{BitRate, Bytes};

/// What a body counts less than the one after it.
const KEPT: f64 = 0.9;

/// Shorter times say how long it took to read what had come before.
const LEAST: Duration = Duration::from_millis(10);

/// How fast one stream brings what its server was done thinking about. The mean of all streams says less: most of them
/// may wait for their servers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bodies {
    bytes: f64,
    seconds: f64,
}

impl Bodies {
    /// One came, or all that was asked for of it until then: `bytes` that took so long from its head on, and a round trip
    /// before that.
    pub fn add(&mut self, bytes: Bytes, took: Duration) {
        self.bytes = self.bytes * KEPT + bytes.as_f64();
        self.seconds = self.seconds * KEPT + took.max(LEAST).as_secs_f64();
    }

    /// What a stream brings meanwhile, the later ones counting more. Zero before the first.
    pub fn rate(&self) -> BitRate {
        let is_known = self.seconds > 0.0;
        if is_known { BitRate::from_bps(self.bytes * 8.0 / self.seconds) } else { BitRate::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_bodies_count_more() {
        let mut bodies = Bodies::default();
        assert_eq!(bodies.rate(), BitRate::ZERO);
        (0..100).for_each(|_| bodies.add(Bytes(100_000), Duration::from_millis(100)));
        assert!((bodies.rate().mbps() - 8.0).abs() < 1e-6);
        (0..10).for_each(|_| bodies.add(Bytes(400_000), Duration::from_millis(100)));
        assert!((20.0..32.0).contains(&bodies.rate().mbps()), "{}", bodies.rate());
    }

    #[test]
    fn what_had_come_before_it_was_read_took_longer() {
        let mut bodies = Bodies::default();
        bodies.add(Bytes(100_000), Duration::ZERO);
        assert!((bodies.rate().mbps() - 80.0).abs() < 1e-6);
    }
}
