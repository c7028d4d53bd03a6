//! What failures tell of the host that was asked: it is asked for less, later, or not at all.

use std::time::Duration;

use pelton_algos::limits::Refusal;
use pelton_algos::refused_files::FirstRequests;
use pelton_algos::time::Timestamp;

use super::event::{Action, FileId};
use super::facts::Failure;
use super::failure::patiently;
use super::file::Entry;
use super::origin::Contact;
use super::{Engine, OriginId, Stream};
use crate::ErrorKind;
use crate::connection::shown;

/// The pauses of an origin that refuses whatever it is asked grow up to the one after so many failures:
/// what comes once a second is a burden to nobody, and finds out soon that it is over.
const ORIGIN_DOUBLINGS: u32 = 3;

/// The same where all connections are closed: some bans begin anew with each.
const BAN_DOUBLINGS: u32 = 5;

/// A host that takes connections and closes them all is not given up sooner: many a server shuts out for some
/// seconds who has opened too many.
const BAN: Duration = Duration::from_secs(20);

/// A host that can't be reached is asked again no later than this, and no later than a quarter of the time that
/// it could not be: who comes back is found soon, and who does not is asked ever more rarely.
const SOON: Duration = Duration::from_secs(1);

const LATER: u32 = 4;

/// Who waits so long for a host is told.
const NOTICED: Duration = Duration::from_secs(2);

impl Engine {
    /// Takes note of what the failure of `stream` tells of its origin. Whether nothing can be had of that.
    pub(super) fn note_failure(
        &mut self,
        now: Timestamp,
        stream: &Stream,
        failure: &Failure,
    ) -> bool {
        let (origin, kind) = (stream.origin, failure.kind);
        let was_passed = self.files[stream.file.index()].was_passed;
        if kind == ErrorKind::Timeout && !stream.has_head && was_passed {
            return false;
        }
        let is_turned_away = stream.is_turned_away(kind);
        let is_fault = kind == ErrorKind::ServerError;
        // Who wants one attempt need not know why it failed.
        let is_one_of_one = is_fault && self.config.retry.attempts == 1;
        if is_one_of_one
            || is_fault && self.has_faults_for_good(now, stream)
            || (kind.is_refusal() || is_turned_away) && self.tells_of_file(now, stream, is_fault)
        {
            self.redecide = true;
            return false;
        }
        self.origin(origin).has_had_enough |= kind == ErrorKind::Overloaded;
        let may_be_too_much = kind.is_overload() || is_fault || is_turned_away;
        let is_too_much = may_be_too_much && self.note_overload(now, stream, failure);
        // Whoever has never answered may mind the part itself.
        let refuses = kind.is_answer() || is_turned_away && !self.origin(origin).has_answered();
        if stream.whole && stream.in_parts && !stream.has_head && refuses {
            self.origin(origin).note_ranges(true, Some(false));
        }
        let is_unreachable = stream.is_unreachable(kind);
        if is_unreachable {
            self.note_unreachable(now, stream, kind);
        }
        if is_unreachable || is_too_much {
            // How many it bears its budget knows: where a try costs no more than itself lanes need not be fewer than that.
            if !self.origin(origin).budget.serves_others() {
                self.growth.on_refusal(now);
                self.free_path.end();
            }
            self.spread.on_refusal(now);
        }
        self.redecide |= is_unreachable || may_be_too_much;
        let concerns_all = matches!(kind, ErrorKind::Tls | ErrorKind::Overloaded);
        (is_unreachable || concerns_all || is_turned_away)
            && self.fails_whole_origin(now, origin, kind)
    }

    /// Whether the origin of `stream` has faults that do not pass, so that each file is asked for as if there were no other.
    fn has_faults_for_good(&mut self, now: Timestamp, stream: &Stream) -> bool {
        let asks_for_ever = self.config.retry.attempts == u32::MAX;
        let may_be_back = asks_for_ever || self.may_be_back(now, stream);
        let state = &mut self.origins[stream.origin.0 as usize];
        if state.budget.vain_requests() > 0 && !may_be_back {
            state.has_faults_for_good = true;
            state.budget.forgive();
        }
        self.files[stream.file.index()].is_refused_for_itself |= state.has_faults_for_good;
        state.has_faults_for_good
    }

    /// Whether a refusal tells of its file alone, as that of each other one did, or as all of that file did.
    fn tells_of_file(&mut self, now: Timestamp, stream: &Stream, is_fault: bool) -> bool {
        let entry = &mut self.files[stream.file.index()];
        let is_new = !entry.is_refused_for_itself;
        // Others that are under way may bring it all the same.
        let counts = stream.attempt == entry.attempt && entry.ranges.streams() == 0;
        let failed_before = stream.attempt.max(entry.refused.into());
        let state = &mut self.origins[stream.origin.0 as usize];
        let are_all_refused = state.first_requests.are_all_refused();
        let times_of_all = state.first_requests.times_of_all();
        if std::mem::replace(&mut entry.times_of_all, times_of_all) != times_of_all {
            entry.refused = 0;
        }
        entry.refused += u32::from(counts && !are_all_refused);
        if entry.refused == 1 {
            (entry.refused_at, entry.answered_before) = (now, state.answered);
        }
        let others_answered = state.answered.saturating_sub(entry.answered_before);
        let circumstances = state.circumstances(stream.began, 0);
        // What was asked for before may have been answered until then.
        let is_beside_answers = state.answered_from > entry.refused_at;
        let first_requests = &mut state.first_requests;
        entry.is_refused_for_itself = if is_fault {
            first_requests.on_fault(failed_before);
            !are_all_refused && FirstRequests::is_fault_of_file(entry.refused, is_beside_answers)
        } else {
            first_requests.on_refusal(failed_before, circumstances);
            if first_requests.tell_of_file(failed_before) {
                state.budget.forgive();
                state.has_had_enough = false;
                return true;
            }
            !are_all_refused && first_requests.is_for_itself(entry.refused, others_answered)
        };
        match entry.is_refused_for_itself {
            false => return false,
            true if !is_new => {}
            true if first_requests.are_of_files() => state.budget.forgive(),
            true => state.budget.forgive_file(),
        }
        true
    }

