//! What becomes of a file of which a request has failed: it is asked for again, whole, later, or not at all.

use std::time::Duration;

use pelton_algos::refused_files::Forbidden;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::event::{Action, FileId};
use super::facts::Failure;
use super::file::Entry;
use super::{Engine, OriginId, Stream};
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

/// What is behind a server that says so to all may be back after such a time, and less is waited for where it need not be
/// the server that has a fault.
const RESTART: Duration = Duration::from_secs(60);
const SHORT_FAULT: Duration = Duration::from_secs(10);

/// What comes once more if need be: a few first parts, or what came within this time.
pub(super) const LITTLE: Bytes = Bytes::kib(1024);
const SHORT: Duration = Duration::from_secs(2);

/// What is refused by chance, or closed by who answers others, is asked for again after the pause of so many failures:
/// it need not wait for anything.
const MOST_BY_CHANCE: u32 = 2;

/// So many ranges of a file that fail, in so many attempts, tell that it has none, where none was given.
const MOST_FAILED_RANGES: u32 = 4;
const MOST_FAILED_ATTEMPTS: u32 = 2;

/// What a request was refused for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// So many are answered in a time.
    TooSoon,
    /// Some are refused whatever is done.
    ByChance,
    /// Its file is refused whatever is done.
    ForItself,
    /// Its connection was closed by who has answered others.
    Closed,
    /// There were too many.
    WithOthers,
}

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

    /// Whether a file is forbidden, or was asked for beside too many others. Who refuses one more stream of what others
    /// bring at present has enough of them.
    fn weigh_forbidden(&mut self, now: Timestamp, stream: &Stream, is_403: bool) -> Forbidden {
        let Stream { file, origin, began, .. } = *stream;
        let is_served = self.is_served(file);
        let doubts = self.files[file.index()].doubts;
        let may_ask_again = is_403 && self.config.retry.attempts > 1;
        let state = self.origin(origin);
        if is_served {
            state.forbidding.on_given();
            return Forbidden::TooMany;
        }
        if !may_ask_again {
            return Forbidden::File;
        }
        let were_files = state.forbidding.are_files();
        let is_alone = state.streams == 0;
        let of_ban = state.forbidding.weigh_ban(now, began, doubts);
        let told = match of_ban {
            Some(told) => told,
            None if state.opened <= 1 => return Forbidden::File,
            None => state.forbidding.on_forbidden(doubts, is_alone),
        };
        if !were_files && state.forbidding.are_files() {
            state.budget.forgive();
            self.redecide = true;
        }
        self.files[file.index()].doubts += u32::from(of_ban.is_none());
        told
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
        let pause = self.pause_after(stream, &failure, refused);
        self.ask_later(now + pause, file);
    }

    /// Whether the server asks for a longer pause than anybody waits for.
    pub(super) fn asks_too_much(&self, failure: &Failure) -> bool {
        let longest = self.config.retry.longest_retry_after;
        failure.retry_after.is_some_and(|pause| pause > longest)
    }

    /// Whether any of it is being brought.
    fn is_served(&self, file: FileId) -> bool {
        let serves = |id| self.streams.get(&id).is_some_and(|stream| stream.has_head);
        self.files[file.index()].ranges.stream_ids().any(serves)
    }

    /// A host that can't be reached, or was asked too soon, says nothing about the file, nor does one that gives ranges of
    /// it and refuses one beside another that it serves.
    fn is_blameless(
        &self,
        now: Timestamp,
        stream: &Stream,
        kind: ErrorKind,
        refused: Option<Refused>,
    ) -> bool {
        let gives_others = self.files[stream.file.index()].gave_range
            && refused.is_some_and(|refused| refused != Refused::ForItself)
            && self.is_served(stream.file);
        let is_away = kind == ErrorKind::ServerError
            && refused.is_some_and(|refused| refused != Refused::ForItself)
            && self.may_be_back(now, stream);
        let refuses_all = kind == ErrorKind::Overloaded
            && refused.is_some_and(|refused| refused != Refused::ForItself)
            && self.origins[stream.origin.0 as usize].budget.vain_requests() > 1
            && !self.is_last(stream);
        refused == Some(Refused::TooSoon)
            || is_away
            || refuses_all
            || gives_others
            || stream.is_unreachable(kind) && kind != ErrorKind::Timeout
            || stream.is_turned_away(kind) && self.turns_all_away(stream)
    }

    /// Whether the origin of `stream` answers nothing at present, and has not done so for so long that it has to have a
    /// fault: what is behind it may be restarted.
    pub(super) fn may_be_back(&self, now: Timestamp, stream: &Stream) -> bool {
        let state = &self.origins[stream.origin.0 as usize];
        let was_there = self.files[stream.file.index()].ranges.done_bytes() > 0;
        let others_wait = || {
            let is_new = |it: &Entry| it.origin == stream.origin && it.is_waiting_unrefused();
            self.waiting.of_origin(stream.origin) > 0 && self.files.iter().rev().any(is_new)
        };
        if state.budget.vain_requests() == 0 {
            return false;
        }
        // The last one, of which nothing has come, may well be the reason.
        let patience = match (was_there || others_wait(), state.has_answered()) {
            (true, true) => RESTART,
            (true, false) | (false, true) => SHORT_FAULT,
            (false, false) => return false,
        };
        state.budget.vain_for(now) < patience
    }

    /// Whether nothing else of its origin is asked for, or waits to be.
    fn is_last(&self, stream: &Stream) -> bool {
        let origin = stream.origin;
        self.origins[origin.0 as usize].streams == 0 && self.waiting.of_origin(origin) == 0
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

    /// What a further request for `file` was refused for.
    fn refused(&self, origin: OriginId, file: FileId, kind: ErrorKind) -> Refused {
        let budget = &self.origins[origin.0 as usize].budget;
        let is_of_file = self.files[file.index()].is_refused_for_itself;
        match () {
            () if budget.has_pace() && !is_of_file => Refused::TooSoon,
            () if is_of_file && kind == ErrorKind::ServerError => Refused::ForItself,
            () if budget.refuses_by_chance() => Refused::ByChance,
            () if is_of_file => Refused::ForItself,
            () => Refused::WithOthers,
        }
    }

    /// Whether nothing came since `stream` began that was turned away, so that its file need not be to blame: who
    /// has opened many connections may be banned.
    fn turns_all_away(&self, stream: &Stream) -> bool {
        let Stream { origin, file, began, .. } = *stream;
        let state = &self.origins[origin.0 as usize];
        let has_given_some = || self.files[file.index()].ranges.done_bytes() > 0;
        let waits_later = |id: &FileId| *id != file && self.files[id.index()].origin == origin;
        let has_others = || {
            self.files_of(origin.0 as usize) > 1
                || self.delayed.iter().any(|(_, id)| waits_later(id))
        };
        // What is told of its file is not told of its host, and one of them has to be asked no more at some time.
        let is_of_host = state.budget.vain_requests() > 0;
        self.config.retry.attempts > 1
            && is_of_host
            && state.may_have_banned()
            && state.came_at < began
            && (has_given_some() || has_others())
    }

    /// Whether `stream` has failed with what a server may say to ranges alone, and little is lost by asking for
    /// the whole. One that has given any beyond a first part means something else, unless what it gives is never
    /// enough.
    fn may_be_had_whole(&self, stream: &Stream, kind: ErrorKind) -> bool {
        let entry = &self.files[stream.file.index()];
        let may_be_about_ranges = match kind {
            ErrorKind::ShortBody => true,
            // Another place may still have it.
            ErrorKind::NotFound if entry.place < entry.spec().mirrors.len() => false,
            kind => kind.is_answer() && !entry.gave_range,
        };
        let has_answered = entry.validator.is_some();
        let is_of_range = !stream.is_plain() && has_answered && !entry.ignores_ranges;
        is_of_range && may_be_about_ranges && self.loses_little(stream.file)
    }

    /// Whether little comes again where `file` is asked for whole.
    pub(super) fn loses_little(&self, file: FileId) -> bool {
        let entry = &self.files[file.index()];
        let little = LITTLE.max(self.link.estimate().bandwidth * SHORT);
        let is_plain = |id| self.streams.get(&id).is_some_and(Stream::is_plain);
        entry.ranges.done_bytes() <= little.0 || entry.ranges.stream_ids().any(is_plain)
    }

    /// Whether next to nothing of `file` has come.
    pub(super) fn has_just_begun(&self, file: FileId) -> bool {
        self.files[file.index()].ranges.done_bytes() <= LITTLE.0
    }

    /// Whether so many ranges of a file were refused, or their connections closed, and none was given, while one body
    /// brings all of it. Where its host gives no first parts either one is enough, or two without such a body.
    fn are_ranges_vain(&mut self, stream: &Stream, kind: ErrorKind) -> bool {
        let is_refused = kind == ErrorKind::ServerError || stream.is_turned_away(kind);
        let entry = &mut self.files[stream.file.index()];
        if stream.whole || stream.has_head || entry.gave_range || !is_refused {
            return false;
        }
        entry.failed_ranges += 1;
        let is_plain = |id| self.streams.get(&id).is_some_and(Stream::is_plain);
        let are_many = entry.failed_ranges >= MOST_FAILED_RANGES
            && entry.attempt >= MOST_FAILED_ATTEMPTS.into();
        let gives_none = !self.origins[stream.origin.0 as usize].gives_parts();
        if entry.ranges.stream_ids().any(is_plain) {
            are_many || gives_none
        } else {
            gives_none && entry.failed_ranges >= MOST_FAILED_ATTEMPTS
        }
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
