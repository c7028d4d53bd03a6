//! One direction of a TCP connection: the server's sender and the client's receiver.
//!
//! A *chunk* is what leaves at once: two segments or about a millisecond's worth, as Linux sizes its
//! offloaded packets. Everything that a chunk meets on the link it meets segment by segment.

mod receiver;
mod round_trips;

use std::collections::VecDeque;
use std::time::Duration;

use pelton_algos::time::Timestamp;

pub(super) use self::receiver::Receiver;
use self::round_trips::RoundTrips;
use super::cubic::{Acked, Cubic};

/// Payload of a full segment: 1500 bytes without [`HEADER`].
pub(super) const SEGMENT: u64 = 1448;
/// IPv4 20, TCP 20, timestamps 12 (RFC 7323 section 3.2).
pub(super) const HEADER: u64 = 52;
/// A SYN: IPv4 20, TCP 20, options 20.
pub(super) const SYN: u64 = 60;
/// Before the first sample of the round trip (RFC 6298 section 2.1).
pub(super) const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// The most that the variance term is taken to be less than: Linux's `tcp_rto_min`.
const LEAST_VARIANCE_TERM: Duration = Duration::from_millis(200);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Segments of one offloaded packet: 64 KiB.
const MOST_SEGMENTS: u64 = 44;
/// A chunk holds what the window moves in this time.
const CHUNK_TIME: f64 = 0.002;
/// Later segments that must have arrived before one counts as lost (RFC 6675 section 2).
const DUPLICATES: u64 = 3;

/// Six initial windows of ten segments.
const LEAST_SEND_BUFFER: u64 = 60 * SEGMENT;
/// The largest value of the emulator's `tcp_wmem`.
const MOST_SEND_BUFFER: u64 = 4 << 20;

/// Bytes `start..start + length` of a connection's sequence space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) length: u64,
}

impl Chunk {
    pub(super) const fn segments(self) -> u64 {
        self.length.div_ceil(SEGMENT)
    }
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    chunk: Chunk,
    at: Timestamp,
    again: bool,
    /// It reached the receiver; the sender learns it from an acknowledgement.
    arrived: bool,
    /// Acknowledged, or given up as lost: waits for those before it.
    settled: bool,
    /// Segments sent later that were acknowledged.
    passed_by: u64,
}

#[derive(Debug)]
pub(super) struct Sender {
    cubic: Cubic,
    rtt: RoundTrips,
    /// The receiver's window, in bytes.
    receive_window: u64,
    next_byte: u64,
    cumulative: u64,
    outstanding: VecDeque<Sent>,
    /// The number of the first of `outstanding`; transmissions are numbered one by one.
    first_number: u64,
    in_flight: u64,
    lost: VecDeque<Chunk>,
    probe: Option<Chunk>,
    /// Losses below this byte belong to the event that is being repaired.
    recovery: Option<u64>,
    /// A time-out began the recovery: the window grows in it, from one segment on.
    after_timeout: bool,
    usage: Usage,
    last_sent: Timestamp,
    timer: Option<Timer>,
    backoff: u32,
}

/// How much of its window a sender uses, over a round trip (Linux: `tcp_update_cwnd_usage`).
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    was_limited: bool,
    most_in_flight: u64,
    /// When this byte is acknowledged the round trip is over.
    until: u64,
}

#[derive(Debug, Clone, Copy)]
struct Timer {
    at: Timestamp,
    is_probe: bool,
}

impl Sender {
    /// How long round trips take of late.
    pub(super) fn smoothed_rtt(&self) -> Duration {
        self.rtt.smoothed.unwrap_or_default()
    }

    /// A sender whose handshake took `rtt`.
    pub(super) fn new(receive_window: u64, rtt: Duration) -> Self {
        let mut round_trips = RoundTrips::default();
        round_trips.on_sample(rtt);
        Self {
            cubic: Cubic::default(),
            rtt: round_trips,
            receive_window,
            next_byte: 0,
            cumulative: 0,
            outstanding: VecDeque::new(),
            first_number: 0,
            in_flight: 0,
            lost: VecDeque::new(),
            probe: None,
            recovery: None,
            after_timeout: false,
            usage: Usage::default(),
            last_sent: Timestamp::START,
            timer: None,
            backoff: 0,
        }
    }

    /// The first byte that was never sent.
    pub(super) const fn next_byte(&self) -> u64 {
        self.next_byte
    }

    /// Everything before this byte is known to be there.
    pub(super) const fn acknowledged(&self) -> u64 {
        self.cumulative
    }

    /// What the server can write beyond what is acknowledged: Linux makes room for two windows, in
    /// memory of which a byte on the wire is taken to need three (`tcp_sndbuf_expand`).
    pub(super) fn send_buffer(&self) -> u64 {
        let windows = (6.0 * self.cubic.window() * SEGMENT as f64) as u64;
        windows.clamp(LEAST_SEND_BUFFER, MOST_SEND_BUFFER)
    }

