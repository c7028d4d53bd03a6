//! Requests and their responses, as pelton-core's `fetch` sees them.

use std::time::Duration;

use pelton_algos::connections::LONGEST_AHEAD;
use pelton_algos::credit::{StreamCredit, news_of_promise};
use pelton_algos::parts::Parts;
use pelton_algos::ranges::StreamId;
use pelton_algos::units::Bytes;
use pelton_core::ErrorKind;
use pelton_core::connection::{ConnectionId, Protocol};
use pelton_core::engine::{Event, Failure, Fetch, Head, Outcome, Ranges, Validator};

use super::connection::{Delivery, Meaning, Phase};
use super::origin::sizes;
use super::pool::ConnectionIndex;
use super::transport::Message;
use super::world::{Happening, World};

/// A request that the engine wants something of.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) fetch: Fetch,
    /// The connection that it was given.
    pub(super) connection: Option<ConnectionIndex>,
    asked_at: pelton_algos::time::Timestamp,
    refused: bool,
    /// The engine was told of its head.
    has_begun: bool,
    head_left: u64,
    pub(super) position: u64,
    /// Where it stops: the end of its range or a cut.
    pub(super) end: u64,
    /// Up to where it was asked for.
    body_end: u64,
    parts: Option<Parts>,
    credit: StreamCredit,
    /// Bytes of the body that came, wanted or not.
    received: u64,
    /// Credit that the server was told of, and such as waits to be worth a frame.
    told: u64,
    untold: u64,
    /// The engine was told that the server may send up to here.
    promised: u64,
}

impl World {
    pub(super) fn fetch(&mut self, fetch: Fetch) {
        let stream = fetch.stream;
        let size = self.sizes[fetch.file.index()];
        let (position, body_end) = match &fetch.range {
            Some(range) => (range.start, range.end.min(size)),
            None => (0, size),
        };
        let outset = fetch.parts.filter(|_| !self.multiplexes());
        let mut parts = outset.map(|outset| Parts::starting(position, outset));
        let end = body_end;
        // Who asks for a whole file does not know how long it is.
        let known = fetch.range.as_ref().map_or(u64::MAX, |_| end);
        let body_end = parts.as_mut().and_then(|parts| parts.next(position, known));
        let body_end = body_end.map_or(end, |asked| asked.min(end));
        let live = Live {
            fetch,
            connection: None,
            asked_at: self.now,
            refused: false,
            has_begun: false,
            head_left: if self.multiplexes() { sizes::HEAD_HTTP2 } else { sizes::HEAD },
            position,
            end,
            body_end,
            parts,
            credit: StreamCredit::default(),
            received: 0,
            told: 0,
            untold: 0,
            promised: 0,
        };
        self.live.insert(stream, live);
        self.pool.waiters.push_back(stream);
        self.pump_pool();
    }

    pub(super) fn request_over(&mut self, index: ConnectionIndex, stream: StreamId) {
        if let Some(live) = self.live.get_mut(&stream) {
            live.connection = Some(index);
            live.asked_at = self.now;
        }
        if !self.multiplexes() {
            self.connections[index as usize].in_turn.push_back(stream);
        }
        self.upload(index, Message::Request(stream), 0);
    }

    /// A request reached the server.
    pub(super) fn on_request(&mut self, index: ConnectionIndex, stream: StreamId) {
        let bears = self.origin.overload.map_or(u32::MAX, |overload| overload.bears);
        if let Some(live) = self.live.get_mut(&stream) {
            live.refused = self.responses_under_way >= bears;
        }
        self.responses_under_way += 1;
        let mut begins = self.now;
        if !self.multiplexes() {
            let connection = &mut self.connections[index as usize];
            begins = begins.max(connection.served_at);
            connection.served_at = begins + self.origin.latency;
        }
        self.agenda.plan(begins + self.origin.latency, Happening::Respond { index, stream });
    }

