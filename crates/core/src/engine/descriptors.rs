//! A process that may open no more files and sockets: it goes on with fewer at once.

use pelton_algos::time::Timestamp;

use super::Engine;
use super::event::FileId;
use super::facts::Failure;

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
        if self.streams.is_empty() && vain >= self.config.retry.attempts {
            self.give_up(file, failure);
            return;
        }
        let pause = self.config.retry.delay(vain.max(1), &mut self.jitter);
        self.hold(now + pause, file);
    }

    /// Streams that may start before there are as many as can be open.
    pub(super) fn room_for_descriptors(&self, now: Timestamp) -> u32 {
        self.descriptors.allowed(now).saturating_sub(self.streams.len() as u32)
    }
}