    /// The time-out that holds at present.
    pub(super) fn timeout(&self) -> Duration {
        self.rtt.timeout()
    }

    /// What leaves next, if anything may; `waiting` bytes have not been sent yet.
    pub(super) fn next_chunk(&mut self, now: Timestamp, waiting: u64) -> Option<Chunk> {
        // A probe may exceed the window.
        if let Some(probe) = self.probe.take() {
            return Some(probe);
        }
        if waiting == 0 && self.lost.is_empty() {
            self.note_usage(false);
            return None;
        }
        self.wake(now);
        let window = (self.cubic.window() * SEGMENT as f64) as u64;
        let room = window.saturating_sub(self.in_flight);
        let size = self.chunk_size();
        if let Some(front) = self.lost.front_mut() {
            if room < front.length.min(SEGMENT) && self.in_flight > 0 {
                self.note_usage(true);
                return None;
            }
            let length = front.length.min(size).min((room / SEGMENT).max(1) * SEGMENT);
            let chunk = Chunk { start: front.start, length };
            front.start += length;
            front.length -= length;
            if front.length == 0 {
                self.lost.pop_front();
            }
            return Some(chunk);
        }
        let unread = self.next_byte - self.cumulative;
        let room = room.min(self.receive_window.saturating_sub(unread));
        // As Linux defers a packet that could soon be a full one.
        if room < waiting.min(size).min((window / 3).max(SEGMENT)) {
            self.note_usage(true);
            return None;
        }
        let length = waiting.min(size).min((room / SEGMENT).max(1) * SEGMENT);
        Some(Chunk { start: self.next_byte, length })
    }

    /// Sending has stopped, for the window if it `is_limited`, else as there is nothing more.
    fn note_usage(&mut self, is_limited: bool) {
        let Usage { was_limited, most_in_flight, until } = self.usage;
        let is_more = !was_limited && self.in_flight > most_in_flight;
        if self.cumulative >= until || is_limited || is_more {
            let (most_in_flight, until) = (self.in_flight, self.next_byte);
            self.usage = Usage { was_limited: is_limited, most_in_flight, until };
        }
    }

    /// Whether the window may grow: it was what limited sending, or is less than twice of what was sent, in slow start
    /// (Linux: `tcp_is_cwnd_limited`).
    fn is_limited(&self) -> bool {
        let most = 2.0 * self.usage.most_in_flight as f64 / SEGMENT as f64;
        self.usage.was_limited || self.cubic.in_slow_start() && self.cubic.window() < most
    }

    fn chunk_size(&self) -> u64 {
        let seconds = self.rtt.smoothed.map_or(1.0, |rtt| rtt.as_secs_f64()).max(1e-6);
        let segments = (self.cubic.window() * CHUNK_TIME / seconds) as u64;
        segments.clamp(2, MOST_SEGMENTS) * SEGMENT
    }

    /// A window that was not used for long says nothing about the path any more.
    fn wake(&mut self, now: Timestamp) {
        let idle = now.saturating_since(self.last_sent);
        let timeout = self.rtt.timeout();
        if self.in_flight == 0 && self.next_byte > 0 && idle > timeout {
            self.cubic.on_idle((idle.as_nanos() / timeout.as_nanos().max(1)) as u32);
            self.last_sent = now;
        }
    }

    /// `chunk` leaves now. Returns the number of the transmission.
    pub(super) fn on_sent(&mut self, now: Timestamp, chunk: Chunk) -> u64 {
        let again = chunk.start < self.next_byte;
        self.next_byte = self.next_byte.max(chunk.start + chunk.length);
        self.in_flight += chunk.length;
        let sent = Sent { chunk, at: now, again, arrived: false, settled: false, passed_by: 0 };
        self.outstanding.push_back(sent);
        self.last_sent = now;
        if self.timer.is_none() {
            self.set_timer(now);
        }
        self.first_number + self.outstanding.len() as u64 - 1
    }

    /// The transmission `number` reached the receiver.
    pub(super) fn note_arrival(&mut self, number: u64) {
        let index = number.checked_sub(self.first_number);
        if let Some(sent) = index.and_then(|index| self.outstanding.get_mut(index as usize)) {
            sent.arrived = true;
        }
    }

