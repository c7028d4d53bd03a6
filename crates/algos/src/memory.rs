//! How the connections of a run share a limit on memory. A hard one: what has no room is not opened.
//!
//! What a connection holds at most is known when it opens: buffers, and over HTTP/2 the windows that
//! it promises, which a server may fill while nobody reads. Each one takes that from the limit. The
//! first ones get wide windows, as long as all that may come still have room for narrow ones.

use crate::units::Bytes;

/// Where nobody says otherwise.
pub const DEFAULT_LIMIT: Bytes = Bytes::mib(512);

/// With less, nothing would move: a smaller limit counts as this one.
pub const LEAST_LIMIT: Bytes = Bytes::mib(1);

/// What all connections share: the buffer that every body goes through.
const SHARED: Bytes = Bytes::kib(256);

/// Listings and side files are read as a whole. They get this part of the limit, and no more than any
/// listing for people needs.
const PAGES: u64 = 4;
const MOST_PAGES: Bytes = Bytes::mib(64);

/// What a read brings at once: TLS records as they came, or frames.
const READ: u64 = 128 * 1024;
/// A connection beside that: over HTTP/1.1 a head of up to 64 KiB and the read behind it, over HTTP/2
/// the narrowest windows, and a frame.
const REST: u64 = 128 * 1024;

/// Frames of HTTP/2: the least that are worth their fixed effort, and the largest that is of use.
const FRAMES: (u64, u64) = (32 * 1024, 256 * 1024);
/// What all streams of a connection may have in flight: twice the credit that one is ever given, so that
/// an idle reader of one stream does not starve the others.
const WIDEST: u64 = 32 * 1024 * 1024;
/// The part of what no connection needs that the next one gets.
const NEXT: u64 = 8;

/// What one HTTP/2 connection may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Buffers {
    /// Bytes that one read brings.
    pub read: u64,
    /// The largest frame that the server may send.
    pub frame: u64,
    /// What the server may send without being asked for more, on all streams together.
    pub window: u64,
}

/// Connections that have room within `limit`: at least one.
pub fn connections(limit: Bytes) -> u32 {
    u32::try_from(room(limit) / (READ + REST)).unwrap_or(u32::MAX)
}

/// Bytes of listings and side files that may be in memory at once.
pub fn pages(limit: Bytes) -> Bytes {
    Bytes(limit.max(LEAST_LIMIT).0 / PAGES).min(MOST_PAGES)
}

/// What connections have.
fn room(limit: Bytes) -> u64 {
    limit.max(LEAST_LIMIT).saturating_sub(pages(limit) + SHARED).0
}

/// What is taken of the limit.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    limit: Bytes,
    /// Connections that may be open at once.
    most: u32,
    open: u32,
    taken: u64,
}

impl MemoryBudget {
    /// Of which nothing is taken. The user allows `most` connections.
    pub fn new(limit: Bytes, most: u32) -> Self {
        let most = most.clamp(1, connections(limit));
        Self { limit, most, open: 0, taken: 0 }
    }

    /// Another limit from now on. What is taken stays so until it is given back.
    pub fn set(&mut self, limit: Bytes, most: u32) {
        let Self { open, taken, .. } = *self;
        *self = Self { open, taken, ..Self::new(limit, most) };
    }

    /// Takes what one more connection needs. Whether there was room for it.
    pub fn open(&mut self) -> bool {
        let fits = self.further() > 0;
        if fits {
            self.open += 1;
            self.taken += READ + REST;
        }
        fits
    }

    /// A connection that is open speaks HTTP/2: it gets more where there is more. It is to give back
    /// the bytes that are returned, too.
    pub fn widen(&mut self) -> (Bytes, Http2Buffers) {
        let promised = u64::from(self.most.saturating_sub(self.open)) * (READ + REST);
        let spare = room(self.limit).saturating_sub(self.taken + promised);
        let most = WIDEST + 2 * FRAMES.1 - REST;
        let more = (spare / NEXT).min(most);
        self.taken += more;
        (Bytes(more), http2(REST + more))
    }

