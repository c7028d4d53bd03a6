//! The time that no client can beat.

use std::time::Duration;

use pelton_algos::units::Bytes;

use super::clients::Protocol;
use crate::model::LinkSpec;

/// A full packet and what TCP carries in it: 1500 bytes less 20 of IPv4, 20 of TCP, 12 of its time
/// stamps.
const PACKET: f64 = 1500.0;
const PAYLOAD: f64 = 1448.0;

/// A ratio to a floor below this many seconds would compare rounding errors and program starts.
pub const LEAST_FLOOR_S: f64 = 1.0;

/// Bytes of a response's header: those of nginx 1.22 for a file over HTTP/1.1; over HTTP/2 what
/// HPACK leaves of it (RFC 7541), and two frame headers.
const HTTP1_HEADER: u64 = 240;
const HTTP2_HEADER: u64 = 60;

/// The least time in which `files` of `body` bytes together can come over `link`: body and header
/// bytes over the rate that the link has for payload after its loss, plus two round trips (the TCP
/// handshake; request and first byte), or three with TLS.
pub fn floor(link: &LinkSpec, protocol: Protocol, files: usize, body: Bytes) -> Duration {
    let (header, round_trips) = match protocol {
        Protocol::Http1 => (HTTP1_HEADER, 2),
        Protocol::Http1Tls => (HTTP1_HEADER, 3),
        Protocol::Http2 => (HTTP2_HEADER, 3),
    };
    let payload = body.as_f64() + (files as u64 * header) as f64;
    let packets = payload * PACKET / PAYLOAD / (1.0 - link.down.loss.share()).max(f64::EPSILON);
    link.down.time_for(Bytes(packets.ceil() as u64)) + link.rtt() * round_trips
}

#[cfg(test)]
mod tests {
    use pelton_algos::units::BitRate;

    use super::*;

    #[test]
    fn a_floor_is_bytes_over_payload_rate_and_round_trips() {
        let rtt = Duration::from_millis(100);
        let mut link = LinkSpec::plain(BitRate::from_mbps(12.0), rtt).unwrap();
        // 1000 packets of 1 ms each, headers and all.
        let body = Bytes(1_448_000 - 240 * 10);
        let seconds = |link: &LinkSpec, protocol| floor(link, protocol, 10, body).as_secs_f64();
        assert!((seconds(&link, Protocol::Http1) - 1.2).abs() < 1e-6);
        let tls = seconds(&link, Protocol::Http1Tls) - seconds(&link, Protocol::Http1);
        assert!((tls - 0.1).abs() < 1e-6);
        link.down.loss.random = 0.5;
        assert!((seconds(&link, Protocol::Http1) - 2.2).abs() < 1e-6);
    }
}
