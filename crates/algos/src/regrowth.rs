//! How soon a budget that was cut grows again: it depends on what one request too many costs.

use std::time::Duration;

/// One more connection is tried after each such time without overload.
const GROWTH_INTERVAL: Duration = Duration::from_secs(2);

/// The number that was too many is tried again after such a time: what held it may have been another
/// client.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// Where no more than the request itself is lost, and after twice the time with each further one that is.
const SOON: Duration = Duration::from_millis(250);

/// What an origin was seen to do when it was asked for too much.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Regrowth {
    /// It served others all the same, or nothing is known of it: so many times in a row one more was tried and refused.
    /// `None`: that is not known, or others broke.
    tries: Option<u32>,
    /// More are allowed than before the last refusal.
    has_grown: bool,
    /// Connections were closed while none of those that were opened with them was served yet.
    awaits_others: bool,
}

impl Regrowth {
    /// A request found its connection closed beside so many that are being `served`.
    pub(crate) fn on_closed(&mut self, served: u32) {
        let was_try = std::mem::take(&mut self.has_grown);
        self.awaits_others = served == 0;
        self.tries = match self.tries {
            _ if served == 0 => None,
            None => Some(0),
            Some(tries) => Some(tries.saturating_add(was_try.into())),
        };
    }

    /// What was too many was found while it was away, whatever it was asked for.
    pub(crate) fn on_unknown(&mut self) {
        *self = Self { tries: Some(0), ..Self::default() };
    }

    /// More are allowed.
    pub(crate) fn on_growth(&mut self) {
        self.has_grown = true;
    }

    /// More are being served than were too many.
    pub(crate) fn on_more(&mut self) {
        self.tries = self.tries.map(|_| 0);
    }

    /// A request is served that was made before the last connection was closed.
    pub(crate) fn on_other(&mut self) {
        if std::mem::take(&mut self.awaits_others) {
            self.tries = Some(0);
        }
    }

    /// What was being served broke, or it says that it is overloaded: one too many costs more than itself.
    pub(crate) fn on_loss(&mut self) {
        (self.tries, self.awaits_others) = (None, false);
    }

    /// Whether others were served where one was too many.
    pub(crate) const fn serves_others(self) -> bool {
        self.tries.is_some()
    }

    /// After what time without a change how many more are allowed where so many are, and whether one more `is_risk`.
    pub(crate) fn next(self, allowed: u32, is_risk: bool) -> (Duration, u32) {
        let half = allowed.div_ceil(2);
        match self.tries {
            Some(tries) => {
                let interval = SOON.saturating_mul(1 << tries.min(u32::BITS - 1));
                (interval.min(FORGIVEN_AFTER), if is_risk { 1 } else { half })
            }
            None if is_risk => (FORGIVEN_AFTER, 1),
            None => (GROWTH_INTERVAL, 1),
        }
    }
}