    /// Whether the failure of `stream` tells, as no other one has just before, that its origin was asked for too much.
    pub(super) fn note_overload(
        &mut self,
        now: Timestamp,
        stream: &Stream,
        failure: &Failure,
    ) -> bool {
        let retry = self.config.retry;
        let asked_for = failure.retry_after.filter(|pause| *pause <= retry.longest_retry_after);
        let state = &mut self.origins[stream.origin.0 as usize];
        let in_use = state.streams + 1;
        let is_closed = stream.is_turned_away(failure.kind);
        let is_refused = is_closed || failure.kind.is_refusal();
        // What breaks while it is served tells that others may, too.
        let served = if stream.has_head { 0 } else { state.served };
        let may_be_file = state.first_requests.are_suspect();
        let budget = &mut state.budget;
        let mut is_news = || match failure.kind {
            _ if is_refused => {
                let (began, is_of_rate) = (stream.began, failure.is_of_rate);
                budget.on_refusal(
                    now,
                    Refusal {
                        began,
                        in_use,
                        served,
                        asked_for,
                        is_of_rate,
                        is_closed,
                        may_be_file,
                    },
                )
            }
            ErrorKind::Reset | ErrorKind::ShortBody => budget.on_break(now, stream.began, in_use),
            // Its host has answered nobody meanwhile: it is silent, and tells no number.
            ErrorKind::Timeout if !stream.has_head => false,
            // A single stream that stalls says nothing about too many streams.
            kind => {
                if kind == ErrorKind::Connect {
                    budget.on_unreachable(in_use);
                }
                in_use > 1 && budget.on_overload(now, stream.began, in_use, asked_for)
            }
        };
        if !is_news() {
            return false;
        }
        state.pipelines = Some(false);
        self.redecide = true;
        let vain = state.budget.vain_requests();
        if is_refused && vain > 0 {
            let doublings = if is_closed { BAN_DOUBLINGS } else { ORIGIN_DOUBLINGS };
            let asked_for = asked_for.filter(|_| !state.budget.spares());
            let pause = retry.pause(vain.min(doublings), asked_for, &mut self.jitter);
            state.budget.leave_alone(now + pause);
        }
        true
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
        state.takes_connections = kind == ErrorKind::Timeout && state.contact != Contact::None;
        if kind != ErrorKind::Timeout {
            let pause = retry.delay(state.connect_failures, &mut self.jitter);
            state.budget.leave_alone(now + pause.min(SOON.max(failing_for / LATER)));
        }
    }

    /// Says, once until it answers, that an origin is waited for, and what for.
    pub(super) fn tell_of_wait(&mut self, now: Timestamp, origin: OriginId, failure: &Failure) {
        let state = &mut self.origins[origin.0 as usize];
        let pause = state.budget.next_timeout(now).map(|until| until.saturating_since(now));
        let waiting = pause.map(|pause| pause + state.failing_for(now));
        // That was waited for until now, and will be again.
        let is_silent = failure.kind == ErrorKind::Timeout && state.connect_failures > 0;
        let is_noticed = is_silent || waiting.is_some_and(|waiting| waiting >= NOTICED);
        if is_noticed {
            self.tell_once_of_wait(origin, failure);
        }
    }

    fn tell_once_of_wait(&mut self, origin: OriginId, failure: &Failure) {
        if !std::mem::replace(&mut self.origin(origin).has_told_of_wait, true) {
            // Its advice is for who has failed.
            let what = failure.message.split("; ").next().unwrap_or_default();
            self.actions.push(Action::HostAway { failure: what.to_owned() });
        }
    }

    /// The same of where a redirect has led to.
    pub(super) fn tell_of_wait_elsewhere(&mut self, failure: &Failure) {
        if let Some(led_to) = &failure.led_to {
            let led_to = self.origin_id(led_to);
            self.tell_once_of_wait(led_to, failure);
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

    pub(super) fn give_up_origin(
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
        for file in self.take_waiting(origin) {
            self.fail_beside(file, of_file(&self.files[file.index()]), Some(origin));
        }
        self.redecide = true;
    }

    /// Takes the files of `origin` that wait out of their queues.
    pub(super) fn take_waiting(&mut self, origin: OriginId) -> Vec<FileId> {
        let files = &self.files;
        self.waiting.drain_origin(origin, |file| files[file.index()].outstanding())
    }

    /// Files of `origin` that are in transfer, or wait for their next attempt.
    pub(super) fn begun_at(&self, origin: OriginId) -> Vec<FileId> {
        let of_origin = |id: &FileId| self.files[id.index()].origin == origin;
        let in_transfer = self.active.iter().filter(of_origin);
        let later = self.delayed.iter().map(|(_, id)| *id).filter(of_origin);
        later.filter(|id| !self.active.contains(*id)).chain(in_transfer).collect()
    }
}
