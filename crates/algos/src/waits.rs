//! Times at which an origin is asked for nothing, or for less, as what it was asked for was in vain.

use std::time::Duration;

use crate::time::Timestamp;

/// Pauses that an origin asked for or that it takes, and requests that were refused though there were few.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waits {
    vain_requests: u32,
    vain_since: Option<Timestamp>,
    blocked_until: Option<Timestamp>,
}

impl Waits {
    /// A request was refused though there were fewer already, or no others.
    pub(crate) fn on_vain(&mut self, now: Timestamp) {
        self.vain_requests += 1;
        self.vain_since.get_or_insert(now);
    }

    /// Requests are no longer made in vain.
    pub(crate) const fn end_vain(&mut self) {
        (self.vain_requests, self.vain_since) = (0, None);
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

    /// What is left at `now` of a `capacity`: nothing in a pause, and half as much after each vain request.
    pub(crate) fn allowed(self, now: Timestamp, capacity: u32) -> u32 {
        match self.next_timeout(now) {
            Some(_) => 0,
            None => capacity.checked_shr(self.vain_requests).unwrap_or(0).max(1),
        }
    }
}
