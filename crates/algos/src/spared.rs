//! Whether the pause that an origin asks for with a 503 (RFC 9110 section 10.2.3) is one of all requests: not where others
//! are served beside the refused one, as it limits how many there are at once.

use crate::time::Timestamp;

/// Looks at what is answered beside refusals that ask for a pause.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spared {
    last: Option<Refused>,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    seen: Timestamp,
    /// All requests wait for its pause.
    pauses: bool,
    /// Nothing speaks against that so far.
    may_be_number: bool,
    /// Something was answered that was asked for since.
    is_answered: bool,
}

impl Spared {
    /// A request that `began` then was refused and is to be made again after a pause. Others `are_served`, and it
    /// `may_be_cut` how many there are. Returns whether those go on without the pause.
    pub(crate) fn on_refusal(
        &mut self,
        now: Timestamp,
        began: Timestamp,
        are_served: bool,
        may_be_cut: bool,
    ) -> bool {
        if let Some(last) = self.last.filter(|last| began < last.seen) {
            return !last.pauses;
        }
        let may_be_number = may_be_cut || self.last.is_none_or(|last| last.is_answered);
        let pauses = !(are_served && may_be_number);
        self.last = Some(Refused { seen: now, pauses, may_be_number, is_answered: false });
        !pauses
    }

    /// A request that `began` then was answered. Returns whether that ends the pause of all: it was under way together with
    /// the refused one, so their number may be the reason.
    pub(crate) fn on_answer(&mut self, began: Timestamp) -> bool {
        let Some(last) = &mut self.last else { return false };
        if began >= last.seen {
            last.is_answered = true;
            return false;
        }
        last.may_be_number && std::mem::take(&mut last.pauses)
    }

    /// Whether others go on in spite of the last such refusal.
    pub(crate) fn are_others(&self) -> bool {
        self.last.is_some_and(|last| !last.pauses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn who_serves_others_minds_their_number() {
        let mut spared = Spared::default();
        assert!(spared.on_refusal(at(50), at(10), true, true));
        assert!(spared.on_refusal(at(51), at(10), true, false), "it was under way then");
        assert!(spared.on_refusal(at(90), at(60), true, true), "fewer may be what it bears");
        assert!(!spared.on_refusal(at(190), at(160), true, false), "fewer were not");
        assert!(!spared.on_answer(at(100)), "it was asked for before that was known");
    }

    #[test]
    fn an_answer_beside_a_refusal_ends_its_pause() {
        let mut spared = Spared::default();
        assert!(!spared.on_refusal(at(50), at(10), false, true));
        assert!(!spared.are_others());
        assert!(spared.on_answer(at(10)));
        assert!(!spared.on_answer(at(10)), "once");
        assert!(spared.are_others());
    }

    #[test]
    fn who_answers_again_and_refuses_one_more_is_asked_on() {
        let mut spared = Spared::default();
        spared.on_refusal(at(50), at(10), true, true);
        spared.on_answer(at(60));
        assert!(spared.on_refusal(at(90), at(80), true, false));
        assert!(!spared.on_refusal(at(120), at(100), true, false));
    }

    #[test]
    fn who_serves_nobody_is_waited_for() {
        let mut spared = Spared::default();
        for second in 0..5 {
            assert!(!spared.on_refusal(at(1000 * second + 50), at(1000 * second), false, false));
        }
    }
}
