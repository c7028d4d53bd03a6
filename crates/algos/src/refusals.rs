//! Refusals (429, 503): whether they tell that an origin was asked for too much at once, or whether some are refused
//! whatever is done.

use std::time::Duration;

use crate::time::Timestamp;

/// Refusals of such a part of the late requests tell of too many, beyond what is refused by chance.
const TELLING_PART: f64 = 0.25;

/// So many requests count for that.
const LATE_REQUESTS: u32 = 16;

/// Where that is no more than a cut leaves under way, so large a part tells of too many all the same.
const HALF: f64 = 0.5;

/// More refusals in a row than so many for each request that is under way are no chance.
const IN_VAIN: u32 = 2;

/// What is as unlikely as this does not happen by chance.
const NEVER: f64 = 0.001;

/// What is refused whatever is done has to become so many times as much before it tells anything again, or what is answered
/// has to become so many times less.
const MORE_THAN_CHANCE: f64 = 2.0;

/// Who refuses more than this part does not do so by chance.
const MOST_BY_CHANCE: f64 = 0.75;

/// So many answers tell of a pace.
const TELLING_ANSWERS: u32 = 4;

/// Some may be refused for other reasons, whatever the main one is.
const LEAST_PART: f64 = 0.02;

/// What was refused before a cut may be so much more than was seen of it.
const MARGIN: f64 = 0.1;

/// Chance has to be so many times as likely as too large a number, and that so many times as likely as chance: e to the
/// power of these.
const CHANCE: f64 = 3.0;
const NUMBER: f64 = 6.0;

/// So often fewer requests were refused than were served at once before and again since the last time.
const CONTRADICTIONS: u32 = 2;

/// A request that was refused (429, 5xx), or whose connection was closed instead of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// When it was made.
    pub began: Timestamp,
    /// Requests that were under way, it included.
    pub in_use: u32,
    /// How many of them are being served.
    pub served: u32,
    /// The pause that the origin asked for (RFC 9110 section 10.2.3), if it did.
    pub asked_for: Option<Duration>,
    /// It was too soon after others (429), whatever it was for: so a pause is one of all requests.
    pub is_of_rate: bool,
    /// Its connection was closed instead of an answer.
    pub is_closed: bool,
    /// Its file may be the reason, and not how soon it came after others.
    pub may_be_file: bool,
}

impl Refusal {
    /// One that says no more than when it `began`, and how many requests were under way.
    pub(crate) const fn new(began: Timestamp, in_use: u32) -> Self {
        Self {
            began,
            in_use,
            served: 0,
            asked_for: None,
            is_of_rate: false,
            is_closed: false,
            may_be_file: false,
        }
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
    /// Requests since the last cut, or since they began to be counted anew, and before that.
    since: Requests,
    before: Requests,
    /// When the first of those since then was answered or refused.
    since_when: Option<Timestamp>,
    /// Those that were under way then.
    older: u32,
    /// The last cut, as long as it is not known whether it helps.
    cut: Option<Cut>,
    /// Requests in a row that were refused, and answered.
    in_a_row: u32,
    answered_in_a_row: u32,
    /// Most requests that were served at once since there was a contradiction, and how many of those there were.
    served: u32,
    contradictions: u32,
    /// Such a part is refused whatever is done.
    chance: f64,
}

/// How many requests were under way, and how many may be from then on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    all: u32,
    refused: u32,
}

impl Requests {
    fn count(&mut self, is_refused: bool) {
        self.all += 1;
        self.refused += u32::from(is_refused);
    }

    const fn and(self, others: Self) -> Self {
        Self { all: self.all + others.all, refused: self.refused + others.refused }
    }

    fn part(self) -> f64 {
        f64::from(self.refused) / f64::from(self.all.max(1))
    }

    /// How much likelier these are by chance than for their number, after a cut and those `before` it: the logarithm of
    /// that.
    fn evidence_of_chance(self, before: Self, cut: Cut) -> f64 {
        let by_chance = before.part().clamp(LEAST_PART, 1.0 - LEAST_PART);
        let fewer = f64::from(cut.from.max(1)) / f64::from(cut.to.max(1));
        let for_number = (1.0 - (1.0 - by_chance - MARGIN) * fewer).clamp(LEAST_PART, by_chance);
        let answered = f64::from(self.all - self.refused);
        f64::from(self.refused) * (by_chance / for_number).ln()
            + answered * ((1.0 - by_chance) / (1.0 - for_number)).ln()
    }
}

impl Refusals {
    /// A request was answered.
    pub(crate) fn on_answer(&mut self, now: Timestamp) {
        self.late -= self.late / f64::from(LATE_REQUESTS);
        self.in_a_row = 0;
        self.answered_in_a_row += 1;
        if self.answered_in_a_row >= LATE_REQUESTS {
            self.contradictions = 0;
        }
        self.count(now, false);
    }

