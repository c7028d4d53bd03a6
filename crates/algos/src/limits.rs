//! Budgets per origin, and overload back-off.

mod refused;

use std::time::Duration;

use crate::absence::{Absence, Back};
use crate::allowance::{Allowances, Before, Bounds};
use crate::breaks::{Breaks, Tells};
use crate::pauses::Pauses;
pub use crate::refusals::Refusal;
use crate::refusals::Refusals;
use crate::regrowth::Regrowth;
use crate::request_rate::RequestRate;
use crate::spared::Spared;
use crate::time::Timestamp;
use crate::waits::Waits;

/// How many connections an origin bears. Overload halves it, quiet lets it grow slowly: up to the
/// number that was too many, and beyond that hardly ever.
#[derive(Debug, Clone)]
pub struct OriginBudget {
    allowances: Allowances,
    /// When overload was seen last, and whether there was an answer since.
    overloaded_at: Option<Timestamp>,
    /// When the request was made that told of it.
    overloaded_from: Timestamp,
    /// It has left a connection without an answer that was one more than these.
    unserved_beyond: Option<u32>,
    has_answered: bool,
    breaks: Breaks,
    refusals: Refusals,
    rate: RequestRate,
    pauses: Pauses,
    spared: Spared,
    /// The bounds before the first cut for refusals.
    before_refusals: Option<Before>,
    /// The same of connections before a cut for a crowd, and before the first one for connections that broke.
    before_crowd: Option<Bounds>,
    before_breaks: Option<Bounds>,
    waits: Waits,
    regrowth: Regrowth,
    absence: Absence,
}

/// Requests that were under way together fail together: what began before overload was seen and fails
/// within this time belongs to the same event.
const SAME_EVENT: Duration = Duration::from_secs(1);

impl OriginBudget {
    /// A budget of `ceiling` connections that has seen no overload.
    pub fn new(ceiling: u32) -> Self {
        Self {
            allowances: Allowances::new(ceiling),
            overloaded_at: None,
            overloaded_from: Timestamp::START,
            unserved_beyond: None,
            has_answered: true,
            breaks: Breaks::default(),
            refusals: Refusals::default(),
            rate: RequestRate::default(),
            pauses: Pauses::default(),
            spared: Spared::default(),
            before_refusals: None,
            before_crowd: None,
            before_breaks: None,
            waits: Waits::default(),
            regrowth: Regrowth::default(),
            absence: Absence::default(),
        }
    }

    /// The same for an origin that bore `borne` connections some time ago: it begins with those and grows
    /// as after a cut, which it may have forgotten by now.
    #[must_use]
    pub fn starting_with(mut self, borne: u32) -> Self {
        self.allowances.connections.start_with(borne);
        self
    }

    /// How many connections it bears, where that is known to be less than the ceiling.
    pub fn borne(&self) -> Option<u32> {
        self.allowances.is_cut().then_some(self.capacity())
    }

    /// Another ceiling from the user.
    pub fn set_ceiling(&mut self, ceiling: u32) {
        self.allowances.connections.set_ceiling(ceiling);
    }

    /// The origin refused, or timed out, a request that `began` then, while `in_use` connections were in
    /// use. `retry_after` is the server's word, if it gave one. Returns whether this is news, and not
    /// what is known from another request that was under way at the same time.
    pub fn on_overload(
        &mut self,
        now: Timestamp,
        began: Timestamp,
        in_use: u32,
        retry_after: Option<Duration>,
    ) -> bool {
        // That is told of connections.
        let (asked_for, is_closed) = (retry_after, true);
        self.cut_for_overload(now, Refusal { asked_for, is_closed, ..Refusal::new(began, in_use) })
    }

    /// As many as are being served are allowed from then on.
    fn cut_for_overload(&mut self, now: Timestamp, refusal: Refusal) -> bool {
        let Refusal { began, in_use, served, asked_for, is_closed, .. } = refusal;
        if let Some(pause) = asked_for
            && !self.spares_others(now, refusal)
        {
            self.leave_alone(now + pause);
        }
        let is_known = self
            .overloaded_at
            .is_some_and(|seen| began < seen && now.saturating_since(seen) < SAME_EVENT);
        if is_known {
            return false;
        }
        (self.overloaded_at, self.overloaded_from) = (Some(now), began);
        // What was refused alone, or beside few, was not one too many, nor is one where none is answered.
        let is_serving = std::mem::take(&mut self.has_answered) || served > 0;
        let is_away = served > 0 && self.absence.is_away();
        let allowance = self.allowances.told_of(is_closed);
        if is_serving && in_use > 1 && allowance.allowed() > 1 && !is_away {
            allowance.halve(now, in_use, served);
            self.before_crowd = None;
        } else {
            self.waits.on_vain(now);
        }
        true
    }

