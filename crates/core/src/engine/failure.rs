//! What becomes of a file of which a request has failed: it is asked for again, whole, later, or not at all.

use std::time::Duration;

use pelton_algos::refused_files::Forbidden;
use pelton_algos::time::Timestamp;

use super::blame::Refused;
use super::event::{Action, FileId};
use super::facts::Failure;
use super::{Engine, Stream};
use crate::ErrorKind;

/// An overloaded server is asked more patiently than a failing one, and so is one that was there.
const OVERLOAD_PATIENCE: u32 = 4;

/// So many attempts where one of `attempts` is asked for patiently. Who wants one gets one.
pub(super) const fn patiently(attempts: u32) -> u32 {
    if attempts == 1 { 1 } else { attempts.saturating_mul(OVERLOAD_PATIENCE) }
}

/// A file that is refused for itself is asked for so many times as often as where a host fails, after pauses that grow
/// up to that of so many failures.
const FILE_PATIENCE: u32 = 2;
const MOST_FOR_ITSELF: u32 = 6;

/// A fault that is its own (500, 502, 504) after shorter ones.
const MOST_FOR_FAULT: u32 = 4;

/// What is refused by chance, or closed by who answers others, is asked for again after the pause of so many failures:
/// it need not wait for anything.
const MOST_BY_CHANCE: u32 = 2;

impl Engine {
    pub(super) fn on_failure(&mut self, now: Timestamp, stream: Stream, mut failure: Failure) {
        let Stream { file, origin, began, .. } = stream;
        if failure.kind == ErrorKind::Auth {
            match self.weigh_forbidden(now, &stream, failure.is_forbidden) {
                Forbidden::TooMany => failure.kind = ErrorKind::Overloaded,
                Forbidden::Doubt => return self.ask_again(now, &stream, failure),
                Forbidden::File => {}
            }
        }
        if failure.kind == ErrorKind::Timeout && !stream.has_head {
            let is_passed = self.passed(&stream) > 0;
            let entry = &mut self.files[file.index()];
            entry.unanswered += 1;
            entry.unanswered_for = Duration::ZERO;
            entry.was_passed |= is_passed;
        }
        match failure.kind {
            ErrorKind::Descriptors => self.on_too_many_open(now, began, file, failure),
            ErrorKind::DiskFull => self.on_full(now, file, failure),
            _ if self.goes_back(now, &stream, &failure) => {}
            kind if stream.is_unreachable(kind) && self.leave_unreached(origin, file) => {}
            _ if self.has_failed_elsewhere(&stream, &failure) => {
                self.ask_home_again(now, &stream, failure);
            }
            _ if self.note_failure(now, &stream, &failure) => {
                let state = &self.origins[origin.0 as usize];
                let attempts = state.connect_failures.max(state.budget.vain_requests());
                self.give_up_origin(now, origin, file, &after(attempts, failure));
            }
            kind if kind.is_refusal() && self.leave_refusing(origin, file) => {}
            _ => {
                self.tell_of_wait(now, origin, &failure);
                self.retry_or_fail(now, &stream, failure);
            }
        }
    }

    /// Some are answered like this that are one too many: it is asked for again, with fewer beside it if many are.
    fn ask_again(&mut self, now: Timestamp, stream: &Stream, failure: Failure) {
        let refused = Failure { kind: ErrorKind::Overloaded, ..failure };
        self.note_overload(now, stream, &refused);
        let doubts = self.files[stream.file.index()].doubts;
        let pause = self.config.retry.delay(doubts, &mut self.jitter);
        self.totals.retries += 1;
        self.hold(now + pause, stream.file);
    }

    fn retry_or_fail(&mut self, now: Timestamp, stream: &Stream, failure: Failure) {
        let Stream { file, origin, .. } = *stream;
        let retry = self.config.retry;
        let state = &self.origins[origin.0 as usize];
        let refused = match failure.kind {
            _ if retry.attempts == 1 => None,
            kind if kind.is_refusal() => Some(self.refused(origin, file, kind)),
            kind if stream.is_turned_away(kind) && state.has_answered() => Some(Refused::Closed),
            _ => None,
        };
        if !self.is_blameless(now, stream, failure.kind, refused) {
            self.count_attempt(stream);
        }
        let may_be_had_whole = !failure.is_no_file && self.may_be_had_whole(stream, failure.kind);
        if self.are_ranges_vain(stream, failure.kind) {
            self.leave_ranges(file, failure.message);
            return;
        }
        let is_fault = failure.kind == ErrorKind::ServerError;
        let patience = match refused {
            _ if may_be_had_whole => retry.attempts,
            Some(Refused::ForItself) if is_fault => {
                let first = &self.origins[origin.0 as usize].first_requests;
                retry.attempts.max(first.most_by_chance())
            }
            // There are no others.
            Some(Refused::WithOthers) if is_fault && self.is_last(stream) => retry.attempts,
            Some(Refused::ForItself | Refused::Closed) => {
                retry.attempts.saturating_mul(FILE_PATIENCE)
            }
            Some(_) => patiently(retry.attempts),
            None => retry.attempts,
        };
        let entry = &self.files[file.index()];
        let asks_too_much = self.asks_too_much(&failure);
        // Where several machines answer one of them may not have it.
        let is_missing = failure.kind == ErrorKind::NotFound;
        let has_come = entry.agreement.has_come();
        if is_missing && has_come {
            self.note_differing(file, stream);
        }
        let is_contradicted =
            is_missing && (has_come || self.origin(origin).machines.are_several());
        let entry = &self.files[file.index()];
        let is_final = !failure.kind.is_retryable() && !is_contradicted;
        if is_final || entry.failures >= patience || asks_too_much {
            let failure = self.explain(failure, file, asks_too_much);
            if may_be_had_whole {
                self.origin(origin).note_ranges(true, Some(false));
                self.leave_ranges(file, failure.message);
            } else {
                self.fail(file, failure);
            }
            return;
        }
        if failure.kind.is_answer() {
            self.give_back(stream, failure.kind);
        }
        let failure = self.without_pause_of_others(now, stream, failure);
        let pause = self.pause_after(stream, &failure, refused);
        self.ask_later(now + pause, file);
    }

