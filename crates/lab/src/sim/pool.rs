//! The connections of the origin and who waits for them: pelton-core's pool, in virtual time.

use std::cmp::Reverse;
use std::collections::VecDeque;

use pelton_algos::connections::{LONGEST_AHEAD, bears_another, brings_at_once, overfill_flights};
use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;
use pelton_core::connection::Protocol;
use pelton_core::engine::{Event, Fetch};

use super::connection::{Connection, Phase};
use super::transport::Message;
use super::world::World;

/// A connection by its place in [`World::connections`].
pub(super) type ConnectionIndex = u32;

/// Requests that one HTTP/2 connection takes at a time: nginx's `http2_max_concurrent_streams`.
const HTTP2_STREAMS: u32 = 128;

#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) limit: u32,
    /// Requests that each connection shall bear over HTTP/1.1.
    pub(super) pipelined: u32,
    /// The server was seen to answer in order.
    pub(super) in_order: bool,
    pub(super) open: Vec<ConnectionIndex>,
    pub(super) opening: u32,
    /// TLS connections that may be open or shake hands. `None`: any number.
    pub(super) handshakes: Option<u32>,
    /// Connections that shake hands.
    pub(super) shaking: u32,
    /// Connections that are wanted, whoever waits.
    pub(super) wanted: u32,
    /// Connections that wait until they may.
    pub(super) held: VecDeque<ConnectionIndex>,
    pub(super) waiters: VecDeque<StreamId>,
}

/// What pelton-core's pool looks at in a request.
#[derive(Debug, Clone, Copy)]
struct Ask {
    bytes: u64,
    /// It may be sent with others in one piece.
    may_follow: bool,
}

impl Ask {
    fn of(fetch: &Fetch) -> Self {
        let is_long = fetch.expected.is_some_and(|bytes| bytes > LONGEST_AHEAD.0);
        let bytes = fetch.expected.unwrap_or(LONGEST_AHEAD.0).min(LONGEST_AHEAD.0);
        let is_of_whole = fetch.range.is_none() && fetch.parts.is_none();
        Self { bytes, may_follow: is_of_whole && !is_long }
    }
}

/// Requests that are sent in one piece over a connection (HTTP/1.1). None follows while they are answered.
#[derive(Debug, Default)]
pub(super) struct Piece {
    sent: Timestamp,
    bytes: u64,
    may_be_followed: bool,
}

impl Piece {
    fn takes_more(&self, now: Timestamp) -> bool {
        self.may_be_followed && self.sent == now
    }

    fn join(&mut self, now: Timestamp, ask: Ask) {
        let bytes = if self.takes_more(now) { self.bytes } else { 0 };
        let bytes = bytes + ask.bytes;
        *self = Self { sent: now, bytes, may_be_followed: ask.may_follow };
    }
}

impl Pool {
    fn existing(&self) -> u32 {
        self.open.len() as u32 + self.opening
    }

    fn may_begin_tls(&self) -> bool {
        self.handshakes.is_none_or(|most| self.open.len() as u32 + self.shaking < most)
    }
}

