//! Which bytes of a file are done, in flight or missing; how ranges are split and stolen.
//!
//! Every byte is in exactly one state: done, assigned to one stream, or missing.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::connections::FIRST_FLIGHT;

/// It costs a connection to cut a stream early, which is little for so many times what it has brought.
const WORTH_EARLY_CUT: u64 = 8;

/// A stream that is split keeps what it has asked for as long as this part of half of its range is left.
const WORTH_KEEPING: u64 = 2;

/// A half-open range of byte offsets.
pub type ByteRange = std::ops::Range<u64>;

/// A range stream of a file, numbered by its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// What one stream still has to bring: from `position` on, to `end` where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// Where its range began.
    pub start: u64,
    /// The next byte that it will bring.
    pub position: u64,
    /// The end of its range (excluded); `None` while the file's size is not known.
    pub end: Option<u64>,
    /// Up to here it was asked for, where its range is asked for in parts, or its server was promised that it may
    /// send it: what lies behind can be given to others for nothing.
    pub asked: Option<u64>,
}

impl InFlight {
    /// Bytes still to come, where the end is known.
    pub fn remaining(&self) -> Option<u64> {
        self.end.map(|end| end.saturating_sub(self.position))
    }
}

/// Bytes that a new stream is to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Its range.
    pub range: ByteRange,
    /// The stream whose range was cut, and its new end.
    pub cut: Option<(StreamId, u64)>,
}

/// A stream of which half of what it has to bring may be given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// It.
    pub stream: StreamId,
    /// Bytes that it has to bring.
    pub remaining: u64,
    /// Of that half it has asked for a part already, or has promised it: it would come for nothing.
    pub has_asked: bool,
}

/// The state of all bytes of one file.
#[derive(Debug, Clone, Default)]
pub struct FileRanges {
    size: Option<u64>,
    /// Disjoint, not touching: start -> end.
    done: BTreeMap<u64, u64>,
    in_flight: BTreeMap<StreamId, InFlight>,
}

impl FileRanges {
    /// A file of which nothing is there. `size` is its size in bytes, if it is known.
    pub const fn new(size: Option<u64>) -> Self {
        Self { size, done: BTreeMap::new(), in_flight: BTreeMap::new() }
    }

    /// The size in bytes, if it is known.
    pub const fn size(&self) -> Option<u64> {
        self.size
    }

    /// The size became known. Open ends are closed at it.
    pub fn set_size(&mut self, size: u64) {
        self.size = Some(size);
        for stream in self.in_flight.values_mut() {
            stream.end = Some(stream.end.map_or(size, |end| end.min(size)));
        }
    }

    /// Bytes that are there already, from a journal or an earlier attempt.
    pub fn mark_done(&mut self, range: ByteRange) {
        if range.start >= range.end {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        let touching: Vec<u64> = self
            .done
            .range(..=end)
            .rev()
            .take_while(|(_, e)| **e >= start)
            .map(|(s, _)| *s)
            .collect();
        for key in touching {
            if let Some(other_end) = self.done.remove(&key) {
                start = start.min(key);
                end = end.max(other_end);
            }
        }
        self.done.insert(start, end);
    }

    /// The bytes of `range` are worth nothing: they are missing again.
    pub fn forget(&mut self, range: &ByteRange) {
        let done: Vec<ByteRange> = self.done().collect();
        self.done.clear();
        for kept in done {
            self.mark_done(kept.start..kept.end.min(range.start));
            self.mark_done(kept.start.max(range.end)..kept.end);
        }
    }

    /// Nothing is there and nothing in flight: the file starts anew, its size unknown.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Bytes that are there.
    pub fn done_bytes(&self) -> u64 {
        self.done.iter().map(|(start, end)| end - start).sum()
    }

    /// Done ranges in order.
    pub fn done(&self) -> impl Iterator<Item = ByteRange> + '_ {
        self.done.iter().map(|(start, end)| *start..*end)
    }

    /// Bytes still to come, if the size is known.
    pub fn remaining(&self) -> Option<u64> {
        self.size.map(|size| size.saturating_sub(self.done_bytes()))
    }