    /// Whether a pause that was asked for is none of all requests.
    fn spares_others(&mut self, now: Timestamp, refusal: Refusal) -> bool {
        let Refusal { began, served, is_closed, is_of_rate, .. } = refusal;
        if is_closed || is_of_rate {
            return false;
        }
        let may_be_cut = self.allowances.told_of(is_closed).allowed() > served.max(1);
        self.spared.on_refusal(now, began, served > 0, may_be_cut)
    }

    /// Whether requests go on although one was refused with a pause: others were served beside it.
    pub fn spares(&self) -> bool {
        self.spared.are_others()
    }

    /// Requests in a row that were refused though there were fewer already, or no others: it takes time
    /// and not fewer connections.
    pub const fn vain_requests(&self) -> u32 {
        self.waits.vain_requests()
    }

    /// For how long there were such requests and no others.
    pub fn vain_for(&self, now: Timestamp) -> Duration {
        self.waits.vain_for(now)
    }

    /// `fewer` connections have brought more than those that are in use. Returns whether the budget
    /// was cut.
    pub fn on_crowd(&mut self, now: Timestamp, fewer: u32) -> bool {
        let before = self.allowances.connections.bounds();
        let is_cut = self.allowances.connections.cut_to(now, fewer);
        if is_cut {
            self.before_crowd.get_or_insert(before);
        }
        is_cut
    }

    /// What was cut for a crowd is given back: it was the path that had changed. Returns whether anything was.
    pub fn on_no_crowd(&mut self) -> bool {
        self.allowances.connections.restore(self.before_crowd.take())
    }

    /// A connection was reset, while `in_use` were in use, it included. That may be anything on the way, and
    /// only where half of them break and none is answered meanwhile it is overload, of which no number is known. Otherwise as
    /// [`on_overload`](Self::on_overload). Where half of them break after two such cuts, or one that is alone, the cuts are
    /// undone, and there are no more.
    pub fn on_break(&mut self, now: Timestamp, began: Timestamp, in_use: u32) -> bool {
        self.regrowth.on_loss();
        match self.breaks.on_break(in_use, self.allowances.connections.is_of_now(began)) {
            Tells::Nothing => return false,
            Tells::OfFewToo => {
                self.allowances.connections.restore(self.before_breaks.take());
                return false;
            }
            Tells::TooMany => {}
        }
        let before = self.allowances.connections.bounds();
        let is_news = self.on_overload(now, began, in_use, None);
        self.allowances.connections.set_too_many(before.too_many);
        if self.capacity() < before.allowed {
            self.before_breaks.get_or_insert(before);
            self.breaks.on_cut();
        }
        is_news
    }

    /// Whether who asks for one too many loses that one alone, as far as is known: others are served all the same.
    pub const fn serves_others(&self) -> bool {
        self.regrowth.serves_others()
    }

    /// Whether it is known to refuse some requests whatever is done.
    pub fn refuses_by_chance(&self) -> bool {
        self.refusals.are_chance()
    }

    fn undo_cuts(&mut self) {
        self.allowances.restore(self.before_refusals.take());
    }

    /// It could not be reached, while `in_use` connections were, that one included.
    pub const fn on_unreachable(&mut self, in_use: u32) {
        self.absence.on_refusal(in_use, false);
    }

    /// A request is made: where it limits how many it answers in a time the next one has to wait.
    pub fn on_request(&mut self, now: Timestamp) {
        if let Some(interval) = self.rate.interval() {
            self.leave_alone(now + interval);
        }
    }

    /// So many connections are being served: no fewer are allowed, be it that they waited for their answers at the last cut.
    /// Returns whether that is news.
    pub fn on_borne(&mut self, connections: u32) -> bool {
        self.allowances.allow(connections)
    }

