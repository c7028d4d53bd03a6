//! What happens when a request fails: retry, restart, leave the origin alone, or give up.

use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::event::{Action, Failure, FileId};
use super::file::{Entry, State};
use super::origin::Contact;
use super::{Engine, OriginId, Stream};
use crate::ErrorKind;
use crate::connection::shown;

/// An overloaded server is asked more patiently than a failing one, and so is one that was there.
const OVERLOAD_PATIENCE: u32 = 4;

/// So many attempts where one of `attempts` is asked for patiently. Who wants one gets one.
const fn patiently(attempts: u32) -> u32 {
    if attempts == 1 { 1 } else { attempts.saturating_mul(OVERLOAD_PATIENCE) }
}

/// The pauses of an origin that refuses whatever it is asked grow up to the one after so many failures:
/// what comes once a second is a burden to nobody, and finds out soon that it is over.
const ORIGIN_DOUBLINGS: u32 = 3;

/// The same where all connections are closed: some bans begin anew with each.
const BAN_DOUBLINGS: u32 = 5;

/// A host that takes connections and closes them all is not given up sooner: many a server shuts out for some
/// seconds who has opened too many.
const BAN: Duration = Duration::from_secs(10);

/// A host that can't be reached is asked again no later than this, and no later than a quarter of the time that
/// it could not be: who comes back is found soon, and who does not is asked ever more rarely.
const SOON: Duration = Duration::from_secs(1);
const LATER: u32 = 4;

/// Who waits so long for a host is told.
const NOTICED: Duration = Duration::from_secs(2);

/// What comes once more if need be: a few first parts, or what came within this time.
const LITTLE: Bytes = Bytes::kib(1024);
const SHORT: Duration = Duration::from_secs(2);

impl Engine {
    pub(super) fn on_failure(&mut self, now: Timestamp, stream: Stream, mut failure: Failure) {
        let Stream { file, origin, began, .. } = stream;
        if failure.kind == ErrorKind::Auth && self.is_served_elsewhere(file) {
            failure.kind = ErrorKind::Overloaded;
        }
        match failure.kind {
            ErrorKind::Descriptors => self.on_too_many_open(now, began, file, failure),
            ErrorKind::DiskFull => self.on_full(now, file, failure),
            _ if self.goes_back(now, &stream, &failure) => {}
            kind if stream.is_unreachable(kind) && self.leave_unreached(origin, file) => {}
            _ if self.note_failure(now, &stream, &failure) => {
                let state = &self.origins[origin.0 as usize];
                let attempts = state.connect_failures.max(state.budget.vain_requests());
                self.give_up_origin(now, origin, file, &after(attempts, failure));
            }
            _ => {
                self.tell_of_wait(now, origin, &failure);
                self.retry_or_fail(now, &stream, failure);
            }
        }
    }

    /// Whether other streams bring `file` at present: who refuses one more has enough of them.
    fn is_served_elsewhere(&self, file: FileId) -> bool {
        let mut streams = self.files[file.index()].ranges.stream_ids();
        streams.any(|id| self.streams.get(&id).is_some_and(|stream| stream.has_head))
    }

    /// Takes note of what the failure of `stream` tells of its origin. Whether nothing can be had of that.
    fn note_failure(&mut self, now: Timestamp, stream: &Stream, failure: &Failure) -> bool {
        let (origin, kind) = (stream.origin, failure.kind);
        let is_turned_away = stream.is_turned_away(kind);
        if kind == ErrorKind::Overloaded && self.tells_of_file(stream) {
            self.redecide = true;
            return false;
        }
        self.origin(origin).has_had_enough |= kind == ErrorKind::Overloaded;
        if kind.is_overload() || is_turned_away {
            self.note_overload(now, stream, failure);
        }
        if stream.whole && stream.in_parts && !stream.has_head && kind.is_answer() {
            self.origin(origin).note_ranges(true, Some(false));
        }
        let is_unreachable = stream.is_unreachable(kind);
        if is_unreachable {
            self.note_unreachable(now, stream, kind);
        }
        if is_unreachable || kind.is_overload() {
            self.growth.on_refusal(now);
            self.spread.on_refusal(now);
            self.redecide = true;
        }
        let concerns_all = matches!(kind, ErrorKind::Tls | ErrorKind::Overloaded);
        (is_unreachable || concerns_all || is_turned_away)
            && self.fails_whole_origin(now, origin, kind)
    }