    /// Whether every byte is there.
    pub fn is_complete(&self) -> bool {
        self.size.is_some_and(|size| self.done_bytes() >= size)
    }

    /// Streams in flight.
    pub fn streams(&self) -> usize {
        self.in_flight.len()
    }

    /// What `stream` still has to bring.
    pub fn stream(&self, stream: StreamId) -> Option<&InFlight> {
        self.in_flight.get(&stream)
    }

    /// Streams in flight, by number.
    pub fn stream_ids(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.in_flight.keys().copied()
    }

    /// Starts `stream` on the whole file from its first byte, as a plain GET does. Only for a file
    /// of which nothing is in flight; what was done is forgotten, since it will come again.
    pub fn start_whole(&mut self, stream: StreamId) {
        self.done.clear();
        self.in_flight.clear();
        let in_flight = InFlight { start: 0, position: 0, end: self.size, asked: None };
        self.in_flight.insert(stream, in_flight);
    }

    /// Gives `stream` a range of its own: a part of the largest gap, such that `sharers` streams
    /// (this one included) could share the gap evenly, and none below `floor`; or, without a gap, half
    /// of what another stream still has to bring: the one of which `gain` promises most. It gives `None` where a
    /// split is not worth it. `None` when there is nothing to give, or the size is not known.
    pub fn assign(
        &mut self,
        stream: StreamId,
        sharers: u64,
        floor: u64,
        gain: impl Fn(Candidate) -> Option<Duration>,
    ) -> Option<Assignment> {
        let assignment = self.share_of_gap(sharers, floor).or_else(|| self.half_of_one(gain))?;
        if let Some((victim, end)) = assignment.cut
            && let Some(in_flight) = self.in_flight.get_mut(&victim)
        {
            in_flight.end = Some(end);
        }
        let ByteRange { start, end } = assignment.range;
        let in_flight = InFlight { start, position: start, end: Some(end), asked: None };
        self.in_flight.insert(stream, in_flight);
        Some(assignment)
    }

    /// `stream` asks for its range in parts, and has asked for everything up to `end`; or its server may send that.
    pub fn on_asked(&mut self, stream: StreamId, end: u64) {
        if let Some(in_flight) = self.in_flight.get_mut(&stream) {
            in_flight.asked = Some(end);
        }
    }

    /// Leaves `stream` only so many bytes of what it has to bring; the others become a gap. Returns its new end if
    /// it was cut.
    pub fn cut_to_share(&mut self, stream: StreamId, share: u64, floor: u64) -> Option<u64> {
        let in_flight = self.in_flight.get_mut(&stream)?;
        let (position, end) = (in_flight.position, in_flight.end?);
        let share = share.max(floor.max(1));
        // What was asked for comes anyhow.
        let cut = position.checked_add(share)?.max(in_flight.asked.unwrap_or(0));
        if cut.checked_add(floor)? > end || cut >= end {
            return None;
        }
        in_flight.end = Some(cut);
        Some(cut)
    }

    /// Leaves `stream`, which has just begun, what is on its way; the rest becomes a gap. Returns its new end.
    /// `None` where that would be much of what it has to bring.
    ///
    /// A response without an end goes on until its connection is closed, and what it had in flight was in vain:
    /// in slow start about as much as it has brought by then, and later all that the path holds.
    pub fn cut_early(&mut self, stream: StreamId) -> Option<u64> {
        let in_flight = self.in_flight.get_mut(&stream)?;
        let brought = (in_flight.position - in_flight.start).max(FIRST_FLIGHT.0);
        if in_flight.remaining()? < brought.saturating_mul(WORTH_EARLY_CUT) {
            return None;
        }
        let cut = in_flight.position.checked_add(brought)?;
        in_flight.end = Some(cut);
        Some(cut)
    }

    /// Leaves `stream` alone to bring everything from its position to the end of the file: what
    /// others brought beyond it is forgotten. Returns the end, if the size is known.
    pub fn leave_to(&mut self, stream: StreamId) -> Option<u64> {
        let size = self.size?;
        self.in_flight.retain(|id, _| *id == stream);
        let in_flight = self.in_flight.get_mut(&stream)?;
        in_flight.end = Some(size);
        let position = in_flight.position;
        self.done.retain(|start, _| *start < position);
        if let Some(mut last) = self.done.last_entry() {
            let end = last.get_mut();
            *end = (*end).min(position);
        }
        Some(size)
    }

