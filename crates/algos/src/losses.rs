//! What lost packets tell of the windows that connections will have.
//!
//! A receiver sees a loss as segments that come before one that was sent earlier. Where a share `p` of all is lost by
//! chance, a window settles at `1.22 / sqrt(p)` segments (M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The Macroscopic Behavior of
//! the TCP Congestion Avoidance Algorithm", 1997): what a path holds divided by that is how many connections fill it, and known
//! long before they have shown that they do not. Networks that change the order of packets look the same; they slow
//! windows down as well.

use std::time::Duration;

use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// Payload of a full segment over Ethernet, with timestamps (RFC 7323 section 3.2).
const SEGMENT: f64 = 1448.0;
/// The constant of the formula, for random losses and an acknowledgement of each segment.
const WINDOW: f64 = 1.22;

/// Fewer losses may be chance.
const TELLING: u32 = 4;

/// A path that carries so much of what its first answers have told loses what its queue does not hold: that says nothing of
/// chance.
const NEARLY_FULL: f64 = 0.4;

/// What a connection brings first tells. Later it fills its path, or has shown that it does not.
const WATCHED: Bytes = Bytes::mib(4);

/// Watches the beginning of one connection. Losses in one round trip are one: a window is halved once for all of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossWatch {
    brought: Bytes,
    next_look: Timestamp,
    out_of_order: u32,
}

impl LossWatch {
    /// `bytes` came over a path of this round-trip time. Returns whether it is time to look how many segments were out
    /// of order.
    pub fn on_bytes(&mut self, now: Timestamp, bytes: Bytes, rtt: Duration) -> bool {
        self.brought += bytes;
        let is_due = now >= self.next_look && self.brought <= WATCHED;
        if is_due {
            self.next_look = now + rtt;
        }
        is_due
    }

    /// So many segments were out of order since the connection began. Returns whether there are more than at the
    /// last look.
    pub fn on_count(&mut self, out_of_order: u32) -> bool {
        std::mem::replace(&mut self.out_of_order, out_of_order) < out_of_order
    }
}

/// The losses of all connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct Losses {
    count: u32,
    among: Bytes,
    /// Anything was lost, by chance or by a full queue.
    any: bool,
}

impl Losses {
    /// Something was lost, whatever the reason.
    pub fn on_any(&mut self) {
        self.any = true;
    }

    /// Something was lost after `brought` bytes had come in all, at a time when `rate` comes over a path that was seen to carry
    /// `best`.
    pub fn on_loss(&mut self, brought: Bytes, rate: BitRate, best: Option<BitRate>) {
        if best.is_none_or(|best| rate.bps() < best.bps() * NEARLY_FULL) {
            self.count = self.count.saturating_add(1);
            self.among = brought;
        }
    }

    /// Whether anything was lost, by chance or by a full queue.
    pub const fn any(&self) -> bool {
        self.any
    }

    /// What a connection will have in flight on the average. `None` where too little was lost to tell.
    pub fn window(&self) -> Option<Bytes> {
        let segments = (self.among.as_f64() / SEGMENT).max(1.0);
        let part = (f64::from(self.count) / segments).min(1.0);
        (self.count >= TELLING).then(|| Bytes((SEGMENT * WINDOW / part.sqrt()) as u64))
    }

    /// Connections of which each has such a window and that fill a path which holds `held` bytes. Zero where nothing
    /// tells.
    pub fn connections(&self, held: Bytes) -> u32 {
        self.window().map_or(0, |window| u32::try_from(held.div_ceil(window)).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn a_connection_is_looked_at_once_in_a_round_trip_and_at_its_beginning() {
        let mut watch = LossWatch::default();
        let at = |millis| Timestamp::from_millis(millis);
        assert!(watch.on_bytes(at(0), Bytes(1), RTT) && !watch.on_bytes(at(99), Bytes(1), RTT));
        assert!(watch.on_bytes(at(100), Bytes(1), RTT));
        assert!(!watch.on_bytes(at(900), WATCHED, RTT), "it has shown what it brings");
        assert!(watch.on_count(3) && !watch.on_count(3) && watch.on_count(4));
    }

    #[test]
    fn one_in_a_hundred_leaves_a_window_of_a_dozen_segments() {
        let mut losses = Losses::default();
        let (slow, best) = (BitRate::from_mbps(10.0), Some(BitRate::from_mbps(100.0)));
        for lost in 1..=4 {
            assert_eq!((losses.window(), losses.connections(Bytes::mib(1))), (None, 0));
            losses.on_loss(Bytes(lost * 100 * 1_448), slow, best);
        }
        assert_eq!(losses.window(), Some(Bytes(17_665)));
        assert_eq!(losses.connections(Bytes(1_000_000)), 57);
    }

    #[test]
    fn what_a_full_path_loses_is_no_chance() {
        let mut losses = Losses::default();
        let best = Some(BitRate::from_mbps(100.0));
        (0..100).for_each(|_| losses.on_loss(Bytes::mib(1), BitRate::from_mbps(50.0), best));
        assert_eq!(losses.window(), None);
        (0..4).for_each(|_| losses.on_loss(Bytes::ZERO, BitRate::ZERO, None));
        assert_eq!(losses.window(), Some(Bytes(1_766)), "nothing but losses");
    }
}