    /// A request that `began` then was answered, whatever becomes of its body; it is one of so many that are being
    /// `served`. Returns whether files need not wait any longer that were asked to.
    pub fn on_answer(&mut self, began: Timestamp, served: u32) -> bool {
        let allowance = self.allowances.told_of(false);
        let too_many = allowance.bounds().too_many;
        if allowance.is_of_now(began) && too_many.is_none_or(|too_many| served >= too_many) {
            self.regrowth.on_more();
        }
        if self.overloaded_at.is_some_and(|at| began < at) {
            self.regrowth.on_other();
        }
        self.rate.on_answer(began);
        if self.pauses.on_answer(began) {
            self.waits.end_pause();
        }
        self.refusals.on_served(served);
        self.absence.on_served(served);
        let is_spared = self.spared.on_answer(began);
        if is_spared {
            self.waits.end_pause();
        }
        is_spared
    }

    /// Whether it limits how many requests it answers in a time.
    pub fn has_pace(&self) -> bool {
        self.rate.interval().is_some()
    }

    /// What was refused tells nothing of the origin: all that was cut is given back, and nothing is waited for.
    pub fn forgive(&mut self) {
        self.allowances.forgive();
        (self.before_refusals, self.before_crowd, self.before_breaks) = (None, None, None);
        self.waits.end_vain();
        self.waits.end_pause();
        self.rate = RequestRate::default();
    }

    /// A file turns out to be refused for itself: what was cut is given back, and nothing waited for on its account.
    /// How many requests are answered in a time is another matter.
    pub fn forgive_file(&mut self) {
        if !self.has_pace() {
            self.undo_cuts();
            self.waits.end_vain();
            self.waits.end_pause();
        }
    }

    /// The origin serves so many connections at a time, and has left a further one without an answer. What waited
    /// together with that fails together; so many bodies are `under_way`. Returns whether the budget was cut. Unless it
    /// `has_answered` any, and has done so before, the number is a guess, and soon there may be more. Who refuses some by chance closes their connections, too.
    pub fn on_unserved(
        &mut self,
        now: Timestamp,
        served: u32,
        under_way: u32,
        has_answered: bool,
    ) -> bool {
        if self.refuses_by_chance() {
            return false;
        }
        let is_cut = self.allowances.connections.cut_to(now, served);
        if is_cut {
            self.regrowth.on_closed(under_way);
            self.before_crowd = None;
            self.overloaded_at = Some(now);
            let before = self.unserved_beyond.replace(served);
            let is_known = has_answered && before.is_some_and(|before| served <= before);
            if !is_known {
                self.allowances.connections.set_too_many(None);
            }
        }
        is_cut
    }

    /// No connection before `until`: the server asked for that, or can't be reached.
    pub fn leave_alone(&mut self, until: Timestamp) {
        self.waits.pause(until);
    }

    /// Connections that may be in use at `now`: none while the server asked to wait, and half as many
    /// after each vain request, until it answers again.
    pub fn allowed(&self, now: Timestamp) -> u32 {
        self.waits.allowed(now, self.capacity())
    }

    /// As [`allowed`](Self::allowed) beside so many that are being `served`: those go on while an origin refuses all
    /// others, and one more shows whether it is back.
    pub fn allowed_beside(&self, now: Timestamp, served: u32) -> u32 {
        self.beside(now, self.capacity(), served)
    }

    /// Requests that may be under way at `now` beside so many that are being `served`, over connections that bear up to `each`
    /// of them, and at `most` so many.
    pub fn requests_beside(&self, now: Timestamp, served: u32, each: u32, most: u32) -> u32 {
        let capacity = self.allowances.requests_over(each).min(most);
        self.beside(now, capacity, served)
    }

    fn beside(&self, now: Timestamp, capacity: u32, served: u32) -> u32 {
        let allowed = self.waits.allowed(now, capacity);
        if allowed > 0 && self.vain_requests() > 0 && self.absence.is_away() {
            allowed.max(capacity.min(served.saturating_add(1)))
        } else {
            allowed
        }
    }

    /// Whether requests share connections (HTTP/2), as far as is known.
    pub const fn shares_connections(&self) -> bool {
        self.allowances.are_shared
    }

