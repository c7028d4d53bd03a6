//! Whose packets a capture holds.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use pelton_power::trace::Direction;

use super::{CaptureError, Seen};

/// The client's addresses. It has one of each family where hosts speak IPv4 and IPv6.
pub(super) struct Clients {
    pub(super) addresses: Vec<IpAddr>,
    /// Those of them that sent first, and nothing else shows that they are the client's.
    pub(super) guessed: Vec<IpAddr>,
    /// Ends that have opened connections.
    openers: HashSet<SocketAddr>,
}

impl Clients {
    /// Those that are `named`, each of which must be there.
    pub(super) fn named(seen: &[Seen], named: &[IpAddr]) -> Result<Self, CaptureError> {
        let is_there = |client: &&IpAddr| {
            seen.iter().any(|packet| [packet.from.ip(), packet.to.ip()].contains(client))
        };
        match named.iter().find(|client| !is_there(client)) {
            Some(&client) => Err(CaptureError::NotThere { client, packets: seen.len() }),
            None => Ok(Self::new(seen, named.to_vec(), Vec::new())),
        }
    }

    /// Of each family who has opened its first connection, else who has sent the first segment or datagram to one other
    /// host: what routers tell all hosts shows no client. Where there are none, who has sent first.
    pub(super) fn found(seen: &[Seen]) -> Self {
        let of_family = |is_ipv4: bool| {
            let packets = || seen.iter().filter(move |packet| packet.from.is_ipv4() == is_ipv4);
            let opener = packets().find_map(|packet| packet.opener);
            let opener = opener.map(|end| (end.ip(), false));
            let talks = || packets().find(|packet| packet.is_talk());
            opener.or_else(|| talks().map(|packet| (packet.from.ip(), true)))
        };
        let mut found: Vec<_> = [true, false].into_iter().filter_map(of_family).collect();
        if found.is_empty() {
            found.extend(seen.first().map(|packet| (packet.from.ip(), true)));
        }
        let guessed = found.iter().filter(|(_, is_guess)| *is_guess).map(|(address, _)| *address);
        Self::new(seen, found.iter().map(|(address, _)| *address).collect(), guessed.collect())
    }

    fn new(seen: &[Seen], addresses: Vec<IpAddr>, guessed: Vec<IpAddr>) -> Self {
        let openers = seen.iter().filter_map(|packet| packet.opener).collect();
        Self { addresses, guessed, openers }
    }

    /// Which way `packet` goes; none where it is not the client's.
    pub(super) fn direction(&self, packet: &Seen) -> Option<Direction> {
        let is_sent = match (self.has(packet.from), self.has(packet.to)) {
            (false, false) => return None,
            (true, true) => self.is_by_opener(packet),
            (is_sent, _) => is_sent,
        };
        Some(if is_sent { Direction::Sent } else { Direction::Received })
    }

    /// Whether both ends have its addresses, as on a loopback interface.
    pub(super) fn are_both_ends_of(&self, packet: &Seen) -> bool {
        self.has(packet.from) && self.has(packet.to)
    }

    fn has(&self, end: SocketAddr) -> bool {
        self.addresses.contains(&end.ip())
    }

    /// Of two ends with the client's addresses that one is the client which has opened the connection, else the one with the
    /// higher port, as systems take for what they open.
    fn is_by_opener(&self, packet: &Seen) -> bool {
        let opened = [packet.from, packet.to].map(|end| self.openers.contains(&end));
        match opened {
            [true, false] => true,
            [false, true] => false,
            _ => packet.from.port() > packet.to.port(),
        }
    }
}
