//! Files that wait for a while before they are asked for again.

use pelton_algos::time::Timestamp;

use super::Engine;
use super::event::FileId;
use super::file::State;

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
