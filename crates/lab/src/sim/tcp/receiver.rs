//! The client's side.

use std::collections::BTreeMap;

use super::Chunk;

/// Linux acknowledges so many segments at once before it begins to delay (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u64 = 16;

/// Puts bytes in order.
#[derive(Debug, Default)]
pub(in crate::sim) struct Receiver {
    next_byte: u64,
    /// What arrived beyond a gap: start to end.
    beyond: BTreeMap<u64, u64>,
    /// Segments that wait for an acknowledgement.
    unacknowledged: u64,
    /// The first segments of a connection are acknowledged one by one.
    quick: u64,
    pub(in crate::sim) last_number: u64,
    pub(in crate::sim) delayed_ack: bool,
}

impl Receiver {
    /// Everything before this byte is there.
    pub(in crate::sim) const fn next_byte(&self) -> u64 {
        self.next_byte
    }

    /// `chunk` arrived as transmission `number`. Returns whether it is acknowledged at once: every
    /// second segment is, and whatever is out of order (RFC 5681 section 4.2).
    pub(in crate::sim) fn on_chunk(&mut self, chunk: Chunk, number: u64) -> bool {
        self.last_number = number;
        let end = chunk.start + chunk.length;
        let in_order = chunk.start == self.next_byte && self.beyond.is_empty();
        if chunk.start <= self.next_byte {
            self.next_byte = self.next_byte.max(end);
        } else {
            let known = self.beyond.entry(chunk.start).or_insert(end);
            *known = (*known).max(end);
        }
        while let Some(entry) = self.beyond.first_entry() {
            if *entry.key() > self.next_byte {
                break;
            }
            self.next_byte = self.next_byte.max(entry.remove());
        }
        self.unacknowledged += chunk.segments();
        self.quick += chunk.segments();
        !in_order || self.unacknowledged >= 2 || self.quick <= QUICK_ACKS
    }

    /// An acknowledgement leaves. Returns how many were due: one for each second segment.
    pub(in crate::sim) fn acknowledge(&mut self) -> u64 {
        self.delayed_ack = false;
        std::mem::take(&mut self.unacknowledged).div_ceil(2).max(1)
    }

    pub(in crate::sim) const fn has_unacknowledged(&self) -> bool {
        self.unacknowledged > 0
    }
}
