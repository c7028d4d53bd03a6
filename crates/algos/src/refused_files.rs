//! Files that are refused (429, 503, or a connection that is closed without an answer) or forbidden (403): whether that
//! tells of the file, or of what was asked for beside it. Some servers answer the first requests for each file so until they
//! have made it, and some one request too many.

use std::time::Duration;

use crate::time::Timestamp;

/// So many first requests that were refused while no other was under way, and so many later ones that were answered
/// thereafter, tell of files, unless as many would be answered by chance where first requests are answered as often.
const TELLING_ALONE: u32 = 2;
const TELLING_LATER: u32 = 4;

/// Who limits how many requests are answered in a time refuses one that follows an answer so soon, and answers none
/// sooner than that.
const NOT_TOO_SOON: Duration = Duration::from_millis(100);

/// Every so manieth request is for a file that was not asked for yet, where nothing is answered.
const OTHERS_EACH: u32 = 3;

/// A file that was asked for so often should have been ready.
const MOST_UNREADY: u64 = 4;

/// Refusals are of files where so many other requests were answered since a file was refused first, and as many
/// refusals of requests for the same files as follow, one after the other, happen to no more than this part of requests that
/// are refused without regard to their files.
const OTHERS_ANSWERED: u64 = 8;
const HAPPENS: f64 = 0.01;
const LEAST_AGAIN: u32 = 3;

/// So many refusals in a row, and more, are no files' fault where so many files were answered that had been refused.
const MANY_IN_A_ROW: u32 = 8;
const TELLING_AGAIN: u32 = 4;

/// So many first requests tell what part of them is refused. More than such a part is no chance, and what is as rare as
/// that hardly happens by chance to any file of a list.
const FIRST_REQUESTS: u32 = 16;
const MOST_PART: f64 = 0.5;
const HARDLY_EVER: f64 = 0.0001;

/// In what circumstances a request was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances {
    /// No other was under way.
    pub alone: bool,
    /// How long before anything had come from its host: [`Duration::MAX`] where nothing has.
    pub since_answer: Duration,
}

/// Whether the first request for each file is refused, or the first few are, and a further one is answered: a server
/// that has to fetch or to make each file first. It bears as many requests as before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FirstRequests {
    /// First requests that were alone and not soon after an answer, so that neither their number nor their pace matters.
    refused_alone: u32,
    answered_alone: u32,
    /// After an answer that was so long ago, at most.
    refused_after: Duration,
    /// Followed an answer no later than that.
    answered_later: u32,
    answered: u32,
    refused: u32,
    /// Requests for files that had been refused, of which none was answered.
    refused_again: u32,
    /// Files that were answered after they had been refused.
    answered_again: u32,
    /// Requests that were refused since the last answer.
    in_a_row: u32,
    times_of_all: u32,
}

impl FirstRequests {
    /// A request for a file was answered of which so many had failed, and so many of the last ones were refused.
    pub fn on_answer(
        &mut self,
        failed_before: u64,
        refused_before: u32,
        circumstances: Circumstances,
    ) {
        let Circumstances { alone, since_answer } = circumstances;
        self.in_a_row = 0;
        if refused_before > 0 {
            self.refused_again = 0;
            self.answered_again = self.answered_again.saturating_add(1);
        }
        if failed_before == 0 {
            self.answered = self.answered.saturating_add(1);
            let counts = alone && since_answer >= NOT_TOO_SOON;
            self.answered_alone = self.answered_alone.saturating_add(counts.into());
        } else if self.are_suspect() && since_answer <= self.refused_after {
            self.answered_later = self.answered_later.saturating_add(1);
        }
    }

    /// The same for one that was refused.
    pub fn on_refusal(&mut self, failed_before: u64, circumstances: Circumstances) {
        let Circumstances { alone, since_answer } = circumstances;
        self.refused_one_more();
        if failed_before == 0 {
            self.refused = self.refused.saturating_add(1);
        }
        if failed_before >= MOST_UNREADY {
            (self.refused_alone, self.answered_alone, self.answered_later) = (0, 0, 0);
        } else if failed_before == 0 && alone {
            // Who limits how many are answered in a time answers the first one.
            let since_answer = if self.answered == 0 { Duration::MAX } else { since_answer };
            if since_answer >= NOT_TOO_SOON {
                self.refused_alone = self.refused_alone.saturating_add(1);
                self.refused_after = self.refused_after.max(since_answer);
            }
        }
    }

