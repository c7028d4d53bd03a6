//! Whose fault it is that a request failed: its file's, or its host's, which says nothing of the file.

use std::time::Duration;

use pelton_algos::refused_files::Forbidden;
use pelton_algos::time::Timestamp;

use super::event::FileId;
use super::facts::Failure;
use super::file::Entry;
use super::{Engine, OriginId, Stream};
use crate::ErrorKind;

/// What is behind a server that says so to all may be back after such a time, and less is waited for where it need not be
/// the server that has a fault.
const RESTART: Duration = Duration::from_secs(60);
const SHORT_FAULT: Duration = Duration::from_secs(10);

/// What a request was refused for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
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
    /// Whether a file is forbidden, or was asked for beside too many others. Who refuses one more stream of what others
    /// bring at present has enough of them.
    pub(super) fn weigh_forbidden(
        &mut self,
        now: Timestamp,
        stream: &Stream,
        is_403: bool,
    ) -> Forbidden {
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

    /// What a further request for `file` was refused for.
    pub(super) fn refused(&self, origin: OriginId, file: FileId, kind: ErrorKind) -> Refused {
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
    pub(super) fn is_blameless(
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
    pub(super) fn is_last(&self, stream: &Stream) -> bool {
        let origin = stream.origin;
        self.origins[origin.0 as usize].streams == 0 && self.waiting.of_origin(origin) == 0
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
}