    /// A connection is gone, with `more` that it had got.
    pub fn close(&mut self, Bytes(more): Bytes) {
        self.open = self.open.saturating_sub(1);
        self.taken = self.taken.saturating_sub(READ + REST + more);
    }

    /// How many more connections may be opened now.
    pub fn further(&self) -> u32 {
        let free = room(self.limit).saturating_sub(self.taken) / (READ + REST);
        let allowed = self.most.saturating_sub(self.open);
        u32::try_from(free).unwrap_or(u32::MAX).min(allowed)
    }
}

/// What becomes of `bytes` beside a read. A read may wait behind a frame of the same size.
fn http2(bytes: u64) -> Http2Buffers {
    let frame = (bytes / 4).clamp(FRAMES.0, FRAMES.1);
    let window = (bytes - 2 * frame).min(WIDEST);
    Http2Buffers { read: READ.max(frame), frame, window }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a connection holds at worst.
    fn held(buffers: Http2Buffers) -> u64 {
        buffers.read + buffers.frame + buffers.window
    }

    #[test]
    fn the_first_connections_have_wide_windows_and_all_have_some() {
        let mut budget = MemoryBudget::new(DEFAULT_LIMIT, 128);
        let windows: Vec<u64> = (0..128)
            .map(|_| {
                assert!(budget.open());
                budget.widen().1.window
            })
            .collect();
        assert_eq!(windows[..4], [WIDEST; 4]);
        assert!(windows[7] > 16 << 20, "{}", windows[7]);
        assert!(windows.iter().all(|window| *window >= 65_535), "RFC 9113, section 6.9.2");
        assert!(!budget.open());
    }

    #[test]
    fn the_least_limit_bears_two_connections() {
        assert_eq!(connections(Bytes::ZERO), 2);
        assert_eq!(connections(LEAST_LIMIT), 2);
        assert_eq!(connections(Bytes::mib(4)), 11);
        let narrow = http2(REST);
        assert_eq!((narrow.frame, narrow.window), (32 * 1024, 64 * 1024));
    }

    #[test]
    fn a_limit_that_is_lowered_waits_for_what_is_taken() {
        let mut budget = MemoryBudget::new(Bytes::mib(8), 8);
        let taken: Vec<Bytes> = (0..4)
            .map(|_| {
                assert!(budget.open());
                budget.widen().0
            })
            .collect();
        budget.set(LEAST_LIMIT, 8);
        assert!(!budget.open());
        for more in taken {
            budget.close(more);
        }
        assert_eq!(budget.further(), 2);
    }

    proptest! {
        /// Whatever comes and goes, what may be held stays within the limit, one connection always has
        /// room, and all that may come have theirs.
        #[test]
        fn never_beyond_the_limit(
            limit in 0u64..(2 << 30),
            most in 0u32..300,
            steps in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<usize>()), 0..300),
        ) {
            let limit = Bytes(limit);
            let mut budget = MemoryBudget::new(limit, most);
            let allowed = connections(limit).min(most.max(1));
            prop_assert!(allowed >= 1);
            // What each may hold, and what it has got beyond the least.
            let mut open: Vec<(u64, Bytes)> = Vec::new();
            for (opens, multiplexes, which) in steps {
                if opens {
                    let fits = budget.open();
                    prop_assert_eq!(fits, (open.len() as u32) < allowed);
                    if fits && multiplexes {
                        let (more, buffers) = budget.widen();
                        prop_assert!(buffers.window >= 65_535);
                        prop_assert!((16_384..=16_777_215).contains(&buffers.frame));
                        open.push((held(buffers), more));
                    } else if fits {
                        open.push((READ + REST, Bytes::ZERO));
                    }
                } else if !open.is_empty() {
                    let (_, more) = open.swap_remove(which % open.len());
                    budget.close(more);
                }
                let held: u64 = open.iter().map(|(held, _)| held).sum();
                prop_assert!(held + pages(limit).0 + SHARED.0 <= limit.max(LEAST_LIMIT).0);
            }
        }
    }
}
