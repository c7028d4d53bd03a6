//! Whether the pause that an origin asks for with a 429 (RFC 6585 section 4) is one of all requests, or of the refused one
//! alone.

use crate::time::Timestamp;

/// So many answers, and so many for each refusal, tell that the others are served all the same.
const TELLING_ANSWERS: u32 = 4;
const ANSWERS_EACH: u32 = 3;

/// For whom a pause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// For the refused request: others are served.
    OfOne,
    /// For all until more is known.
    Unknown,
    /// For all, as the one before it was: the origin was asked for too much again.
    OfAll,
}

/// Looks at what was asked for after a refused request, before its refusal was seen: who counts all requests refuses
/// nearly all of those, too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pauses {
    first: Option<Refused>,
    are_of_one: bool,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    began: Timestamp,
    seen: Timestamp,
    refusals: u32,
    answers: u32,
}

impl Pauses {
    /// A request that `began` then was refused, and is to be made again later.
    pub(crate) fn on_refusal(&mut self, now: Timestamp, began: Timestamp) -> Pause {
        let is_same = self.first.is_some_and(|first| began < first.seen);
        let was_of_all = self.first.is_some() && !is_same;
        match &mut self.first {
            Some(first) if is_same => first.refusals += u32::from(first.was_under_way(began)),
            _ => self.first = Some(Refused { began, seen: now, refusals: 1, answers: 0 }),
        }
        match self.are_of_one {
            true => Pause::OfOne,
            false if was_of_all => Pause::OfAll,
            false => Pause::Unknown,
        }
    }

    /// A request that `began` then was answered. Returns whether that tells that nobody else has to wait.
    pub(crate) fn on_answer(&mut self, began: Timestamp) -> bool {
        let Some(first) = self.first.as_mut().filter(|first| first.was_under_way(began)) else {
            return false;
        };
        first.answers += 1;
        let tells = first.answers >= TELLING_ANSWERS.max(ANSWERS_EACH * first.refusals);
        tells && !std::mem::replace(&mut self.are_of_one, true)
    }

    /// Too many are refused: what was known of pauses no longer holds.
    pub(crate) const fn on_overload(&mut self) {
        self.are_of_one = false;
    }
}

impl Refused {
    /// Whether a request that `began` then was made no sooner, and before this refusal was seen.
    fn was_under_way(&self, began: Timestamp) -> bool {
        (self.began..self.seen).contains(&began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn who_answers_most_that_was_asked_for_meanwhile_minds_one_request() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.on_refusal(at(50), at(10)), Pause::Unknown);
        assert_eq!(pauses.on_refusal(at(51), at(11)), Pause::Unknown);
        let answered = (10..16).map(|began| pauses.on_answer(at(began)));
        assert_eq!(answered.collect::<Vec<_>>(), [false, false, false, false, false, true]);
        assert_eq!(pauses.on_refusal(at(60), at(12)), Pause::OfOne);
        assert_eq!(pauses.on_refusal(at(90), at(70)), Pause::OfOne);
        pauses.on_overload();
        assert_eq!(pauses.on_refusal(at(91), at(71)), Pause::Unknown);
    }

    #[test]
    fn what_was_asked_for_before_or_after_the_pause_tells_nothing() {
        let mut pauses = Pauses::default();
        pauses.on_refusal(at(50), at(10));
        for began in [0, 9, 50, 1_050].into_iter().cycle().take(100) {
            assert!(!pauses.on_answer(at(began)), "{began}");
        }
        assert_eq!(pauses.on_refusal(at(1_060), at(1_051)), Pause::OfAll);
    }

    #[test]
    fn who_counts_all_requests_refuses_as_many_of_the_later_ones() {
        let mut pauses = Pauses::default();
        for began in 10..40 {
            assert_eq!(pauses.on_refusal(at(50), at(began)), Pause::Unknown);
            assert!(!pauses.on_answer(at(began)));
        }
        assert_eq!(pauses.on_refusal(at(60), at(50)), Pause::OfAll);
    }
}