    fn retry_or_fail(&mut self, now: Timestamp, stream: &Stream, failure: Failure) {
        let Stream { file, origin, attempt, has_head, .. } = *stream;
        let retry = self.config.retry;
        // A host that can't be reached says nothing about the file.
        let blameless = stream.is_unreachable(failure.kind) && failure.kind != ErrorKind::Timeout
            || stream.is_turned_away(failure.kind) && self.turns_all_away(stream);
        let entry = &mut self.files[file.index()];
        // Streams that were in flight together fail together: that is one failed attempt.
        if attempt == entry.attempt && !blameless {
            entry.attempt += 1;
            entry.failures += 1;
            entry.setbacks += 1;
        }
        let may_be_had_whole = self.may_be_had_whole(stream, failure.kind);
        let patience = match failure.kind {
            ErrorKind::Overloaded if !may_be_had_whole => patiently(retry.attempts),
            _ => retry.attempts,
        };
        let entry = &self.files[file.index()];
        let asks_too_much =
            failure.retry_after.is_some_and(|pause| pause > retry.longest_retry_after);
        if !failure.kind.is_retryable() || entry.failures >= patience || asks_too_much {
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
        let entry = &self.files[file.index()];
        let another = entry.not_before.is_none();
        let setbacks = entry.setbacks.max(1);
        // Who has brought much until its connection broke may go on at once.
        let has_broken =
            has_head && matches!(failure.kind, ErrorKind::Reset | ErrorKind::ShortBody);
        let pause = if has_broken && entry.takes_ranges && stream.recent.has_brought_much() {
            Duration::ZERO
        } else {
            retry.pause(setbacks, failure.retry_after, &mut self.jitter)
        };
        self.totals.retries += u64::from(another);
        self.hold(now + pause, file);
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
        self.config.retry.attempts > 1
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
        let little = LITTLE.max(self.link.estimate().bandwidth * SHORT);
        let is_plain = |id| self.streams.get(&id).is_some_and(Stream::is_plain);
        let loses_little =
            entry.ranges.done_bytes() <= little.0 || entry.ranges.stream_ids().any(is_plain);
        let has_answered = entry.validator.is_some();
        let is_of_range = !stream.is_plain() && has_answered && !entry.ignores_ranges;
        is_of_range && may_be_about_ranges && loses_little
    }

    /// The range of `failed` goes back to the plain GET from which it was split, where that is still on its way:
    /// the server may give no ranges at all. Where it has enough of requests the range goes back to whatever stream it
    /// was split from.
    fn give_back(&mut self, failed: &Stream, kind: ErrorKind) {
        let entry = &mut self.files[failed.file.index()];
        let has_enough = kind == ErrorKind::Overloaded;
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

    fn explain(&self, mut failure: Failure, file: FileId, asks_too_much: bool) -> Failure {
        let attempts = self.files[file.index()].failures;
        if asks_too_much {
            failure.message =
                format!("{} (the server asks for too long a wait; rerun later)", failure.message);
            return failure;
        }
        after(attempts, failure)
    }

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

    /// Whether a refusal tells of its file alone, as that of each other one did.
    fn tells_of_file(&mut self, stream: &Stream) -> bool {
        let is_first = stream.attempt == 0;
        let state = self.origin(stream.origin);
        state.first_requests.on_refusal(is_first, state.streams == 0);
        let tells = is_first && state.first_requests.tell_of_files();
        if tells {
            state.budget.forgive();
            state.has_had_enough = false;
        }
        tells
    }

    fn note_overload(&mut self, now: Timestamp, stream: &Stream, failure: &Failure) {
        let retry = self.config.retry;
        let asked_for = failure.retry_after.filter(|pause| *pause <= retry.longest_retry_after);
        let state = &mut self.origins[stream.origin.0 as usize];
        let in_use = state.streams + 1;
        // A single stream that stalls says nothing about too many streams.
        let is_refused =
            failure.kind == ErrorKind::Overloaded || stream.is_turned_away(failure.kind);
        let telling = is_refused || in_use > 1;
        let budget = &mut state.budget;
        let mut is_news = || match failure.kind {
            ErrorKind::Reset | ErrorKind::ShortBody => budget.on_break(now, stream.began, in_use),
            ErrorKind::Overloaded if asked_for.is_none() => {
                budget.on_refusal(now, stream.began, in_use)
            }
            _ => budget.on_overload(now, stream.began, in_use, asked_for),
        };
        if !telling || !is_news() {
            return;
        }
        state.pipelines = Some(false);
        self.redecide = true;
        let vain = state.budget.vain_requests();
        if is_refused && vain > 0 {
            let doublings = match failure.kind {
                ErrorKind::Overloaded => ORIGIN_DOUBLINGS,
                _ => BAN_DOUBLINGS,
            };
            let pause = retry.pause(vain.min(doublings), asked_for, &mut self.jitter);
            state.budget.leave_alone(now + pause);
        }
    }

    /// A host that can't be reached is left alone for a while, longer each time; who has waited for an answer
    /// has waited long enough. Requests that were under way together count once.
    fn note_unreachable(&mut self, now: Timestamp, stream: &Stream, kind: ErrorKind) {
        let retry = self.config.retry;
        let state = &mut self.origins[stream.origin.0 as usize];
        if state.failed_at.is_some_and(|at| stream.began < at) {
            return;
        }
        state.failed_at = Some(now);
        let failing_for = now.saturating_since(*state.failing_since.get_or_insert(now));
        state.connect_failures += 1;
        if kind != ErrorKind::Timeout {
            let pause = retry.delay(state.connect_failures, &mut self.jitter);
            state.budget.leave_alone(now + pause.min(SOON.max(failing_for / LATER)));
        }
    }

    /// Says, once until it answers, that an origin is waited for, and what for.
    fn tell_of_wait(&mut self, now: Timestamp, origin: OriginId, failure: &Failure) {
        let state = &mut self.origins[origin.0 as usize];
        let Some(until) = state.budget.next_timeout(now) else { return };
        let waiting = until.saturating_since(now) + state.failing_for(now);
        if waiting >= NOTICED && !std::mem::replace(&mut state.has_told_of_wait, true) {
            self.actions.push(Action::HostAway { failure: failure.message.clone() });
        }
    }

    /// Whether nothing of this origin can be had, so that the other files need not be tried.
    fn fails_whole_origin(&self, now: Timestamp, origin: OriginId, kind: ErrorKind) -> bool {
        let retry = self.config.retry;
        let (attempts, state) = (retry.attempts, &self.origins[origin.0 as usize]);
        match kind {
            ErrorKind::Tls => !state.has_answered(),
            ErrorKind::Reset | ErrorKind::ShortBody => {
                let patience = if state.has_answered() || attempts == 1 {
                    patiently(attempts)
                } else {
                    attempts.saturating_mul(2)
                };
                state.budget.vain_requests() >= patience && state.budget.vain_for(now) >= BAN
            }
            ErrorKind::Overloaded => {
                let patience = patiently(attempts);
                state.budget.vain_requests() >= patience
                    && state.budget.vain_for(now) >= retry.longest_delay.saturating_mul(patience)
            }
            // It was there: a network that changed or a server that restarts may come back.
            ErrorKind::Connect | ErrorKind::Resolve if state.has_answered() => {
                let patience = retry.longest_delay.saturating_mul(attempts).saturating_mul(2);
                attempts == 1
                    || state.connect_failures >= attempts && state.failing_for(now) >= patience
            }
            ErrorKind::Timeout if state.has_answered() => false,
            // Somebody is there and closes what comes: perhaps it was too much at once.
            ErrorKind::Connect
                if attempts > 1 && state.contact == Contact::Reached && state.may_have_banned() =>
            {
                state.connect_failures >= attempts && state.failing_for(now) >= BAN
            }
            _ => state.connect_failures >= attempts,
        }
    }

    fn give_up_origin(
        &mut self,
        now: Timestamp,
        origin: OriginId,
        failed: FileId,
        failure: &Failure,
    ) {
        let its_url = shown(self.files[failed.index()].url());
        // Each file's failure names its own URL.
        let of_file = |entry: &Entry| {
            let message = failure.message.replacen(&its_url, &shown(entry.url()), 1);
            Failure { message, ..failure.clone() }
        };
        for file in self.begun_at(origin) {
            if !self.goes_back_from(now, file, origin) {
                self.fail_beside(file, of_file(&self.files[file.index()]), Some(origin));
            }
        }
        let files = &self.files;
        let outstanding = |file: FileId| files[file.index()].outstanding();
        for file in self.waiting.drain_origin(origin, outstanding) {
            self.fail_beside(file, of_file(&self.files[file.index()]), Some(origin));
        }
        self.redecide = true;
    }

    /// Files of `origin` that are in transfer, or wait for their next attempt.
    pub(super) fn begun_at(&self, origin: OriginId) -> Vec<FileId> {
        let of_origin = |id: &FileId| self.files[id.index()].origin == origin;
        let in_transfer = self.active.iter().copied().filter(of_origin);
        let later = self.delayed.iter().map(|(_, id)| *id).filter(of_origin);
        later.filter(|id| !self.active.contains(id)).chain(in_transfer).collect()
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