    /// The same for one to which its server says that it has a fault (500, 502, 504): that is none of files that are not
    /// ready.
    pub fn on_fault(&mut self, failed_before: u64) {
        self.refused_one_more();
        self.refused = self.refused.saturating_add((failed_before == 0).into());
    }

    /// Whether it may be the files that are not ready: asking for one of them again tells.
    pub const fn are_suspect(self) -> bool {
        self.refused_alone > self.answered_alone
    }

    /// Whether what was refused comes before what was not asked for yet, after so many requests in `vain`: while nothing is
    /// answered both are asked for, as either tells.
    pub const fn ask_again_first(self, vain: u32) -> bool {
        self.are_suspect() && vain % OTHERS_EACH != 1
    }

    /// Whether a file was not ready when it was refused, where so many requests for it had failed before.
    pub fn tell_of_file(self, failed_before: u64) -> bool {
        let (refused, answered) = (f64::from(self.refused_alone), f64::from(self.answered_alone));
        // Files that are ready at once are answered at once, here and there.
        let are_answered = (answered + 0.5) / (refused + answered + 1.0);
        self.are_suspect()
            && self.refused_alone >= TELLING_ALONE
            && self.answered_later >= TELLING_LATER
            && are_answered.powf(f64::from(self.answered_later)) <= HAPPENS
            && failed_before < MOST_UNREADY
    }

    /// Whether all requests are refused of late, where files were answered before that had been refused: that tells of no
    /// file.
    pub const fn are_all_refused(self) -> bool {
        self.answered_again >= TELLING_AGAIN && self.in_a_row > MANY_IN_A_ROW
    }

    /// How often that was so: what a file was refused before tells no more of it.
    pub const fn times_of_all(self) -> u32 {
        self.times_of_all
    }

    fn refused_one_more(&mut self) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.are_all_refused() {
            self.refused_again = 0;
            self.times_of_all += u32::from(self.in_a_row == MANY_IN_A_ROW + 1);
        }
    }

    /// Whether a file that was refused `in_a_row`, while so many requests for others were answered, is refused for
    /// itself, whatever is asked for beside it.
    pub fn is_for_itself(&mut self, in_a_row: u32, others_answered: u64) -> bool {
        // What is refused as everything else is at present tells of no file.
        let is_beside_others = others_answered >= OTHERS_ANSWERED && self.in_a_row <= MANY_IN_A_ROW;
        let is_again = is_beside_others && in_a_row > 1;
        self.refused_again = self.refused_again.saturating_add(is_again.into());
        self.are_of_files() || is_beside_others && self.is_no_chance(in_a_row)
    }

    /// The same of one for which its server says that it has a fault (500, 502, 504). Who answers what it is asked for
    /// since the first of these rarely means that.
    pub const fn is_fault_of_file(in_a_row: u32, answers_others_since: bool) -> bool {
        answers_others_since && in_a_row > 1
    }

    /// Whether whatever was refused is refused again, while others are answered: neither the number of requests is the
    /// reason nor how soon they come.
    pub fn are_of_files(self) -> bool {
        self.is_no_chance(self.refused_again)
    }

    /// No more requests for a file than so many are refused one after the other where files are not the reason.
    pub fn most_by_chance(self) -> u32 {
        let first = self.answered.saturating_add(self.refused);
        let part = f64::from(self.refused) / f64::from(first.max(1));
        let is_chance =
            first >= FIRST_REQUESTS && part > 0.0 && part <= MOST_PART && !self.are_of_files();
        if is_chance { (HARDLY_EVER.ln() / part.ln()) as u32 } else { 0 }
    }

    /// Whether so many in a row would hardly be refused without regard to their files.
    fn is_no_chance(self, in_a_row: u32) -> bool {
        let first = f64::from(self.answered) + f64::from(self.refused);
        let part = (f64::from(self.refused) + 1.0) / (first + 1.0);
        in_a_row >= LEAST_AGAIN && part.powf(f64::from(in_a_row)) <= HAPPENS
    }
}

/// A file that was forbidden so often before is asked for no more where no other request is under way, or beside
/// others. Where it was one too many before, it may be again.
const MOST_DOUBTS_ALONE: u32 = 2;
const MOST_DOUBTS: u32 = 3;
const DOUBTS_FOR_MANY: u32 = 5;

/// So many files that were asked for no more, and none that was had later, tell that 403 is about files.
const TELLING_FORBIDDEN: u32 = 2;

/// Who has answered so many requests and forbids so many files in a row may have banned whoever asked for too much. It is
/// waited for this long, as such bans take seconds.
const MANY_ANSWERS: u32 = 8;
const TELLING_BAN: u32 = 4;
const LONGEST_BAN: Duration = Duration::from_secs(10);

