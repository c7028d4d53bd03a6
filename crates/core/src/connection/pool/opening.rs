//! How a further connection of an origin is opened, taken into use and run.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::time::Instant;

use super::OriginSet;
use super::connection::Connection;
use crate::connection::memory::Room;
use crate::connection::open::Established;
use crate::connection::proxy::Route;
use crate::connection::telemetry::ConnectionEvent;
use crate::{Error, panics};

/// How long no further connection is tried after one could not be opened while others work: a
/// server that takes no more is not asked for each request again.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);

impl OriginSet {
    pub(super) fn spawn_open(self: &Rc<Self>, room: Room) {
        let set = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let is_http1 = set.choice.begin_opening();
            set.opener.telemetry().begins();
            let shakes_hands = RefCell::default();
            let may_begin_tls = async || {
                let counted = set.begin_handshake().await;
                let may = counted.is_some();
                shakes_hands.replace(counted);
                may
            };
            let opening = set.opener.open(&set.origin, &set.route, &room, is_http1, may_begin_tls);
            let result = panics::caught(|| set.origin.to_string(), opening).await;
            set.state.borrow_mut().opening -= 1;
            match result {
                Ok(None) => set.pump(),
                // It has turned out meanwhile that this one is of no use.
                Ok(_) if !set.choice.takes(is_http1) => set.pump(),
                Ok(Some(established)) => set.adopt(established, room),
                Err(_) if set.ends_trial(is_http1) => set.pump(),
                Err(error) => set.refused(&error),
            }
        });
    }

    fn adopt(self: &Rc<Self>, established: Established, room: Room) {
        let Established { protocol, sender, capacity, to_come, driver, rtt, handshake } =
            established;
        self.rtt.set(self.rtt.get().into_iter().chain(rtt).min());
        let telemetry = self.opener.telemetry();
        let id = telemetry.opened();
        let connection = Rc::new(Connection::new(
            id,
            protocol,
            sender,
            capacity,
            to_come,
            room,
            self.state.borrow_mut().replacement_took(handshake),
        ));
        self.spawn_driver(&connection, driver);
        self.state.borrow_mut().connections.push(connection);
        let origin = self.origin.clone();
        telemetry.tell(ConnectionEvent::Opened { origin, id, protocol, rtt, handshake });
        self.apply_limit();
        self.pump();
    }

    /// Runs a connection. It holds the set weakly: when the set is dropped, the connections close.
    fn spawn_driver(
        self: &Rc<Self>,
        connection: &Rc<Connection>,
        mut driver: LocalBoxFuture<'static, ()>,
    ) {
        let (id, connection) = (connection.id, Rc::downgrade(connection));
        let set = Rc::downgrade(self);
        let origin = self.origin.clone();
        let telemetry = Rc::clone(self.opener.telemetry());
        tokio::task::spawn_local(async move {
            poll_fn(|cx| {
                let ended = driver.as_mut().poll(cx);
                // An HTTP/1.1 connection takes the next request only some polls after its last
                // response was read.
                let free = connection.upgrade().is_some_and(|it| it.outstanding.get() == 0);
                if free && let Some(set) = set.upgrade() {
                    set.hand_out();
                }
                ended
            })
            .await;
            telemetry.closed(origin, id);
            if let Some(set) = set.upgrade() {
                set.state.borrow_mut().note_end(id);
                set.retain(|connection| connection.id != id);
                set.gate.note_end();
                set.pump();
            }
        });
    }

    /// A connection could not be opened. Who waits goes on waiting while there is another one.
    fn refused(self: &Rc<Self>, error: &Error) {
        let origin = self.origin.clone();
        let event = ConnectionEvent::OpenFailed { origin, kind: error.kind() };
        self.opener.telemetry().tell(event);
        let mut state = self.state.borrow_mut();
        if state.existing() > 0 {
            state.refused_until = Some(Instant::now() + REFUSAL_PAUSE);
            drop(state);
            return self.pump();
        }
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        // A proxy may have no place for it while those of others idle.
        if !matches!(self.route, Route::Direct) {
            self.opener.memory().close_idle_of_others(self);
        }
        for waiter in waiters {
            let copy = Error::new(error.kind(), error.message());
            // A waiter that is gone needs no error.
            let _ = waiter.turn.send(Err(copy));
        }
    }
}
