//! A series of packets, and what a radio draws for it. Pure: who reads captures is pelton-lab.

use std::collections::HashMap;
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use crate::radio::{RadioMachine, RadioProfile};

/// Packets no farther apart than this are one stretch of activity, as a meter that is read ten times a second
/// sees them.
const GRAIN: Duration = Duration::from_millis(100);

/// Which way a packet goes, as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    Sent,
    /// To the client.
    Received,
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// When the client's interface saw it.
    pub at: Timestamp,
    /// Which way it went.
    pub direction: Direction,
    /// Its length from the IP header on.
    pub bytes: Bytes,
    /// What its TCP header says, if it has one.
    pub tcp: Option<Tcp>,
}

/// The parts of a TCP header that connection tracking looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tcp {
    /// Numbers the connection within its trace.
    pub flow: u32,
    /// Numbers the server (address and port) within its trace.
    pub site: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// SYN is set.
    pub syn: bool,
    /// FIN or RST is set.
    pub end: bool,
    /// The timestamp option (RFC 7323): value and echo.
    pub timestamps: Option<(u32, u32)>,
}

/// The least time from a SYN to its answer; none where a trace has no such answer.
pub fn round_trip(packets: &[Packet]) -> Option<Duration> {
    let syns = packets.iter().filter_map(|packet| Some((packet, packet.tcp?)));
    let syns = syns.filter(|(_, tcp)| tcp.syn);
    let sent = syns.clone().filter(|(packet, _)| packet.direction == Direction::Sent);
    let mut opened = HashMap::new();
    for (packet, tcp) in sent {
        opened.entry(tcp.flow).or_insert(packet.at);
    }
    let answers = syns.filter(|(packet, _)| packet.direction == Direction::Received);
    let times = answers.filter_map(|(answer, tcp)| Some(answer.at - *opened.get(&tcp.flow)?));
    times.min()
}

/// Runs `profile` over packets in the order of time, and counts the tail.
pub fn radio_over(profile: RadioProfile, packets: &[Packet]) -> RadioMachine {
    let mut radio = RadioMachine::new(profile, Timestamp::START).drawn();
    let mut last: Option<Timestamp> = None;
    for packet in packets {
        let (sent, received) = match packet.direction {
            Direction::Sent => (packet.bytes, Bytes::ZERO),
            Direction::Received => (Bytes::ZERO, packet.bytes),
        };
        if last.is_none_or(|last| packet.at.saturating_since(last) > GRAIN) {
            radio.on_traffic(packet.at, Bytes::ZERO, Bytes::ZERO);
        }
        radio.on_traffic(packet.at, sent, received);
        last = Some(packet.at);
    }
    radio.finish(last.unwrap_or_default());
    radio
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::{State, lte};

    #[test]
    fn a_trace_with_a_long_gap_wakes_the_radio_twice() {
        let packet = |seconds: u64| Packet {
            at: Timestamp::new(Duration::from_secs(seconds)),
            direction: Direction::Received,
            bytes: Bytes(1_500),
            tcp: None,
        };
        let radio = radio_over(lte(), &[packet(0), packet(1), packet(30)]);
        let promotions = radio.uses().iter().find(|used| used.state == State::Promotion).unwrap();
        assert_eq!(promotions.duration, 2 * lte().promotion.duration);
        let idle = radio.uses().iter().find(|used| used.state == State::Idle).unwrap();
        let tail = lte().tail_duration();
        assert_eq!(idle.duration, Duration::from_secs(29).saturating_sub(tail));
    }
}
