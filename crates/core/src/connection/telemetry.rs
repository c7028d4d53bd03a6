//! What connections tell: events and counters.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use pelton_algos::pace::{FirstPace, Pace};
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;
use pelton_power::Counted;
use tokio::time::Instant;

use super::connector::Segments;
use super::origin::Origin;
use crate::ErrorKind;

/// Names one connection of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112).
    Http11,
    /// HTTP/2 (RFC 9113).
    Http2,
}

impl Protocol {
    /// As people and reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl serde::Serialize for Protocol {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What happened to a connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// All that is asked of an origin goes through a proxy. Told once, before its first connection.
    Proxied {
        /// The origin.
        origin: Origin,
        /// Its proxy, `host:port`.
        proxy: String,
    },
    /// A byte stream to an origin, or to its proxy, is there: what is spoken over it is still open.
    Reached {
        /// Where it leads.
        origin: Origin,
        /// The round-trip time that opening it showed.
        rtt: Duration,
    },
    /// A connection is ready for requests.
    Opened {
        /// Where it leads.
        origin: Origin,
        /// Its name.
        id: ConnectionId,
        /// What it speaks.
        protocol: Protocol,
        /// The round-trip time that opening it showed.
        rtt: Option<Duration>,
        /// How long opening it took: name resolution, TCP, proxy, TLS and HTTP/2 together.
        handshake: Duration,
    },
    /// A round trip was as short as this, or shorter: the least that a connection has seen, or how long they take of late, where
    /// that falls.
    Rtt {
        /// Where it leads.
        origin: Origin,
        /// At most so long.
        rtt: Duration,
    },
    /// Round trips over a connection take longer than at the last look, queues included.
    RoundTrip {
        /// Where it leads.
        origin: Origin,
        /// So long at least.
        rtt: Duration,
    },
    /// Segments of a connection came out of order: others before them were lost, or overtaken.
    Loss {
        /// Where it leads.
        origin: Origin,
    },
    /// The first answers came so fast, in bytes on the wire.
    Pace(Pace),
    /// Whether an origin answers requests in their order over HTTP/1.1 became known.
    Pipelines {
        /// The origin.
        origin: Origin,
        /// It does.
        does: bool,
    },
    /// An origin has left a connection without an answer while it answered over others.
    Unserved {
        /// The origin.
        origin: Origin,
        /// How many connections it served at a time.
        served: u32,
    },
    /// A connection could not be opened. Requests fail with it only when no other connection is left.
    OpenFailed {
        /// Where it should have led.
        origin: Origin,
        /// Why not.
        kind: ErrorKind,
    },
    /// A connection is gone.
    Closed {
        /// Where it led.
        origin: Origin,
        /// Its name.
        id: ConnectionId,
    },
}

/// Is told what happens to connections. It must not call back into [`Http`](super::Http).
pub type Observer = Rc<dyn Fn(ConnectionEvent)>;

/// What all connections did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bytes received on the wire, TLS and headers included.
    pub received: u64,
    /// Bytes sent on the wire, TLS and headers included.
    pub sent: u64,
    /// Connections whose opening has begun since the start, whether it succeeded or not.
    pub begun: u64,
    /// Connections opened since the start.
    pub opened: u64,
    /// Connections open now.
    pub open_now: u64,
    /// The part of this whose TCP segments were counted.
    pub counted: Counted,
}

/// Counts, names connections and passes events on.
pub(super) struct Telemetry {
    observer: Observer,
    counters: Cell<Counters>,
    pace: Cell<FirstPace>,
    began: Instant,
}

impl Telemetry {
    pub(super) fn new(observer: Observer) -> Self {
        let (counters, pace) = Default::default();
        Self { observer, counters, pace, began: Instant::now() }
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters.get()
    }

    pub(super) fn tell(&self, event: ConnectionEvent) {
        match &event {
            ConnectionEvent::Opened { origin, id, protocol, .. } => {
                tracing::debug!(%origin, connection = id.0, %protocol, "connected");
            }
            ConnectionEvent::OpenFailed { origin, kind } => {
                tracing::debug!(%origin, why = kind.name(), "could not connect");
            }
            ConnectionEvent::Closed { origin, id } => {
                tracing::debug!(%origin, connection = id.0, "closed");
            }
            _ => {}
        }
        (self.observer)(event);
    }

    pub(super) fn received(&self, bytes: u64) {
        self.update(|counters| counters.received += bytes);
    }

    /// Bytes arrived over a path of this round-trip time, which `are_answers` to requests.
    pub(super) fn came(&self, bytes: usize, rtt: Duration, are_answers: bool) {
        let mut pace = self.pace.get();
        if pace.is_known() {
            return;
        }
        let (now, bytes) = (Timestamp::START + self.began.elapsed(), Bytes(bytes as u64));
        if let Some(seen) = pace.on_wire(now, bytes, rtt, are_answers) {
            self.tell(ConnectionEvent::Pace(seen));
        }
        self.pace.set(pace);
    }

    /// An answer was no redirect.
    pub(super) fn answered(&self) {
        let mut pace = self.pace.get();
        pace.on_file();
        self.pace.set(pace);
    }

    /// An answer was a redirect.
    pub(super) fn redirected(&self) {
        let mut pace = self.pace.get();
        pace.on_redirect();
        self.pace.set(pace);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.update(|counters| counters.sent += bytes as u64);
    }

    /// Segments of a connection were counted: as many as `now`, where it was `before` at the last
    /// time. They hold the bytes, received and sent, of the time between.
    pub(super) fn counted(&self, before: Option<Segments>, now: Segments, bytes: [u64; 2]) {
        let since = before.unwrap_or_default();
        self.update(|counters| {
            let counted = &mut counters.counted;
            counted.received += Bytes(bytes[0]);
            counted.sent += Bytes(bytes[1]);
            counted.segments_received += u64::from(now.received.wrapping_sub(since.received));
            counted.segments_sent += u64::from(now.sent.wrapping_sub(since.sent));
            counted.connections += u64::from(before.is_none());
        });
    }

    /// A connection is being opened.
    pub(super) fn begins(&self) {
        self.update(|counters| counters.begun += 1);
    }

    /// Counts a new connection and names it.
    pub(super) fn opened(&self) -> ConnectionId {
        self.update(|counters| {
            counters.opened += 1;
            counters.open_now += 1;
        });
        ConnectionId(self.counters.get().opened)
    }

    pub(super) fn closed(&self, origin: Origin, id: ConnectionId) {
        self.update(|counters| counters.open_now -= 1);
        self.tell(ConnectionEvent::Closed { origin, id });
    }

    fn update(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
}
