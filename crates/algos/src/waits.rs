//! Times at which an origin is asked for nothing, or for less, as what it was asked for was in vain.

use std::time::Duration;

use crate::time::Timestamp;

/// So many halvings leave one even of the requests that share connections.
const MOST_HALVED: u32 = 10;

/// Pauses that an origin asked for or that it takes, and requests that were refused though there were few.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waits {
    vain_requests: u32,
    vain_since: Option<Timestamp>,
    /// How often what is allowed is still halved since the last vain one: what refuses for a time may do so again if it is
    /// asked for everything at once. Each answer makes it twice as much again.
    halved: u32,
    blocked_until: Option<Timestamp>,
}

impl Waits {
    /// A request was refused though there were fewer already, or no others.
    pub(crate) fn on_vain(&mut self, now: Timestamp) {
        self.vain_requests += 1;
        self.vain_since.get_or_insert(now);
    }

    /// A request was answered.
    pub(crate) fn on_answer(&mut self) {
        // However long the wait was, a few answers give all back.
        self.halved = self.halved.max(self.vain_requests.min(MOST_HALVED)).saturating_sub(1);
        (self.vain_requests, self.vain_since) = (0, None);
    }

    /// No request was made in vain, as it turns out.
    pub(crate) const fn end_vain(&mut self) {
        (self.vain_requests, self.vain_since, self.halved) = (0, None, 0);
    }

    pub(crate) const fn vain_requests(self) -> u32 {
        self.vain_requests
    }

    pub(crate) fn vain_for(self, now: Timestamp) -> Duration {
        self.vain_since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }

    /// Nothing before `until`.
    pub(crate) fn pause(&mut self, until: Timestamp) {
        self.blocked_until = Some(self.blocked_until.map_or(until, |before| before.max(until)));
    }

    /// Nothing is waited for any longer.
    pub(crate) const fn end_pause(&mut self) {
        self.blocked_until = None;
    }

    /// When a pause ends.
    pub(crate) fn next_timeout(self, now: Timestamp) -> Option<Timestamp> {
        self.blocked_until.filter(|until| now < *until)
    }

    /// What is left at `now` of a `capacity`: nothing in a pause, half as much after each vain request, and twice as much
    /// again after each answer.
    pub(crate) fn allowed(self, now: Timestamp, capacity: u32) -> u32 {
        match self.next_timeout(now) {
            Some(_) => 0,
            None => capacity.checked_shr(self.vain_requests.max(self.halved)).unwrap_or(0).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_long_a_wait_was_a_few_answers_give_all_back() {
        let mut waits = Waits::default();
        let now = Timestamp::START;
        (0..60).for_each(|_| waits.on_vain(now));
        assert_eq!(waits.allowed(now, 64), 1);
        let given_back: Vec<u32> = (0..10)
            .map(|_| {
                waits.on_answer();
                waits.allowed(now, 64)
            })
            .collect();
        assert_eq!(given_back, [1, 1, 1, 1, 2, 4, 8, 16, 32, 64]);
    }
}