    /// Gives `stream` the gap that begins where its range ends. Returns its new end.
    pub fn give_back(&mut self, stream: StreamId) -> Option<u64> {
        let end = self.in_flight.get(&stream)?.end?;
        let gap = self.gaps().into_iter().find(|gap| gap.start == end)?;
        self.in_flight.get_mut(&stream)?.end = Some(gap.end);
        Some(gap.end)
    }

    /// `stream` brought `count` bytes. Returns how many of them were its own to bring: a stream
    /// whose end was cut may have run past it.
    pub fn advance(&mut self, stream: StreamId, count: u64) -> u64 {
        let Some(in_flight) = self.in_flight.get_mut(&stream) else { return 0 };
        let limit = in_flight.end.map_or(u64::MAX, |end| end.saturating_sub(in_flight.position));
        let accepted = count.min(limit);
        let from = in_flight.position;
        in_flight.position += accepted;
        let to = in_flight.position;
        self.mark_done(from..to);
        accepted
    }

    /// `stream` ended, well or not. What it did not bring is missing again.
    pub fn release(&mut self, stream: StreamId) -> Option<InFlight> {
        self.in_flight.remove(&stream)
    }

    /// Nothing will be in flight any more: gives back the memory for it.
    pub fn settle(&mut self) {
        self.in_flight = BTreeMap::new();
    }

    /// Whether `stream` has brought all that it had to.
    pub fn is_finished(&self, stream: StreamId) -> bool {
        self.in_flight.get(&stream).is_some_and(|s| s.remaining() == Some(0))
    }

    /// Gaps: bytes neither done nor assigned, in order. Empty while the size is not known.
    pub fn gaps(&self) -> Vec<ByteRange> {
        let Some(size) = self.size else { return Vec::new() };
        let mut taken: Vec<(u64, u64)> = self.done.iter().map(|(s, e)| (*s, *e)).collect();
        taken.extend(self.in_flight.values().map(|s| (s.position, s.end.unwrap_or(size))));
        taken.sort_unstable();
        let mut gaps = Vec::new();
        let mut at = 0;
        for (start, end) in taken {
            if start > at {
                gaps.push(at..start.min(size));
            }
            at = at.max(end);
        }
        if at < size {
            gaps.push(at..size);
        }
        gaps
    }

    fn largest_gap(&self) -> Option<ByteRange> {
        // The first of the largest, so that the same state gives the same answer.
        self.gaps().into_iter().rev().max_by_key(|gap| gap.end - gap.start)
    }

    fn share_of_gap(&self, sharers: u64, floor: u64) -> Option<Assignment> {
        let gap = self.largest_gap()?;
        let length = gap.end - gap.start;
        let share = length.div_ceil(sharers.max(1)).max(floor).min(length);
        // A rest below the floor would be a stream of its own for almost nothing.
        let share = if length - share < floor { length } else { share };
        Some(Assignment { range: gap.start..gap.start + share, cut: None })
    }

