//! A process that may open no more files and sockets: it goes on with fewer at once.

use std::time::Duration;

use pelton_algos::time::Timestamp;

use super::Engine;
use super::event::FileId;
use super::facts::Failure;

/// Other runs of the process, and whatever else it does, may close some meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// It is tried again after the pause of so many failures at most.
const MOST_FAILURES: u32 = 4;

impl Engine {
    /// What `file` needed could not be opened; the request `began` then. It says nothing about the file,
    /// which fails only when nothing else is open either and that lasts.
    pub(super) fn on_too_many_open(
        &mut self,
        now: Timestamp,
        began: Timestamp,
        file: FileId,
        failure: Failure,
    ) {
        let in_use = self.streams.len() as u32 + 1;
        if self.descriptors.on_overload(now, began, in_use, None) {
            self.redecide = true;
        }
        let vain = self.descriptors.vain_requests();
        let has_waited = self.descriptors.vain_for(now) >= PATIENCE;
        if self.streams.is_empty() && vain >= self.config.retry.attempts && has_waited {
            self.give_up(file, failure);
            return;
        }
        let pause = self.config.retry.delay(vain.clamp(1, MOST_FAILURES), &mut self.jitter);
        self.hold(now + pause, file);
    }

    /// Streams that may start before there are as many as can be open.
    pub(super) fn room_for_descriptors(&self, now: Timestamp) -> u32 {
        self.descriptors.allowed(now).saturating_sub(self.streams.len() as u32)
    }
}
