//! What a meter in Java read last.

use std::sync::{Mutex, PoisonError};

use pelton::power::meters::Sample;

/// One sample, which the thread of the meter writes and threads of downloads read.
#[derive(Debug, Default)]
pub(super) struct LastSample(Mutex<Option<Sample>>);

impl LastSample {
    /// `None` takes the sample away: what was read before says nothing about now.
    pub(super) fn set(&self, sample: Option<Sample>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sample;
    }

    pub(super) fn get(&self) -> Option<Sample> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
