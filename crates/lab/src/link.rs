//! A link as a model: one downlink that all connections share, and what TCP lets one stream keep
//! in flight on it. Pure and in virtual time; [`shaper`](crate::shaper) runs it in real time.
//!
//! Not modelled: loss, cross traffic, a full queue at the bottleneck, and an uplink rate (requests
//! are small).

use std::collections::VecDeque;
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};

/// What a packet carries over Ethernet: 1500 bytes less 40 of IPv4 and TCP.
const SEGMENT: Bytes = Bytes(1460);

/// Ten segments: the initial window of RFC 6928, section 2, and of every common server.
pub const INITIAL_WINDOW: Bytes = Bytes(10 * SEGMENT.0);

/// What Linux lets one stream keep in flight by default: half of `tcp_rmem`'s 6 MiB, the other
/// half being set aside for overhead (`tcp_adv_win_scale` = 1).
pub const LINUX_WINDOW: Bytes = Bytes::mib(3);

/// A link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Rate of the downlink, shared by all connections.
    pub rate: BitRate,
    /// Round-trip time without queueing, half of it each way.
    pub rtt: Duration,
    /// The most that one stream may have in flight.
    pub stream_window: Bytes,
    /// What a new stream may have in flight.
    pub initial_window: Bytes,
}

impl Link {
    /// 50 Mbit/s, 200 ms, 64 KiB windows: an intercontinental path with TCP windows that do not
    /// scale, on which one stream reaches 2.6 Mbit/s.
    pub fn demo() -> Self {
        Self::new(50.0, 200, Bytes::kib(64))
    }

    /// 1 Gbit/s, 1 ms: a local network.
    pub fn lan() -> Self {
        Self::new(1000.0, 1, LINUX_WINDOW)
    }

    /// 100 Mbit/s, 20 ms: a fixed line to a server on the same continent.
    pub fn broadband() -> Self {
        Self::new(100.0, 20, LINUX_WINDOW)
    }

    /// 30 Mbit/s, 60 ms: a cellular link in ordinary reception.
    pub fn lte() -> Self {
        Self::new(30.0, 60, LINUX_WINDOW)
    }

    /// 20 Mbit/s, 600 ms: a geostationary satellite, 35 786 km up, four times per round trip
    /// (477 ms), and its processing.
    pub fn satellite() -> Self {
        Self::new(20.0, 600, LINUX_WINDOW)
    }

    /// Every preset with its name.
    pub fn presets() -> [(&'static str, Self); 5] {
        [
            ("demo", Self::demo()),
            ("lan", Self::lan()),
            ("broadband", Self::broadband()),
            ("lte", Self::lte()),
            ("satellite", Self::satellite()),
        ]
    }

    fn new(mbps: f64, rtt_millis: u64, stream_window: Bytes) -> Self {
        Self {
            rate: BitRate::from_mbps(mbps),
            rtt: Duration::from_millis(rtt_millis),
            stream_window,
            initial_window: INITIAL_WINDOW,
        }
    }

    /// The bandwidth-delay product: what is in flight when the link is full.
    pub fn bdp(&self) -> Bytes {
        self.rate * self.rtt
    }

    /// What one stream reaches once its window is open: the window per round trip, or the link.
    pub fn stream_rate(&self) -> BitRate {
        if self.stream_window >= self.bdp() { self.rate } else { self.stream_window / self.rtt }
    }

    /// The most that a stream may take of the pipe at once: what the link moves in 2 ms, so that
    /// streams interleave as finely as timers tell moments apart, but a segment at least and
    /// 16 KiB at most.
    pub fn piece(&self) -> Bytes {
        (self.rate * Duration::from_millis(2)).clamp(SEGMENT, Bytes::kib(16))
    }
}

/// How some bytes crossed the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transit {
    /// When the first of them left the sender.
    pub left: Timestamp,
    /// When the last of them reached the receiver.
    pub arrives: Timestamp,
}

/// The downlink: first come, first served, never faster than its rate.
#[derive(Debug, Clone)]
pub struct SharedPipe {
    rate: BitRate,
    one_way: Duration,
    /// Since when the pipe has been busy without a break, and with how many bytes. Departures are
    /// computed from here and not from one another, so that no rounding adds up.
    busy_since: Timestamp,
    busy_bytes: Bytes,
}

