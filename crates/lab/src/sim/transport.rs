//! Packets: what the client sends, handshakes, and the server's data with its acknowledgements.

use std::time::Duration;

use pelton_algos::connections::handshake_overdue;
use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};
use pelton_core::engine::Event;

use super::connection::{Connection, Meaning, Phase};
use super::origin::sizes;
use super::pool::ConnectionIndex;
use super::tcp::{Chunk, FIRST_TIMEOUT, HEADER, SEGMENT, SYN};
use super::world::{Happening, World};
use crate::model::Verdict;

/// The receiver waits so long for a second segment before it acknowledges one (Linux's
/// `TCP_DELACK_MIN`).
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// A server that sends no faster than a cap writes so much of it at once, not what the window takes: who ends
/// a connection has had no more of it than its time allows.
const CAPPED_WRITE: Duration = Duration::from_millis(100);
/// Reads of a connection between two looks at its round-trip time, as pelton-core's `wire` does.
const READS_PER_RTT: u32 = 64;

/// What happened so long ago is told no more. The driver, which looks by time and not by reads, has it by then.
const NEWS: Duration = Duration::from_secs(3);

/// What the client says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Message {
    Syn,
    ClientHello,
    Request(StreamId),
    /// So many bytes more of its range, behind what was asked for before (HTTP/1.1).
    Further(StreamId, u64),
    /// Nothing more of this stream is wanted (HTTP/2).
    Reset(StreamId),
    /// So many bytes more of this stream may come, or of each (HTTP/2).
    Credit(Option<StreamId>, u64),
    Close,
}

impl World {
    pub(super) fn open_connection(&mut self) {
        self.pool.opening += 1;
        let index = self.connections.len() as u32;
        self.connections.push(Connection::new(self.receive_window, FIRST_TIMEOUT, self.now));
        self.upload(index, Message::Syn, 0);
    }

    /// The client sends `message`; when it is lost, once more after a time-out that doubles.
    pub(super) fn upload(&mut self, index: ConnectionIndex, message: Message, attempt: u32) {
        let connection = &self.connections[index as usize];
        let http2 = self.multiplexes();
        let payload = match message {
            Message::Syn => SYN - HEADER,
            Message::ClientHello => sizes::CLIENT_HELLO,
            Message::Request(_) if http2 => sizes::REQUEST_HTTP2,
            Message::Request(_) if self.pool.in_order && self.pool.pipelined > 1 => {
                2 * sizes::REQUEST
            }
            Message::Request(_) | Message::Further(..) => sizes::REQUEST,
            Message::Reset(_) | Message::Credit(..) => 40,
            Message::Close => 0,
        };
        let timeout = match message {
            Message::Syn => self.syn_timeout(),
            _ => connection.sender.timeout(),
        };
        self.counters.sent += payload;
        self.counters.packets += 1;
        let sent = self.now;
        match self.link.up.offer(self.now, Bytes(payload + HEADER)) {
            Verdict::Delivered { at } => {
                self.agenda.plan(at, Happening::AtServer { index, message, sent });
            }
            Verdict::Dropped(_) => {
                let again = self.now + timeout.saturating_mul(1 << attempt.min(6));
                self.agenda.plan(again, Happening::Upload { index, message, attempt: attempt + 1 });
            }
        }
    }

    /// When pelton-core tries another handshake, or the kernel sends a SYN again.
    fn syn_timeout(&self) -> Duration {
        self.handshake_took.map_or(FIRST_TIMEOUT, handshake_overdue)
    }

    pub(super) fn say_goodbye(&mut self, index: ConnectionIndex) {
        self.upload(index, Message::Close, 0);
    }

