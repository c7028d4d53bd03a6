//! Refusals (429, 503): whether they tell that an origin was asked for too much at once, or whether some are refused
//! whatever is done.

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