impl SharedPipe {
    /// An idle pipe.
    pub fn new(link: &Link) -> Self {
        Self {
            rate: link.rate,
            one_way: link.rtt / 2,
            busy_since: Timestamp::START,
            busy_bytes: Bytes::ZERO,
        }
    }

    /// Sends `bytes` that are ready at `at`: behind everything that was offered before.
    pub fn offer(&mut self, at: Timestamp, bytes: Bytes) -> Transit {
        let mut left = self.next_free();
        if left <= at {
            left = at;
            self.busy_since = at;
            self.busy_bytes = Bytes::ZERO;
        }
        self.busy_bytes += bytes;
        Transit { left, arrives: self.next_free() + self.one_way }
    }

    fn next_free(&self) -> Timestamp {
        self.busy_since + self.busy_bytes / self.rate
    }
}

/// What TCP lets one stream have in flight: slow start (RFC 5681, section 3.1, counting bytes)
/// from the initial window up to the stream window. Without loss it never shrinks.
///
/// A piece stands for a train of packets. The acknowledgement of its first packet lets the next
/// piece go, and later packets of the old train make room for later packets of the new one. So a
/// piece gives its share of the window back one RTT after its first byte left, and large pieces
/// cost no throughput.
#[derive(Debug, Clone)]
pub struct StreamWindow {
    rtt: Duration,
    limit: Bytes,
    window: Bytes,
    in_flight: Bytes,
    /// When which bytes will be acknowledged, in order.
    acknowledgements: VecDeque<(Timestamp, Bytes)>,
}

impl StreamWindow {
    /// The window of a new stream.
    pub fn new(link: &Link) -> Self {
        Self {
            rtt: link.rtt,
            limit: link.stream_window,
            window: link.initial_window.min(link.stream_window),
            in_flight: Bytes::ZERO,
            acknowledgements: VecDeque::new(),
        }
    }

    /// How much may be sent now.
    pub fn available(&self) -> Bytes {
        self.window.saturating_sub(self.in_flight)
    }

    /// Bytes sent and not acknowledged.
    pub fn in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// `bytes` are on their way. The caller keeps to [`available`](Self::available).
    pub fn sent(&mut self, bytes: Bytes, transit: Transit) {
        self.in_flight += bytes;
        self.acknowledgements.push_back((transit.left + self.rtt, bytes));
    }

    /// When the next acknowledgement comes, if any is due at all.
    pub fn next_acknowledgement(&self) -> Option<Timestamp> {
        self.acknowledgements.front().map(|(at, _)| *at)
    }