    pub(super) fn on_message(&mut self, index: ConnectionIndex, message: Message, sent: Timestamp) {
        match message {
            Message::Syn => match self.link.down.offer(self.now, Bytes(SYN)) {
                Verdict::Delivered { at } => {
                    self.agenda.plan(at, Happening::SynAck { index, sent });
                }
                Verdict::Dropped(_) => {
                    let again = Happening::Upload { index, message, attempt: 1 };
                    self.agenda.plan(self.now + self.syn_timeout(), again);
                }
            },
            Message::ClientHello => {
                let connection = &mut self.connections[index as usize];
                connection.put(Meaning::Handshake, sizes::SERVER_HANDSHAKE);
                self.pump(index);
            }
            Message::Request(stream) => self.on_request(index, stream),
            Message::Further(stream, bytes) => self.on_further(index, stream, bytes),
            Message::Reset(stream) => {
                let connection = &mut self.connections[index as usize];
                let ended = connection.forget(stream) && !connection.gone;
                self.responses_under_way -= u32::from(ended);
            }
            Message::Credit(stream, bytes) => {
                self.connections[index as usize].allow(stream, bytes);
                self.pump(index);
            }
            Message::Close => {
                let connection = &mut self.connections[index as usize];
                if !std::mem::replace(&mut connection.gone, true) {
                    self.responses_under_way -= connection.unwritten().count() as u32;
                }
            }
        }
    }

    pub(super) fn on_syn_ack(&mut self, index: ConnectionIndex, sent: Timestamp) {
        let rtt = self.now.saturating_since(sent);
        self.handshake_took = Some(rtt);
        let connection = &mut self.connections[index as usize];
        *connection = Connection::new(self.receive_window, rtt, connection.begun);
        self.tell(Event::Reached { origin: self.name.clone(), rtt });
        if self.origin.tls {
            self.may_begin_tls(index);
        } else {
            self.adopt(index);
        }
    }

    /// The server sends what windows and caps allow.
    pub(super) fn pump(&mut self, index: ConnectionIndex) {
        let caps = [self.cap(index), self.origin.rate].into_iter().flatten();
        let most = caps.map(|cap| (cap * CAPPED_WRITE).0.max(SEGMENT)).min().unwrap_or(u64::MAX);
        loop {
            let now = self.now;
            let connection = &mut self.connections[index as usize];
            if connection.gone {
                return;
            }
            let allowed = connection.paced_until.max(self.origin_paced_until);
            if allowed > now {
                if !std::mem::replace(&mut connection.pump_planned, true) {
                    self.agenda.plan(allowed, Happening::Pump { index });
                }
                return;
            }
            let under_way = &mut self.responses_under_way;
            connection.write(|_| *under_way -= 1);
            let waiting = connection.waiting().min(most);
            let Some(chunk) = connection.sender.next_chunk(now, waiting) else { break };
            self.transmit(index, chunk);
        }
        self.watch_timer(index);
    }

    /// What the server sends over this connection at most.
    fn cap(&self, index: ConnectionIndex) -> Option<BitRate> {
        let crawling = self.origin.crawling_connection.filter(|(number, _)| *number == index);
        crawling.map(|(_, rate)| rate).or(self.origin.connection_rate)
    }

    fn transmit(&mut self, index: ConnectionIndex, chunk: Chunk) {
        let cap = self.cap(index);
        let connection = &mut self.connections[index as usize];
        let pace = |rate: Option<BitRate>| rate.map(|rate| Bytes(chunk.length) / rate);
        if let Some(time) = pace(cap) {
            connection.paced_until = connection.paced_until.max(self.now) + time;
        }
        if let Some(time) = pace(self.origin.rate) {
            self.origin_paced_until = self.origin_paced_until.max(self.now) + time;
        }
        let mut run = Chunk { start: chunk.start, length: 0 };
        let mut fate = None;
        let mut start = chunk.start;
        while start < chunk.start + chunk.length {
            let length = SEGMENT.min(chunk.start + chunk.length - start);
            let arrives = match self.link.down.offer(self.now, Bytes(length + HEADER)) {
                Verdict::Delivered { at } => Some(at),
                Verdict::Dropped(_) => None,
            };
            self.segments += 1;
            if run.length > 0 && fate.is_some() != arrives.is_some() {
                self.send_run(index, run, fate);
                run = Chunk { start, length: 0 };
            }
            run.length += length;
            fate = arrives;
            start += length;
        }
        self.send_run(index, run, fate);
    }

