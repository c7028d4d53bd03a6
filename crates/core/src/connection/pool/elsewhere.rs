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
use super::{Lease, OriginSet};

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
    /// one that has idles: the right to ask over that.
    pub(in crate::connection) async fn idle_elsewhere(self: &Rc<Self>, lease: &Lease) -> Lease {
        if lease.reused || lease.protocol() != Protocol::Http11 {
            return pending().await;
        }
        let began = Instant::now();
        loop {
            let freed = self.freed.notified();
            if let Some(mean) = self.answer_time.get() {
                sleep_until(began + overdue(mean)).await;
                if let Some(lease) = self.take_idle() {
                    return lease;
                }
            }
            freed.await;
        }
    }

    /// A connection that has brought an answer and serves no request, if nobody waits for one.
    fn take_idle(self: &Rc<Self>) -> Option<Lease> {
        let state = self.state.borrow();
        if !state.waiters.is_empty() {
            return None;
        }
        let idles = |it: &&Rc<_>| {
            let it: &super::Connection = it;
            let is_free = it.outstanding.get() == 0 && it.takes_another(1, 0);
            is_free && it.has_answered.get() && !it.is_slow.get()
        };
        let connection = state.connections.iter().find(idles).map(Rc::clone)?;
        drop(state);
        connection.is_exclusive.set(true);
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
