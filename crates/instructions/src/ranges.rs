//! The ranges of one large file.

use std::time::Duration;

use pelton_algos::ranges::{Candidate, FileRanges, StreamId};

/// Bytes of the file.
const SIZE: u64 = 1 << 28;
const STREAMS: usize = 64;
/// Bytes that a stream brings at a time.
const PIECE: u64 = 64 * 1024;

/// Up to 64 streams share a file, at paces of their own, and those that are done take half of what others
/// have: the bytes that are there at the end.
pub(crate) fn split_and_steal() -> u64 {
    let worth =
        |of: Candidate| (of.remaining >= 4 * PIECE).then(|| Duration::from_micros(of.remaining));
    let mut ranges = FileRanges::new(Some(SIZE));
    let mut next = 0;
    while !ranges.is_complete() {
        while ranges.streams() < STREAMS
            && ranges.assign(StreamId(next), STREAMS as u64, PIECE, worth).is_some()
        {
            next += 1;
        }
        let streams: Vec<StreamId> = ranges.stream_ids().collect();
        for stream in streams {
            ranges.advance(stream, PIECE / (1 + stream.0 % 4));
            if ranges.is_finished(stream) {
                ranges.release(stream);
            }
        }
    }
    ranges.done_bytes()
}
