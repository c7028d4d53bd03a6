//! Refusals: whether they (429, 503) tell that an origin was asked for too much at once, or are the way in which a
//! server answers the first requests for each file; and whether 403 is about a file at all.

/// Refusals of such a part of the late requests tell of too many.
const TELLING_PART: f64 = 0.25;

/// So many requests count for that, and are enough to compare what was refused before a cut and after it.
const LATE_REQUESTS: u32 = 16;

/// Where less than this part is refused, half as many requests would all be answered if their number were the
/// reason.
const HALF: f64 = 0.5;

/// More refusals in a row than so many for each request that is under way are no chance.
const IN_VAIN: u32 = 2;

/// So many refusals after a cut that should have left none show that it was for nothing.
const AGAIN: u32 = 2;

/// What is refused whatever is done has to become so many times as much before it tells anything again.
const MORE_THAN_CHANCE: f64 = 2.0;

/// So many first requests that were refused while no other was under way, and so many later ones that were answered
/// thereafter, tell of files.
const TELLING_ALONE: u32 = 2;
const TELLING_LATER: u32 = 4;

/// A file that was asked for so often should have been ready.
const MOST_UNREADY: u64 = 4;

/// Whether the first request for each file is refused, or the first few are, and a further one is answered: a server
/// that has to fetch or to make each file first. It bears as many requests as before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FirstRequests {
    /// Were refused alone: not for their number.
    refused_alone: u32,
    answered_later: u32,
    /// One was answered: it is not the files.
    was_answered: bool,
}

impl FirstRequests {
    /// A request for a file was answered of which so many had failed.
    pub fn on_answer(&mut self, failed_before: u64) {
        if failed_before == 0 {
            self.was_answered = true;
        } else if self.are_suspect() {
            self.answered_later = self.answered_later.saturating_add(1);
        }
    }

    /// The same for one that was refused, `alone` where no other was under way.
    pub fn on_refusal(&mut self, failed_before: u64, alone: bool) {
        if failed_before >= MOST_UNREADY {
            (self.refused_alone, self.answered_later) = (0, 0);
        } else if failed_before == 0 && alone {
            self.refused_alone = self.refused_alone.saturating_add(1);
        }
    }

    /// Whether it may be the files that are not ready: asking for one of them again tells.
    pub const fn are_suspect(self) -> bool {
        self.refused_alone > 0 && !self.was_answered
    }

    /// Whether a file was not ready when it was refused, where so many requests for it had failed before.
    pub const fn tell_of_file(self, failed_before: u64) -> bool {
        self.are_suspect()
            && self.refused_alone >= TELLING_ALONE
            && self.answered_later >= TELLING_LATER
            && failed_before < MOST_UNREADY
    }
}

/// A file that was forbidden so often before is asked for no more where no other request is under way, or beside
/// others. Where it was one too many before, it may be again.
const MOST_DOUBTS_ALONE: u32 = 2;
const MOST_DOUBTS: u32 = 3;
const DOUBTS_FOR_MANY: u32 = 5;

/// So many files that were asked for no more, and none that was had later, tell that 403 is about files.
const TELLING_FORBIDDEN: u32 = 2;

/// Whether 403 tells of its file, or of one request too many: that is what some servers answer those with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forbidding {
    /// Files that were asked for often enough.
    forbidden: u32,
    forbids_many: bool,
}

/// What a 403 tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// Its file is forbidden.
    File,
    /// It was one request too many.
    TooMany,
    /// Either. Asking for it again tells.
    Doubt,
}

impl Forbidding {
    /// A request for a file was answered that was forbidden before, or another one brings it: it was one too many.
    pub fn on_given(&mut self) {
        self.forbids_many = true;
    }

    /// A file was forbidden that had been so `doubts` times before, `alone` where no other request was under way. Idle
    /// connections may be too many as well.
    pub fn on_forbidden(&mut self, doubts: u32, alone: bool) -> Forbidden {
        let most = if alone { MOST_DOUBTS_ALONE } else { MOST_DOUBTS };
        if self.forbids_many {
            return if doubts < most + DOUBTS_FOR_MANY {
                Forbidden::TooMany
            } else {
                Forbidden::File
            };
        }
        if self.are_files() {
            return Forbidden::File;
        }
        let is_doubtful = doubts < most;
        self.forbidden += u32::from(!is_doubtful);
        if is_doubtful { Forbidden::Doubt } else { Forbidden::File }
    }

    /// Whether asking again tells what it is for.
    pub const fn is_doubtful(self) -> bool {
        !self.forbids_many && !self.are_files()
    }

    /// Whether it tells of files, as far as is known.
    pub const fn are_files(self) -> bool {
        self.forbidden >= TELLING_FORBIDDEN && !self.forbids_many
    }
}

/// What a refusal tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing yet.
    Nothing,
    /// The origin was asked for too much at once.
    TooMany,
    /// Some are refused although there are so few requests that none should be: their number is not the reason.
    Chance,
}