    /// Requests share connections from now on, or do not.
    pub const fn share_connections(&mut self, are_shared: bool) {
        self.allowances.are_shared = are_shared;
    }

    /// The budget without regard to a server's request to wait: what plans are made with.
    pub fn capacity(&self) -> u32 {
        self.allowances.connections()
    }

    /// A request that `began` then was answered without complaint. As [`on_served`](Self::on_served), and returns
    /// whether it did. What was under way at the last cut says nothing of what is borne since.
    pub fn on_success(&mut self, now: Timestamp, began: Timestamp) -> bool {
        self.breaks.on_answer();
        self.refusals.on_answer(now);
        // Of those that were made together it refuses some: that was not in vain.
        let is_together = self.vain_requests() > 0 && began >= self.overloaded_from;
        if is_together || self.overloaded_at.is_none_or(|at| began >= at) {
            self.has_answered = true;
            self.waits.on_answer();
        }
        let is_back = self.absence.on_answer(now).is_some_and(|back| self.on_back(now, back));
        self.on_served(now) || is_back
    }

    /// It was away for a while, whatever it was asked for.
    fn on_back(&mut self, now: Timestamp, back: Back) -> bool {
        let is_news = self.on_borne(back.borne);
        if back.is_unknown {
            self.allowances.forget_too_many();
            self.regrowth.on_unknown();
        }
        if is_news {
            self.allowances.on_more(now);
        }
        is_news
    }

    /// What it serves goes on. Grows a cut budget when it is time, and returns whether it did.
    pub fn on_served(&mut self, now: Timestamp) -> bool {
        self.allowances.grow(now, &mut self.regrowth)
    }

    /// When [`allowed`](Self::allowed) rises from zero again.
    pub fn next_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        self.waits.next_timeout(now)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::retries::Jitter;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_pause_is_of_all_requests_where_they_come_too_soon_or_many_are_refused() {
        let pause = Some(Duration::from_secs(1));
        let answers = |is_of_rate: bool| {
            let mut budget = OriginBudget::new(32);
            (0..16).for_each(|_| {
                budget.on_success(at(50), at(0));
            });
            let refusal = Refusal { asked_for: pause, is_of_rate, ..Refusal::new(at(60), 16) };
            budget.on_refusal(at(100), refusal);
            budget.allowed(at(101))
        };
        assert_eq!(answers(true), 0);
        assert_eq!(answers(false), 32);
    }

    #[test]
    fn overload_halves_once_an_event_and_growth_is_slow() {
        let mut budget = OriginBudget::new(64);
        assert!(budget.on_overload(at(1000), at(900), 64, None));
        assert!(!budget.on_overload(at(1100), at(900), 64, None), "the same event");
        assert_eq!(budget.allowed(at(1100)), 32);
        budget.on_success(at(2400), at(2400));
        assert!(budget.on_overload(at(2500), at(900), 20, None));
        budget.on_success(at(2500), at(2500));
        assert_eq!(budget.allowed(at(2500)), 10, "half of what was in use");
        budget.on_success(at(3000), at(3000));
        assert_eq!(budget.allowed(at(3000)), 10);
        budget.on_success(at(4600), at(4600));
        assert_eq!(budget.allowed(at(4600)), 11);
    }

    #[test]
    fn what_an_earlier_run_has_learnt_is_a_start_and_no_ceiling() {
        let mut budget = OriginBudget::new(64).starting_with(6);
        assert_eq!((budget.capacity(), budget.borne()), (6, Some(6)));
        for second in 0..=20 {
            budget.on_success(at(second * 1000), at(second * 1000));
        }
        assert_eq!(budget.capacity(), 16, "one more each two seconds");
        budget.set_ceiling(100);
        assert_eq!(budget.capacity(), 16, "a ceiling of the user's tells nothing of the server");
        assert_eq!(OriginBudget::new(4).starting_with(9).borne(), None);
    }

    #[test]
    fn what_was_too_many_is_not_tried_again_soon() {
        let mut budget = OriginBudget::new(64);
        budget.on_overload(at(0), at(0), 12, None);
        assert_eq!(
            (budget.capacity(), budget.allowances.connections.bounds().too_many),
            (6, Some(12))
        );
        for second in 1..60 {
            budget.on_success(at(second * 1000), at(second * 1000));
        }
        assert_eq!(budget.capacity(), 11, "one less than what was too many");
        budget.on_success(at(110_000), at(110_000));
        assert_eq!(
            (budget.capacity(), budget.allowances.connections.bounds().too_many),
            (12, Some(13)),
            "a minute later"
        );
    }

