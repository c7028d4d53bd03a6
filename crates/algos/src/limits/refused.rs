//! What refused requests tell: too many, too soon, or chance.

use std::time::Duration;

use super::OriginBudget;
use crate::pauses::Pause;
use crate::refusals::{Cut, Refusal, Told};
use crate::request_rate::Verdict;
use crate::time::Timestamp;

impl OriginBudget {
    /// The origin refused a request. One of many now and then is no overload: as [`on_overload`](Self::on_overload)
    /// where a quarter of the late requests is refused, or more in a row than chance explains, and no less is allowed
    /// than is being served. Where as many are refused after a cut as before, or fewer than were served at once, again
    /// and again, those are chance, and all cuts for refusals are undone; so they are where requests come too quickly
    /// one after the other, and have a pace from then on.
    pub fn on_refusal(&mut self, now: Timestamp, refusal: Refusal) -> bool {
        let Refusal { began, in_use, served, asked_for, is_closed, may_be_file, .. } = refusal;
        let waiting = in_use.saturating_sub(served + 1);
        self.absence.on_refusal(in_use, self.allowances.told_of(false).is_of_now(began));
        if is_closed {
            self.regrowth.on_closed(served);
        } else {
            self.regrowth.on_loss();
        }
        // Where some are refused by chance those that are being served are answer enough.
        let has_answered = self.has_answered || served > 0 && self.refuses_by_chance();
        let told = self.refusals.on_refusal(now, in_use, has_answered);
        let is_too_soon = told == Told::Nothing && self.pauses_again(now, refusal);
        if told == Told::Nothing && !is_too_soon && self.refuses_by_chance() {
            return false;
        }
        match self.rate.on_refusal(now, began, in_use <= 1 && !may_be_file, asked_for) {
            Verdict::Pace { begins, until } => {
                if begins {
                    self.on_pace(waiting);
                }
                self.leave_alone(until);
                return begins;
            }
            Verdict::Chance => {
                self.on_chance(waiting);
                return false;
            }
            Verdict::Unknown => {}
        }
        if is_closed {
            self.breaks.on_closed();
        }
        let may_be_path = is_closed && served == 0;
        match told {
            // That may be anything on the way, where not half of them break and none is answered meanwhile.
            Told::TooMany if may_be_path && self.breaks.are_few(in_use) => return false,
            Told::TooMany => self.pauses.on_overload(),
            Told::Nothing if is_too_soon => {}
            Told::Nothing => return false,
            Told::Chance => return self.try_pace(now, waiting, asked_for),
        }
        let before = self.allowances.bounds();
        let at_once = in_use + self.refusals.in_a_row() - 1;
        let allowed = self.allowances.told_of(is_closed).allowed();
        let is_news = self.cut_for_overload(now, Refusal { in_use: at_once, ..refusal });
        if may_be_path {
            self.allowances.connections.set_too_many(before.connections.too_many);
        }
        let left = self.allowances.told_of(is_closed).allowed();
        if left < allowed {
            self.refusals.on_cut(waiting, Cut { from: allowed.min(at_once), to: left });
            self.before_refusals.get_or_insert(before);
        } else if is_news {
            self.refusals.on_vain();
        }
        is_news
    }

    /// Some are refused, and it is not for their number: where it may be for their pace, what follows tells, unless each
    /// refusal would cost the pause that was `asked_for`. Returns whether it may.
    pub(super) fn try_pace(
        &mut self,
        now: Timestamp,
        waiting: u32,
        asked_for: Option<Duration>,
    ) -> bool {
        let interval = self.refusals.possible_interval(now).filter(|_| asked_for.is_none());
        let next = interval.and_then(|interval| self.rate.try_pace(now, interval));
        match next {
            Some(next) => {
                self.on_pace(waiting);
                self.leave_alone(next);
            }
            None => self.on_chance(waiting),
        }
        next.is_some()
    }

    /// Requests have a pace from now on, and none are too many that keep it.
    fn on_pace(&mut self, waiting: u32) {
        self.refusals.on_pace(waiting);
        self.undo_cuts();
        self.waits.end_vain();
    }

    fn on_chance(&mut self, waiting: u32) {
        self.refusals.on_chance(waiting);
        self.undo_cuts();
    }

    /// Where nearly all others are answered a pause is one of the file, unless it is said to be too soon for any. Returns
    /// whether that was so again and again.
    fn pauses_again(&mut self, now: Timestamp, refusal: Refusal) -> bool {
        let Some(asked_for) = refusal.asked_for.filter(|_| refusal.is_of_rate) else {
            return false;
        };
        let pause = self.pauses.on_refusal(now, refusal.began);
        if pause != Pause::OfOne {
            self.leave_alone(now + asked_for);
        }
        pause == Pause::OfAll
    }
}