/// Whether 403 tells of its file, or of one request too many: that is what some servers answer those with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forbidding {
    answered: u32,
    /// When a request was forbidden, if none was answered that began later.
    since: Option<Timestamp>,
    /// So many were forbidden that began since then.
    in_a_row: u32,
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

    /// A request that `began` then was answered. One that was under way when the first was forbidden says nothing of
    /// those that came after.
    pub fn on_answer(&mut self, began: Timestamp) {
        self.answered = self.answered.saturating_add(1);
        if self.since.is_some_and(|since| began >= since) {
            (self.in_a_row, self.since) = (0, None);
        }
    }

    /// A request that `began` then was forbidden, for a file that had been so `doubts` times before. Where its client may be
    /// banned that is one too many, and where that lasts it was none. What is asked for again tells nothing of others.
    pub fn weigh_ban(
        &mut self,
        now: Timestamp,
        began: Timestamp,
        doubts: u32,
    ) -> Option<Forbidden> {
        let since = *self.since.get_or_insert(now);
        let counts = began >= since && doubts == 0;
        self.in_a_row = self.in_a_row.saturating_add(u32::from(counts));
        let may_be_ban =
            !self.are_files() && self.answered >= MANY_ANSWERS && self.in_a_row >= TELLING_BAN;
        if !may_be_ban {
            return None;
        }
        if now.saturating_since(since) < LONGEST_BAN {
            return Some(Forbidden::TooMany);
        }
        (self.forbidden, self.forbids_many) = (TELLING_FORBIDDEN, false);
        Some(Forbidden::File)
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

    /// Whether asking again tells what it is for that nothing was answered since a request was forbidden.
    pub const fn is_doubtful(self) -> bool {
        self.since.is_some() && !self.forbids_many && !self.are_files()
    }

    /// Whether it tells of files, as far as is known.
    pub const fn are_files(self) -> bool {
        self.forbidden >= TELLING_FORBIDDEN && !self.forbids_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Circumstances = Circumstances { alone: true, since_answer: Duration::MAX };
    const BESIDE: Circumstances = Circumstances { alone: false, ..ALONE };

    /// Alone, and so many milliseconds after an answer.
    fn after(millis: u64) -> Circumstances {
        Circumstances { since_answer: Duration::from_millis(millis), ..ALONE }
    }

    #[test]
    fn who_refuses_all_between_answers_means_no_file() {
        let beside = Circumstances { alone: false, since_answer: Duration::from_millis(5) };
        let mut first = FirstRequests::default();
        (0..40).for_each(|_| first.on_refusal(1, beside));
        assert!(!first.are_all_refused(), "none of those was ever answered");
        (0..4).for_each(|_| first.on_answer(1, 1, beside));
        (0..8).for_each(|_| first.on_refusal(1, beside));
        assert!(!first.are_all_refused() && first.times_of_all() == 0, "some may be refused");
        (0..8).for_each(|_| assert!(!first.is_for_itself(2, 7)));
        (0..8).for_each(|_| first.on_fault(1));
        assert!(first.are_all_refused() && first.times_of_all() == 1);
        first.on_answer(0, 0, beside);
        assert!(!first.are_all_refused() && first.times_of_all() == 1);
    }

    #[test]
    fn first_requests_tell_of_files_where_further_ones_are_answered() {
        for refused in 1..=3 {
            let mut first = FirstRequests::default();
            first.on_refusal(0, BESIDE);
            assert!(!first.are_suspect(), "it may have been one too many");
            assert!(!first.ask_again_first(0));
            for _ in 0..4 {
                (0..refused).for_each(|failed| first.on_refusal(failed, ALONE));
                assert!(first.are_suspect() && !first.tell_of_file(0), "not yet");
                first.on_answer(refused, 0, ALONE);
            }
            assert!(first.tell_of_file(0) && first.tell_of_file(1) && !first.tell_of_file(4));
            let mut answered = first;
            answered.on_answer(0, 0, ALONE);
            assert!(answered.tell_of_file(0), "one file was ready");
            answered.on_answer(0, 0, ALONE);
            assert!(!answered.tell_of_file(0), "as many may be answered by chance");
            (0..2).for_each(|_| answered.on_answer(0, 0, ALONE));
            assert!(!answered.are_suspect(), "it is not the files");
            let again = [0, 1, 2, 3, 4].map(|vain| first.ask_again_first(vain));
            assert_eq!(again, [true, false, true, true, false]);
            first.on_refusal(4, ALONE);
            assert!(!first.tell_of_file(0), "asking again does not help");
        }
    }

    #[test]
    fn who_answers_so_many_in_a_time_refuses_no_files() {
        let mut first = FirstRequests::default();
        first.on_answer(0, 0, BESIDE);
        for _ in 0..20 {
            first.on_refusal(0, after(5));
            first.on_answer(1, 1, after(300));
        }
        assert!(!first.are_suspect(), "that came too soon");
        for _ in 0..20 {
            first.on_refusal(0, after(200));
            first.on_answer(1, 1, after(300));
        }
        assert!(first.are_suspect() && !first.tell_of_file(0), "that was later than the others");
        (0..4).for_each(|_| first.on_answer(1, 1, after(5)));
        assert!(first.tell_of_file(0));
    }

    #[test]
    fn what_is_refused_again_and_again_beside_others_is_refused_for_itself() {
        let mut first = FirstRequests::default();
        for file in 0..20 {
            if file < 2 { first.on_refusal(0, BESIDE) } else { first.on_answer(0, 0, BESIDE) }
        }
        assert!(!first.is_for_itself(2, 20), "twice may be bad luck");
        assert!(!first.is_for_itself(3, 7), "hardly any other was answered");
        assert!(first.is_for_itself(3, 8));
        assert!(!FirstRequests { refused_again: 0, ..first }.are_of_files());
        first.on_answer(1, 1, BESIDE);
        assert!(!first.is_for_itself(2, 20), "one was answered that had been refused");
        for again in 1..3 {
            assert_eq!(first.is_for_itself(2, 20), again == 2, "{again}");
        }
        assert!(first.is_for_itself(1, 0), "so it is with all of them");
    }

    #[test]
    fn a_fault_beside_answers_is_soon_one_of_its_file() {
        assert!(!FirstRequests::is_fault_of_file(1, true));
        assert!(!FirstRequests::is_fault_of_file(9, false), "nothing else was answered");
        assert!(FirstRequests::is_fault_of_file(2, true));
    }

    #[test]
    fn how_often_chance_refuses_one_file_follows_from_the_first_requests() {
        let often =
            |answered, refused| FirstRequests { answered, refused, ..FirstRequests::default() };
        assert_eq!(often(5, 5).most_by_chance(), 0, "too few to tell");
        assert_eq!(often(90, 10).most_by_chance(), 4);
        assert_eq!(often(60, 40).most_by_chance(), 10);
        assert_eq!(often(10, 90).most_by_chance(), 0, "that is no chance");
        let always = FirstRequests { refused_again: 99, ..often(60, 40) };
        assert_eq!(always.most_by_chance(), 0, "the same ones are refused again");
    }

    #[test]
    fn where_many_are_refused_it_takes_more_to_tell_of_files() {
        let mut first = FirstRequests::default();
        for file in 0..40 {
            if file % 2 == 0 { first.on_refusal(0, BESIDE) } else { first.on_answer(0, 0, BESIDE) }
        }
        let half = FirstRequests { refused_again: 0, ..first };
        let told = |in_a_row| half.clone().is_for_itself(in_a_row, 20);
        assert_eq!([3, 6, 7].map(told), [false, false, true]);
    }

    #[test]
    fn who_forbids_all_after_many_answers_may_have_banned_for_a_while() {
        let mut forbidding = Forbidding::default();
        let at = Timestamp::from_millis;
        let weigh = |forbidding: &mut Forbidding, began, doubts| {
            forbidding.weigh_ban(at(began + 50), at(began), doubts)
        };
        assert!((50..70).all(|began| weigh(&mut forbidding, began, 0).is_none()), "none given");
        (0..8).for_each(|_| forbidding.on_answer(at(120)));
        assert!([200; 9].iter().all(|began| weigh(&mut forbidding, *began, 0).is_none()));
        forbidding.on_answer(at(210));
        let row = [250; 4].map(|began| weigh(&mut forbidding, began, 0));
        assert_eq!(row, [None, None, None, Some(Forbidden::TooMany)], "what came before is one");
        assert_eq!(weigh(&mut forbidding, 10_000, 0), Some(Forbidden::TooMany));
        assert_eq!(weigh(&mut forbidding, 10_200, 0), Some(Forbidden::File), "that is no ban");
        let mut one = Forbidding::default();
        (0..8).for_each(|_| one.on_answer(at(100)));
        assert!((200..209).all(|began| weigh(&mut one, began, 1).is_none()));
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
