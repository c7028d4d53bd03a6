//! Which connection takes the next request, and whether there may be another.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use pelton_algos::connections::overfill_flights;
use pelton_algos::units::Bytes;
use tokio::time::Instant;

use super::super::telemetry::ConnectionId;
use super::{Connection, Waiter};

#[derive(Default)]
pub(super) struct State {
    pub(super) connections: Vec<Rc<Connection>>,
    pub(super) opening: usize,
    pub(super) waiters: VecDeque<Waiter>,
    /// Connections that their server ended and that were not replaced yet.
    pub(super) missing: u32,
    /// Until then no further connection is tried.
    pub(super) refused_until: Option<Instant>,
}

impl State {
    /// Connections that are open or being opened.
    pub(super) fn existing(&self) -> usize {
        self.connections.iter().filter(|connection| !connection.is_closed()).count() + self.opening
    }

    /// How many connections may be opened without having more than `limit`.
    pub(super) fn may_open_more(&self, limit: usize) -> usize {
        let existing = self.existing();
        let may = existing == 0 || !self.is_paused();
        if may { limit.saturating_sub(existing) } else { 0 }
    }

    /// The connection `id` has ended: another one takes its place, unless it was one too many.
    pub(super) fn note_end(&mut self, id: ConnectionId) {
        let is_missed = |it: &Rc<Connection>| {
            it.id == id && it.has_answered.get() && !it.retiring.get() && !it.is_slow.get()
        };
        self.missing += u32::from(self.connections.iter().any(is_missed));
    }

    /// What the `handshake` of a further connection costs that replaces one which its server ended; otherwise nothing.
    pub(super) fn replacement_took(&mut self, handshake: Duration) -> Duration {
        let replaces = self.missing > 0;
        self.missing = self.missing.saturating_sub(1);
        if replaces { handshake } else { Duration::ZERO }
    }

    /// Connections that serve no request and are about to take the next one, or to close.
    pub(super) fn finishing(&self) -> usize {
        let finishing = |connection: &&Rc<Connection>| {
            connection.outstanding.get() == 0
                && !connection.takes_another(1, 0, false)
                && !connection.is_closed()
        };
        self.connections.iter().filter(finishing).count()
    }

    /// The connection for the first waiter: one that brings it with what it was asked for in the same moment, or the
    /// least busy one, and of those the warmest. Other requests share a connection only where no further one may be
    /// opened, and then evenly: those that are still being opened get their part too.
    /// Over HTTP/1.1 a connection bears `pipelined`.
    pub(super) fn pick(&mut self, limit: usize, pipelined: u32) -> Option<Rc<Connection>> {
        self.waiters.retain(|waiter| !waiter.turn.is_closed());
        let first = self.waiters.front()?;
        let (pipelined, bytes) = (if first.may_follow { pipelined } else { 1 }, first.bytes);
        let existing = self.existing();
        let is_slow = |connection: &&Rc<Connection>| connection.is_slow.get();
        let crawling = self.connections.iter().filter(|it| is_slow(it) && !it.is_closed()).count();
        let may_share = existing >= limit || self.is_paused();
        // Those that crawl bear requests where there can be no others.
        let takes_slow = may_share && crawling == existing;
        let bearing = || self.connections.iter().filter(|it| takes_slow || !is_slow(it));
        let asked = |connection: &Rc<Connection>| connection.asked();
        let share = if may_share {
            let requests = bearing().map(asked).sum::<u32>() as usize + self.waiters.len();
            requests.div_ceil(if takes_slow { existing } else { existing - crawling }.max(1))
        } else {
            1
        };
        let overfills = may_share && pipelined > 1 && self.overfills_flights();
        bearing()
            .filter(|connection| connection.takes_another(pipelined, bytes, overfills))
            .map(|connection| (connection, connection.brings_along(pipelined, bytes)))
            .filter(|(connection, along)| *along || (asked(connection) as usize) < share)
            .min_by_key(|(connection, along)| {
                (!along, asked(connection), Reverse(connection.served.get()))
            })
            .map(|(connection, _)| connection)
            .map(Rc::clone)
    }

    /// Whether more waits to be asked for, and is about to be, than all connections bring with their next flights. What
    /// they bring at present is there by then.
    fn overfills_flights(&self) -> bool {
        let open = || self.connections.iter().filter(|connection| !connection.is_closed());
        let is_ready = |it: &&Rc<Connection>| it.sender.is_ready();
        let waiting: u64 = self.waiters.iter().map(|waiter| waiter.bytes).sum();
        let due: u64 = open().filter(is_ready).map(|connection| connection.awaited.get()).sum();
        let is_warm =
            |it: &&Rc<Connection>| it.served.get() > u64::from(it.asked()) || !is_ready(it);
        let warm = open().filter(is_warm).count();
        overfill_flights(Bytes(waiting + due), self.existing() - warm, warm)
    }

    fn is_paused(&self) -> bool {
        self.refused_until.is_some_and(|until| Instant::now() < until)
    }
}
