//! Ends that were lost: what its sender lost last of an answer it misses only when a time-out is over. Another
//! connection brings it sooner, and what a server brings that has stopped.

use std::time::Duration;

use pelton_algos::connections;
use pelton_algos::link::LinkEstimate;
use pelton_algos::ranges::{InFlight, StreamId};
use pelton_algos::silence::{Patience, SHORT_END};
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::anew::LITTLE;
use super::event::FileId;
use super::{Engine, OriginState, Stream};

/// A file without ranges begins anew for silences so often: each time all that came comes again, and may pause again.
const MOST_BEGUN_ANEW: u32 = 2;

impl OriginState {
    /// Connections that are open and bear nothing, as far as known, and that no file in transfer is about to take.
    const fn idle_connections(&self) -> u32 {
        self.opened.saturating_sub(self.streams + self.idle + self.hastened)
    }
}

/// Who waits for its turn does so for no more than so many times what that takes.
const TURNS: u32 = 2;

impl Engine {
    /// Connections that are open and bear nothing while the last bytes are on their way: they bring those as well.
    pub(super) fn idle_at_end(&self) -> u32 {
        let idle = self.idle_connections();
        if idle > 0 && self.is_at_end() { idle } else { 0 }
    }

    /// Those of all origins whose requests have one each.
    pub(super) fn idle_connections(&self) -> u32 {
        let separate = self.origins.iter().filter(|origin| !origin.multiplexes());
        separate.map(OriginState::idle_connections).sum()
    }

    pub(super) fn is_at_end(&self) -> bool {
        // Whoever saves joules waits until no rate grows any more.
        let is_early = || self.is_thrifty() && self.link.is_filling();
        let expected = self.link.estimate();
        let shares = self.shares_connections();
        // A rate that grows is expected to grow further. Where cuts come in vain, the end is that of what was seen.
        let seen = self.link.best_seen().filter(|seen| shares && *seen < expected.bandwidth);
        let link = LinkEstimate { bandwidth: seen.unwrap_or(expected.bandwidth), ..expected };
        self.waiting.is_empty()
            && self.list_ended
            && self.policy.allows_growth()
            && !is_early()
            && connections::are_last(self.outstanding(), &link, shares)
    }

    /// Streams are there to be looked at from now on.
    pub(super) fn watch_ends(&mut self, now: Timestamp) {
        if self.ends_check.is_none() && !self.streams.is_empty() {
            let (patience, rtt) = (self.patience(now), self.link.estimate().rtt);
            let look = if self.is_drained { patience.look_at_last(rtt) } else { patience.look() };
            self.ends_check = Some(now + look);
        }
    }

    /// The rest of what silent streams have to bring is asked for over other connections: where
    /// no file waits over those that idle, else where most streams are silent.
    pub(super) fn hasten_ends(&mut self, now: Timestamp) {
        let Some(due) = self.ends_check.filter(|at| now >= *at) else { return };
        self.ends_check = None;
        let patience = self.patience(now);
        // Who looks late was held up, and what has come meanwhile is yet to be told of.
        let is_late = now.saturating_since(due) > patience.look();
        // What a limit leaves comes when it may.
        if !is_late && self.max_rate().is_none() {
            let silent = self.silent_streams(now, patience);
            let ends = silent.iter().filter(|(_, s)| self.may_have_lost_end(now, s, patience));
            let is_stuck = !self.is_drained && patience.is_stuck(ends.count(), self.streams.len());
            for (id, stream) in silent {
                if self.may_hasten(now, id, &stream, patience, is_stuck) {
                    self.hasten(now, id, &stream);
                }
            }
        }
        self.watch_ends(now);
    }

    fn patience(&self, now: Timestamp) -> Patience {
        let (rtt, answer_time) = (self.link.estimate().rtt, self.answers.mean());
        let patience = Patience::new(rtt, answer_time);
        // Where files wait others come.
        if !self.is_drained {
            return patience;
        }
        // As long as the path is full there is a queue.
        let is_full = self.link.keeps_pace(self.goodput);
        let patience = if is_full { patience } else { patience.among(self.streams.len(), rtt) };
        let came_at = self.origins.iter().map(|origin| origin.came_at).max().unwrap_or_default();
        let silence = now.saturating_since(came_at);
        let times = self.answers.times();
        let patience = patience.where_nothing_comes(silence, rtt, answer_time, times.longest());
        let longest = times.at_longest();
        match self.turns() {
            Some(turns) => patience.with_thoughts(longest.max(turns.wait.saturating_mul(TURNS))),
            None if self.are_answers_thought_about() => patience.with_thoughts(longest),
            None => patience,
        }
    }

