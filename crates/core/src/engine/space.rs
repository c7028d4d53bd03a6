//! A disk that is full: nothing is lost, the run waits for space, and fails when none comes.

use std::collections::BTreeSet;
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::Engine;
use super::event::{Action, FileId};
use super::facts::Failure;
use crate::ErrorKind;

/// The first look for space; each further one comes twice as late.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LONGEST_LOOK: Duration = Duration::from_secs(15);
/// The run goes on when so much is free, or all that it needs.
const WORTHWHILE: Bytes = Bytes::mib(16);

/// What is known of the disk since it was full.
#[derive(Debug, Clone)]
pub(super) struct Full {
    /// The file whose write failed, and how.
    file: FileId,
    failure: Failure,
    /// The run has failed then.
    until: Timestamp,
    /// The next look; none while streams try again.
    look_at: Option<Timestamp>,
    look_after: Duration,
    /// Bytes that had arrived.
    delivered: Bytes,
}

impl Engine {
    /// A write of `file`, or of its directory, found the disk full. It and all others wait.
    pub(super) fn on_full(&mut self, now: Timestamp, file: FileId, failure: Failure) {
        if self.config.disk_patience.is_zero() {
            self.fail(file, failure);
            return;
        }
        self.abort_all();
        self.link.on_idle(now);
        let delivered = self.totals.delivered;
        let is_quota = failure.is_quota;
        let before = self.full.take().filter(|full| delivered < full.delivered + WORTHWHILE);
        if let Some(full) = before {
            // There was space, said the file system; a quota may say something else.
            let look_at = (now + full.look_after).min(full.until.max(now));
            self.full = Some(Full { look_at: Some(look_at), ..full });
            return;
        }
        self.full = Some(Full {
            file,
            failure,
            until: now + self.config.disk_patience,
            look_at: Some(now + FIRST_LOOK),
            look_after: FIRST_LOOK,
            delivered,
        });
        let needed = self.outstanding();
        self.actions.push(Action::DiskFull { needed, is_quota });
    }

    /// Whether `failure` passes when there is space, and the user wants to wait for that.
    pub(super) fn waits_out(&self, failure: &Failure) -> bool {
        failure.kind == ErrorKind::DiskFull && !self.config.disk_patience.is_zero()
    }

    /// Whether nothing starts because the disk is full.
    pub(super) fn waits_for_space(&self) -> bool {
        self.full.as_ref().is_some_and(|full| full.look_at.is_some())
    }

    pub(super) fn next_look_for_space(&self) -> Option<Timestamp> {
        self.full.as_ref()?.look_at
    }

    pub(super) fn look_for_space(&mut self, now: Timestamp) {
        let Some(full) = self.full.as_mut() else { return };
        if full.look_at.is_none_or(|at| now < at) {
            return;
        }
        if now >= full.until {
            let (file, failure) = (full.file, full.failure.clone());
            self.give_up_for_space(file, failure);
            return;
        }
        full.look_after = (full.look_after * 2).min(LONGEST_LOOK);
        full.look_at = Some((now + full.look_after).min(full.until));
        self.actions.push(Action::LookForSpace);
    }

    /// The answer to [`Action::LookForSpace`].
    pub(super) fn on_space(&mut self, free: Option<Bytes>) {
        let wanted = self.outstanding().min(WORTHWHILE);
        let is_enough = free.is_none_or(|free| free >= wanted);
        if let Some(full) = self.full.as_mut().filter(|_| is_enough) {
            full.look_at = None;
            self.redecide = true;
        }
    }

    /// Of the run, for whose `first` file the disk was full.
    fn give_up_for_space(&mut self, first: FileId, mut failure: Failure) {
        self.full = None;
        let of_others = if failure.is_quota {
            "the disk quota was used up before it was complete"
        } else {
            "the disk was full before it was complete"
        };
        let needed = self.outstanding();
        if needed > Bytes::ZERO {
            failure.message = format!("{} ({needed} are still to come)", failure.message);
        }
        let begun = self.active.iter().chain(self.delayed.iter().map(|(_, file)| *file));
        let unfinished: BTreeSet<FileId> = begun.chain(self.waiting.drain()).collect();
        for file in unfinished {
            let mut failure = failure.clone();
            if file != first {
                failure.message = format!("{}: {of_others}", self.spec(file).name);
            }
            self.give_up(file, failure);
        }
    }

    /// Bytes still to come, as far as known.
    pub(crate) fn outstanding(&self) -> Bytes {
        let totals = self.totals();
        totals.expected.saturating_sub(totals.delivered)
    }
}