    #[test]
    fn a_crowd_is_cut_to_what_brought_more() {
        let mut budget = OriginBudget::new(64);
        assert!(budget.on_crowd(at(0), 4));
        assert!(!budget.on_crowd(at(10), 6), "there are fewer already");
        assert!(!budget.on_success(at(3000), at(3000)) && budget.capacity() == 4);
        assert!(budget.on_success(at(60_000), at(60_000)) && budget.capacity() == 5);
        assert!(budget.on_no_crowd() && !budget.on_no_crowd());
        assert_eq!(
            (budget.capacity(), budget.allowances.connections.bounds().too_many),
            (64, None)
        );
        assert!(
            budget.on_crowd(at(70_000), 16) && budget.on_overload(at(71_000), at(70_500), 16, None)
        );
        assert!(!budget.on_no_crowd() && budget.capacity() == 8, "what a server said stays");
    }

    #[test]
    fn what_is_reset_counts_where_half_of_all_break_together() {
        let mut budget = OriginBudget::new(16);
        for second in 1..100 {
            assert!(!budget.on_break(at(second * 300), at(0), 2), "now and then one of two");
            budget.on_success(at(second * 300), at(second * 300));
        }
        assert_eq!(budget.capacity(), 16);
        let together: Vec<u32> =
            (1..=16).rev().filter(|in_use| budget.on_break(at(90_000), at(0), *in_use)).collect();
        assert_eq!(together, [8], "nine of sixteen, and once");
        assert_eq!((budget.capacity(), budget.allowances.connections.bounds().too_many), (4, None));
        assert!(budget.on_success(at(92_000), at(92_000)), "soon there may be more");
    }

    #[test]
    fn where_few_break_as_many_did_their_number_is_not_the_reason() {
        let mut budget = OriginBudget::new(16);
        let mut break_all = |second: u64, in_use: u32| {
            let now = at(second * 1_000);
            budget.on_success(now, now);
            (1..=in_use).rev().for_each(|in_use| {
                budget.on_break(now, at(second * 1_000 - 500), in_use);
            });
            budget.capacity()
        };
        assert_eq!([break_all(10, 16), break_all(11, 4)], [4, 1]);
        assert_eq!(break_all(12, 1), 16, "one alone breaks, too");
        assert_eq!(break_all(13, 16), 16);
    }

    #[test]
    fn what_is_refused_now_and_then_is_no_overload() {
        let mut budget = OriginBudget::new(16);
        for round in 0..100 {
            // Two of twenty, one right after the other.
            assert!(!budget.on_refusal(at(round * 100), Refusal::new(at(0), 3)));
            assert!(!budget.on_refusal(at(round * 100), Refusal::new(at(0), 2)));
            for _ in 0..18 {
                budget.on_success(at(round * 100), at(round * 100));
            }
        }
        assert_eq!(budget.capacity(), 16);
        let together: Vec<u32> = (1..=16)
            .rev()
            .filter(|in_use| budget.on_refusal(at(90_000), Refusal::new(at(0), *in_use)))
            .collect();
        assert_eq!(together, [13], "a quarter, and once");
        assert_eq!(
            (budget.capacity(), budget.allowances.connections.bounds().too_many),
            (8, Some(16))
        );
        let mut alone = OriginBudget::new(16);
        assert_eq!(
            [0; 3].map(|now| alone.on_refusal(at(now), Refusal::new(at(now), 1))),
            [false, false, true]
        );
    }

    /// What is allowed after 3000 requests, as many at once as are allowed, of which `refuses` says by the number of
    /// others that were not whether one is refused.
    fn allowed_after(mut refuses: impl FnMut(usize) -> bool) -> u32 {
        let mut budget = OriginBudget::new(64);
        let mut under_way: VecDeque<(Timestamp, bool)> = VecDeque::new();
        for millis in 1000..4000 {
            let now = at(millis);
            while (under_way.len() as u32) < budget.allowed(now) {
                let others = under_way.iter().filter(|(_, is_refused)| !is_refused).count();
                under_way.push_back((now, refuses(others)));
            }
            let in_use = under_way.len() as u32;
            let Some((began, is_refused)) = under_way.pop_front() else { continue };
            if is_refused {
                budget.on_refusal(now, Refusal::new(began, in_use));
            } else {
                budget.on_success(now, began);
            }
        }
        budget.capacity()
    }

