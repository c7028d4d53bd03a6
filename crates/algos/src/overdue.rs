//! How long a first answer may take before something is wrong with its connection, or its request.

use std::time::Duration;

/// An answer over a new connection is overdue after so many times what others took, and not before
/// [`LEAST_OVERDUE`]. A server with few workers takes connections that it does not serve.
const OVERDUE: u32 = 8;
const LEAST_OVERDUE: Duration = Duration::from_secs(1);
/// Where others have passed it: a lost request is sent again by then.
const LEAST_PASSED_OVER: Duration = Duration::from_millis(250);
/// So many answers over connections that had brought one before have passed it by no chance.
const PASSED_OVER: u32 = 3;

/// The same in times of the longest one. Where servers think for different times those that are still waited for are the
/// long ones.
const LONGEST: u32 = 2;

/// Where a connection idles that has brought an answer it is asked instead after so many times what those take: at worst
/// an answer comes twice.
const WORTH_MOVING: u32 = 4;
/// The same of a host that was seen to answer at once over such a connection what it left unanswered over another.
const KNOWN_TO_HELP: u32 = 2;

/// What a further answer counts in the mean, and what the longest one counts less after each: servers may have been slow for
/// a while.
const NEW: u32 = 8;
const FORGOTTEN: u32 = 32;

/// How long answers take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerTimes {
    mean: Duration,
    longest: Duration,
}

impl AnswerTimes {
    /// Another one took so long.
    pub fn add(&mut self, took: Duration) {
        let is_first = self.longest.is_zero();
        self.mean = if is_first { took } else { (self.mean * (NEW - 1) + took) / NEW };
        self.add_late(took);
    }

    /// The same of one that may have waited until its server had done with another connection.
    pub fn add_late(&mut self, took: Duration) {
        self.longest = took.max(self.longest.saturating_sub(self.longest / FORGOTTEN));
    }

    /// How long one took at most.
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// How long a further one may take where servers think for different times.
    pub const fn at_longest(&self) -> Duration {
        self.longest.saturating_mul(LONGEST)
    }

    /// How long the first answer over a new connection may take where so many others have `passed` it.
    pub fn overdue(&self, passed: u32) -> Duration {
        let least = least_overdue(passed);
        let of_others = self.mean.saturating_mul(OVERDUE).max(self.at_longest());
        of_others.max(least)
    }

    /// The same whatever has passed it: then something is wrong with the connection.
    pub fn long_overdue(&self) -> Duration {
        self.overdue(0)
    }

    /// How long the first answer over a new connection is waited for before one that idles, and has brought an answer, is
    /// asked instead, where so many others have `passed` it. `None`: that has been in vain.
    pub fn moves_after(&self, passed: u32, moves: Moves) -> Option<Duration> {
        if !moves.are_worthwhile() {
            return None;
        }
        if moves.quick > 0 {
            return Some(self.mean.saturating_mul(KNOWN_TO_HELP).max(LEAST_PASSED_OVER));
        }
        let of_others = self.mean.saturating_mul(WORTH_MOVING).max(self.at_longest());
        Some(of_others.max(least_overdue(passed)))
    }

    /// Whether an answer that took so long over another connection shows that its request had `waited` for want of one.
    pub fn is_quick(&self, took: Duration, waited: Duration) -> bool {
        took <= self.mean.saturating_mul(KNOWN_TO_HELP) && took <= waited / WORTH_MOVING
    }

    /// Whether a connection over which nothing came for so long while others, so many by now, have `passed` it is one more
    /// than the server serves.
    pub fn is_unserved(&self, passed_for: Duration, passed: u32, moves: Moves) -> bool {
        moves.are_worthwhile() && passed >= PASSED_OVER && passed_for >= self.long_overdue()
    }
}

const fn least_overdue(passed: u32) -> Duration {
    if passed >= PASSED_OVER { LEAST_PASSED_OVER } else { LEAST_OVERDUE }
}

/// What came of asking again over connections that had brought an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    moved: u32,
    helped: u32,
    quick: u32,
}

impl Moves {
    /// A request was made once more over such a connection.
    pub const fn on_moved(&mut self) {
        self.moved = self.moved.saturating_add(1);
    }

    /// One that was moved is answered, and [quickly](AnswerTimes::is_quick) or not.
    pub const fn on_helped(&mut self, is_quick: bool) {
        self.helped = self.helped.saturating_add(1);
        self.quick = self.quick.saturating_add(is_quick as u32);
    }

    /// One that was moved is not waited for any more, sooner than tells anything.
    pub const fn on_given_up(&mut self) {
        self.moved = self.moved.saturating_sub(1);
    }

    /// Whether it seems to be for their connections that requests wait. What no connection answers takes one that would
    /// serve others.
    pub const fn are_worthwhile(self) -> bool {
        self.moved <= self.helped.saturating_mul(2)
    }
}

/// So many requests that were given up without any answer between them were not lost one by one.
const LEFT_UNANSWERED: u32 = 2;

