//! How much an origin may be asked for at once: what cuts take, what is given back, and growth.

use crate::regrowth::Regrowth;
use crate::time::Timestamp;

/// How many are allowed, and so many were too many once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) allowed: u32,
    pub(crate) too_many: Option<u32>,
}

/// The bounds of connections, and of requests that share them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    pub(crate) connections: Bounds,
    sharing: Bounds,
}

/// How many connections an origin may have, and how many requests at once over those that they share (HTTP/2): any number
/// until some are refused for that.
#[derive(Debug, Clone)]
pub(crate) struct Allowances {
    pub(crate) connections: Allowance,
    sharing: Allowance,
    /// Whether requests share connections.
    pub(crate) are_shared: bool,
}

impl Allowances {
    pub(crate) fn new(ceiling: u32) -> Self {
        let (connections, sharing) = (Allowance::new(ceiling), Allowance::new(u32::MAX));
        Self { connections, sharing, are_shared: false }
    }

    /// What a refused request tells of, or one whose connection `is_closed` instead of an answer.
    pub(crate) const fn told_of(&mut self, is_closed: bool) -> &mut Allowance {
        if self.are_shared && !is_closed { &mut self.sharing } else { &mut self.connections }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.connections() < self.connections.ceiling
    }

    /// Connections of which each has a request.
    pub(crate) fn connections(&self) -> u32 {
        self.connections.allowed().min(self.sharing.allowed())
    }

    /// Requests over connections that bear so many `each`.
    pub(crate) fn requests_over(&self, each: u32) -> u32 {
        self.connections.allowed().saturating_mul(each).min(self.sharing.allowed())
    }

    pub(crate) const fn bounds(&self) -> Before {
        Before { connections: self.connections.bounds, sharing: self.sharing.bounds }
    }

    /// The bounds are again what they were before a cut, if there was one.
    pub(crate) fn restore(&mut self, before: Option<Before>) {
        self.connections.restore(before.map(|before| before.connections));
        self.sharing.restore(before.map(|before| before.sharing));
    }

    /// So many at once are borne, whatever was cut. Returns whether that is news.
    pub(crate) fn allow(&mut self, at_once: u32) -> bool {
        let more_connections = self.connections.allow(at_once);
        self.sharing.allow(at_once) || more_connections
    }

    /// More are borne than before, since `now`.
    pub(crate) fn on_more(&mut self, now: Timestamp) {
        self.connections.on_more(now);
        self.sharing.on_more(now);
    }

    /// What was too many is not known.
    pub(crate) const fn forget_too_many(&mut self) {
        self.connections.set_too_many(None);
        self.sharing.set_too_many(None);
    }

    /// Nothing is known of either.
    pub(crate) const fn forgive(&mut self) {
        self.connections.forgive();
        self.sharing.forgive();
    }

    /// As [`Allowance::grow`].
    pub(crate) fn grow(&mut self, now: Timestamp, regrowth: &mut Regrowth) -> bool {
        let more_connections = self.connections.grow(now, regrowth);
        self.sharing.grow(now, regrowth) || more_connections
    }
}

/// The bounds of one of these, at least one and at most the ceiling, and when they were changed.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    ceiling: u32,
    bounds: Bounds,
    changed: Timestamp,
}

impl Allowance {
    pub(crate) fn new(ceiling: u32) -> Self {
        let ceiling = ceiling.max(1);
        let bounds = Bounds { allowed: ceiling, too_many: None };
        Self { ceiling, bounds, changed: Timestamp::START }
    }

    pub(crate) const fn bounds(&self) -> Bounds {
        self.bounds
    }

    pub(crate) const fn allowed(&self) -> u32 {
        self.bounds.allowed
    }

    pub(crate) const fn is_cut(&self) -> bool {
        self.bounds.allowed < self.ceiling
    }

    /// So many were borne some time ago.
    pub(crate) fn start_with(&mut self, borne: u32) {
        self.bounds.allowed = borne.clamp(1, self.ceiling);
    }

    pub(crate) fn set_ceiling(&mut self, ceiling: u32) {
        let never_cut = self.bounds.too_many.is_none() && !self.is_cut();
        self.ceiling = ceiling.max(1);
        self.bounds.allowed =
            if never_cut { self.ceiling } else { self.bounds.allowed.min(self.ceiling) };
    }

    /// Whether a request that `began` then was made under these bounds.
    pub(crate) fn is_of_now(&self, began: Timestamp) -> bool {
        began >= self.changed
    }

    /// One more than `fewer` were too many. Returns whether that is news.
    pub(crate) fn cut_to(&mut self, now: Timestamp, fewer: u32) -> bool {
        let fewer = fewer.max(1);
        let is_news = fewer < self.bounds.allowed;
        if is_news {
            self.bounds = Bounds { allowed: fewer, too_many: Some(fewer + 1) };
            self.changed = now;
        }
        is_news
    }

    /// As many as were `in_use` were too many: half of them, and no fewer than are being `served`.
    pub(crate) fn halve(&mut self, now: Timestamp, in_use: u32, served: u32) {
        let before = self.bounds.allowed.min(in_use);
        let allowed = (before / 2).max(served).clamp(1, before);
        self.bounds = Bounds { allowed, too_many: Some(before.max(2)) };
        self.changed = now;
    }

    /// So many are borne, whatever was cut. Returns whether that is news.
    pub(crate) fn allow(&mut self, connections: u32) -> bool {
        let borne = connections.min(self.ceiling);
        let is_news = borne > self.bounds.allowed;
        self.bounds.allowed = self.bounds.allowed.max(borne);
        is_news
    }

    /// What was too many is something else than was thought.
    pub(crate) const fn set_too_many(&mut self, too_many: Option<u32>) {
        self.bounds.too_many = too_many;
    }

    /// More are borne than before, since `now`.
    pub(crate) fn on_more(&mut self, now: Timestamp) {
        let allowed = self.bounds.allowed;
        self.bounds.too_many = self.bounds.too_many.filter(|too_many| *too_many > allowed);
        self.changed = now;
    }

    /// The bounds are again what they were before a cut, if there was one. Returns that.
    pub(crate) fn restore(&mut self, before: Option<Bounds>) -> bool {
        if let Some(before) = before {
            self.allow(before.allowed);
            self.bounds.too_many = before.too_many;
        }
        before.is_some()
    }

    /// Nothing is known of it.
    const fn forgive(&mut self) {
        self.bounds = Bounds { allowed: self.ceiling, too_many: None };
    }

    /// What is served goes on. Allows more when it is time, and returns whether it did.
    fn grow(&mut self, now: Timestamp, regrowth: &mut Regrowth) -> bool {
        let Bounds { allowed, too_many } = self.bounds;
        let is_risk = too_many.is_some_and(|too_many| allowed + 1 >= too_many);
        let (interval, more) = regrowth.next(allowed, is_risk);
        let grows = self.is_cut() && now.saturating_since(self.changed) >= interval;
        if grows {
            self.bounds.allowed = allowed.saturating_add(more).min(self.ceiling);
            self.changed = now;
            regrowth.on_growth();
            if is_risk {
                self.bounds.too_many = Some(self.bounds.allowed + 1);
            }
        }
        grows
    }
}