    #[test]
    fn what_is_refused_by_chance_costs_no_connections() {
        for part in [0.1, 0.2, 0.3, 0.4] {
            for seed in 0..40 {
                let mut jitter = Jitter::new(seed);
                let allowed = allowed_after(|_| jitter.fraction() < part);
                assert!(allowed >= 32, "{part}: {allowed}");
            }
        }
        for bears in [2, 10, 24, 40, 60] {
            let allowed = allowed_after(|others| others >= bears) as usize;
            assert!(allowed * 3 <= bears * 4 + 6, "{allowed} of {bears}");
            assert!(allowed * 2 >= bears, "{allowed} of {bears}");
        }
    }

    /// Makes requests of which three in five are refused, one in eight milliseconds or as soon as it may, until the origin has
    /// a pace, or none any more, as `until` says. Returns when that was.
    fn refuse_three_in_five(budget: &mut OriginBudget, mut now: u64, until: bool) -> u64 {
        for request in 0..1_000 {
            if budget.has_pace() == until {
                return now;
            }
            let began = now;
            budget.on_request(at(began));
            now += 8;
            if request % 5 < 2 {
                budget.on_answer(at(began), 1);
                budget.on_success(at(now), at(began));
            } else {
                budget.on_refusal(at(now), Refusal::new(at(began), budget.capacity()));
            }
            while budget.allowed(at(now)) == 0 {
                now += 1;
            }
        }
        panic!("{now} ms");
    }

    #[test]
    fn what_may_be_a_pace_is_tried() {
        let mut budget = OriginBudget::new(64);
        let now = refuse_three_in_five(&mut budget, 0, true);
        assert!(now < 2_000 && !budget.refuses_by_chance(), "{now}");
        budget.on_request(at(now));
        assert!(
            budget.allowed(at(now + 19)) == 0 && budget.allowed(at(now + 30)) > 32,
            "one in 20 ms"
        );
        // As many are refused however slowly they come.
        let later = refuse_three_in_five(&mut budget, now, false);
        assert!(later < now + 2_000 && budget.refuses_by_chance(), "{now} to {later}");
    }

    #[test]
    fn no_pace_is_tried_where_a_refusal_costs_a_pause() {
        let mut budget = OriginBudget::new(64);
        for request in 0..20 {
            budget.on_success(at(request * 20), at(request * 20));
            budget.refusals.on_refusal(at(request * 20), 8, true);
        }
        let mut other = budget.clone();
        assert!(!budget.try_pace(at(400), 0, Some(Duration::from_secs(1))) && !budget.has_pace());
        assert!(budget.refuses_by_chance());
        assert!(other.try_pace(at(400), 0, None) && other.has_pace());
    }

    #[test]
    fn who_refuses_all_but_what_it_serves_is_away() {
        let mut budget = OriginBudget::new(64);
        let answer = |budget: &mut OriginBudget, millis, served| {
            budget.on_answer(at(millis), served);
            budget.on_success(at(millis), at(millis));
        };
        (1..=16).for_each(|served| answer(&mut budget, 100, served));
        (0..12).for_each(|_| {
            budget.on_refusal(at(200), Refusal { served: 1, ..Refusal::new(at(150), 16) });
        });
        let cut = budget.capacity();
        assert!(cut < 16);
        for millis in [1_500, 3_000] {
            budget.on_refusal(at(millis), Refusal { served: 1, ..Refusal::new(at(millis), 2) });
        }
        assert_eq!((budget.capacity(), budget.vain_requests()), (cut, 2), "two are not too many");
        assert_eq!(budget.allowed_beside(at(3_000), 7), cut.min(8), "what it serves, and a try");
        answer(&mut budget, 4_000, 2);
        assert_eq!((budget.capacity(), budget.vain_requests()), (16, 0));
    }