    /// Segments in a row that share their fate: all lost, or the last of them arriving at `fate`.
    fn send_run(&mut self, index: ConnectionIndex, run: Chunk, fate: Option<Timestamp>) {
        let number = self.connections[index as usize].sender.on_sent(self.now, run);
        match fate {
            Some(at) => self.agenda.plan(at, Happening::Arrival { index, chunk: run, number }),
            None => self.lost_segments += run.segments(),
        }
    }

    pub(super) fn on_arrival(&mut self, index: ConnectionIndex, chunk: Chunk, number: u64) {
        // What was on its way to a connection that is closed comes all the same.
        self.counters.received += chunk.length;
        self.counters.packets += chunk.segments();
        let connection = &mut self.connections[index as usize];
        if connection.phase == Phase::Closed {
            return;
        }
        connection.sender.note_arrival(number);
        let is_early = chunk.start > connection.receiver.next_byte();
        connection.out_of_order += u32::from(is_early);
        let rtt = connection.min_rtt;
        let looks = connection.losses.on_bytes(self.now, Bytes(chunk.length), rtt);
        if looks && connection.losses.on_count(connection.out_of_order) {
            self.mailbox.push_back(Event::Loss);
        }
        if connection.receiver.on_chunk(chunk, number) {
            self.acknowledge(index);
        } else if !std::mem::replace(&mut connection.receiver.delayed_ack, true) {
            self.agenda.plan(self.now + DELAYED_ACK, Happening::DelayedAck { index });
        }
        let connection = &mut self.connections[index as usize];
        self.mailbox.extend(connection.news_of_rtt(self.now));
        connection.reads += 1;
        if connection.reads == READS_PER_RTT {
            connection.reads = 0;
            self.tell_rtt(index);
        }
        self.read(index);
    }

    /// Tells the engine the least round trip of a connection when it has fallen.
    pub(super) fn tell_rtt(&mut self, index: ConnectionIndex) {
        let connection = &mut self.connections[index as usize];
        if connection.min_rtt < connection.told_rtt {
            connection.told_rtt = connection.min_rtt;
            // Of a connection that has idled it says nothing of the path as it is.
            if self.now.saturating_since(connection.min_rtt_at) <= NEWS {
                self.mailbox.push_back(Event::Rtt(connection.min_rtt));
            }
        }
    }

    pub(super) fn acknowledge(&mut self, index: ConnectionIndex) {
        let receiver = &mut self.connections[index as usize].receiver;
        let count = receiver.acknowledge();
        let (number, cumulative) = (receiver.last_number, receiver.next_byte());
        self.counters.packets += count;
        if let Verdict::Delivered { at } = self.link.up.offer(self.now, Bytes(count * HEADER)) {
            self.agenda.plan(at, Happening::Ack { index, number, cumulative });
        }
    }

    pub(super) fn on_delayed_ack(&mut self, index: ConnectionIndex) {
        let connection = &self.connections[index as usize];
        let due = connection.receiver.delayed_ack && connection.receiver.has_unacknowledged();
        if due && connection.phase != Phase::Closed {
            self.acknowledge(index);
        }
    }

    pub(super) fn on_ack(&mut self, index: ConnectionIndex, number: u64, cumulative: u64) {
        let connection = &mut self.connections[index as usize];
        connection.sender.on_ack(self.now, number, cumulative);
        self.pump(index);
    }

    /// Plans a look at the sender's timer unless one is planned already.
    fn watch_timer(&mut self, index: ConnectionIndex) {
        let connection = &mut self.connections[index as usize];
        let Some(at) = connection.sender.deadline() else { return };
        if connection.timer_planned.is_none_or(|planned| at < planned) {
            connection.timer_planned = Some(at);
            self.agenda.plan(at, Happening::SenderTimer { index, planned: at });
        }
    }

    pub(super) fn on_sender_timer(&mut self, index: ConnectionIndex, planned: Timestamp) {
        let connection = &mut self.connections[index as usize];
        if connection.gone || connection.timer_planned != Some(planned) {
            return;
        }
        connection.timer_planned = None;
        if connection.sender.deadline().is_some_and(|at| at <= self.now) {
            connection.sender.on_timer(self.now);
            self.pump(index);
        } else {
            self.watch_timer(index);
        }
    }
}
