//! Bytes that turn out to be other ones than those that were promised.

use pelton_algos::ranges::ByteRange;

use super::Engine;
use super::event::{Action, FileId};
use super::facts::Failure;
use super::file::State;
use crate::connection::shown;

impl Engine {
    /// Every byte of `file` came, and those of `ranges` are wrong. They come again: from the next
    /// mirror, or once more from where they came from, since it may have been the way.
    pub(super) fn on_damaged(&mut self, file: FileId, ranges: &[ByteRange], mut failure: Failure) {
        let entry = &mut self.files[file.index()];
        if entry.state != State::Finishing {
            return;
        }
        self.finishing -= 1;
        entry.damaged += 1;
        failure.message = format!("{}: {}", shown(entry.url()), failure.message);
        if entry.damaged > entry.spec().mirrors.len().max(1) || self.cancelled {
            // A rerun asks for these again, and for all if nothing else is of use.
            for range in ranges {
                entry.ranges.forget(range);
            }
            if entry.resumable().is_none() {
                failure.message += "; the file is not kept";
            }
            self.give_up(file, failure);
            return;
        }
        entry.state = State::Delayed;
        self.totals.retries += 1;
        self.redecide = true;
        self.forget(file, ranges, failure.message);
        match self.next_place(file, None) {
            Some((place, origin)) => self.move_to_place(file, place, origin),
            None => self.enqueue(file),
        }
    }

    fn forget(&mut self, file: FileId, ranges: &[ByteRange], reason: String) {
        let entry = &mut self.files[file.index()];
        let before = entry.ranges.done_bytes();
        for range in ranges {
            entry.ranges.forget(range);
        }
        let left = entry.ranges.done_bytes();
        if left == 0 || !entry.takes_ranges {
            // All of it is lost.
            ranges.iter().cloned().for_each(|range| entry.ranges.mark_done(range));
            self.start_anew(file, reason);
            return;
        }
        self.actions.push(Action::Restart { file, bytes: before - left, reason });
    }
}
