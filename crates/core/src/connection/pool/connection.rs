//! One connection, and the right to send a request over it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use http::Request;
use pelton_algos::connections::{bears_another, brings_at_once};
use pelton_algos::units::Bytes;

use super::super::memory::Room;
use super::super::open::{Sender, Sent};
use super::super::telemetry::{ConnectionId, Protocol};
use super::OriginSet;
use super::batch::Batch;

/// One open connection.
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) protocol: Protocol,
    pub(super) sender: Sender,
    /// How many requests it takes at a time.
    pub(super) capacity: Rc<Cell<usize>>,
    /// Bytes that are still to come of the answers that are being read.
    to_come: Rc<Cell<u64>>,
    pub(super) outstanding: Cell<usize>,
    /// How many of those are for a head behind another.
    pub(super) proofs: Cell<usize>,
    /// What went out in one piece with those that are under way.
    batch: RefCell<Rc<Batch>>,
    /// Bytes that the answers to all of them are expected to have.
    pub(super) awaited: Cell<u64>,
    /// A request over it is over.
    pub(super) is_warm: Cell<bool>,
    /// It has brought an answer that is none of an overloaded server.
    pub(super) has_answered: Cell<bool>,
    /// Requests that were answered over it, whatever was said.
    pub(super) answers: Cell<u32>,
    /// Requests in a row that were refused over it: some servers limit how many each connection may make.
    pub(super) refusals: Cell<u32>,
    /// How many requests it was given so far.
    pub(super) served: Cell<u64>,
    /// Whether it is one more than the limit allows: it takes no request and closes when it is free.
    pub(super) retiring: Cell<bool>,
    /// Whether it crawls: others are preferred, and it closes when it is free.
    pub(super) is_slow: Cell<bool>,
    /// Whether it serves a request that none may be sent behind (HTTP/1.1).
    pub(super) is_exclusive: Cell<bool>,
    /// How long it took to open, in place of one that its server ended. Zero where it is no such one.
    replacement_took: Duration,
    pub(super) _room: Room,
}

