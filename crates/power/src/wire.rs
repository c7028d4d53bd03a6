//! From bytes that an application sees to bytes that a radio moves.

use pelton_algos::units::Bytes;

use crate::meter::Traffic;

/// Payload of a full TCP segment: 1500 bytes of Ethernet MTU without [`HEADER`].
const SEGMENT: Bytes = Bytes(1448);

/// Bytes of header in each segment: IPv4 20, TCP 20, timestamp option 12 (RFC 7323 section 3.2).
const HEADER: u64 = 52;

/// Segments for each acknowledgement: "at least every second full-sized segment" (RFC 5681 section 4.2).
const SEGMENTS_PER_ACK: u64 = 2;

/// Bytes of a SYN, in both directions: IPv4 20, TCP 20, options 20 (MSS, window scale, SACK, timestamps).
const SYN: u64 = 60;

/// Segments without data, besides SYNs, that the client sends in a connection's life: the
/// acknowledgements of SYN and FIN, and its own FIN.
const CLIENT_BARE_SEGMENTS: u64 = 3;

/// The same for the server: its FIN, and the acknowledgement of the client's.
const SERVER_BARE_SEGMENTS: u64 = 2;

/// Bytes in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wire {
    pub(crate) sent: Bytes,
    pub(crate) received: Bytes,
}

impl Wire {
    /// Adds headers, acknowledgements, and the segments that open and close connections: from
    /// counted segments as far as they go, and for the rest estimated. It takes totals and not
    /// increments: rounding to segments happens once.
    pub(crate) fn of(traffic: &Traffic) -> Self {
        let counted = traffic.counted;
        let rest = Self::estimate(
            traffic.sent.saturating_sub(counted.sent),
            traffic.received.saturating_sub(counted.received),
            traffic.connections_opened.saturating_sub(counted.connections),
        );
        let bytes =
            |payload: Bytes, segments: u64| payload + Bytes(segments.saturating_mul(HEADER));
        // Nothing is known of the others but that they were asked for.
        let pending = traffic.connections_begun.saturating_sub(traffic.connections_opened);
        Self {
            sent: Bytes(pending.saturating_mul(SYN))
                + rest.sent
                + bytes(counted.sent.min(traffic.sent), counted.segments_sent),
            received: rest.received
                + bytes(counted.received.min(traffic.received), counted.segments_received),
        }
    }

    /// What `connections` with these bytes of payload put on the wire, as far as that can be told
    /// from outside.
    pub(crate) fn estimate(sent: Bytes, received: Bytes, connections: u64) -> Self {
        let opening = |bare: u64| Bytes(connections.saturating_mul(SYN + bare * HEADER));
        Self {
            sent: sent + headers(sent) + acknowledgements(received) + opening(CLIENT_BARE_SEGMENTS),
            received: received
                + headers(received)
                + acknowledgements(sent)
                + opening(SERVER_BARE_SEGMENTS),
        }
    }

    /// The larger of both, in each direction.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { sent: self.sent.max(other.sent), received: self.received.max(other.received) }
    }

    /// What was added since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(earlier.sent),
            received: self.received.saturating_sub(earlier.received),
        }
    }
}

fn headers(payload: Bytes) -> Bytes {
    Bytes(payload.div_ceil(SEGMENT) * HEADER)
}

fn acknowledgements(payload: Bytes) -> Bytes {
    Bytes(payload.div_ceil(SEGMENT).div_ceil(SEGMENTS_PER_ACK) * HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_acknowledged_upwards() {
        let wire = Wire::estimate(Bytes::ZERO, Bytes(14_480), 0);
        assert_eq!(wire, Wire { sent: Bytes(5 * 52), received: Bytes(14_480 + 10 * 52) });
    }

    #[test]
    fn each_connection_costs_its_handshake() {
        let wire = Wire::estimate(Bytes::ZERO, Bytes::ZERO, 2);
        assert_eq!(wire, Wire { sent: Bytes(2 * (60 + 156)), received: Bytes(2 * (60 + 104)) });
    }

    #[test]
    fn counted_segments_replace_estimates() {
        use crate::meter::Counted;
        // 10 segments came in and 2 acknowledgements went out, where 5 would be estimated.
        let counted = Counted {
            received: Bytes(14_480),
            sent: Bytes(100),
            segments_received: 11,
            segments_sent: 4,
            connections: 1,
        };
        let all = Traffic {
            received: Bytes(14_480),
            sent: Bytes(100),
            connections_begun: 1,
            connections_opened: 1,
            connections_open: 1,
            counted,
        };
        let wire = Wire::of(&all);
        assert_eq!(wire, Wire { sent: Bytes(100 + 4 * 52), received: Bytes(14_480 + 11 * 52) });
        let more = Traffic { received: Bytes(2 * 14_480), connections_opened: 2, ..all };
        let estimated = Wire::estimate(Bytes::ZERO, Bytes(14_480), 1);
        assert_eq!(Wire::of(&more).since(wire), estimated);
        let asked = Traffic { connections_begun: 3, ..all };
        let two_syns = Wire { sent: Bytes(2 * 60), received: Bytes::ZERO };
        assert_eq!(Wire::of(&asked).since(wire), two_syns);
    }

    #[test]
    fn absurd_totals_do_not_overflow() {
        let wire = Wire::estimate(Bytes(u64::MAX), Bytes(u64::MAX), u64::MAX);
        assert_eq!(wire, Wire { sent: Bytes(u64::MAX), received: Bytes(u64::MAX) });
    }
}
