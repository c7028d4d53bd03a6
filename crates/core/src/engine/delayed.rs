//! Files that wait for a while before they are asked for again.

use pelton_algos::time::Timestamp;

use super::event::FileId;
use super::file::State;
use super::{Engine, OriginId};

impl Engine {
    /// No new stream of `file` before `at`; without any stream it leaves its lane to others.
    pub(super) fn hold(&mut self, at: Timestamp, file: FileId) {
        self.release_hold(file);
        let entry = &mut self.files[file.index()];
        entry.not_before = Some(at);
        self.delayed.insert((at, file));
        if entry.ranges.streams() == 0 && entry.state == State::Active {
            entry.state = State::Delayed;
            self.leave_lane(file);
        }
    }

    /// The same for another attempt. Streams that have failed together are one.
    pub(super) fn ask_later(&mut self, at: Timestamp, file: FileId) {
        self.totals.retries += u64::from(self.files[file.index()].not_before.is_none());
        self.hold(at, file);
    }

    /// Files of `origin` that wait as it asked for need not: others were served beside them.
    pub(super) fn wait_no_longer(&mut self, now: Timestamp, origin: OriginId) {
        if !std::mem::take(&mut self.origin(origin).some_wait_as_asked) {
            return;
        }
        let waits = |file: &FileId| {
            let entry = &self.files[file.index()];
            entry.origin == origin && entry.waits_as_asked
        };
        let files: Vec<FileId> = self.delayed.iter().map(|(_, file)| *file).filter(waits).collect();
        for file in files {
            self.files[file.index()].waits_as_asked = false;
            let pause = self.config.retry.delay(1, &mut self.jitter);
            self.hold(now + pause, file);
        }
    }

    pub(super) fn release_hold(&mut self, file: FileId) {
        if let Some(at) = self.files[file.index()].not_before.take() {
            self.delayed.remove(&(at, file));
        }
    }

    pub(super) fn wake_delayed(&mut self, now: Timestamp) {
        while let Some((_, file)) = self.delayed.first().copied().filter(|(at, _)| *at <= now) {
            self.release_hold(file);
            if self.files[file.index()].state == State::Delayed {
                self.enqueue(file);
                self.redecide = true;
            }
            self.refill = true;
        }
    }
}