impl Connection {
    pub(super) fn new(
        id: ConnectionId,
        protocol: Protocol,
        sender: Sender,
        capacity: Rc<Cell<usize>>,
        to_come: Rc<Cell<u64>>,
        room: Room,
        replacement_took: Duration,
    ) -> Self {
        Self {
            id,
            protocol,
            sender,
            capacity,
            to_come,
            outstanding: Cell::default(),
            proofs: Cell::default(),
            batch: RefCell::default(),
            awaited: Cell::default(),
            is_warm: Cell::default(),
            has_answered: Cell::default(),
            answers: Cell::default(),
            refusals: Cell::default(),
            served: Cell::default(),
            retiring: Cell::default(),
            is_slow: Cell::default(),
            is_exclusive: Cell::default(),
            replacement_took,
            _room: room,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether it takes a request now, for an answer of some `bytes`. Over HTTP/1.1 it bears `pipelined` at
    /// a time, in its first flight unless what is asked for `overfills` those of all.
    pub(super) fn takes_another(&self, pipelined: u32, bytes: u64, overfills: bool) -> bool {
        let asked = self.asked();
        let has_room = match self.protocol {
            Protocol::Http11 if self.is_exclusive.get() => false,
            Protocol::Http11 => {
                let bytes = Bytes(self.awaited.get() + bytes);
                bears_another(asked, pipelined, bytes, self.is_warm.get(), overfills)
            }
            Protocol::Http2 => (asked as usize) < self.capacity.get(),
        };
        has_room && !self.retiring.get() && self.sender.is_ready()
    }

    /// Whether it brings an answer of some `bytes` together with what it was asked for in the same moment, as it bears
    /// `pipelined` (HTTP/1.1).
    pub(super) fn brings_along(&self, pipelined: u32, bytes: u64) -> bool {
        self.protocol == Protocol::Http11
            && (1..pipelined).contains(&self.asked())
            && brings_at_once(Bytes(self.awaited.get() + bytes), self.is_warm.get())
    }

    /// One request more, and one for its head, goes out with those that are to be answered.
    pub(super) fn join_batch(&self) -> Rc<Batch> {
        let mut batch = self.batch.borrow_mut();
        if !batch.is_open() {
            *batch = Rc::default();
        }
        batch.join();
        Rc::clone(&batch)
    }

    /// Requests under way, but for those that only prove what others are answered with.
    pub(super) fn asked(&self) -> u32 {
        (self.outstanding.get() - self.proofs.get()) as u32
    }
}

/// The right to send one request over a connection. Dropping it gives the place free.
pub(in crate::connection) struct Lease {
    pub(super) connection: Rc<Connection>,
    set: Weak<OriginSet>,
    /// Whether the connection had served another request before.
    pub(in crate::connection) reused: bool,
    /// Whether the answers to others come before that to this one (HTTP/1.1).
    pub(in crate::connection) is_behind: bool,
    /// Bytes that its answer is expected to have; `None` for the head behind another.
    bytes: Option<u64>,
    /// What of those is still to come, once it is being read.
    to_come: Cell<u64>,
    /// Its request is not sent yet.
    is_awaited: Cell<bool>,
}

impl Lease {
    /// Its request was refused, or answered otherwise.
    pub(in crate::connection) fn note_refusal(&self, is_refused: bool) {
        let before = self.connection.refusals.get();
        self.connection.refusals.set(if is_refused { before + 1 } else { 0 });
    }

    /// Requests that were answered over its connection.
    pub(in crate::connection) fn answers(&self) -> u32 {
        self.connection.answers.get()
    }

    /// Requests in a row that were refused over its connection, this one included.
    pub(in crate::connection) fn refusals(&self) -> u32 {
        self.connection.refusals.get()
    }

    /// How long its request waited for a connection in place of one that its server ended.
    pub(in crate::connection) fn replacement_took(&self) -> Duration {
        if self.reused { Duration::ZERO } else { self.connection.replacement_took }
    }

    /// For an answer that is expected to have `bytes`; `None` for the head behind another.
    pub(super) fn new(
        connection: Rc<Connection>,
        set: Weak<OriginSet>,
        bytes: Option<u64>,
    ) -> Self {
        let (before, served) = (connection.outstanding.get(), connection.served.get());
        connection.outstanding.set(before + 1);
        connection.proofs.set(connection.proofs.get() + usize::from(bytes.is_none()));
        connection.awaited.set(connection.awaited.get() + bytes.unwrap_or_default());
        connection.served.set(served + 1);
        let is_behind = before > 0 && connection.protocol == Protocol::Http11;
        Self {
            connection,
            set,
            reused: served > 0,
            is_behind,
            bytes,
            to_come: Cell::default(),
            is_awaited: Cell::default(),
        }
    }

    /// The same for a request that will be sent in a moment, in one piece with others of that moment.
    pub(super) fn awaited(self) -> Self {
        self.connection.sender.begin_wait();
        self.is_awaited.set(true);
        self
    }

    fn end_wait(&self) {
        if self.is_awaited.take() {
            self.connection.sender.end_wait();
        }
    }

    pub(in crate::connection) fn id(&self) -> ConnectionId {
        self.connection.id
    }

    pub(in crate::connection) fn protocol(&self) -> Protocol {
        self.connection.protocol
    }

    /// Bytes that are still to come of the answer.
    pub(in crate::connection) fn note_to_come(&self, bytes: u64) {
        let of_all = &self.connection.to_come;
        of_all.set(of_all.get().saturating_sub(self.to_come.replace(bytes)).saturating_add(bytes));
    }

    /// Sends a request behind that of this lease, for one who reads both answers one after the other.
    /// `None` where the connection takes none.
    pub(in crate::connection) fn send_behind(
        &self,
        request: Request<()>,
    ) -> Option<(Self, LocalBoxFuture<'static, Sent>)> {
        let connection = &self.connection;
        if connection.retiring.get() || connection.is_slow.get() {
            return None;
        }
        let answer = connection.sender.send_behind(request)?;
        Some((Self::new(Rc::clone(connection), self.set.clone(), self.bytes), answer))
    }

    pub(in crate::connection) fn send(
        &self,
        request: Request<()>,
    ) -> LocalBoxFuture<'static, Sent> {
        let answer = self.connection.sender.send(request);
        self.end_wait();
        answer
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end_wait();
        let connection = &self.connection;
        connection.outstanding.set(connection.outstanding.get() - 1);
        connection.proofs.set(connection.proofs.get() - usize::from(self.bytes.is_none()));
        let bytes = self.bytes.unwrap_or_default();
        connection.awaited.set(connection.awaited.get() - bytes);
        self.note_to_come(0);
        connection.is_warm.set(true);
        connection.is_exclusive.set(false);
        if let Some(set) = self.set.upgrade() {
            if self.connection.retiring.get() || self.connection.is_slow.get() {
                set.close_retired();
            } else if set.opener.memory().is_wanted() {
                set.close_idle();
            } else {
                set.hand_out();
            }
        }
    }
}