    #[test]
    fn requests_that_share_connections_are_cut_for_refusals_and_connections_for_closed_ones() {
        let mut budget = OriginBudget::new(8);
        budget.share_connections(true);
        let requests = |budget: &OriginBudget, now| budget.requests_beside(at(now), 0, 100, 90);
        assert_eq!((budget.capacity(), requests(&budget, 0)), (8, 90));
        let refuse = |budget: &mut OriginBudget, millis, is_closed| {
            let refusal = Refusal { is_closed, served: 2, ..Refusal::new(at(millis - 50), 80) };
            (0..16).for_each(|_| {
                budget.on_refusal(at(millis), refusal);
            });
        };
        refuse(&mut budget, 100, false);
        assert_eq!((budget.capacity(), requests(&budget, 100)), (8, 42));
        for millis in [2_000, 4_000, 6_000, 8_000, 10_000] {
            budget.on_success(at(millis), at(millis));
            refuse(&mut budget, millis, false);
        }
        assert_eq!((budget.capacity(), requests(&budget, 10_000)), (2, 2), "as are served");
        budget.forgive();
        refuse(&mut budget, 12_000, true);
        assert_eq!((budget.capacity(), requests(&budget, 12_000)), (4, 90));
    }

    #[test]
    fn who_was_away_from_the_start_is_soon_asked_for_more() {
        let mut budget = OriginBudget::new(16);
        budget.on_overload(at(0), at(0), 2, None);
        budget.on_refusal(at(1_200), Refusal::new(at(1_100), 1));
        assert_eq!(budget.capacity(), 1);
        budget.on_answer(at(2_000), 1);
        budget.on_success(at(2_000), at(2_000));
        for now in (2_000..4_000).step_by(250) {
            budget.on_served(at(now));
        }
        assert_eq!(budget.capacity(), 16);
    }

    #[test]
    fn bans_are_no_chance() {
        let mut budget = OriginBudget::new(64);
        for ban in 0..20 {
            let now = ban * 10_000;
            (1..=4).for_each(|served| {
                budget.on_answer(at(now), served);
                budget.on_success(at(now), at(now));
            });
            for refusal in 0..12 {
                let now = now + 100 + refusal * 500;
                budget.on_refusal(at(now), Refusal { served: 1, ..Refusal::new(at(now), 2) });
            }
            assert!(!budget.refuses_by_chance(), "{ban}");
        }
    }

    #[test]
    fn as_many_connections_as_are_served_are_left() {
        let mut budget = OriginBudget::new(64);
        assert!(budget.on_unserved(at(1000), 3, 0, true));
        assert!(!budget.on_overload(at(1100), at(900), 13, None), "what has waited beside them");
        assert_eq!(
            (budget.capacity(), budget.allowances.connections.bounds().too_many),
            (3, None),
            "once may be chance"
        );
        assert!(!budget.on_unserved(at(1200), 3, 0, true));
        assert!(budget.on_success(at(3100), at(3000)), "one more is tried");
        assert!(budget.on_unserved(at(3200), 3, 0, true));
        assert_eq!(
            (budget.capacity(), budget.allowances.connections.bounds().too_many),
            (3, Some(4))
        );
        assert!(budget.on_overload(at(3300), at(3250), 3, None), "now it serves fewer");
        assert_eq!(budget.capacity(), 1);

        let mut budget = OriginBudget::new(64);
        assert!(budget.on_unserved(at(1000), 3, 0, false));
        assert_eq!((budget.capacity(), budget.allowances.connections.bounds().too_many), (3, None));
    }

    #[test]
    fn what_is_served_is_borne_and_a_long_body_lets_it_grow() {
        let mut budget = OriginBudget::new(64);
        budget.on_overload(at(0), at(0), 4, None);
        assert_eq!(budget.capacity(), 2);
        budget.on_borne(3);
        assert_eq!(budget.capacity(), 3, "they had waited for their answers");
        budget.on_borne(1);
        assert!(!budget.on_served(at(1900)));
        budget.allowances.connections.set_too_many(None);
        assert!(budget.on_served(at(2000)));
        assert_eq!(budget.capacity(), 4);
        budget.on_borne(100);
        assert_eq!(budget.capacity(), 64);
    }

