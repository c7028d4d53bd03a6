//! Requests that are better served over another connection.
//!
//! A server with few workers takes more connections than it serves: the others wait until one of those that it
//! serves is closed, however long those idle. Balancers may have a server behind them that refuses all.

use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use pelton_algos::connections::overdue;
use tokio::time::{Instant, sleep_until};

use super::super::telemetry::{ConnectionId, Protocol};
use super::{Connection, Lease, OriginSet};

/// What a further answer counts in the mean of the times that they take.
const NEW_ANSWER: u32 = 8;

impl OriginSet {
    /// An answer took so long.
    pub(in crate::connection) fn note_answer(&self, took: Duration) {
        let mean = self
            .answer_time
            .get()
            .map_or(took, |before| (before * (NEW_ANSWER - 1) + took) / NEW_ANSWER);
        self.answer_time.set(Some(mean));
    }

    /// Waits until an answer over the connection of `lease`, which has brought none yet, is overdue while another
    /// one that has takes requests: the right to ask over that. Over HTTP/1.1 it idles.
    pub(in crate::connection) async fn better_elsewhere(self: &Rc<Self>, lease: &Lease) -> Lease {
        let is_served = lease.reused && lease.protocol() == Protocol::Http11;
        if is_served || lease.connection.has_answered.get() {
            return pending().await;
        }
        let began = Instant::now();
        loop {
            let freed = self.freed.notified();
            // Those that came meanwhile may have taken longer than the first ones.
            while let Some(at) = self.answer_time.get().map(|mean| began + overdue(mean))
                && Instant::now() < at
            {
                sleep_until(at).await;
            }
            if lease.connection.has_answered.get() {
                return pending().await;
            }
            if let Some(better) = self.take_proven() {
                self.shun(lease.id());
                return better;
            }
            freed.await;
        }
    }

    /// A connection that has brought an answer and takes a request, if nobody waits for one. Requests do not
    /// share one over HTTP/1.1.
    fn take_proven(self: &Rc<Self>) -> Option<Lease> {
        let state = self.state.borrow();
        if self.answer_time.get().is_none() || !state.waiters.is_empty() {
            return None;
        }
        let is_proven = |it: &&Rc<Connection>| {
            let has_room = it.protocol == Protocol::Http2 || it.outstanding.get() == 0;
            has_room && it.has_answered.get() && !it.is_slow.get() && it.takes_another(1, 0)
        };
        let proven = state.connections.iter().filter(is_proven);
        let connection = proven.min_by_key(|it| it.outstanding.get()).map(Rc::clone)?;
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
