//! The connections of one origin and who waits for them.

pub(super) mod batch;
mod connection;
pub(super) mod elsewhere;
mod gate;
mod opening;
pub(super) mod order;
mod protocol;
mod state;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::HeaderValue;
use pelton_algos::connections::LONGEST_AHEAD;
use tokio::sync::{Notify, oneshot};

use super::further::Missed;
use super::memory::Room;
use super::open::Opener;
use super::origin::Origin;
use super::proxy::Route;
use super::telemetry::{ConnectionEvent, ConnectionId, Protocol};
use crate::{Error, ErrorKind, Result};
use batch::Batch;
use connection::Connection;
pub(super) use connection::Lease;
use elsewhere::Answered;
use gate::Gate;
use order::{Facts, Order};
use protocol::Choice;
use state::State;

/// What a request for the head behind another shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// Whether the origin answers in order at all.
    OfOrder,
    /// Whether the other one was answered with what it asked for.
    OfAnswer,
}

/// Who waits for a connection that takes a request.
struct Waiter {
    turn: oneshot::Sender<Result<Lease>>,
    /// It may be sent behind others over HTTP/1.1.
    may_follow: bool,
    /// Bytes that its answer is expected to have.
    bytes: u64,
}

/// The connections of one origin.
pub(super) struct OriginSet {
    origin: Origin,
    route: Route,
    opener: Rc<Opener>,
    limit: Cell<usize>,
    pub(super) answered: Answered,
    /// The least round-trip time that opening a connection has shown.
    pub(super) rtt: Cell<Option<Duration>>,
    /// A connection may idle that nobody waits for.
    freed: Notify,
    /// Whether HTTP/1.1 is spoken where HTTP/2 was agreed on.
    choice: Choice,
    order: Order,
    /// How it went with parts of ranges that were asked for before their turn.
    pub(super) missed: Missed,
    gate: Gate,
    state: RefCell<State>,
}

impl OriginSet {
    pub(super) fn new(origin: Origin, opener: Rc<Opener>, limit: usize) -> Rc<Self> {
        let route = opener.route(&origin);
        if let Some(proxy) = route.proxy() {
            opener.telemetry().tell(ConnectionEvent::Proxied { origin: origin.clone(), proxy });
        }
        let state = RefCell::default();
        let (limit, answered, choice) = (Cell::new(limit), Answered::default(), Choice::default());
        let (order, missed, freed) = (Order::default(), Missed::default(), Notify::new());
        let set = Rc::new(Self {
            origin,
            route,
            opener,
            limit,
            answered,
            rtt: Cell::default(),
            freed,
            choice,
            order,
            missed,
            gate: Gate::default(),
            state,
        });
        set.opener.memory().join(&set);
        set
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether requests are sent to a proxy that forwards them.
    pub(super) fn is_forwarded(&self) -> bool {
        self.opener.is_forwarded(&self.origin, &self.route)
    }

    /// The value of `Proxy-Authorization`, where a proxy wants it.
    pub(super) fn proxy_authorization(&self) -> Option<&HeaderValue> {
        match &self.route {
            Route::Http { authorization, .. } => authorization.as_ref(),
            Route::Direct | Route::Socks5 { .. } => None,
        }
    }

    /// Sets how many connections may exist; those that are more than that close when they are free.
    pub(super) fn set_limit(self: &Rc<Self>, limit: usize) {
        self.limit.set(limit.max(1));
        self.apply_limit();
        self.pump();
    }

    /// Lets each connection bear so many requests over HTTP/1.1, as soon as it is known that the origin
    /// answers in order.
    pub(super) fn set_pipelined(self: &Rc<Self>, pipelined: u32) {
        self.order.want(pipelined);
        self.hand_out();
    }

    /// The right to send one more request behind that of `lease`, for the head of the same: to find out
    /// whether the origin answers in order, or to see that it did. `None` where neither is of use.
    pub(super) fn lease_for_proof(
        self: &Rc<Self>,
        lease: &Lease,
    ) -> Option<(Lease, Proof, Rc<Batch>)> {
        // What proxies make of it is another matter for each file.
        if lease.protocol() != Protocol::Http11 || self.is_forwarded() {
            return None;
        }
        let proof = if lease.is_behind || self.order.pipelined() > 1 {
            Proof::OfAnswer
        } else if self.order.begin_finding_out() {
            Proof::OfOrder
        } else {
            // Its body may be cut, and what is behind it would follow.
            lease.connection.is_exclusive.set(true);
            return None;
        };
        let batch = lease.connection.join_batch();
        Some((self.lease(Rc::clone(&lease.connection), None), proof, batch))
    }

    /// What these two were answered with, if they were.
    pub(super) fn found_order_out(self: &Rc<Self>, answers: Option<(&Facts, &Facts)>) {
        if let Some(does) = self.order.found_out(answers) {
            self.tell_order(does);
            self.hand_out();
        }
    }

    /// Whether a request on a connection that bears several was surely answered with what was asked for, as
    /// far as these two tell.
    pub(super) fn is_proven(&self, batch: &Batch, first: &Facts, second: &Facts) -> bool {
        let (is_proven, mut is_broken) = self.order.on_proof(first, second);
        let is_alike = is_proven && batch.note(first);
        is_broken |= is_alike && self.order.on_alike();
        if is_broken {
            self.tell_order(false);
        }
        is_proven && !is_alike
    }

    /// A request that nobody was ahead of was answered with this.
    pub(super) fn note_first(&self, facts: &Facts) {
        if self.order.on_first(facts) {
            self.tell_order(false);
        }
    }

    /// A request that was sent behind another got no answer.
    pub(super) fn note_unanswered(&self, had_turn: bool) {
        if self.order.unanswered(had_turn) {
            self.tell_order(false);
        }
    }

    fn tell_order(&self, does: bool) {
        let origin = self.origin.clone();
        self.opener.telemetry().tell(ConnectionEvent::Pipelines { origin, does });
    }

    /// Makes sure that `count` connections exist or are being opened, as far as the limit allows.
    pub(super) fn open_early(self: &Rc<Self>, count: usize) {
        while let Some(room) = self.begin_opening(count.min(self.limit.get())) {
            self.spawn_open(room);
        }
    }

    /// Waits for a connection that takes a request, one that serves no other unless it `may_follow`. First
    /// come, first served. About `expected` bytes will come.
    pub(super) async fn acquire(
        self: &Rc<Self>,
        may_follow: bool,
        expected: Option<u64>,
    ) -> Result<Lease> {
        let (waiter, mut turn) = oneshot::channel();
        // What a list says of sizes may be anything.
        let bytes = expected.unwrap_or(LONGEST_AHEAD.0).min(LONGEST_AHEAD.0);
        self.state.borrow_mut().waiters.push_back(Waiter { turn: waiter, may_follow, bytes });
        loop {
            let mut freed = pin!(self.opener.memory().freed());
            freed.as_mut().enable();
            self.pump();
            tokio::select! {
                biased;
                lease = &mut turn => return lease.unwrap_or_else(|_| {
                    let message = format!("{}: the connections were shut down", self.origin);
                    Err(Error::new(ErrorKind::Cancelled, message))
                }),
                () = freed => {}
            }
        }
    }

    /// `id` takes further requests only where there can be no other, and closes when it is free.
    pub(super) fn shun(&self, id: ConnectionId) {
        let state = self.state.borrow();
        for connection in state.connections.iter().filter(|connection| connection.id == id) {
            connection.is_slow.set(true);
        }
        drop(state);
        self.close_retired();
    }

    /// Whether one more request is served, or a connection opened for it, without any other's waiting for that.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state.borrow();
        let idles =
            |it: &&Rc<Connection>| it.outstanding.get() == 0 && it.takes_another(1, 0, false);
        let idle = state.connections.iter().filter(idles).count();
        state.waiters.len() < idle + state.opening + state.may_open_more(self.limit.get())
    }

