//! A file that can't be had from one place is asked for at the next.

use pelton_algos::ranges::StreamId;

use super::event::FileId;
use super::facts::{Failure, Head};
use super::file::{Entry, State};
use super::{Engine, OriginId};
use crate::ErrorKind;
use crate::connection::{Origin, shown};

/// So many requests in vain are enough where there is another place, however many are made where there is none.
const IN_VAIN: u32 = 5;

impl Engine {
    /// `file` can't be had from where it was asked for: from its next mirror, else not at all.
    pub(super) fn fail(&mut self, file: FileId, failure: Failure) {
        self.fail_beside(file, failure, None);
    }

    /// The same for a file of which nothing can be had from the origin `dead`.
    pub(super) fn fail_beside(
        &mut self,
        file: FileId,
        mut failure: Failure,
        dead: Option<OriginId>,
    ) {
        if is_of_place(failure.kind)
            && let Some((place, origin)) = self.next_place(file, dead)
        {
            self.move_to_place(file, place, origin);
            return;
        }
        let places = self.files[file.index()].place;
        if places > 0 {
            failure.message =
                format!("{} (the last of its {} places)", failure.message, places + 1);
        }
        self.give_up(file, failure);
    }

    /// `origin` can't be reached, and never was, or is tried in vain: as [`leave`](Self::leave).
    pub(super) fn leave_unreached(&mut self, origin: OriginId, failed: FileId) -> bool {
        let state = &self.origins[origin.0 as usize];
        let may_come_back = state.has_answered() && state.connect_failures < self.tries_in_vain();
        !may_come_back && self.leave(origin, failed)
    }

    /// `origin` refuses whatever it is asked for: as [`leave`](Self::leave).
    pub(super) fn leave_refusing(&mut self, origin: OriginId, failed: FileId) -> bool {
        let vain = self.origins[origin.0 as usize].budget.vain_requests();
        vain >= self.tries_in_vain() && self.leave(origin, failed)
    }

    fn tries_in_vain(&self) -> u32 {
        self.config.retry.attempts.min(IN_VAIN)
    }

    /// Whatever `origin` has and can be had from another place is asked for there, and who has none may go on trying.
    /// Whether that is so for `failed`.
    fn leave(&mut self, origin: OriginId, failed: FileId) -> bool {
        if self.next_place(failed, Some(origin)).is_none() {
            return false;
        }
        for file in self.begun_at(origin) {
            if let Some((place, next)) = self.next_place(file, Some(origin)) {
                self.move_to_place(file, place, next);
            }
        }
        for file in self.take_waiting(origin) {
            match self.next_place(file, Some(origin)) {
                Some((place, next)) => self.move_to_place(file, place, next),
                None => self.enqueue(file),
            }
        }
        true
    }

    pub(super) fn next_place(
        &mut self,
        file: FileId,
        dead: Option<OriginId>,
    ) -> Option<(usize, OriginId)> {
        let entry = &self.files[file.index()];
        if matches!(entry.state, State::Finishing | State::Over) {
            return None;
        }
        let later = entry.spec().mirrors.iter().zip(1..).skip(entry.place);
        let usable: Vec<(usize, Origin)> =
            later.filter_map(|(url, place)| Some((place, Origin::of(url).ok()?))).collect();
        usable
            .into_iter()
            .map(|(place, origin)| (place, self.origin_id(&origin)))
            .find(|(_, origin)| Some(*origin) != dead)
    }

    pub(super) fn move_to_place(&mut self, file: FileId, place: usize, origin: OriginId) {
        let streams: Vec<StreamId> = self.files[file.index()].ranges.stream_ids().collect();
        for stream in streams {
            self.abort(stream);
        }
        self.release_hold(file);
        let entry = &mut self.files[file.index()];
        let has_bytes = entry.ranges.done_bytes() > 0;
        if !(has_bytes && entry.move_version()) {
            let reason = "the next place may have another version".to_owned();
            self.start_anew(file, reason);
        }
        let entry = &mut self.files[file.index()];
        entry.place = place;
        // What one host does not answer another one may.
        entry.was_passed = false;
        self.passed_over.remove(&file);
        let entry = &mut self.files[file.index()];
        (entry.located, entry.located_again, entry.left) = (None, false, None);
        entry.lacking = None;
        (entry.gave_range, entry.ignores_ranges, entry.failed_ranges) = (false, false, 0);
        entry.agreement.move_away();
        entry.attempt += 1;
        (entry.failures, entry.setbacks, entry.restarts) = (0, 0, 0);
        (entry.refused, entry.is_refused_for_itself) = (0, false);
        self.totals.retries += 1;
        self.redecide = true;
        if self.files[file.index()].state == State::Opening {
            // It has its lane and waits for the answer.
            let class = self.files[file.index()].class;
            self.move_to(file, class, origin);
            return;
        }
        self.leave_lane(file);
        self.files[file.index()].origin = origin;
        self.enqueue(file);
    }

    /// Whether the bytes that are there go with those of the place that answers with `head`. If
    /// not, the file has started anew.
    pub(super) fn joins(&mut self, file: FileId, head: &Head) -> bool {
        let entry = &mut self.files[file.index()];
        if !entry.unproven {
            return true;
        }
        if !entry.belongs_to(head) {
            let reason = format!("{} has another version", shown(&head.url));
            self.start_anew(file, reason);
            return false;
        }
        entry.unproven = false;
        entry.validator = Some(head.validator.clone());
        true
    }
}

impl Entry {
    /// Readies what is there to be joined with the bytes of another place. Whether it can be: where
    /// a strong validator tells that both hold the same, or a digest will.
    fn move_version(&mut self) -> bool {
        let etag = self.validator.take().and_then(|validator| validator.etag);
        let can_join = self.takes_ranges
            && self.ranges.size().is_some()
            && (etag.is_some() || self.spec().is_verifiable());
        // Servers date their copies by themselves: that tells nothing between two of them.
        self.validator = etag
            .filter(|_| !self.spec().is_verifiable())
            .map(|etag| super::Validator { etag: Some(etag), ..super::Validator::default() });
        self.unproven = can_join;
        can_join
    }

    fn belongs_to(&self, head: &Head) -> bool {
        let etag = |validator: &super::Validator| validator.etag.clone();
        let known = self.validator.as_ref().and_then(etag);
        head.total.is_some()
            && head.total == self.ranges.size()
            && (self.spec().is_verifiable() || known.is_some() && known == etag(&head.validator))
    }
}

/// Whether such a failure says something of the place and not of this machine or the caller.
const fn is_of_place(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::Usage
            | ErrorKind::CannotResume
            | ErrorKind::DiskFull
            | ErrorKind::Exists
            | ErrorKind::FileIo
            | ErrorKind::Descriptors
            | ErrorKind::Cancelled
            | ErrorKind::Internal
    )
}