    #[test]
    fn retry_after_blocks_and_ends() {
        let mut budget = OriginBudget::new(4);
        budget.on_overload(at(0), at(0), 4, Some(Duration::from_secs(3)));
        assert_eq!(budget.allowed(at(2999)), 0);
        assert_eq!(budget.next_timeout(at(10)), Some(at(3000)));
        assert_eq!(budget.allowed(at(3000)), 2);
        assert_eq!(budget.next_timeout(at(3000)), None);
    }

    #[test]
    fn what_begins_after_a_cut_and_is_refused_is_another_event() {
        let mut budget = OriginBudget::new(64);
        assert!(budget.on_overload(at(100), at(0), 64, None));
        assert_eq!((budget.allowed(at(100)), budget.vain_requests()), (32, 0));
        assert!(budget.on_overload(at(101), at(100), 32, None));
        assert_eq!((budget.capacity(), budget.vain_requests()), (32, 1), "more than the number");
        assert_eq!(budget.allowed(at(101)), 16, "fewer find out whether it answers again");
        assert!(budget.on_overload(at(300), at(200), 1, None));
        assert_eq!((budget.capacity(), budget.vain_requests()), (32, 2));
        assert_eq!(budget.vain_for(at(301)), Duration::from_millis(200));
        assert_eq!(budget.allowed(at(301)), 8);
        budget.on_success(at(400), at(400));
        assert_eq!(
            (budget.allowed(at(400)), budget.vain_requests()),
            (16, 0),
            "it may refuse again"
        );
        budget.on_success(at(410), at(410));
        assert_eq!(budget.allowed(at(410)), 32);
    }

    #[test]
    fn who_serves_the_others_is_soon_asked_for_more_again() {
        let mut budget = OriginBudget::new(16);
        let refused_beside = |budget: &mut OriginBudget, millis, served| {
            let refusal =
                Refusal { served, is_closed: true, ..Refusal::new(at(millis), served + 1) };
            let is_cut = budget.on_unserved(at(millis), served, served, true);
            budget.on_refusal(at(millis), refusal);
            is_cut
        };
        let grows_after = |budget: &mut OriginBudget, millis: u64| {
            (millis..millis + 70_000).step_by(10).find(|now| budget.on_served(at(*now))).unwrap()
                - millis
        };
        let mut waits = Vec::new();
        let mut now = 1_000;
        for _ in 0..4 {
            assert!(refused_beside(&mut budget, now, 4));
            let waited = grows_after(&mut budget, now);
            waits.push(waited);
            now += waited;
        }
        assert_eq!(waits, [250, 500, 1_000, 2_000]);
        // What was served breaks with it.
        assert!(refused_beside(&mut budget, now, 4));
        budget.on_break(at(now), at(0), 4);
        assert!(grows_after(&mut budget, now) >= 2_000);
    }

    #[test]
    fn who_serves_what_was_opened_with_a_closed_one_serves_others() {
        for began in [0, 40] {
            let mut budget = OriginBudget::new(16);
            for _ in 0..3 {
                budget.on_refusal(at(30), Refusal { is_closed: true, ..Refusal::new(at(0), 6) });
            }
            budget.on_overload(at(30), at(0), 6, None);
            let cut = budget.capacity();
            assert!(cut < 16 && !budget.serves_others());
            budget.on_answer(at(began), 5);
            let is_together = began == 0;
            assert_eq!(budget.serves_others(), is_together, "one that came later tells nothing");
            let before = budget.capacity();
            budget.on_served(at(400));
            assert_eq!(budget.capacity() > before, is_together);
        }
    }

    proptest! {
        #[test]
        fn a_budget_is_never_zero_without_a_request_to_wait(
            ceiling in 0u32..300,
            events in proptest::collection::vec((0u64..5000, 0u64..5000, 0u32..100, any::<bool>()), 0..100),
        ) {
            let mut budget = OriginBudget::new(ceiling);
            let mut now = 0;
            for (gap, took, in_use, overloaded) in events {
                now += gap;
                let began = now.saturating_sub(took);
                if overloaded { budget.on_overload(at(now), at(began), in_use, None); } else { budget.on_success(at(now), at(now)); }
                prop_assert!((1..=ceiling.max(1)).contains(&budget.allowed(at(now))));
            }
        }
    }
}
