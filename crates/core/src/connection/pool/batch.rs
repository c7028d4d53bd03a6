//! Requests that went out over an HTTP/1.1 connection in one piece.

use std::cell::{Cell, RefCell};

use tokio::sync::Notify;

use super::order::Facts;

/// What the requests of one piece were answered with. Whoever loses, doubles or swaps answers does not do so
/// to one request: all of them count, or none.
#[derive(Debug, Default)]
pub(in crate::connection) struct Batch {
    open: Cell<usize>,
    facts: RefCell<Vec<Facts>>,
    is_spoilt: Cell<bool>,
    settled: Notify,
}

impl Batch {
    /// One request more, and one for its head.
    pub(super) fn join(&self) {
        self.open.set(self.open.get() + 1);
    }

    /// Whether answers are to come.
    pub(super) fn is_open(&self) -> bool {
        self.open.get() > 0
    }

    /// One had its turn and no answer, or one that is not to it.
    pub(in crate::connection) fn spoil(&self) {
        self.is_spoilt.set(true);
        self.settled.notify_waiters();
    }

    /// One of them was answered with what has these `facts`, where that is sure for itself. Returns whether
    /// they are those of another one, too: then nobody can say which is which.
    pub(super) fn note(&self, facts: &Facts) -> bool {
        let mut known = self.facts.borrow_mut();
        let is_alike = facts.are_of_a_body() && known.contains(facts);
        known.push(facts.clone());
        if is_alike {
            self.spoil();
        }
        is_alike
    }

    /// Nothing more comes of one of them.
    pub(in crate::connection) fn leave(&self) {
        self.open.set(self.open.get() - 1);
        if !self.is_open() {
            self.settled.notify_waiters();
        }
    }

    /// Whether all that were asked for in one piece were answered one by one. Waits for the last.
    pub(in crate::connection) async fn holds(&self) -> bool {
        loop {
            let settled = self.settled.notified();
            if self.is_spoilt.get() || !self.is_open() {
                return !self.is_spoilt.get();
            }
            settled.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http::header::ETAG;
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn facts(tag: &'static str) -> Facts {
        let headers = HeaderMap::from_iter([(ETAG, HeaderValue::from_static(tag))]);
        Facts::of(StatusCode::OK, &headers)
    }

    #[test]
    fn all_count_when_the_last_was_answered() {
        let batch = Batch::default();
        batch.join();
        batch.join();
        assert!(!batch.note(&facts("a")));
        batch.leave();
        let mut holds = Box::pin(batch.holds());
        assert_eq!(holds.as_mut().now_or_never(), None);
        assert!(!batch.note(&facts("b")));
        batch.leave();
        assert_eq!(holds.now_or_never(), Some(true));
    }

    #[test]
    fn none_counts_where_one_has_no_answer_or_that_of_another() {
        let batch = Batch::default();
        batch.join();
        batch.join();
        assert!(!batch.note(&facts("a")));
        batch.leave();
        let mut holds = Box::pin(batch.holds());
        assert_eq!(holds.as_mut().now_or_never(), None);
        batch.spoil();
        assert_eq!(holds.now_or_never(), Some(false), "nobody waits for the rest");

        let batch = Batch::default();
        assert!(!batch.note(&facts("a")) && batch.note(&facts("a")));
        assert_eq!(batch.holds().now_or_never(), Some(false));
    }
}
