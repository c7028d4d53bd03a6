//! Time since the run began. There is no other clock in this crate.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, counted from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(Duration);

impl Timestamp {
    /// The moment at which the run began.
    pub const START: Self = Self(Duration::ZERO);

    /// The moment `since_start` after the run began.
    pub const fn new(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// The moment `millis` milliseconds after the run began.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Time since the run began.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// Time since `earlier`; zero when `earlier` is later than `self`.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}
