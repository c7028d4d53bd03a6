//! Requests that are better served over another connection.
//!
//! A server with few workers takes more connections than it serves: the others wait until one of those that it
//! serves is closed, however long those idle. Balancers may have a server behind them that refuses all.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use pelton_algos::overdue::{AnswerTimes, Moves};
use tokio::time::{Instant, timeout_at};

use super::super::telemetry::{ConnectionEvent, ConnectionId, Protocol};
use super::{Connection, Lease, OriginSet};

/// What an origin has answered so far.
#[derive(Debug, Default)]
pub(in crate::connection) struct Answered {
    /// How long its answers take. `None` before the first.
    times: Cell<Option<AnswerTimes>>,
    /// Answers over connections that had brought one before.
    further: Cell<u32>,
    /// Most connections that were open at a time and had brought one.
    connections: Cell<u32>,
    moves: Cell<Moves>,
}

impl Answered {
    pub(in crate::connection) const fn is_nothing(&self) -> bool {
        self.times.get().is_none()
    }

    /// How long another answer may take.
    pub(in crate::connection) fn at_longest(&self) -> Duration {
        self.times.get().map_or(Duration::ZERO, |times| times.at_longest())
    }

    fn add(&self, took: Duration, is_first: bool) {
        let further = self.further.get();
        let mut times = self.times.get().unwrap_or_default();
        if is_first && further > 0 {
            times.add_late(took);
        } else {
            times.add(took);
        }
        self.times.set(Some(times));
        self.further.set(further.saturating_add(u32::from(!is_first)));
    }

    fn note_move(&self, what: impl FnOnce(&mut Moves)) {
        let mut moves = self.moves.get();
        what(&mut moves);
        self.moves.set(moves);
    }
}

/// A request that was moved to another connection and is waited for there.
pub(in crate::connection) struct Moved {
    set: Rc<OriginSet>,
    at: Instant,
    /// For how long it was not answered before.
    waited: Duration,
    is_answered: bool,
}

impl Moved {
    pub(in crate::connection) fn to_another(set: &Rc<OriginSet>, waited: Duration) -> Self {
        set.answered.note_move(Moves::on_moved);
        Self { set: Rc::clone(set), at: Instant::now(), waited, is_answered: false }
    }

    pub(in crate::connection) fn end_answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        let answered = &self.set.answered;
        let is_overdue = |times: AnswerTimes| self.at.elapsed() >= times.long_overdue();
        if self.is_answered {
            let took = self.at.elapsed();
            let times = answered.times.get();
            let is_quick = times.is_some_and(|times| times.is_quick(took, self.waited));
            answered.note_move(|moves| moves.on_helped(is_quick));
        } else if !answered.times.get().is_some_and(is_overdue) {
            answered.note_move(Moves::on_given_up);
        }
    }
}

impl OriginSet {
    /// An answer took so long. Unless it `is_served` by the server behind this connection, that is overloaded.
    pub(in crate::connection) fn note_answer(
        &self,
        lease: &Lease,
        took: Duration,
        is_served: bool,
    ) {
        let connection = &lease.connection;
        let is_first = !connection.has_answered.get();
        connection.answers.set(connection.answers.get() + 1);
        self.answered.add(took, is_first);
        if !is_served {
            self.refuses(lease.id());
        } else if is_first {
            connection.has_answered.set(true);
            let state = self.state.borrow();
            let have_answered = |it: &&Rc<Connection>| it.has_answered.get() && !it.is_closed();
            let count = state.connections.iter().filter(have_answered).count() as u32;
            self.answered.connections.set(count.max(self.answered.connections.get()));
        }
    }

    /// The connection of `lease` has ended without an answer to its first request.
    pub(in crate::connection) fn note_turned_away(&self, lease: &Lease) {
        if lease.reused || lease.protocol() != Protocol::Http11 {
            return;
        }
        // Others that wait for their first answer may get one.
        let state = self.state.borrow();
        let others = state.connections.iter().filter(|it| it.id != lease.id() && !it.is_closed());
        let may_be_served = |it: &&Rc<Connection>| it.has_answered.get() || it.served.get() > 0;
        let left = others.filter(may_be_served).count() as u32;
        drop(state);
        self.tell_unserved(left.max(self.answered.connections.get()));
    }