    /// A request for the next part of a range reached the server.
    pub(super) fn on_further(&mut self, index: ConnectionIndex, stream: StreamId, bytes: u64) {
        let connection = &mut self.connections[index as usize];
        if connection.gone || !self.live.contains_key(&stream) {
            return;
        }
        self.responses_under_way += 1;
        connection.put(Meaning::Further(stream), sizes::HEAD);
        connection.put(Meaning::Body(stream), bytes);
        self.pump(index);
    }

    pub(super) fn respond(&mut self, index: ConnectionIndex, stream: StreamId) {
        let connection = &mut self.connections[index as usize];
        let Some(live) = self.live.get(&stream).filter(|_| !connection.gone) else {
            self.responses_under_way -= 1;
            return;
        };
        let body = if live.refused { sizes::REFUSAL_BODY } else { live.body_end - live.position };
        connection.put(Meaning::Head(stream), live.head_left);
        if body > 0 {
            connection.put(Meaning::Body(stream), body);
            if self.origin.protocol == Protocol::Http2 {
                connection.bound(stream);
            } else if self.pool.in_order && self.pool.pipelined > 1 {
                // The answer to the request for its head behind it.
                connection.put(Meaning::Head(stream), sizes::HEAD);
            }
        } else {
            self.responses_under_way -= 1;
        }
        self.pump(index);
    }

    /// The client reads what is there in order.
    pub(super) fn read(&mut self, index: ConnectionIndex) {
        loop {
            let connection = &mut self.connections[index as usize];
            let Some(delivery) = connection.next_delivery() else { return };
            connection.credit.on_rtt(connection.min_rtt);
            connection.credit.on_bytes(self.now, delivery.bytes);
            let rtt = connection.min_rtt;
            self.look_at_pace(delivery, rtt);
            match delivery.meaning {
                Meaning::Handshake => self.on_handshake_bytes(index),
                Meaning::Head(stream) => self.on_head_bytes(index, stream, delivery.bytes),
                Meaning::Further(_) => {}
                Meaning::Body(stream) => self.on_body_bytes(index, stream, delivery.bytes),
            }
            if self.connections[index as usize].phase == Phase::Closed {
                return;
            }
        }
    }

    /// A body wants `wanted` more: wider windows are told as pelton-core's `http2` tells them.
    fn widen(&mut self, index: ConnectionIndex, wanted: u64) {
        let connection = &mut self.connections[index as usize];
        let window = connection.credit.window().min(wanted);
        if let Some(more) = window.checked_sub(connection.window).filter(|more| *more > 0) {
            connection.window = window;
            self.upload(index, Message::Credit(None, more), 0);
        }
    }

    /// `bytes` of the body of `stream` were read: its server gets credit again, as far as more is wanted.
    fn give_credit(&mut self, index: ConnectionIndex, stream: StreamId, bytes: u64) {
        let connection = &self.connections[index as usize];
        let Some(live) = self.live.get_mut(&stream) else { return };
        live.received += bytes;
        live.credit.on_received(bytes);
        let share = connection.credit.share(connection.outstanding.into());
        let wanted = live.end.saturating_sub(live.position);
        let bound = if live.end < live.body_end { wanted } else { u64::MAX };
        live.untold += live.credit.release(connection.window, share, bound);
        // As h2 puts small amounts off.
        let left = (connection.window + live.told).saturating_sub(live.received);
        if live.untold > 0 && live.untold >= left / 2 {
            let more = std::mem::take(&mut live.untold);
            live.told += more;
            self.upload(index, Message::Credit(Some(stream), more), 0);
        }
        self.widen(index, wanted);
        self.tell_of_promise(index, stream);
    }

    /// As pelton-core's `fetch` does.
    fn tell_of_promise(&mut self, index: ConnectionIndex, stream: StreamId) {
        let window = self.connections[index as usize].window;
        let Some(live) = self.live.get_mut(&stream) else { return };
        let ahead = (window + live.told).saturating_sub(live.received);
        if let Some(end) = news_of_promise(live.position, ahead, live.promised) {
            live.promised = end;
            self.tell(Event::Promised { stream, end });
        }
    }

