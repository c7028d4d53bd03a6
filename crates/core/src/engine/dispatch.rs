//! Turns a decision into requests: files into lanes, ranges into streams, and nothing left idle.

use pelton_algos::cluster::{Classes, SizeClass};
use pelton_algos::params::Allocation;
use pelton_algos::ranges::StreamId;
use pelton_algos::time::Timestamp;

use super::event::{Action, Fetch, FileId};
use super::file::{OpenedAs, State};
use super::{Engine, OriginId, Stream};

/// Requests that one HTTP/2 connection bears: servers commonly allow 100 to 128 streams.
const STREAMS_PER_CONNECTION: u32 = 100;

impl Engine {
    /// Starts whatever the present decision, the budgets and the work allow.
    pub(super) fn fill(&mut self, now: Timestamp) {
        if self.paused || self.cancelled {
            return;
        }
        let Some(decision) = self.decision.take() else { return };
        self.start_files(now, &decision.allocations);
        self.start_streams(now, &decision.allocations);
        self.decision = Some(decision);
    }

    /// Each cluster's lanes take its files; lanes whose cluster has none left take others.
    fn start_files(&mut self, now: Timestamp, allocations: &[Allocation]) {
        if self.waiting.is_empty() {
            return;
        }
        let widened = self.lanes.clone();
        for (allocation, lanes) in allocations.iter().zip(&widened) {
            let lanes = f64::from(*lanes);
            while self.lanes_used(allocation.classes, allocations) < lanes
                && self.start_next(now, allocation.classes)
            {}
        }
        let lanes: f64 = widened.iter().copied().map(f64::from).sum();
        while !self.waiting.is_empty()
            && self.lanes_used(Classes::ALL, allocations) < lanes
            && self.start_next(now, Classes::ALL)
        {}
    }

    /// Lanes that the files of `classes` in transfer occupy. Over HTTP/2 a lane bears as many
    /// files as its pipelining says.
    fn lanes_used(&self, classes: Classes, allocations: &[Allocation]) -> f64 {
        self.active
            .iter()
            .map(|id| &self.files[id.index()])
            .filter(|entry| classes.contains(entry.class))
            .map(|entry| {
                let pipelining = allocations
                    .iter()
                    .find(|a| a.classes.contains(entry.class))
                    .map_or(1, |a| a.parameters.pipelining.clamp(1, STREAMS_PER_CONNECTION));
                if self.origins[entry.origin.0 as usize].multiplexes {
                    1.0 / f64::from(pipelining)
                } else {
                    1.0
                }
            })
            .sum()
    }

    /// Takes the next waiting file of `classes`, larger ones first, into transfer.
    fn start_next(&mut self, now: Timestamp, classes: Classes) -> bool {
        let most_files =
            self.config.limits.max_files.map_or(usize::MAX, |most| most.max(1) as usize);
        if self.active.len() >= most_files {
            return false;
        }
        let (files, origins, total) =
            (&self.files, &self.origins, self.config.limits.max_connections);
        let in_use: u32 = origins.iter().filter(|o| !o.multiplexes).map(|o| o.streams).sum();
        let may_start = |id: OriginId| {
            let origin = &origins[id.0 as usize];
            origin.streams < origin.stream_budget(now) && (origin.multiplexes || in_use < total)
        };
        // Files that wait for their name to be looked at will be streams in a moment.
        let opening =
            self.active.iter().filter(|id| files[id.index()].state == State::Opening).count()
                as u32;
        if opening + in_use >= total {
            return false;
        }
        let next =
            SizeClass::ALL.into_iter().rev().filter(|class| classes.contains(*class)).find_map(
                |class| {
                    self.waiting.pop(class, may_start, |file| files[file.index()].outstanding())
                },
            );
        let Some(file) = next else { return false };
        self.active.insert(file);
        let entry = &mut self.files[file.index()];
        if entry.opened.is_some() {
            entry.state = State::Active;
        } else {
            entry.state = State::Opening;
            self.actions.push(Action::Open { file });
        }
        true
    }