    fn tell_unserved(&self, served: u32) {
        let origin = self.origin.clone();
        if served > 0 {
            self.opener.telemetry().tell(ConnectionEvent::Unserved { origin, served });
        }
    }

    /// Waits until an answer over the connection of `lease`, which has brought none yet, is overdue while another
    /// one that has takes requests: the right to ask over that. Over HTTP/1.1 it idles.
    pub(in crate::connection) async fn better_elsewhere(self: &Rc<Self>, lease: &Lease) -> Lease {
        let is_served = lease.reused && lease.protocol() == Protocol::Http11;
        if is_served || lease.connection.has_answered.get() {
            return pending().await;
        }
        let (began, before) = (Instant::now(), self.answered.further.get());
        let (mut has_told, mut passed_since) = (false, None);
        loop {
            let freed = self.freed.notified();
            let Some(times) = self.answered.times.get() else {
                freed.await;
                continue;
            };
            // Those that came meanwhile may have taken longer than the first ones.
            let passed = self.answered.further.get().saturating_sub(before);
            let moves = self.answered.moves.get();
            let (overdue, long_overdue) = (times.moves_after(passed, moves), times.long_overdue());
            if passed > 0 {
                passed_since.get_or_insert_with(Instant::now);
            }
            if lease.connection.has_answered.get() {
                return pending().await;
            }
            if overdue.is_some_and(|overdue| began.elapsed() >= overdue)
                && let Some(better) = self.take_better(lease.id())
            {
                self.shun(lease.id());
                return better;
            }
            // A host that answered nobody tells nothing of its connections.
            let passed_for = passed_since.map_or(Duration::ZERO, |since| since.elapsed());
            if !has_told && times.is_unserved(passed_for, passed, moves) {
                has_told = true;
                self.tell_unserved(self.answered.connections.get());
            }
            let long = passed_since.map(|at| at + long_overdue);
            let looks = long.into_iter().chain(overdue.map(|overdue| began + overdue));
            let next = looks.filter(|at| *at > Instant::now()).min();
            match next {
                Some(at) => drop(timeout_at(at, freed).await),
                None => freed.await,
            }
        }
    }

    /// A connection that takes a request, if nobody waits for one, and that has brought an answer or, opened before
    /// `id` and asked for nothing yet, is ahead of it in the server's queue. Requests do not share one over HTTP/1.1.
    fn take_better(self: &Rc<Self>, id: ConnectionId) -> Option<Lease> {
        let state = self.state.borrow();
        if !state.waiters.is_empty() {
            return None;
        }
        let is_better = |it: &&Rc<Connection>| {
            let has_room = it.protocol == Protocol::Http2 || it.outstanding.get() == 0;
            let is_ahead = it.served.get() == 0 && it.id < id;
            let may_bring = it.has_answered.get() || is_ahead;
            has_room && may_bring && !it.is_slow.get() && it.takes_another(1, 0, false)
        };
        let better = state.connections.iter().filter(is_better);
        let connection = better
            .min_by_key(|it| (!it.has_answered.get(), it.outstanding.get()))
            .map(Rc::clone)?;
        drop(state);
        connection.is_exclusive.set(connection.protocol == Protocol::Http11);
        Some(self.lease(connection, Some(0)))
    }

    /// The server is overloaded, as it says over `id`: if another connection has brought an answer, that or a new
    /// one is asked next.
    pub(in crate::connection) fn refuses(&self, id: ConnectionId) {
        let state = self.state.borrow();
        let mut others = state.connections.iter().filter(|it| it.id != id && !it.is_closed());
        let has_better = others.any(|it| it.has_answered.get() && !it.is_slow.get());
        drop(state);
        if has_better {
            self.shun(id);
        }
    }
}
