//! Connections that break while they are served, or are closed instead of an answer: whether that tells of too many.

/// So many cuts for connections that break should be enough.
const ENOUGH_CUTS: u32 = 2;

/// What one more break tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Nothing: that may be anything on the way.
    Nothing,
    /// There were too many.
    TooMany,
    /// They break as often where there are few, so how many there are is not the reason.
    OfFewToo,
}

/// The breaks of an origin's connections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Breaks {
    /// Since it last answered.
    since_answer: u32,
    /// Cuts that were made for them.
    cuts: u32,
    of_few_too: bool,
}

impl Breaks {
    pub(crate) const fn on_answer(&mut self) {
        self.since_answer = 0;
    }

    /// A connection was closed instead of an answer.
    pub(crate) const fn on_closed(&mut self) {
        self.since_answer += 1;
    }

    /// Whether fewer break than half of those that were in use, where so many still are.
    pub(crate) const fn are_few(self, in_use: u32) -> bool {
        self.since_answer < in_use
    }

    /// One broke while `in_use` were in use, it included; its request was made since the last cut, or is not.
    pub(crate) const fn on_break(&mut self, in_use: u32, is_since_cut: bool) -> Tells {
        self.since_answer += 1;
        let is_alone = in_use <= 1;
        let is_overload = !is_alone && !self.are_few(in_use);
        let is_contradiction = is_alone && self.cuts > 0 || is_overload && self.cuts >= ENOUGH_CUTS;
        match () {
            () if self.of_few_too => Tells::Nothing,
            () if is_since_cut && is_contradiction => {
                self.of_few_too = true;
                Tells::OfFewToo
            }
            () if is_overload => Tells::TooMany,
            () => Tells::Nothing,
        }
    }

    /// Fewer are allowed from now on.
    pub(crate) const fn on_cut(&mut self) {
        self.cuts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of breaks of so many together, one after the other.
    fn together(breaks: &mut Breaks, in_use: u32, is_since_cut: bool) -> Vec<Tells> {
        breaks.on_answer();
        (1..=in_use).rev().map(|in_use| breaks.on_break(in_use, is_since_cut)).collect()
    }

    #[test]
    fn half_of_all_tell_of_too_many() {
        let mut breaks = Breaks::default();
        let told = together(&mut breaks, 4, true);
        assert_eq!(told[..2], [Tells::Nothing, Tells::Nothing]);
        assert_eq!(told[2], Tells::TooMany, "the third of four");
        assert_eq!(breaks.on_break(1, true), Tells::Nothing, "nothing was cut for them");
    }

    #[test]
    fn after_two_cuts_half_of_few_and_after_one_a_lone_one_tell_that_numbers_do_not_matter() {
        for cuts in 1..=2 {
            let mut breaks = Breaks::default();
            (0..cuts).for_each(|_| breaks.on_cut());
            assert!(!together(&mut breaks, 4, false).contains(&Tells::OfFewToo), "from before");
            let told = together(&mut breaks, if cuts == 1 { 1 } else { 4 }, true);
            assert_eq!(told.iter().filter(|told| **told == Tells::OfFewToo).count(), 1);
            assert!(together(&mut breaks, 8, true).iter().all(|told| *told == Tells::Nothing));
        }
    }
}