    /// How many times longer than usual the streams of `file` may be silent.
    fn times_longer(&self, file: FileId) -> u32 {
        let entry = &self.files[file.index()];
        let size = Bytes(entry.ranges.size().unwrap_or_default());
        self.asked_anew.times_longer(entry.hastened, size)
    }

    fn silent_streams(&self, now: Timestamp, patience: Patience) -> Vec<(StreamId, Stream)> {
        let in_turns = self.turns().is_some();
        let is_silent = |stream: &Stream| {
            let waits = !stream.has_head || in_turns && stream.recent.waits_for_answer();
            let once = if waits { patience.before } else { patience.within };
            stream.recent.silent_for(now) >= once * self.times_longer(stream.file)
        };
        self.streams.iter().filter(|(_, s)| is_silent(s)).map(|(id, s)| (*id, *s)).collect()
    }

    /// Whether `stream` may be silent as the end of what it brings was lost. Where its connection brings others meanwhile, it
    /// waits for its turn: what was lost holds them up, too.
    fn may_have_lost_end(&self, now: Timestamp, stream: &Stream, patience: Patience) -> bool {
        let origin = &self.origins[stream.origin.0 as usize];
        let came_at = stream.shares.and_then(|connection| origin.bearers.came_at(connection.0));
        let since = came_at.map_or(Duration::MAX, |at| now.saturating_since(at));
        stream.recent.silent_for(now).min(since) >= patience.within
    }

    /// Whether `stream` is worth being asked for anew.
    fn may_hasten(
        &self,
        now: Timestamp,
        id: StreamId,
        stream: &Stream,
        patience: Patience,
        is_stuck: bool,
    ) -> bool {
        let entry = &self.files[stream.file.index()];
        let in_flight = entry.ranges.stream(id);
        let left = in_flight.and_then(InFlight::remaining).filter(|left| *left > 0);
        let is_short = left.is_some_and(|left| left <= SHORT_END.0);
        let can_go_on = entry.takes_ranges && !entry.unproven && left.is_some();
        let can_begin = in_flight.is_some_and(|it| it.position == it.start);
        let origin = &self.origins[stream.origin.0 as usize];
        let silent_for = stream.recent.silent_for(now) / self.times_longer(stream.file);
        let host_silent = now.saturating_since(origin.came_at);
        let has_stopped = patience.has_stopped(silent_for, host_silent, self.asked_anew);
        let may_share = silent_for >= patience.sharing;
        let is_shared = origin.multiplexes() && origin.opened > 1;
        let has_other = origin.idle_connections() > 0 || may_share && is_shared;
        let is_last = self.is_drained && has_other;
        // Without ranges all of it comes again.
        let may_repeat = !entry.takes_ranges
            && entry.ranges.done_bytes() <= LITTLE.0
            && entry.begun_anew < MOST_BEGUN_ANEW;
        let is_worth_it = if stream.has_head {
            has_stopped && (can_go_on || may_repeat)
                || can_go_on
                    && is_short
                    && (is_last || is_stuck)
                    && self.may_have_lost_end(now, stream, patience)
        } else {
            can_begin && origin.has_answered() && (is_last || has_stopped)
        };
        let size = Bytes(entry.ranges.size().unwrap_or_default());
        let answers = self.answers.count();
        is_worth_it && self.asked_anew.may_ask(answers, entry.hastened, size, stream.has_head)
    }

    fn hasten(&mut self, now: Timestamp, id: StreamId, stream: &Stream) {
        let (silence, is_passed) = (stream.recent.silent_for(now), self.passed(stream) > 0);
        let entry = &mut self.files[stream.file.index()];
        if stream.whole && !stream.has_head {
            entry.unanswered_for += silence;
            entry.was_passed |= is_passed;
        }
        entry.hastened += 1;
        entry.begun_anew += u32::from(stream.has_head && !entry.takes_ranges);
        entry.silences.push(silence);
        self.asked_anew.on_asked(stream.stands_in.is_some());
        let origin = self.origin(stream.origin);
        if !origin.multiplexes() {
            // Its own connection is closed.
            origin.hastened += 1;
            if !stream.has_head {
                origin.trust.on_unanswered(origin.streams);
            }
        }
        self.abort_crawling(id);
        self.refill = true;
    }

    /// `stream` brought all that it had to, or more than an end. Where it stood in for a silent one, and took less time
    /// than that was silent, it was right to ask anew, and does not count among what may be for nothing.
    pub(super) fn note_stand_in(&mut self, now: Timestamp, stream: &Stream) {
        let is_quick = |silence| now.saturating_since(stream.began) < silence;
        if stream.stands_in.is_some_and(is_quick) {
            let entry = &mut self.files[stream.file.index()];
            entry.hastened = entry.hastened.saturating_sub(1);
            self.asked_anew.on_paid();
        }
    }
}