    /// Requests that are under way.
    pub(super) fn outstanding(&self) -> usize {
        self.state.borrow().connections.iter().map(|it| it.outstanding.get()).sum()
    }

    pub(super) fn has_connections(&self) -> bool {
        self.state.borrow().existing() > 0
    }

    /// Closes every connection that serves no request now.
    pub(super) fn close_idle(&self) {
        self.retain(|connection| connection.outstanding.get() > 0);
    }

    /// Hands free connections to waiters and opens further ones for the rest.
    fn pump(self: &Rc<Self>) {
        self.hand_out();
        loop {
            let state = self.state.borrow();
            let wanted = state.waiters.len() > state.opening + state.finishing();
            drop(state);
            if !wanted {
                return;
            }
            let Some(room) = self.begin_opening(self.limit.get()) else { return };
            self.spawn_open(room);
        }
    }

    /// Room for a further connection, which counts as opening, if there may be one without having more
    /// than `limit`.
    fn begin_opening(&self, limit: usize) -> Option<Room> {
        let may_open = self.state.borrow().may_open_more(limit) > 0;
        let room = may_open.then(|| self.opener.memory().reserve(self)).flatten()?;
        self.state.borrow_mut().opening += 1;
        Some(room)
    }

    /// Hands free connections to waiters.
    fn hand_out(self: &Rc<Self>) {
        loop {
            let mut state = self.state.borrow_mut();
            let further = self.opener.memory().further();
            let limit = self.limit.get().min(state.existing() + further);
            let Some(connection) = state.pick(limit, self.order.pipelined()) else {
                self.freed.notify_waiters();
                return;
            };
            // Who speaks first, before any request, is found out by one.
            if connection.served.get() > 0 && !connection.sender.is_quiet() {
                continue;
            }
            let Some(waiter) = state.waiters.pop_front() else { return };
            drop(state);
            // The waiter was there a moment ago; if it is gone, the lease comes back by itself.
            let is_exclusive = !waiter.may_follow && connection.protocol == Protocol::Http11;
            connection.is_exclusive.set(is_exclusive);
            let _ = waiter.turn.send(Ok(self.lease(connection, Some(waiter.bytes))));
        }
    }

    fn lease(self: &Rc<Self>, connection: Rc<Connection>, bytes: Option<u64>) -> Lease {
        Lease::new(connection, Rc::downgrade(self), bytes).awaited()
    }

    /// Retires the connections beyond the limit: first those that have brought no answer, then the least busy ones. Those
    /// that their server has ended, and that bring what is under way, have no part in it.
    fn apply_limit(&self) {
        let mut state = self.state.borrow_mut();
        let worth = |it: &Rc<Connection>| (it.has_answered.get(), it.outstanding.get());
        state.connections.sort_by_key(|connection| Reverse(worth(connection)));
        let open = state.connections.iter().filter(|connection| !connection.is_closed());
        for (rank, connection) in open.enumerate() {
            connection.retiring.set(rank >= self.limit.get());
        }
        drop(state);
        self.close_retired();
    }

    fn close_retired(&self) {
        self.retain(|connection| {
            !(connection.retiring.get() || connection.is_slow.get())
                || connection.outstanding.get() > 0
        });
    }

    /// Keeps the connections that `keep` says; the others close when their last request is done.
    fn retain(&self, mut keep: impl FnMut(&Connection) -> bool) {
        let mut state = self.state.borrow_mut();
        let (kept, gone) = state.connections.drain(..).partition(|connection| keep(connection));
        state.connections = kept;
        drop(state);
        drop::<Vec<_>>(gone);
    }
}
