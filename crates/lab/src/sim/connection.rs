//! One connection as both ends have it: TCP, what the bytes mean, and how busy it is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use pelton_algos::credit::{ConnectionCredit, FIRST_WINDOW};
use pelton_algos::losses::LossWatch;
use pelton_algos::ranges::StreamId;
use pelton_algos::round_trips::{Known, News, RoundTripWatch};
use pelton_algos::time::Timestamp;
use pelton_core::engine::Event;

use super::pool::Piece;
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
    /// The head of an answer to a request for the next part of a range.
    Further(StreamId),
    Body(StreamId),
}

impl Meaning {
    pub(super) const fn stream(self) -> Option<StreamId> {
        match self {
            Self::Handshake => None,
            Self::Head(stream) | Self::Further(stream) | Self::Body(stream) => Some(stream),
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

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) phase: Phase,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// What the server has not written to its socket yet, in turn.
    outbox: VecDeque<(Meaning, u64)>,
    /// What it has written and the client has not read.
    spans: VecDeque<Span>,
    written: u64,
    delivered: u64,
    /// Requests without a whole response.
    pub(super) outstanding: u32,
    pub(super) served: u64,
    pub(super) piece: Piece,
    /// One more than the limit allows: it takes no request and closes when it is free.
    pub(super) retiring: bool,
    /// Something will come over it that nobody wants (HTTP/1.1): it closes when it is free.
    pub(super) spoilt: bool,
    /// Requests in the order of their answers (HTTP/1.1).
    pub(super) in_turn: VecDeque<StreamId>,
    /// When the server is done with the requests that it has (HTTP/1.1).
    pub(super) served_at: Timestamp,
    /// The server knows that the client has closed it.
    pub(super) gone: bool,
    pub(super) timer_planned: Option<Timestamp>,
    /// The rate cap of its origin lets it send from here on.
    pub(super) paced_until: Timestamp,
    pub(super) pump_planned: bool,
    /// When its client began to open it.
    pub(super) begun: Timestamp,
    pub(super) min_rtt: Duration,
    /// When it fell to that.
    pub(super) min_rtt_at: Timestamp,
    pub(super) told_rtt: Duration,
    pub(super) round_trips: RoundTripWatch,
    pub(super) reads: u32,
    /// Chunks that came before one that was sent earlier.
    pub(super) out_of_order: u32,
    pub(super) losses: LossWatch,
    /// What the client gives the streams of an HTTP/2 connection.
    pub(super) credit: ConnectionCredit,
    /// What it has told that each begins with.
    pub(super) window: u64,
    /// The same, as the server knows it.
    server_window: u64,
    /// What the server may still write of each body.
    allowed: BTreeMap<StreamId, u64>,
}

impl Connection {
    /// A connection whose SYN took `rtt` to be answered.
    pub(super) fn new(receive_window: u64, rtt: Duration, begun: Timestamp) -> Self {
        Self {
            phase: Phase::Opening,
            sender: Sender::new(receive_window, rtt),
            receiver: Receiver::default(),
            outbox: VecDeque::new(),
            spans: VecDeque::new(),
            written: 0,
            delivered: 0,
            outstanding: 0,
            served: 0,
            piece: Piece::default(),
            retiring: false,
            spoilt: false,
            in_turn: VecDeque::new(),
            served_at: begun,
            gone: false,
            timer_planned: None,
            paced_until: Timestamp::START,
            pump_planned: false,
            begun,
            min_rtt: rtt,
            min_rtt_at: begun,
            told_rtt: rtt,
            round_trips: RoundTripWatch::new(Some(rtt)),
            reads: 0,
            out_of_order: 0,
            losses: LossWatch::default(),
            credit: ConnectionCredit::new(begun),
            window: FIRST_WINDOW,
            server_window: FIRST_WINDOW,
            allowed: BTreeMap::new(),
        }
    }