    /// Streams that were in flight together fail together: that is one failed attempt.
    pub(super) fn count_attempt(&mut self, stream: &Stream) {
        let entry = &mut self.files[stream.file.index()];
        if stream.attempt == entry.attempt {
            entry.attempt += 1;
            entry.failures += 1;
            entry.setbacks += 1;
        }
    }

    /// `failure`, which asks for a pause only where it is one of all requests, or of this file.
    fn without_pause_of_others(
        &mut self,
        now: Timestamp,
        stream: &Stream,
        mut failure: Failure,
    ) -> Failure {
        let is_of_number = failure.kind == ErrorKind::Overloaded && !failure.is_of_rate;
        let state = self.origin(stream.origin);
        if is_of_number && state.budget.spares() {
            failure.retry_after = None;
            self.wait_no_longer(now, stream.origin);
        }
        let waits = is_of_number && failure.retry_after.is_some();
        self.origin(stream.origin).some_wait_as_asked |= waits;
        self.files[stream.file.index()].waits_as_asked = waits;
        failure
    }

    /// How long the file of `stream` waits after its `failure`.
    fn pause_after(
        &mut self,
        stream: &Stream,
        failure: &Failure,
        refused: Option<Refused>,
    ) -> Duration {
        let entry = &self.files[stream.file.index()];
        let most = match refused {
            Some(Refused::ByChance | Refused::Closed) => MOST_BY_CHANCE,
            Some(Refused::ForItself) if failure.kind == ErrorKind::ServerError => MOST_FOR_FAULT,
            Some(Refused::ForItself) => MOST_FOR_ITSELF,
            _ => u32::MAX,
        };
        // Who has brought much until its connection broke may go on at once.
        let is_cut = matches!(failure.kind, ErrorKind::Reset | ErrorKind::ShortBody);
        let goes_on =
            stream.has_head && is_cut && entry.takes_ranges && stream.recent.has_brought_much();
        if goes_on || refused == Some(Refused::TooSoon) {
            return failure.retry_after.unwrap_or_default();
        }
        let setbacks = entry.setbacks.clamp(1, most);
        self.config.retry.pause(setbacks, failure.retry_after, &mut self.jitter)
    }

    /// The range of `failed` goes back to the plain GET from which it was split, where that is still on its way:
    /// the server may give no ranges at all. Where it has enough of requests the range goes back to whatever stream it
    /// was split from.
    pub(super) fn give_back(&mut self, failed: &Stream, kind: ErrorKind) {
        let entry = &mut self.files[failed.file.index()];
        let has_enough = kind.is_refusal();
        if failed.is_plain() || entry.gave_range && !has_enough {
            return;
        }
        let takes = |id: &_| has_enough || self.streams.get(id).is_some_and(Stream::is_plain);
        let ids: Vec<_> = entry.ranges.stream_ids().filter(takes).collect();
        let given = ids.into_iter().find_map(|id| Some((id, entry.ranges.give_back(id)?)));
        if let Some((stream, end)) = given {
            self.actions.push(Action::Cut { stream, end });
        }
    }

    pub(super) fn explain(
        &self,
        mut failure: Failure,
        file: FileId,
        asks_too_much: bool,
    ) -> Failure {
        let attempts = self.files[file.index()].failures;
        if asks_too_much {
            failure.message =
                format!("{} (the server asks for too long a wait; rerun later)", failure.message);
            return failure;
        }
        if failure.kind == ErrorKind::NotFound && self.files[file.index()].agreement.has_come() {
            let hint = "it was there before: who gives a file once has to be asked in one stream";
            failure.message = format!("{} ({hint}, after {attempts} attempts)", failure.message);
            return failure;
        }
        after(attempts, failure)
    }

    pub(super) fn give_up(&mut self, file: FileId, failure: Failure) {
        self.end_file(file);
        self.totals.failed += 1;
        self.actions.push(Action::GiveUp { file, failure });
    }
}

/// `failure`, which says that there were so many attempts where there was more than one.
fn after(attempts: u32, mut failure: Failure) -> Failure {
    if failure.kind.is_retryable() && attempts > 1 {
        failure.message = format!("{} (after {attempts} attempts)", failure.message);
    }
    failure
}
