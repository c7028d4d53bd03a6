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

    /// How long a further one may take where servers think for different times.
    pub const fn at_longest(&self) -> Duration {
        self.longest.saturating_mul(LONGEST)
    }

    /// How long the first answer over a new connection may take where so many others have `passed` it.
    pub fn overdue(&self, passed: u32) -> Duration {
        let least = if passed >= PASSED_OVER { LEAST_PASSED_OVER } else { LEAST_OVERDUE };
        let of_others = self.mean.saturating_mul(OVERDUE).max(self.at_longest());
        of_others.max(least)
    }

    /// The same whatever has passed it: then something is wrong with the connection.
    pub fn long_overdue(&self) -> Duration {
        self.overdue(0)
    }

    /// Whether a connection over which nothing came for so long while others, so many by now, have `passed` it is one more
    /// than the server serves.
    pub fn is_unserved(&self, passed_for: Duration, passed: u32, moves: Moves) -> bool {
        moves.are_worthwhile() && passed >= PASSED_OVER && passed_for >= self.long_overdue()
    }
}

/// What came of asking again over connections that had brought an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    moved: u32,
    helped: u32,
}

impl Moves {
    /// A request was made once more over such a connection.
    pub const fn on_moved(&mut self) {
        self.moved = self.moved.saturating_add(1);
    }

    /// One that was moved is answered.
    pub const fn on_helped(&mut self) {
        self.helped = self.helped.saturating_add(1);
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
        moves.on_helped();
        assert!(fast.is_unserved(ms(1_000), 3, moves));
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
    fn what_no_connection_answers_is_not_for_want_of_one() {
        let mut moves = Moves::default();
        assert!(moves.are_worthwhile(), "nobody has tried");
        moves.on_moved();
        assert!(!moves.are_worthwhile(), "it is not answered there, either");
        moves.on_given_up();
        assert!(moves.are_worthwhile(), "nobody knows");
        moves.on_moved();
        moves.on_helped();
        moves.on_moved();
        assert!(moves.are_worthwhile());
        moves.on_moved();
        assert!(!moves.are_worthwhile(), "two of three were not helped");
    }
}
