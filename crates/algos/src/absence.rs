//! An origin that answered, refused whatever it was asked for a while, and answers again: what it bore before that it
//! bears again.

use std::time::Duration;

use crate::time::Timestamp;

/// Who is away again within this time of when what it bore was allowed again may be so because of that.
const PROVEN_AFTER: Duration = Duration::from_secs(10);

/// What an origin bore, and whether it refuses more than what would be one too many.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Absence {
    /// Most requests that were served at once since it was back last.
    served: u32,
    /// It has refused a request that was alone, and answered none since.
    is_away: bool,
    back_at: Option<Timestamp>,
}

impl Absence {
    /// So many requests are being served at once.
    pub(crate) fn on_served(&mut self, at_once: u32) {
        self.served = self.served.max(at_once);
    }

    /// A request was refused while `in_use` were under way, it included. How many there were is no reason where there
    /// was no other.
    pub(crate) const fn on_refusal(&mut self, in_use: u32) {
        self.is_away |= in_use <= 1;
    }

    /// A request was answered. How many were served at once before the origin was away, if it is back now.
    pub(crate) fn on_answer(&mut self, now: Timestamp) -> Option<u32> {
        if !std::mem::take(&mut self.is_away) {
            return None;
        }
        let was_recent = self.back_at.is_some_and(|at| now.saturating_since(at) < PROVEN_AFTER);
        if was_recent {
            return None;
        }
        self.back_at = Some(now);
        Some(std::mem::take(&mut self.served))
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
        absence.on_refusal(8);
        assert_eq!(absence.on_answer(at(1)), None, "there were others");
        absence.on_refusal(1);
        assert_eq!(absence.on_answer(at(4)), Some(7));
        assert_eq!(absence.on_answer(at(5)), None);
    }

    #[test]
    fn what_it_bore_is_not_trusted_twice_within_seconds() {
        let mut absence = Absence::default();
        let mut back = |secs| {
            absence.on_served(5);
            absence.on_refusal(1);
            absence.on_answer(at(secs))
        };
        assert_eq!(back(10), Some(5));
        assert_eq!(back(12), None);
        assert_eq!(back(19), None);
        assert_eq!(back(21), Some(5));
    }
}