/// Counts the requests of an origin that are refused, and those that are answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals {
    /// The part of the late requests that was refused.
    late: f64,
    /// Requests that were under way at the last cut.
    older: u32,
    /// Of those since then: which were refused, and all.
    refused: u32,
    requests: u32,
    /// Requests in a row that were refused.
    in_a_row: u32,
    was_cut: bool,
    /// The last cut should have left none that are refused.
    was_enough: bool,
    /// Such a part is refused whatever is done.
    chance: f64,
}

impl Refusals {
    /// A request was answered.
    pub(crate) fn on_answer(&mut self) {
        self.late -= self.late / f64::from(LATE_REQUESTS);
        self.in_a_row = 0;
        self.count(false);
    }

    /// A request was refused while `in_use` were under way, it included; `has_answered` says whether any was
    /// answered since there were fewer.
    pub(crate) fn on_refusal(&mut self, in_use: u32, has_answered: bool) -> Told {
        self.late += (1.0 - self.late) / f64::from(LATE_REQUESTS);
        self.in_a_row += 1;
        self.count(true);
        if self.was_enough && self.is_known() && self.refused >= AGAIN {
            self.on_chance(in_use);
            return Told::Chance;
        }
        let telling_part = TELLING_PART.max(self.chance * MORE_THAN_CHANCE);
        let is_telling =
            self.late >= telling_part && (!self.was_cut || self.is_known() || self.late >= HALF);
        let is_vain = self.in_a_row > in_use.max(1).saturating_mul(IN_VAIN);
        if is_telling || is_vain || !has_answered { Told::TooMany } else { Told::Nothing }
    }

    /// Requests that were refused just before, and so are no more under way.
    pub(crate) const fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// Whether some are known to be refused whatever is done.
    pub(crate) fn are_chance(&self) -> bool {
        self.chance > 0.0
    }

    /// There are fewer requests from now on, while `under_way` are: whether fewer are refused is another question.
    pub(crate) fn on_cut(&mut self, under_way: u32) {
        let was_enough = self.is_known() && self.part() < HALF;
        self.begin_anew(under_way);
        (self.was_cut, self.was_enough) = (true, was_enough);
    }

    /// Neither fewer requests nor a slower pace helped.
    pub(crate) fn on_chance(&mut self, under_way: u32) {
        self.chance = self.part();
        self.begin_anew(under_way);
    }

    fn begin_anew(&mut self, under_way: u32) {
        (self.refused, self.requests) = (0, 0);
        (self.late, self.older, self.was_enough) = (0.0, under_way, false);
    }

    const fn count(&mut self, is_refused: bool) {
        if self.older > 0 {
            self.older -= 1;
            return;
        }
        self.requests += 1;
        self.refused += is_refused as u32;
    }

    const fn is_known(&self) -> bool {
        self.requests >= LATE_REQUESTS
    }

    fn part(&self) -> f64 {
        f64::from(self.refused) / f64::from(self.requests.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_requests_tell_of_files_where_further_ones_are_answered() {
        for refused in 1..=3 {
            let mut first = FirstRequests::default();
            first.on_refusal(0, false);
            assert!(!first.are_suspect(), "it may have been one too many");
            for _ in 0..4 {
                (0..refused).for_each(|failed| first.on_refusal(failed, true));
                assert!(first.are_suspect() && !first.tell_of_file(0), "not yet");
                first.on_answer(refused);
            }
            assert!(first.tell_of_file(0) && first.tell_of_file(1) && !first.tell_of_file(4));
            let mut answered = first;
            answered.on_answer(0);
            assert!(!answered.tell_of_file(0), "this file was ready: it bears so many requests");
            first.on_refusal(4, true);
            assert!(!first.tell_of_file(0), "asking again does not help");
        }
    }

    #[test]
    fn who_was_forbidden_and_is_given_later_was_one_too_many() {
        let mut forbidding = Forbidding::default();
        assert_eq!(forbidding.on_forbidden(0, false), Forbidden::Doubt);
        assert_eq!(forbidding.on_forbidden(1, true), Forbidden::Doubt);
        assert_eq!(forbidding.on_forbidden(2, false), Forbidden::Doubt, "beside others");
        assert_eq!(forbidding.on_forbidden(3, false), Forbidden::File, "asked for often enough");
        let mut given = forbidding;
        given.on_given();
        assert_eq!(given.on_forbidden(5, false), Forbidden::TooMany);
        assert_eq!(given.on_forbidden(8, false), Forbidden::File, "so often is no bad luck");
        assert_eq!(given.on_forbidden(7, true), Forbidden::File);
        assert_eq!(forbidding.on_forbidden(0, true), Forbidden::Doubt);
        assert_eq!(forbidding.on_forbidden(2, true), Forbidden::File);
        assert_eq!(forbidding.on_forbidden(0, false), Forbidden::File, "so it is with all of them");
        forbidding.on_given();
        assert_eq!(forbidding.on_forbidden(0, false), Forbidden::TooMany);
    }
}