    /// An acknowledgement came that was made when `number` was the last transmission to have
    /// arrived and everything before the byte `cumulative` was there.
    pub(super) fn on_ack(&mut self, now: Timestamp, number: u64, cumulative: u64) {
        self.note_cumulative(cumulative);
        let Some(index) = number.checked_sub(self.first_number) else { return };
        let count = (index as usize + 1).min(self.outstanding.len());
        let acked = self.settle_acknowledged(count);
        let Some(newest) = acked.newest else { return };
        let rtt = (!newest.again).then(|| now.saturating_since(newest.at));
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt);
        }
        self.backoff = 0;
        let any_lost = self.settle_lost(count, newest);
        while self.outstanding.front().is_some_and(|sent| sent.settled) {
            self.outstanding.pop_front();
            self.first_number += 1;
        }
        if any_lost && self.recovery.is_none() {
            self.recovery = Some(self.next_byte);
            self.cubic.on_loss();
        } else if self.recovery.is_some_and(|end| self.cumulative >= end) {
            self.recovery = None;
            self.after_timeout = false;
        } else if (self.recovery.is_none() || self.after_timeout) && self.is_limited() {
            self.grow(now, acked.bytes, rtt);
        }
        self.set_timer(now);
    }

    /// Everything before this byte is there: what was given up too early is not sent again.
    fn note_cumulative(&mut self, cumulative: u64) {
        if cumulative > self.cumulative {
            self.cumulative = cumulative;
            self.backoff = 0;
            self.lost.retain(|chunk| chunk.start + chunk.length > cumulative);
        }
    }

    fn grow(&mut self, now: Timestamp, bytes: u64, rtt: Option<Duration>) {
        let smoothed = self.rtt.smoothed.unwrap_or_default();
        self.cubic.on_ack(
            now,
            Acked {
                segments: bytes as f64 / SEGMENT as f64,
                rtt,
                min_rtt: self.rtt.least.unwrap_or(smoothed),
                cumulative: self.cumulative,
                next_byte: self.next_byte,
            },
        );
    }

    /// Settles those of the first `count` transmissions that arrived.
    fn settle_acknowledged(&mut self, count: usize) -> Acknowledged {
        let mut acked = Acknowledged::default();
        let mut segments = 0;
        for sent in self.outstanding.iter_mut().take(count).rev() {
            if sent.settled {
                continue;
            }
            if !sent.arrived {
                sent.passed_by += segments;
                continue;
            }
            sent.settled = true;
            segments += sent.chunk.segments();
            acked.bytes += sent.chunk.length;
            acked.newest = acked.newest.or(Some(*sent));
            self.in_flight -= sent.chunk.length;
        }
        acked
    }

    /// Packets are never reordered, so what was passed by is lost (RFC 8985 section 6.2).
    fn settle_lost(&mut self, count: usize, newest: Sent) -> bool {
        let patience = self.rtt.least.unwrap_or_default() / 4;
        let in_recovery = self.recovery.is_some();
        let mut any = false;
        for sent in self.outstanding.iter_mut().take(count).filter(|sent| !sent.settled) {
            let is_lost = in_recovery
                || any
                || sent.passed_by >= DUPLICATES
                || newest.at.saturating_since(sent.at) > patience;
            if is_lost {
                any = true;
                sent.settled = true;
                self.in_flight -= sent.chunk.length;
                self.lost.push_back(sent.chunk);
            }
        }
        any
    }

    /// Two round trips until a probe of the tail (RFC 8985 section 7.2), else the time-out.
    fn set_timer(&mut self, now: Timestamp) {
        if self.outstanding.is_empty() {
            self.timer = None;
            return;
        }
        let may_probe = self.recovery.is_none() && self.lost.is_empty() && self.backoff == 0;
        let timeout = self.rtt.timeout();
        let after = if may_probe {
            let smoothed = self.rtt.smoothed.unwrap_or(FIRST_TIMEOUT);
            // A single segment may wait for the receiver's delayed acknowledgement.
            let lone = self.in_flight <= SEGMENT;
            (smoothed * 2 + if lone { LEAST_VARIANCE_TERM } else { Duration::from_millis(2) })
                .min(timeout)
        } else {
            timeout.saturating_mul(1 << self.backoff.min(10)).min(LONGEST_TIMEOUT)
        };
        self.timer = Some(Timer { at: now + after, is_probe: may_probe });
    }

    /// When [`on_timer`](Self::on_timer) is due.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.timer.map(|timer| timer.at)
    }

    /// The deadline has come: the last segment is sent once more, or all of them.
    pub(super) fn on_timer(&mut self, now: Timestamp) {
        let Some(timer) = self.timer.take_if(|timer| timer.at <= now) else { return };
        let last = self.outstanding.iter().rev().find(|sent| !sent.settled).map(|sent| sent.chunk);
        let Some(last) = last else { return };
        if timer.is_probe {
            let length = last.length.min(SEGMENT);
            self.probe = Some(Chunk { start: last.start + last.length - length, length });
            self.timer = Some(Timer { at: now + self.rtt.timeout(), is_probe: false });
            return;
        }
        self.backoff += 1;
        for sent in self.outstanding.iter().filter(|sent| !sent.settled) {
            self.lost.push_back(sent.chunk);
        }
        self.first_number += self.outstanding.len() as u64;
        self.outstanding.clear();
        self.in_flight = 0;
        self.cubic.on_timeout();
        self.recovery = Some(self.next_byte);
        self.after_timeout = true;
    }
}

#[derive(Debug, Default)]
struct Acknowledged {
    bytes: u64,
    newest: Option<Sent>,
}