    /// At what pace the first answers come is seen on the wire, as pelton-core's `telemetry` does.
    fn look_at_pace(&mut self, delivery: Delivery, rtt: Duration) {
        let bytes = Bytes(delivery.bytes);
        let are_answers = delivery.meaning != Meaning::Handshake;
        if let Some(pace) = self.pace.on_wire(self.now, bytes, rtt, are_answers) {
            self.tell(Event::Pace(pace));
        }
    }

    fn on_handshake_bytes(&mut self, index: ConnectionIndex) {
        let there = self.connections[index as usize].receiver.next_byte();
        if there >= sizes::SERVER_HANDSHAKE {
            self.adopt(index);
        }
    }

    fn on_head_bytes(&mut self, index: ConnectionIndex, stream: StreamId, bytes: u64) {
        let Some(live) = self.live.get_mut(&stream) else { return };
        live.head_left = live.head_left.saturating_sub(bytes);
        if live.head_left > 0 {
            return;
        }
        let rtt = self.now.saturating_since(live.asked_at).saturating_sub(self.origin.latency);
        let connection = &mut self.connections[index as usize];
        if rtt < connection.min_rtt {
            (connection.min_rtt, connection.min_rtt_at) = (rtt, self.now);
        }
        if live.refused {
            let mut failure = Failure::new(ErrorKind::Overloaded, "the server is overloaded");
            failure.retry_after = self.origin.overload.and_then(|overload| overload.retry_after);
            self.live.remove(&stream);
            connection.in_turn.pop_front();
            self.tell(Event::Ended { stream, result: Outcome::Failed(failure) });
            self.release(index);
            return;
        }
        let head = Head {
            total: Some(self.sizes[live.fetch.file.index()]),
            ranges: Ranges::Given,
            partial: live.fetch.range.is_some() || live.parts.is_some(),
            validator: Validator { etag: Some("\"1\"".to_owned()), ..Validator::default() },
            digest: None,
            modified: None,
            compressed: false,
            url: live.fetch.url.clone(),
            origin: self.name.clone(),
            protocol: self.origin.protocol,
            connection: ConnectionId(index.into()),
            response_time: self.now.saturating_since(live.asked_at),
            waited_before: Duration::ZERO,
        };
        let is_empty = live.position >= live.body_end;
        self.pace.on_file();
        if let Some(parts) = live.parts.as_mut().filter(|_| !live.has_begun) {
            parts.on_answer(head.response_time, Some(connection.min_rtt));
        }
        let (is_in_parts, body_end) = (live.parts.is_some(), live.body_end);
        let has_begun = live.has_begun;
        let is_long = live.body_end - live.position > LONGEST_AHEAD.0;
        if self.multiplexes() {
            self.tell_of_promise(index, stream);
        }
        if !has_begun {
            self.tell(Event::Head { stream, head });
        }
        if is_in_parts {
            self.tell(Event::Asked { stream, end: body_end });
        }
        if is_long && !self.multiplexes() {
            self.send_elsewhere(index, 1);
        }
        if is_empty {
            self.complete(index, stream);
        }
    }

    fn on_body_bytes(&mut self, index: ConnectionIndex, stream: StreamId, bytes: u64) {
        // What a stopped stream still brings is read and thrown away, as a refusal's page is.
        let Some(live) = self.live.get_mut(&stream) else { return };
        let kept = bytes.min(live.end.saturating_sub(live.position));
        live.position += kept;
        let mut further = None;
        let connection = &self.connections[index as usize];
        let is_alone = connection.in_turn.len() <= 1 && !connection.spoilt;
        if let Some(parts) = &mut live.parts {
            parts.on_bytes(self.now, bytes);
            if is_alone && let Some(end) = parts.next(live.position, live.end) {
                further = Some(end - live.body_end);
                live.body_end = end;
            }
        }
        let is_whole = live.position >= live.body_end;
        let is_stopped = live.position >= live.end;
        if kept > 0 {
            self.tell(Event::Data { stream, bytes: kept });
        }
        if let Some(bytes) = further {
            self.upload(index, Message::Further(stream, bytes), 0);
            let asked = self.live.get(&stream).map_or(0, |live| live.body_end);
            self.tell(Event::Asked { stream, end: asked });
        }
        if is_whole && !is_stopped {
            self.ask_for_rest(index, stream);
        } else if is_whole {
            self.complete(index, stream);
        } else if is_stopped {
            self.live.remove(&stream);
            self.tell(Event::Ended { stream, result: Outcome::Complete });
            self.stop(index, stream);
        } else if self.multiplexes() {
            self.give_credit(index, stream, bytes);
        }
    }