/// How many requests at once a host is trusted with. Who serves one connection after another has to end with all that wait
/// in its queue before it takes one that is opened instead of them, given up or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trust {
    /// `None`: with any number, as none was left without an answer.
    most: Option<u32>,
    /// Given up since the last answer.
    given_up: u32,
}

impl Trust {
    /// One of so many requests `in_flight` was given up, as nothing had come.
    pub fn on_unanswered(&mut self, in_flight: u32) {
        self.given_up = self.given_up.saturating_add(1);
        if self.given_up >= LEFT_UNANSWERED {
            self.most = Some(self.most.map_or(in_flight, |most| most.min(in_flight)));
        }
    }

    /// Another request was answered.
    pub const fn on_answer(&mut self) {
        self.given_up = 0;
        if let Some(most) = &mut self.most {
            *most = most.saturating_add(1);
        }
    }

    /// How many more at once, beside so many `in_flight`.
    pub fn room_beside(self, in_flight: u32) -> u32 {
        self.most.map_or(u32::MAX, |most| most.saturating_sub(in_flight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn having_seen(answers: impl IntoIterator<Item = u64>) -> AnswerTimes {
        let mut times = AnswerTimes::default();
        answers.into_iter().for_each(|millis| times.add(ms(millis)));
        times
    }

    #[test]
    fn a_first_answer_may_take_several_times_what_others_took() {
        let fast = having_seen([20]);
        assert_eq!(fast.overdue(2), ms(1_000), "what is new may be slow");
        assert_eq!(fast.overdue(3), ms(250), "others are answered");
        let slow = having_seen([500]);
        assert_eq!([slow.overdue(0), slow.overdue(9)], [ms(4_000); 2]);
        assert!(fast.is_unserved(ms(1_000), 3, Moves::default()));
        assert!(!fast.is_unserved(ms(900), 3, Moves::default()), "what is new may be slow");
        assert!(!fast.is_unserved(ms(9_000), 2, Moves::default()), "nothing is answered any more");
        let mut moves = Moves::default();
        moves.on_moved();
        assert!(!fast.is_unserved(ms(9_000), 3, moves), "nor is it elsewhere");
        moves.on_helped(false);
        assert!(fast.is_unserved(ms(1_000), 3, moves));
    }

    #[test]
    fn a_connection_that_has_answered_and_idles_is_asked_sooner_once_that_has_helped() {
        let times = having_seen([200; 3]);
        let mut moves = Moves::default();
        assert_eq!(times.moves_after(1, moves), Some(ms(1_000)));
        assert_eq!(times.moves_after(3, moves), Some(ms(800)));
        moves.on_moved();
        assert_eq!(times.moves_after(3, moves), None, "nobody knows yet");
        moves.on_helped(times.is_quick(ms(700), ms(900)));
        assert_eq!(times.moves_after(3, moves), Some(ms(800)), "its server thought about it");
        moves.on_moved();
        moves.on_helped(times.is_quick(ms(210), ms(900)));
        assert_eq!(times.moves_after(0, moves), Some(ms(400)));
        let uneven = having_seen([200, 900]);
        assert_eq!(uneven.moves_after(3, Moves::default()), Some(ms(1_800)), "it may be long");
    }

    #[test]
    fn short_answers_come_first_where_servers_think_for_different_times() {
        // So many requests were made at once: those that are waited for are the longest.
        let mut times = AnswerTimes::default();
        for millis in (100..2_000).step_by(20) {
            assert!(!times.is_unserved(ms(millis), 9, Moves::default()), "after {millis} ms");
            times.add(ms(millis));
        }
    }

    #[test]
    fn a_long_answer_is_forgotten() {
        let times = having_seen([8_000].into_iter().chain([20; 200]));
        assert_eq!(times.overdue(3), ms(250));
    }

    #[test]
    fn who_leaves_requests_unanswered_is_asked_for_no_more_of_them_until_it_answers() {
        let mut trust = Trust::default();
        for _ in 0..3 {
            trust.on_unanswered(5);
            trust.on_answer();
            assert_eq!(trust.room_beside(9), u32::MAX, "it was lost");
        }
        for in_flight in [5, 4, 6] {
            trust.on_unanswered(in_flight);
        }
        assert_eq!([3, 4, 6].map(|in_flight| trust.room_beside(in_flight)), [1, 0, 0]);
        trust.on_answer();
        assert_eq!(trust.room_beside(4), 1);
    }

    #[test]
    fn what_no_connection_answers_is_not_for_want_of_one() {
        let mut moves = Moves::default();
        assert!(moves.are_worthwhile(), "nobody has tried");
        moves.on_moved();
        assert!(!moves.are_worthwhile(), "it is not answered there, either");
        moves.on_given_up();
        assert!(moves.are_worthwhile(), "nobody knows");
        moves.on_moved();
        moves.on_helped(false);
        moves.on_moved();
        assert!(moves.are_worthwhile());
        moves.on_moved();
        assert!(!moves.are_worthwhile(), "two of three were not helped");
    }
}