    /// Every file in transfer gets the range streams of its cluster; spare channels without files
    /// become further streams of the file with the most left to do for each of its streams.
    fn start_streams(&mut self, now: Timestamp, allocations: &[Allocation]) {
        let files: Vec<FileId> = self.active.iter().copied().collect();
        let most = self.config.limits.max_streams_per_file.unwrap_or(u32::MAX).max(1);
        // A policy need not know of the ceiling: that of the user's own numbers does not.
        let parallelism = |class: SizeClass| {
            allocations
                .iter()
                .find(|a| a.classes.contains(class))
                .map_or(1, |a| a.parameters.parallelism.clamp(1, most))
        };
        for file in &files {
            let entry = &self.files[file.index()];
            let wanted = parallelism(entry.class);
            while (self.files[file.index()].ranges.streams() as u32) < wanted
                && self.start_stream(now, *file, wanted)
            {}
        }
        if !self.waiting.is_empty() {
            return;
        }
        let channels: u32 = allocations.iter().map(|a| a.parameters.concurrency).sum();
        let beyond: u32 = files
            .iter()
            .map(|id| &self.files[id.index()])
            .map(|e| (e.ranges.streams() as u32).saturating_sub(parallelism(e.class)))
            .sum();
        let spare = channels.saturating_sub(files.len() as u32).saturating_sub(beyond);
        for _ in 0..spare {
            let neediest = files
                .iter()
                .filter(|id| {
                    let entry = &self.files[id.index()];
                    entry.takes_ranges && (entry.ranges.streams() as u32) < most
                })
                .max_by_key(|id| {
                    let entry = &self.files[id.index()];
                    entry.outstanding() / (entry.ranges.streams() as u64 + 1)
                })
                .copied();
            let Some(file) = neediest else { return };
            let wanted = self.files[file.index()].ranges.streams() as u32 + 1;
            if !self.start_stream(now, file, wanted) {
                return;
            }
        }
    }

    /// Starts one more stream of `file`, which shall have `wanted` in all.
    fn start_stream(&mut self, now: Timestamp, file: FileId, wanted: u32) -> bool {
        let floor = self.split_floor().0;
        let entry = &self.files[file.index()];
        let origin = entry.origin;
        let held = entry.not_before.is_some();
        if entry.state != State::Active || held || !self.has_room(now, origin) {
            return false;
        }
        let stream = StreamId(self.next_stream);
        let entry = &mut self.files[file.index()];
        let streams = entry.ranges.streams() as u64;
        let parts = u64::from(wanted);
        let known = entry.ranges.size().is_some() && entry.takes_ranges;
        let range = if streams == 0 && !(known && entry.ranges.done_bytes() > 0) {
            // It may be another version by now: shorter, or longer.
            if entry.ranges.done_bytes() > 0 {
                self.actions.push(Action::Restart { file });
            }
            entry.ranges.reset();
            entry.ranges.start_whole(stream);
            None
        } else if known {
            // The first split of a probe deals even shares; later ones take halves.
            if streams == 1 && entry.ranges.gaps().is_empty() && parts > 2 {
                let probe = entry.ranges.stream_ids().next();
                let cut =
                    probe.and_then(|id| Some((id, entry.ranges.cut_to_share(id, parts, floor)?)));
                if let Some((stream, end)) = cut {
                    self.actions.push(Action::Cut { stream, end });
                }
            }
            let sharers = parts.saturating_sub(streams).max(1);
            let Some(assignment) = entry.ranges.assign(stream, sharers, floor) else {
                return false;
            };
            if let Some((victim, end)) = assignment.cut {
                self.actions.push(Action::Cut { stream: victim, end });
            }
            Some(assignment.range)
        } else {
            return false;
        };
        self.launch(now, stream, file, range);
        true
    }

    fn launch(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        file: FileId,
        range: Option<pelton_algos::ranges::ByteRange>,
    ) {
        self.next_stream += 1;
        let entry = &self.files[file.index()];
        let existing = match entry.opened {
            Some(OpenedAs::Existing(existing)) if range.is_none() => Some(existing),
            _ => None,
        };
        let whole = range.is_none();
        let fetch = Fetch {
            stream,
            file,
            url: entry.url().clone(),
            validator: entry.validator.clone().filter(|_| !whole),
            total: entry.ranges.size().filter(|_| !whole),
            range,
            existing,
        };
        let (origin, attempt) = (entry.origin, entry.attempt);
        self.note_activity(now);
        self.streams.insert(
            stream,
            Stream { file, origin, attempt, whole, has_head: false, last_activity: now },
        );
        self.origin(origin).streams += 1;
        self.totals.requests += 1;
        self.actions.push(Action::Fetch(fetch));
    }

    fn has_room(&self, now: Timestamp, origin: OriginId) -> bool {
        let state = &self.origins[origin.0 as usize];
        let in_use: u32 = self.origins.iter().filter(|o| !o.multiplexes).map(|o| o.streams).sum();
        let total = self.config.limits.max_connections;
        state.streams < state.stream_budget(now) && (state.multiplexes || in_use < total)
    }
}

impl super::OriginState {
    /// Streams that may be in flight at `now`.
    fn stream_budget(&self, now: Timestamp) -> u32 {
        let connections = self.budget.allowed(now);
        if self.multiplexes {
            connections.saturating_mul(STREAMS_PER_CONNECTION)
        } else {
            connections
        }
    }
}