    /// What could not be asked for before its turn is asked for elsewhere.
    fn ask_for_rest(&mut self, index: ConnectionIndex, stream: StreamId) {
        if let Some(live) = self.live.get_mut(&stream) {
            if let Some(parts) = &mut live.parts {
                parts.begin_again(live.position);
                live.body_end = parts.next(live.position, live.end).unwrap_or(live.end);
            }
            live.connection = None;
            live.head_left = sizes::HEAD;
            live.has_begun = true;
            self.pool.waiters.push_front(stream);
        }
        self.connections[index as usize].in_turn.pop_front();
        self.release(index);
    }

    fn complete(&mut self, index: ConnectionIndex, stream: StreamId) {
        self.live.remove(&stream);
        self.tell(Event::Ended { stream, result: Outcome::Complete });
        self.connections[index as usize].in_turn.pop_front();
        self.see_order();
        self.release(index);
    }

    /// The first answer shows whether further ones come in order: what is asked for behind it to find
    /// that out is a head, which costs next to nothing and is left out here.
    fn see_order(&mut self) {
        if self.pool.pipelined != 1 && !self.multiplexes() && !self.pool.in_order {
            self.pool.in_order = true;
            let origin = self.name.clone();
            self.tell(Event::Pipelines { origin, does: true });
        }
    }

    /// Requests behind the first `kept` of a connection go elsewhere, and their answers are for nobody.
    fn send_elsewhere(&mut self, index: ConnectionIndex, kept: usize) {
        let connection = &mut self.connections[index as usize];
        let behind = connection.in_turn.split_off(kept.min(connection.in_turn.len()));
        connection.spoilt |= !behind.is_empty();
        connection.outstanding -= behind.len() as u32;
        for stream in behind.into_iter().rev() {
            if let Some(live) = self.live.get_mut(&stream) {
                live.connection = None;
                live.head_left = sizes::HEAD;
                self.pool.waiters.push_front(stream);
            }
        }
        self.pump_pool();
    }

    /// A response is given up: over HTTP/1.1 its connection with it.
    pub(super) fn stop(&mut self, index: ConnectionIndex, stream: StreamId) {
        if self.origin.protocol == Protocol::Http2 {
            self.upload(index, Message::Reset(stream), 0);
            self.release(index);
        } else {
            let connection = &mut self.connections[index as usize];
            let position = connection.in_turn.iter().position(|other| *other == stream);
            let position = position.unwrap_or_default();
            self.send_elsewhere(index, position + 1);
            let connection = &mut self.connections[index as usize];
            connection.in_turn.pop_back();
            connection.outstanding -= 1;
            connection.spoilt = true;
            if position == 0 {
                self.close(index);
            }
        }
    }

    /// The connection of a stream that crawls takes no further request.
    pub(super) fn shun_connection_of(&mut self, stream: StreamId) {
        if let Some(index) = self.live.get(&stream).and_then(|live| live.connection) {
            self.connections[index as usize].spoilt = true;
        }
    }

    pub(super) fn abort(&mut self, stream: StreamId) {
        let Some(live) = self.live.remove(&stream) else { return };
        match live.connection {
            Some(index) => self.stop(index, stream),
            None => self.pool.waiters.retain(|waiter| *waiter != stream),
        }
    }
}
