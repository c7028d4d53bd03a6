//! Requests take turns with the stream of their connection.

use std::rc::Rc;

use tokio::sync::oneshot;

use super::{Http1, Stream};

/// A request that waits for its turn with the stream.
pub(super) struct Place {
    pub(super) turn: oneshot::Sender<Lent>,
    /// It asks for a head.
    pub(super) is_head: bool,
}

/// When a request gets the stream to read its answer from.
pub(super) enum Turn {
    /// `None` where the connection has ended.
    Now(Option<Lent>),
    Behind(oneshot::Receiver<Lent>),
}

/// A stream that serves a request. Unless it is given back, the connection ends with it.
pub(super) struct Lent {
    pub(super) stream: Stream,
    pub(super) home: Home,
}

impl Lent {
    /// What a server says behind its answers to all requests belongs to none.
    pub(super) fn says_no_more_than_asked(&self) -> bool {
        let is_awaited = |connection: &Rc<Http1>| !connection.behind.borrow().is_empty();
        self.stream.buffer.is_empty() || self.home.0.as_ref().is_some_and(is_awaited)
    }

    /// To whom comes next, or home.
    pub(super) fn give_back(self) {
        let Self { stream, mut home } = self;
        let Some(connection) = home.0.take() else { return };
        connection.is_long.set(false);
        let next = connection.behind.borrow_mut().pop_front();
        if let Some(next) = next {
            // If nobody waits there any more, the connection ends with the answer that comes.
            let _ = next.turn.send(Self { stream, home: Home(Some(connection)) });
        } else if connection.is_closed.get() || connection.is_spoilt.get() {
            connection.io.close();
            connection.close();
        } else {
            connection.is_under_way.set(false);
            connection.idle.replace(Some(stream));
            connection.wake_watcher();
        }
    }
}

/// Closes the connection whose stream does not come back.
pub(super) struct Home(pub(super) Option<Rc<Http1>>);

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.io.close();
            connection.close();
        }
    }
}