    /// Whether round trips take longer or shorter than at the last look.
    pub(super) fn news_of_rtt(&mut self, now: Timestamp) -> Option<Event> {
        if !self.round_trips.is_due(now) {
            return None;
        }
        let known = Known { sent: Some(self.sender.smoothed_rtt()), ..Known::default() };
        self.round_trips.on_look(now, known).next().map(|news| match news {
            News::AtMost(rtt) => Event::Rtt(rtt),
            News::AtLeast(rtt) => Event::RoundTrip(rtt),
        })
    }

    /// The server has `bytes` to say.
    pub(super) fn put(&mut self, meaning: Meaning, bytes: u64) {
        self.outbox.push_back((meaning, bytes));
    }

    /// The body of `stream` may be written as far as the client gives credit (HTTP/2).
    pub(super) fn bound(&mut self, stream: StreamId) {
        self.allowed.insert(stream, self.server_window);
    }

    /// The client gives credit: to one stream, or to all and those to come.
    pub(super) fn allow(&mut self, stream: Option<StreamId>, bytes: u64) {
        if let Some(stream) = stream {
            // None for a body that is written already.
            if let Some(allowed) = self.allowed.get_mut(&stream) {
                *allowed += bytes;
            }
            return;
        }
        self.server_window += bytes;
        for allowed in self.allowed.values_mut() {
            *allowed += bytes;
        }
    }

    /// What may be written of it now.
    fn room(&self, meaning: Meaning) -> u64 {
        match meaning {
            Meaning::Body(stream) => self.allowed.get(&stream).copied().unwrap_or(u64::MAX),
            Meaning::Handshake | Meaning::Head(_) | Meaning::Further(_) => u64::MAX,
        }
    }

    /// The next that the server may say something of.
    fn next_in_turn(&mut self) -> Option<(Meaning, u64)> {
        let free = self.outbox.iter().position(|(meaning, _)| self.room(*meaning) > 0)?;
        self.outbox.remove(free)
    }

    /// What was written and waits to be sent for the first time.
    pub(super) const fn waiting(&self) -> u64 {
        self.written - self.sender.next_byte()
    }

    /// The server writes no more about `stream`; what its socket has goes out all the same. Returns
    /// whether a part of its body was not written.
    pub(super) fn forget(&mut self, stream: StreamId) -> bool {
        let unwritten = self.unwritten().any(|other| other == stream);
        self.allowed.remove(&stream);
        self.outbox.retain(|(meaning, _)| meaning.stream() != Some(stream));
        unwritten
    }

    /// Streams that the server still has something to write about.
    pub(super) fn unwritten(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.outbox.iter().filter_map(|(meaning, _)| match meaning {
            Meaning::Body(stream) => Some(*stream),
            _ => None,
        })
    }

    /// The server writes what its socket has room for. Responses that share a connection take
    /// turns, a frame each. `ended` is told which bodies are written.
    pub(super) fn write(&mut self, mut ended: impl FnMut(StreamId)) {
        let end = self.sender.acknowledged() + self.sender.send_buffer();
        while self.written < end {
            let Some((meaning, left)) = self.next_in_turn() else { return };
            let part = left.min(FRAME).min(self.room(meaning));
            self.written += part;
            if let Meaning::Body(stream) = meaning
                && let Some(allowed) = self.allowed.get_mut(&stream)
            {
                *allowed -= part;
            }
            match self.spans.back_mut() {
                Some(last) if last.meaning == meaning => last.end = self.written,
                _ => self.spans.push_back(Span { end: self.written, meaning }),
            }
            let takes_turns =
                meaning.stream().is_some_and(|stream| self.allowed.contains_key(&stream));
            if left > part && takes_turns && matches!(meaning, Meaning::Body(_)) {
                self.outbox.push_back((meaning, left - part));
            } else if left > part {
                self.outbox.push_front((meaning, left - part));
            } else if let Meaning::Body(stream) = meaning {
                self.allowed.remove(&stream);
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