    /// Takes the earliest acknowledgement that has come by `now` and says when it came.
    pub fn acknowledge(&mut self, now: Timestamp) -> Option<Timestamp> {
        let &(at, bytes) = self.acknowledgements.front().filter(|(at, _)| *at <= now)?;
        self.acknowledgements.pop_front();
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.window = (self.window + bytes).min(self.limit);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A piece that crossed the link.
    struct Piece {
        stream: usize,
        bytes: Bytes,
        transit: Transit,
    }

    /// Streams that always have something to send, until `end`.
    fn saturate(link: &Link, streams: usize, end: Timestamp) -> Vec<Piece> {
        let mut pipe = SharedPipe::new(link);
        let mut windows = vec![StreamWindow::new(link); streams];
        let mut pieces = Vec::new();
        let mut now = Timestamp::START;
        while now < end {
            for (stream, window) in windows.iter_mut().enumerate() {
                while window.acknowledge(now).is_some() {}
                while window.available() > Bytes::ZERO {
                    let bytes = window.available().min(link.piece());
                    let transit = pipe.offer(now, bytes);
                    window.sent(bytes, transit);
                    assert!(window.in_flight() <= link.stream_window);
                    pieces.push(Piece { stream, bytes, transit });
                }
            }
            now = windows.iter().filter_map(StreamWindow::next_acknowledgement).min().unwrap();
        }
        pieces
    }

    fn arrived(pieces: &[Piece], from: Timestamp, to: Timestamp) -> Bytes {
        let inside = |piece: &&Piece| from < piece.transit.arrives && piece.transit.arrives <= to;
        pieces.iter().filter(inside).map(|piece| piece.bytes).sum()
    }

    #[test]
    fn a_burst_departs_at_the_rate_and_arrives_half_an_rtt_later() {
        let mut pipe = SharedPipe::new(&Link::demo());
        let at = Timestamp::from_millis;
        // 62 500 bytes at 50 Mbit/s are 10 ms.
        let sent = |left, arrives| Transit { left: at(left), arrives: at(arrives) };
        assert_eq!(pipe.offer(at(5), Bytes(62_500)), sent(5, 115));
        assert_eq!(pipe.offer(at(7), Bytes(62_500)), sent(15, 125));
        assert_eq!(pipe.offer(at(40), Bytes(62_500)), sent(40, 150));
    }

    #[test]
    fn slow_start_doubles_up_to_the_limit() {
        let link = Link::demo();
        let pieces = saturate(&link, 1, Timestamp::from_millis(1100));
        let rounds: Vec<u64> = (0..5)
            .map(|round| {
                let begin = Timestamp::from_millis(200 * round + 100);
                arrived(&pieces, begin, begin + link.rtt).0
            })
            .collect();
        assert_eq!(rounds, [14_600, 29_200, 58_400, 65_536, 65_536]);
    }

    #[test]
    fn the_demo_link_needs_twenty_streams() {
        let link = Link::demo();
        assert_eq!(link.bdp(), Bytes(1_250_000));
        assert_eq!(link.stream_rate(), Bytes(65_536) / Duration::from_millis(200));
        let second = |streams| {
            let pieces = saturate(&link, streams, Timestamp::from_millis(3000));
            arrived(&pieces, Timestamp::from_millis(2000), Timestamp::from_millis(3000))
        };
        assert_eq!(second(1), Bytes(5 * 65_536));
        assert_eq!(second(8), Bytes(40 * 65_536));
        assert!(second(20).as_f64() > 0.995 * 6_250_000.0, "{}", second(20));
    }

    #[test]
    fn streams_share_alike() {
        let pieces = saturate(&Link::demo(), 32, Timestamp::from_millis(8000));
        let mut totals = [0; 32];
        for piece in &pieces {
            totals[piece.stream] += piece.bytes.0;
        }
        let (least, most) = (totals.iter().min().unwrap(), totals.iter().max().unwrap());
        assert!(most - least <= 2 * 65_536, "{least} {most}");
    }

    prop_compose! {
        fn links()(mbps in 1.0f64..1000.0, rtt_millis in 1u64..600, window in 4_000u64..2_000_000) -> Link {
            Link::new(mbps, rtt_millis, Bytes(window))
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_pipe_is_never_faster_than_its_rate(link in links(), streams in 1usize..20) {
            let end = Timestamp::START + link.rtt * 6 + Duration::from_millis(50);
            let pieces = saturate(&link, streams, end);
            for pair in pieces.windows(2) {
                let gap = pair[1].transit.arrives - pair[0].transit.arrives;
                prop_assert!(gap + Duration::from_nanos(2) >= pair[1].bytes / link.rate);
                prop_assert!(pair[1].transit.left >= pair[0].transit.left);
            }
            // From any piece to the end, so that no rounding adds up.
            let last = pieces.last().unwrap().transit.arrives;
            let mut total = Bytes::ZERO;
            for piece in pieces.iter().rev() {
                let time = last - piece.transit.arrives;
                prop_assert!(time + Duration::from_nanos(2) >= total / link.rate);
                total += piece.bytes;
            }
        }

        #[test]
        fn one_stream_reaches_the_window_per_round_trip_or_the_rate(link in links()) {
            let (warm, end) = (Timestamp::START + link.rtt * 20, Timestamp::START + link.rtt * 120 + Duration::from_secs(2));
            let pieces = saturate(&link, 1, end);
            let goodput = arrived(&pieces, warm, end) / (end - warm);
            let ratio = goodput.bps() / link.stream_rate().bps();
            prop_assert!((0.98..1.02).contains(&ratio), "{ratio}");
        }

        /// However coarse the pieces: what left during one RTT was within the window.
        #[test]
        fn the_window_holds_in_every_round_trip(link in links()) {
            let pieces = saturate(&link, 1, Timestamp::START + link.rtt * 12);
            for (index, first) in pieces.iter().enumerate() {
                let end = first.transit.left + link.rtt;
                let left: f64 = pieces[index..]
                    .iter()
                    .take_while(|piece| piece.transit.left < end)
                    .map(|piece| (link.rate * (end - piece.transit.left)).min(piece.bytes).as_f64())
                    .sum();
                prop_assert!(left <= link.stream_window.as_f64() + 2.0, "{left}");
            }
        }
    }
}
