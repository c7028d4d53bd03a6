//! An origin that answered, refused whatever it was asked for a while, and answers again: what it bore before that it
//! bears again.

use std::time::Duration;

use crate::time::Timestamp;

/// Who is away again within this time of when what it bore was allowed again may be so because of that.
const PROVEN_AFTER: Duration = Duration::from_secs(10);

/// So many times as many were served at once as were under way when one was refused.
const MANY_MORE: u32 = 2;

/// What is known of an origin that is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Back {
    /// It served so many requests at once before.
    pub(crate) borne: u32,
    /// It never served more than one, so what was too many was found while it was away.
    pub(crate) is_unknown: bool,
}

/// What an origin bore, and whether it refuses more than what would be one too many.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Absence {
    /// Most requests that were served at once since it was back last.
    served: u32,
    /// It has refused a request that was alone, or beside few others, and answered none since.
    is_away: bool,
    back_at: Option<Timestamp>,
}

impl Absence {
    /// So many requests are being served at once.
    pub(crate) fn on_served(&mut self, at_once: u32) {
        self.served = self.served.max(at_once);
    }

    /// A request was refused while `in_use` were under way, it included, and `is_since_cut`, made since fewer are allowed. How
    /// many there were is no reason where there was no other, nor where many more were served before.
    pub(crate) const fn on_refusal(&mut self, in_use: u32, is_since_cut: bool) {
        let are_few = is_since_cut && in_use <= self.served / MANY_MORE;
        self.is_away |= in_use <= 1 || are_few;
    }

    /// Whether it refuses whatever it is asked for.
    pub(crate) const fn is_away(self) -> bool {
        self.is_away
    }

    /// A request was answered. What the origin bore before it was away, if it is back now.
    pub(crate) fn on_answer(&mut self, now: Timestamp) -> Option<Back> {
        if !std::mem::take(&mut self.is_away) {
            return None;
        }
        let was_recent = self.back_at.is_some_and(|at| now.saturating_since(at) < PROVEN_AFTER);
        if was_recent {
            return None;
        }
        let is_first = self.back_at.replace(now).is_none();
        let borne = std::mem::take(&mut self.served);
        Some(Back { borne, is_unknown: is_first && borne <= 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::START + Duration::from_secs(secs)
    }

    #[test]
    fn who_refuses_even_one_alone_and_is_back_bears_what_it_bore() {
        let mut absence = Absence::default();
        absence.on_served(7);
        absence.on_served(3);
        absence.on_refusal(8, false);
        assert_eq!(absence.on_answer(at(1)), None, "there were others");
        absence.on_refusal(1, true);
        assert_eq!(absence.on_answer(at(4)), Some(Back { borne: 7, is_unknown: false }));
        assert_eq!(absence.on_answer(at(5)), None);
    }

    #[test]
    fn of_who_was_away_from_the_start_nothing_is_known_once() {
        let mut absence = Absence::default();
        let mut back = |secs| {
            absence.on_refusal(1, true);
            absence.on_served(1);
            absence.on_answer(at(secs)).map(|back| back.is_unknown)
        };
        assert_eq!((back(1), back(20)), (Some(true), Some(false)));
    }

    #[test]
    fn what_it_bore_is_not_trusted_twice_within_seconds() {
        let mut absence = Absence::default();
        let mut back = |secs| {
            absence.on_served(5);
            absence.on_refusal(1, true);
            absence.on_answer(at(secs)).map(|back| back.borne)
        };
        assert_eq!(back(10), Some(5));
        assert_eq!(back(12), None);
        assert_eq!(back(19), None);
        assert_eq!(back(21), Some(5));
    }
}
