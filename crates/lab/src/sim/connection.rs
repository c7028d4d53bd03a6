//! One connection as both ends have it: TCP, what the bytes mean, and how busy it is.

use std::collections::VecDeque;
use std::time::Duration;

use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;

use super::tcp::{Receiver, Sender};

/// Bytes of a DATA frame: what nginx puts into one (`http2_chunk_size`).
const FRAME: u64 = 8 * 1024;

/// Where a connection stands, as its client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// TCP or TLS shake hands.
    Opening,
    Open,
    /// The client has closed it; what still arrives is not read.
    Closed,
}

/// What bytes of the server mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The server's part of the TLS handshake.
    Handshake,
    Head(StreamId),
    Body(StreamId),
}

impl Meaning {
    pub(super) const fn stream(self) -> Option<StreamId> {
        match self {
            Self::Handshake => None,
            Self::Head(stream) | Self::Body(stream) => Some(stream),
        }
    }
}

/// Bytes of one meaning in a row.
#[derive(Debug, Clone, Copy)]
struct Span {
    end: u64,
    meaning: Meaning,
}

/// In-order bytes of one meaning that the client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) meaning: Meaning,
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) phase: Phase,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// What the server has not sent yet, in turn.
    outbox: VecDeque<(Meaning, u64)>,
    waiting: u64,
    spans: VecDeque<Span>,
    planned: u64,
    delivered: u64,
    /// Requests without a whole response.
    pub(super) outstanding: u32,
    pub(super) served: u64,
    /// One more than the limit allows: it takes no request and closes when it is free.
    pub(super) retiring: bool,
    /// The server knows that the client has closed it.
    pub(super) gone: bool,
    pub(super) timer_planned: Option<Timestamp>,
    /// The rate cap of its origin lets it send from here on.
    pub(super) paced_until: Timestamp,
    pub(super) pump_planned: bool,
    /// When its client began to open it.
    pub(super) begun: Timestamp,
    pub(super) min_rtt: Duration,
    pub(super) told_rtt: Duration,
    pub(super) reads: u32,
}

impl Connection {
    /// A connection whose SYN took `rtt` to be answered.
    pub(super) fn new(receive_window: u64, rtt: Duration, begun: Timestamp) -> Self {
        Self {
            phase: Phase::Opening,
            sender: Sender::new(receive_window, rtt),
            receiver: Receiver::default(),
            outbox: VecDeque::new(),
            waiting: 0,
            spans: VecDeque::new(),
            planned: 0,
            delivered: 0,
            outstanding: 0,
            served: 0,
            retiring: false,
            gone: false,
            timer_planned: None,
            paced_until: Timestamp::START,
            pump_planned: false,
            begun,
            min_rtt: rtt,
            told_rtt: rtt,
            reads: 0,
        }
    }

    /// The server has `bytes` to say.
    pub(super) fn put(&mut self, meaning: Meaning, bytes: u64) {
        self.outbox.push_back((meaning, bytes));
        self.waiting += bytes;
    }

    /// What waits to be sent for the first time.
    pub(super) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The server says no more about `stream`. Returns whether a part of its body was unsent.
    pub(super) fn forget(&mut self, stream: StreamId) -> bool {
        let unsent = self.unsent().any(|other| other == stream);
        self.outbox.retain(|(meaning, bytes)| {
            let keep = meaning.stream() != Some(stream);
            self.waiting -= if keep { 0 } else { *bytes };
            keep
        });
        unsent
    }

    /// Streams that the server still has something to say about.
    pub(super) fn unsent(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.outbox.iter().filter_map(|(meaning, _)| match meaning {
            Meaning::Body(stream) => Some(*stream),
            _ => None,
        })
    }

    /// The sender took the next `bytes`: gives them their meaning. Responses that share a connection
    /// take turns, a frame each. `ended` is told which bodies are out.
    pub(super) fn take(&mut self, mut bytes: u64, mut ended: impl FnMut(StreamId)) {
        self.waiting -= bytes;
        while bytes > 0 {
            let Some((meaning, left)) = self.outbox.pop_front() else { return };
            let part = left.min(bytes).min(FRAME);
            bytes -= part;
            self.planned += part;
            match self.spans.back_mut() {
                Some(last) if last.meaning == meaning => last.end = self.planned,
                _ => self.spans.push_back(Span { end: self.planned, meaning }),
            }
            if left > part && matches!(meaning, Meaning::Body(_)) {
                self.outbox.push_back((meaning, left - part));
            } else if left > part {
                self.outbox.push_front((meaning, left - part));
            } else if let Meaning::Body(stream) = meaning {
                ended(stream);
            }
        }
    }

    /// What the client can read of what is there in order.
    pub(super) fn next_delivery(&mut self) -> Option<Delivery> {
        let there = self.receiver.next_byte();
        let span = *self.spans.front()?;
        let bytes = span.end.min(there).checked_sub(self.delivered).filter(|bytes| *bytes > 0)?;
        self.delivered += bytes;
        if self.delivered == span.end {
            self.spans.pop_front();
        }
        Some(Delivery { meaning: span.meaning, bytes })
    }
}