impl World {
    /// At most `limit` connections; those that are more close when they are free.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.pool.limit = limit.max(1);
        self.apply_limit();
        self.pump_pool();
    }

    pub(super) fn apply_limit(&mut self) {
        let connections = &self.connections;
        self.pool.open.sort_by_key(|index| Reverse(connections[*index as usize].outstanding));
        let mut free = Vec::new();
        for (rank, index) in self.pool.open.iter().enumerate() {
            let connection = &mut self.connections[*index as usize];
            connection.retiring = rank >= self.pool.limit as usize;
            if connection.retiring && connection.outstanding == 0 {
                free.push(*index);
            }
        }
        for index in free {
            self.close(index);
        }
    }

    /// Makes sure that `count` connections exist or are being opened, as far as the limit allows.
    pub(super) fn open_early(&mut self, count: u32) {
        while self.pool.existing() < count.min(self.pool.limit) {
            self.open_connection();
        }
    }

    /// So many TLS connections may be open or shake hands. What has waited for that and is more than those `wanted` closes.
    pub(super) fn set_handshakes(&mut self, handshakes: Option<u32>, wanted: u32) {
        (self.pool.handshakes, self.pool.wanted) = (handshakes, wanted);
        self.release_held();
    }

    fn release_held(&mut self) {
        while self.pool.may_begin_tls() {
            let Some(index) = self.pool.held.pop_front() else { return };
            let others = self.pool.opening - self.pool.held.len() as u32 - 1;
            let is_waited_for = !self.multiplexes() && self.pool.waiters.len() > others as usize;
            if self.pool.existing() <= self.pool.wanted || is_waited_for {
                self.begin_tls(index);
            } else {
                self.pool.opening -= 1;
                self.connections[index as usize].phase = Phase::Closed;
                self.say_goodbye(index);
                self.hand_out();
            }
        }
    }

    /// A connection that has reached its host.
    pub(super) fn may_begin_tls(&mut self, index: ConnectionIndex) {
        if self.pool.may_begin_tls() {
            self.begin_tls(index);
        } else {
            self.pool.held.push_back(index);
        }
    }

    fn begin_tls(&mut self, index: ConnectionIndex) {
        self.pool.shaking += 1;
        self.upload(index, Message::ClientHello, 0);
    }

    /// Hands free connections to waiters and opens further ones for the rest.
    pub(super) fn pump_pool(&mut self) {
        self.hand_out();
        while self.pool.waiters.len() > self.pool.opening as usize
            && self.pool.existing() < self.pool.limit
        {
            self.open_connection();
        }
    }

    pub(super) fn hand_out(&mut self) {
        while let Some((index, ask)) = self.pick() {
            let Some(stream) = self.pool.waiters.pop_front() else { return };
            let connection = &mut self.connections[index as usize];
            connection.outstanding += 1;
            connection.served += 1;
            connection.piece.join(self.now, ask);
            self.request_over(index, stream);
        }
    }

    /// The connection for the first waiter: one that brings it with what it was asked for in the same moment, or the least
    /// busy one, and of those the warmest. Requests share a connection only where no further one may be opened, and then evenly.
    fn pick(&self) -> Option<(ConnectionIndex, Ask)> {
        let ask = Ask::of(&self.live.get(self.pool.waiters.front()?)?.fetch);
        let existing = self.pool.existing();
        let busy: u32 =
            self.pool.open.iter().map(|i| self.connections[*i as usize].outstanding).sum();
        let requests = busy + self.pool.waiters.len() as u32;
        let share =
            if existing >= self.pool.limit { requests.div_ceil(existing.max(1)) } else { 1 };
        let capacity = match self.multiplexes() {
            true => HTTP2_STREAMS,
            false if self.pool.in_order && ask.may_follow => self.pool.pipelined.max(1),
            false => 1,
        };
        let overfills = capacity > 1 && !self.multiplexes() && self.overfills_flights();
        let comes_along = |connection: &Connection| {
            let Connection { outstanding, served, piece, .. } = connection;
            let is_warm = *served > u64::from(*outstanding);
            !self.multiplexes()
                && (1..capacity).contains(outstanding)
                && piece.takes_more(self.now)
                && brings_at_once(Bytes(piece.bytes + ask.bytes), is_warm)
        };
        let takes_another = |connection: &Connection| {
            let Connection { outstanding, served, piece, .. } = connection;
            let has_room = self.multiplexes() || *outstanding == 0 || {
                let is_warm = *served > u64::from(*outstanding);
                let bytes = Bytes(piece.bytes + ask.bytes);
                piece.takes_more(self.now)
                    && bears_another(*outstanding, capacity, bytes, is_warm, overfills)
            };
            !connection.retiring
                && !connection.spoilt
                && has_room
                && (*outstanding < capacity.min(share) || comes_along(connection))
        };
        self.pool
            .open
            .iter()
            .map(|index| (*index, &self.connections[*index as usize]))
            .filter(|(_, connection)| takes_another(connection))
            .min_by_key(|(_, connection)| {
                let Connection { outstanding, served, .. } = connection;
                (!comes_along(connection), *outstanding, Reverse(*served))
            })
            .map(|(index, _)| (index, ask))
    }

    fn overfills_flights(&self) -> bool {
        let open = || self.pool.open.iter().map(|index| &self.connections[*index as usize]);
        let asks = self.pool.waiters.iter().filter_map(|stream| self.live.get(stream));
        let waiting: u64 = asks.map(|live| Ask::of(&live.fetch).bytes).sum();
        let is_due = |it: &&Connection| it.outstanding > 0 && it.piece.sent == self.now;
        let due: u64 = open().filter(is_due).map(|connection| connection.piece.bytes).sum();
        let is_warm = |it: &&Connection| {
            it.served > u64::from(it.outstanding) || it.outstanding > 0 && it.piece.sent < self.now
        };
        let warm = open().filter(is_warm).count();
        overfill_flights(Bytes(waiting + due), self.pool.existing() as usize - warm, warm)
    }

    pub(super) fn multiplexes(&self) -> bool {
        self.origin.protocol == Protocol::Http2
    }

    /// A connection is ready for requests.
    pub(super) fn adopt(&mut self, index: ConnectionIndex) {
        self.connections[index as usize].phase = Phase::Open;
        let (origin, protocol) = (self.name.clone(), self.origin.protocol);
        self.tell(Event::Connected { origin, protocol });
        self.pool.opening -= 1;
        self.pool.shaking = self.pool.shaking.saturating_sub(1);
        self.pool.open.push(index);
        self.counters.opened += 1;
        self.apply_limit();
        self.pump_pool();
    }

    /// The response of one request is over, or is not wanted any more.
    pub(super) fn release(&mut self, index: ConnectionIndex) {
        let connection = &mut self.connections[index as usize];
        connection.outstanding -= 1;
        let ends = connection.retiring || connection.spoilt;
        if ends && connection.outstanding == 0 {
            self.close(index);
        } else {
            self.hand_out();
        }
    }

    pub(super) fn close(&mut self, index: ConnectionIndex) {
        let connection = &mut self.connections[index as usize];
        if connection.phase == Phase::Closed {
            return;
        }
        connection.phase = Phase::Closed;
        self.pool.open.retain(|other| *other != index);
        self.say_goodbye(index);
        self.release_held();
        self.pump_pool();
    }
}