    fn half_of_one(&self, gain: impl Fn(Candidate) -> Option<Duration>) -> Option<Assignment> {
        let candidates = self.in_flight.iter().rev().filter_map(|(id, stream)| {
            let remaining = stream.remaining().filter(|remaining| *remaining >= 2)?;
            let (end, half) = (stream.end?, remaining / 2);
            // What was asked for comes anyhow, and is best kept where enough is left behind it.
            let is_worth_it =
                |asked: &u64| end.saturating_sub(*asked) >= (half / WORTH_KEEPING).max(1);
            let kept = stream.asked.filter(is_worth_it);
            let cut = kept.map_or(end - half, |asked| asked.max(end - half));
            let has_asked = stream.asked.is_some() && kept.is_none();
            Some((gain(Candidate { stream: *id, remaining, has_asked })?, *id, cut..end))
        });
        let (_, victim, range) = candidates.max_by_key(|(gain, ..)| *gain)?;
        let cut = Some((victim, range.start));
        Some(Assignment { range, cut })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: StreamId = StreamId(1);
    const B: StreamId = StreamId(2);
    const C: StreamId = StreamId(3);

    /// Streams are as fast as each other, and a half shall have `floor` bytes.
    fn above(floor: u64) -> impl Fn(Candidate) -> Option<Duration> {
        move |of| (of.remaining / 2 >= floor).then(|| Duration::from_secs(of.remaining))
    }

    #[test]
    fn a_probe_is_cut_to_its_share_and_the_rest_is_dealt_evenly() {
        let mut ranges = FileRanges::new(None);
        ranges.start_whole(A);
        assert!(ranges.assign(B, 1, 10, above(10)).is_none(), "no size, no second stream");
        ranges.set_size(1_000);
        ranges.advance(A, 100);
        assert_eq!(ranges.cut_to_share(A, 300, 10), Some(400));
        assert_eq!(ranges.assign(B, 2, 10, above(10)).map(|a| a.range), Some(400..700));
        assert_eq!(ranges.assign(C, 1, 10, above(10)).map(|a| a.range), Some(700..1_000));
        assert!(ranges.gaps().is_empty());
    }

    #[test]
    fn a_plain_get_that_has_just_begun_is_cut_early() {
        let mut ranges = FileRanges::new(Some(2_000_000));
        ranges.start_whole(A);
        ranges.advance(A, 20_000);
        assert_eq!(ranges.cut_early(A), Some(40_000));
        assert_eq!(ranges.gaps(), vec![40_000..2_000_000]);
        let mut ranges = FileRanges::new(Some(2_000_000));
        ranges.start_whole(A);
        assert_eq!(ranges.cut_early(A), Some(14_480), "a first flight is on its way");
        let mut ranges = FileRanges::new(Some(2_000_000));
        ranges.start_whole(A);
        ranges.advance(A, 300_000);
        assert_eq!(ranges.cut_early(A), None, "its window is wide by now");
        assert_eq!(FileRanges::new(None).cut_early(A), None);
    }

    #[test]
    fn an_idle_stream_takes_half_of_the_largest_remaining_range() {
        let mut ranges = FileRanges::new(Some(1_000));
        ranges.start_whole(A);
        ranges.advance(A, 200);
        let stolen = ranges.assign(B, 1, 100, above(100));
        assert_eq!(stolen, Some(Assignment { range: 600..1_000, cut: Some((A, 600)) }));
        assert_eq!(ranges.assign(C, 1, 300, above(300)), None, "halves would fall below the floor");
    }

    #[test]
    fn the_stream_is_split_of_which_that_gains_most() {
        let mut ranges = FileRanges::new(Some(1_000));
        ranges.start_whole(A);
        ranges.assign(B, 1, 100, above(100));
        ranges.advance(A, 400);
        // A has 100 bytes left and B 500, but A is ten times as slow.
        let slow = |Candidate { stream, remaining, .. }: Candidate| {
            Some(Duration::from_secs(if stream == A { 10 * remaining } else { remaining }))
        };
        let stolen = ranges.assign(C, 1, 1, slow);
        assert_eq!(stolen, Some(Assignment { range: 450..500, cut: Some((A, 450)) }));
    }

    #[test]
    fn what_was_asked_for_is_kept_where_enough_is_left_behind_it() {
        for (asked, cut) in
            [(100, 600), (700, 700), (800, 800), (801, 600), (1_000, 600), (2_000, 600)]
        {
            let mut ranges = FileRanges::new(Some(1_000));
            ranges.start_whole(A);
            ranges.advance(A, 200);
            ranges.on_asked(A, asked);
            let stolen = ranges.assign(B, 1, 100, above(100));
            let assignment = Assignment { range: cut..1_000, cut: Some((A, cut)) };
            assert_eq!(stolen, Some(assignment), "{asked}");
        }
        let mut ranges = FileRanges::new(Some(2));
        ranges.start_whole(A);
        ranges.on_asked(A, 2);
        let assignment = Assignment { range: 1..2, cut: Some((A, 1)) };
        assert_eq!(ranges.assign(B, 1, 1, above(1)), Some(assignment));
    }

    #[test]
    fn bytes_past_a_cut_end_do_not_count() {
        let mut ranges = FileRanges::new(Some(100));
        ranges.start_whole(A);
        ranges.assign(B, 1, 10, above(10));
        assert_eq!(ranges.advance(A, 80), 50);
        assert!(ranges.is_finished(A));
        assert_eq!(ranges.done_bytes(), 50);
    }

    #[test]
    fn who_is_asked_knows_what_would_come_for_nothing() {
        for (asked, in_vain) in [(None, false), (Some(700), false), (Some(900), true)] {
            let mut ranges = FileRanges::new(Some(1_000));
            ranges.start_whole(A);
            ranges.advance(A, 200);
            if let Some(asked) = asked {
                ranges.on_asked(A, asked);
            }
            let is_told = |of: Candidate| (of.has_asked == in_vain).then_some(Duration::ZERO);
            assert!(ranges.assign(B, 1, 100, is_told).is_some(), "{asked:?}");
        }
    }

    #[test]
    fn a_share_holds_what_was_asked_for() {
        let mut ranges = FileRanges::new(Some(1_000));
        ranges.start_whole(A);
        ranges.on_asked(A, 300);
        assert_eq!(ranges.clone().cut_to_share(A, 500, 100), Some(500));
        assert_eq!(ranges.cut_to_share(A, 100, 100), Some(300));
        ranges.on_asked(A, 1_000);
        assert_eq!(ranges.cut_to_share(A, 100, 100), None);
    }

    #[test]
    fn what_a_failed_stream_did_not_bring_is_missing_again() {
        let mut ranges = FileRanges::new(Some(100));
        ranges.start_whole(A);
        ranges.advance(A, 30);
        ranges.release(A);
        assert_eq!(ranges.gaps(), vec![30..100]);
        assert_eq!(ranges.assign(B, 1, 10, above(10)).map(|a| a.range), Some(30..100));
    }

    #[test]
    fn what_was_split_off_goes_back_while_its_stream_is_on_its_way() {
        let mut ranges = FileRanges::new(Some(100));
        ranges.start_whole(A);
        ranges.assign(B, 1, 10, above(10));
        assert_eq!(ranges.give_back(A), None, "it is another's");
        ranges.release(B);
        assert_eq!(ranges.give_back(A), Some(100));
        assert_eq!((ranges.gaps(), ranges.give_back(A)), (vec![], None));
    }

    #[test]
    fn an_empty_file_is_complete() {
        let mut ranges = FileRanges::new(None);
        ranges.start_whole(A);
        assert!(!ranges.is_complete());
        ranges.set_size(0);
        assert!(ranges.is_complete());
    }

    #[derive(Debug, Clone)]
    enum Operation {
        Assign { sharers: u64, floor: u64 },
        Advance { which: usize, count: u64 },
        CutToShare { which: usize, share: u64, floor: u64 },
        Fail { which: usize },
        LeaveTo { which: usize },
        GiveBack { which: usize },
        Forget { start: u64, length: u64 },
    }

    fn any_operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (1u64..8, 0u64..300).prop_map(|(sharers, floor)| Operation::Assign { sharers, floor }),
            (0usize..16, 0u64..800).prop_map(|(which, count)| Operation::Advance { which, count }),
            (0usize..16, 0u64..2_000, 0u64..300)
                .prop_map(|(which, share, floor)| Operation::CutToShare { which, share, floor }),
            (0usize..16).prop_map(|which| Operation::Fail { which }),
            (0usize..16).prop_map(|which| Operation::LeaveTo { which }),
            (0usize..16).prop_map(|which| Operation::GiveBack { which }),
            (0u64..2_000, 0u64..300)
                .prop_map(|(start, length)| Operation::Forget { start, length }),
        ]
    }

    /// A file in which each byte remembers who brought it.
    struct Model {
        ranges: FileRanges,
        next_stream: u64,
        brought: Vec<u32>,
    }

    impl Model {
        fn nth_stream(&self, which: usize) -> Option<StreamId> {
            let ids: Vec<_> = self.ranges.stream_ids().collect();
            (!ids.is_empty()).then(|| ids[which % ids.len()])
        }

        fn apply(&mut self, operation: &Operation) {
            match *operation {
                Operation::Assign { sharers, floor } => {
                    self.next_stream += 1;
                    self.ranges.assign(StreamId(self.next_stream), sharers, floor, above(floor));
                }
                Operation::Advance { which, count } => {
                    let Some(id) = self.nth_stream(which) else { return };
                    let from = self.ranges.stream(id).map_or(0, |s| s.position);
                    let accepted = self.ranges.advance(id, count);
                    for byte in from..from + accepted {
                        self.brought[byte as usize] += 1;
                    }
                    if self.ranges.is_finished(id) {
                        self.ranges.release(id);
                    }
                }
                Operation::CutToShare { which, share, floor } => {
                    if let Some(id) = self.nth_stream(which) {
                        self.ranges.cut_to_share(id, share, floor);
                    }
                }
                Operation::LeaveTo { which } => {
                    let Some(id) = self.nth_stream(which) else { return };
                    let position = self.ranges.stream(id).map_or(0, |s| s.position);
                    if self.ranges.leave_to(id).is_some() {
                        self.brought[position as usize..].fill(0);
                    }
                }
                Operation::GiveBack { which } => {
                    if let Some(id) = self.nth_stream(which) {
                        self.ranges.give_back(id);
                    }
                }
                Operation::Forget { start, length } => {
                    let end = (start + length).min(self.brought.len() as u64);
                    let start = start.min(end);
                    self.ranges.forget(&(start..end));
                    self.brought[start as usize..end as usize].fill(0);
                }
                Operation::Fail { which } => {
                    if let Some(id) = self.nth_stream(which) {
                        self.ranges.release(id);
                    }
                }
            }
        }

        /// Each byte is done, in flight once, or missing: exactly one of them.
        fn invariants(&self) {
            let size = self.brought.len();
            let mut owners = vec![0u32; size];
            let mut count = |range: ByteRange| {
                for byte in range {
                    owners[byte as usize] += 1;
                }
            };
            self.ranges.done().for_each(&mut count);
            for id in self.ranges.stream_ids() {
                let stream = self.ranges.stream(id).copied();
                if let Some(InFlight { position, end: Some(end), .. }) = stream {
                    count(position..end);
                }
            }
            self.ranges.gaps().into_iter().for_each(&mut count);
            assert!(owners.iter().all(|owners| *owners == 1), "{:?}", self.ranges);
            assert!(self.brought.iter().all(|times| *times <= 1), "a byte was brought twice");
        }
    }

    proptest! {
        #[test]
        fn every_byte_is_assigned_exactly_once(
            size in 1usize..2_000,
            operations in proptest::collection::vec(any_operation(), 0..80),
        ) {
            let ranges = FileRanges::new(Some(size as u64));
            let mut model = Model { ranges, next_stream: 0, brought: vec![0; size] };
            model.invariants();
            for operation in &operations {
                model.apply(operation);
                model.invariants();
            }
            // Whatever happened, the rest can be fetched, and then everything is there once.
            while !model.ranges.is_complete() {
                model.apply(&Operation::Assign { sharers: 1, floor: 1 });
                model.apply(&Operation::Advance { which: 0, count: 100 });
                model.invariants();
            }
            prop_assert!(model.brought.iter().all(|times| *times == 1));
        }

        #[test]
        fn done_ranges_union(marks in proptest::collection::vec((0u64..500, 0u64..100), 0..40)) {
            let mut ranges = FileRanges::new(Some(600));
            let mut expected = vec![false; 600];
            for (start, length) in marks {
                ranges.mark_done(start..start + length);
                (start..start + length).for_each(|byte| expected[byte as usize] = true);
            }
            prop_assert_eq!(ranges.done_bytes(), expected.iter().filter(|done| **done).count() as u64);
            let done: Vec<_> = ranges.done().collect();
            prop_assert!(done.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