    /// So many requests are being served at once.
    pub(crate) const fn on_served(&mut self, at_once: u32) {
        if at_once > self.served {
            self.served = at_once;
        }
    }

    /// A request was refused while `in_use` were under way, it included; `has_answered` says whether any was answered since
    /// there were fewer.
    pub(crate) fn on_refusal(&mut self, now: Timestamp, in_use: u32, has_answered: bool) -> Told {
        self.late += (1.0 - self.late) / f64::from(LATE_REQUESTS);
        self.in_a_row += 1;
        self.answered_in_a_row = 0;
        self.count(now, true);
        if in_use > 1 && in_use <= self.served {
            self.contradictions += 1;
            self.served = 0;
        }
        // None is answered meanwhile, so these do not contradict each other: who bans or is away refuses in a row.
        let is_long = self.in_a_row > in_use.max(1).saturating_mul(IN_VAIN);
        if is_long {
            self.contradictions = 0;
        }
        let is_chance = self.evidence().is_some_and(|evidence| evidence >= CHANCE)
            || self.contradictions >= CONTRADICTIONS;
        if is_chance && !is_long && self.part() <= MOST_BY_CHANCE {
            return Told::Chance;
        }
        let telling_part = (self.chance + TELLING_PART)
            .max(self.chance * MORE_THAN_CHANCE)
            .min(1.0 - (1.0 - self.chance) / MORE_THAN_CHANCE);
        let is_telling = self.late >= telling_part
            && (self.cut.is_none() || self.since.all >= LATE_REQUESTS || self.late >= HALF);
        let is_vain = is_long && self.in_a_row > self.longest_by_chance();
        if is_telling || is_vain || !has_answered { Told::TooMany } else { Told::Nothing }
    }

    /// No more than so many are refused in a row by chance.
    fn longest_by_chance(&self) -> u32 {
        let chance = self.chance.min(1.0 - LEAST_PART);
        if chance > 0.0 { (NEVER.ln() / chance.ln()) as u32 } else { 0 }
    }

    /// Requests that were refused just before, and so are no more under way.
    pub(crate) const fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// Whether some are known to be refused whatever is done.
    pub(crate) fn are_chance(&self) -> bool {
        self.chance > 0.0
    }

    /// There are fewer requests from now on, while so many wait for an answer: whether fewer are refused is another
    /// question.
    pub(crate) const fn on_cut(&mut self, waiting: u32, cut: Cut) {
        self.begin_anew(waiting);
        self.cut = Some(cut);
    }

    /// It takes time and not fewer requests: those that follow tell what comes next.
    pub(crate) const fn on_vain(&mut self) {
        self.late = 0.0;
    }

    /// The time from one answer to the next since there are fewer requests, where so many are refused that it may be for
    /// their pace.
    pub(crate) fn possible_interval(&self, now: Timestamp) -> Option<Duration> {
        let answered = self.since.all - self.since.refused;
        let time = now.saturating_since(self.since_when?);
        (self.part() >= HALF && answered >= TELLING_ANSWERS).then(|| time / answered)
    }

    /// It was the pace, whatever was taken for chance before.
    pub(crate) const fn on_pace(&mut self, waiting: u32) {
        self.on_reason(waiting, 0.0);
    }

    /// Neither fewer requests nor a slower pace helped.
    pub(crate) fn on_chance(&mut self, waiting: u32) {
        self.on_reason(waiting, self.part().max(LEAST_PART));
    }

    /// Whatever the last cut was to tell is known: such a part is refused by chance.
    const fn on_reason(&mut self, waiting: u32, chance: f64) {
        self.chance = chance;
        self.begin_anew(waiting);
        (self.cut, self.contradictions) = (None, 0);
    }

    fn part(&self) -> f64 {
        self.before.and(self.since).part()
    }

    const fn begin_anew(&mut self, waiting: u32) {
        (self.before, self.since) = (self.since, Requests { all: 0, refused: 0 });
        (self.late, self.older, self.since_when) = (0.0, waiting, None);
    }

    fn count(&mut self, now: Timestamp, is_refused: bool) {
        if self.older > 0 {
            self.older -= 1;
            self.before.count(is_refused);
            return;
        }
        self.since.count(is_refused);
        self.since_when.get_or_insert(now);
        if self.evidence().is_some_and(|evidence| evidence <= -NUMBER) {
            self.cut = None;
        }
    }

    /// Those that are under way at once are answered and refused in bunches: one tells nothing.
    fn evidence(&self) -> Option<f64> {
        let cut = self.cut.filter(|cut| self.since.all >= cut.to.max(LATE_REQUESTS))?;
        Some(self.since.evidence_of_chance(self.before, cut))
    }
}
