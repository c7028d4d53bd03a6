//! Gives files in transfer their range streams, and channels that are left further ones.

use pelton_algos::cluster::SizeClass;
use pelton_algos::params::Allocation;
use pelton_algos::parts::{self, Outset};
use pelton_algos::policy::Decision;
use pelton_algos::ranges::StreamId;
use pelton_algos::tail::look_interval;
use pelton_algos::time::Timestamp;

use super::event::{Action, Fetch, FileId};
use super::file::{Entry, OpenedAs, State};
use super::lanes::Lanes;
use super::origin::Contact;
use super::watch::Recent;
use super::{Engine, Stream};

impl Engine {
    /// Every file in transfer gets a stream, then the range streams of its cluster; spare channels
    /// without files become further streams of the file with the most left to do for each of its
    /// streams.
    pub(super) fn start_streams(&mut self, now: Timestamp, decision: &Decision) {
        let allocations = &decision.allocations;
        let most_streams = self.config.limits.max_streams_per_file.unwrap_or(u32::MAX);
        let parallelism = |class: SizeClass| {
            let allocation = allocations.iter().find(|a| a.classes.contains(class));
            allocation.map_or(1, |a| a.parameters.parallelism).clamp(1, most_streams)
        };
        for file in self.idle.iter().copied().collect::<Vec<_>>() {
            let entry = &self.files[file.index()];
            if entry.state != State::Active || entry.not_before.is_some() {
                continue;
            }
            // Its last stream was ended behind its last byte.
            if entry.ranges.is_complete() {
                self.finish_if_complete(file);
                continue;
            }
            if !self.start_stream(now, file, parallelism(entry.class)) {
                // Its origin has no room: others may have the lane.
                self.leave_lane(file);
                self.enqueue(file);
            }
        }
        let no_more_files = self.waiting.is_empty() || self.has_most_files();
        let spare = if no_more_files { self.spare_streams(decision) } else { 0 };
        if std::mem::take(&mut self.has_shrunk) && no_more_files {
            let planned = self.planned_streams(decision).saturating_add(spare);
            self.end_streams_beyond(planned.min(self.most_streams()));
        }
        if spare == 0 && allocations.iter().all(|a| a.parameters.parallelism <= 1) {
            return;
        }
        let files = self.active.to_vec();
        let most = self.streams_of_lanes(allocations);
        for file in &files {
            let wanted = parallelism(self.files[file.index()].class);
            while (self.files[file.index()].ranges.streams() as u32) < wanted
                && self.streams.len() < most as usize
                && self.room_to_split(now, self.files[file.index()].origin)
                && self.start_stream(now, *file, wanted)
            {}
        }
        let beyond: u32 = files
            .iter()
            .map(|id| &self.files[id.index()])
            .map(|e| (e.ranges.streams() as u32).saturating_sub(parallelism(e.class)))
            .sum();
        for further in (1..=spare.saturating_sub(beyond)).rev() {
            if !self.help_neediest(now, &files, further) {
                return;
            }
        }
    }

    /// Streams where each lane has its files. There may be more files in transfer, from when there were more
    /// lanes: they get no further streams.
    fn streams_of_lanes(&self, allocations: &[Allocation]) -> u32 {
        let streams = |(a, lanes): (&Allocation, &Lanes)| {
            lanes.count.saturating_mul(a.parameters.parallelism.max(lanes.files))
        };
        allocations.iter().zip(&self.lanes).map(streams).fold(0, u32::saturating_add)
    }

    /// Streams of the files in transfer as their clusters plan them.
    fn planned_streams(&self, decision: &Decision) -> u32 {
        let planned = |class: SizeClass| {
            let of_class = |a: &&Allocation| a.classes.contains(class);
            decision.allocations.iter().find(of_class).map_or(1, |a| a.parameters.parallelism)
        };
        let classes = self.active.iter().map(|id| self.files[id.index()].class);
        classes.map(planned).fold(0, u32::saturating_add)
    }

    /// Streams beyond the parallelism of each file, once no file waits: one for each channel without
    /// a file, and all of them as often as growth says. At the end one for each connection that is open.
    fn spare_streams(&self, decision: &Decision) -> u32 {
        let channels = decision.channels().saturating_add(decision.surplus_channels);
        let without_file = channels.saturating_sub(self.active.len() as u32);
        let streams = self.planned_streams(decision).saturating_add(without_file);
        // More files than were planned are some times the planned lanes as they are.
        let times = match self.widening() {
            1 => 1,
            widening => (widening / self.times_used()).max(2),
        };
        let spare = without_file.saturating_add(streams.saturating_mul(times - 1));
        spare.max(self.idle_at_end())
    }

    /// More streams have not paid: the newest ones end, and the others bring their ranges later. Over connections that
    /// are shared they stay: what their servers were promised comes anyhow.
    fn end_streams_beyond(&mut self, most: u32) {
        let excess = self.streams.len().saturating_sub(most as usize);
        let mut newest: Vec<StreamId> = self.streams.keys().rev().copied().collect();
        let may_end = |stream: &Stream| {
            !stream.whole && !self.origins[stream.origin.0 as usize].multiplexes()
        };
        newest.retain(|id| self.streams.get(id).is_some_and(may_end));
        for stream in newest.into_iter().take(excess) {
            let Some(file) = self.file_of(stream) else { continue };
            if self.files[file.index()].ranges.streams() > 1 {
                self.abort(stream);
            }
        }
    }

    /// One more stream for the file with the most left to do for each of its streams, of so many `further` ones for all.
    fn help_neediest(&mut self, now: Timestamp, files: &[FileId], further: u32) -> bool {
        let most = self.config.limits.max_streams_per_file.unwrap_or(u32::MAX);
        // Where servers think, what has just begun is not split: all at once get even parts.
        let at_once = self.are_answers_thought_about();
        let of_each = if at_once { further.div_ceil(files.len().max(1) as u32) } else { 1 };
        let neediest = files
            .iter()
            .map(|id| (*id, &self.files[id.index()]))
            .filter(|(_, entry)| entry.takes_ranges && entry.not_before.is_none())
            .map(|(id, entry)| (id, entry, entry.ranges.streams() as u32 + 1))
            .filter(|(_, entry, wanted)| *wanted <= most && self.room_to_split(now, entry.origin))
            .max_by_key(|(_, entry, wanted)| entry.outstanding() / u64::from(*wanted))
            .map(|(id, entry, _)| {
                (id, (entry.ranges.streams() as u32).saturating_add(of_each).min(most))
            });
        neediest.is_some_and(|(file, wanted)| self.start_stream(now, file, wanted))
    }

    /// Starts one more stream of `file`, which shall have `wanted` in all.
    fn start_stream(&mut self, now: Timestamp, file: FileId, wanted: u32) -> bool {
        let entry = &self.files[file.index()];
        let origin = entry.origin;
        let held = entry.not_before.is_some() || self.is_finding_out(entry);
        let room = self.room(now, origin);
        if entry.state != State::Active || held || room == 0 {
            return false;
        }
        let state = &self.origins[origin.0 as usize];
        // Who has no room takes no part of what is left.
        let room = room.min(state.trust.room_beside(state.streams).max(1));
        let wanted = wanted.min(room.saturating_add(entry.ranges.streams() as u32));
        let stream = StreamId(self.next_stream);
        let entry = &mut self.files[file.index()];
        let streams = entry.ranges.streams();
        let known = entry.ranges.size().is_some() && entry.takes_ranges;
        let range = if streams == 0 && !(known && entry.ranges.done_bytes() > 0) {
            // It may be another version by now: shorter, or longer.
            if entry.ranges.done_bytes() > 0 {
                let is_told_apart = self.files[file.index()]
                    .validator
                    .as_ref()
                    .is_none_or(|it| self.can_join(file, it));
                let reason = if is_told_apart {
                    "the server gives no ranges to go on with"
                } else {
                    "nothing (ETag, Last-Modified) tells whether the rest would be of the same version"
                };
                self.start_anew(file, reason.to_owned());
            }
            let ranges = &mut self.files[file.index()].ranges;
            ranges.reset();
            ranges.start_whole(stream);
            None
        } else if known {
            let Some(range) = self.range_for(now, stream, file, wanted) else { return false };
            Some(range)
        } else {
            return false;
        };
        self.launch(now, stream, file, range);
        true
    }

    /// After a failure one stream finds out whether there is a use in more of them.
    fn is_finding_out(&self, entry: &Entry) -> bool {
        let is_new = |stream: &Stream| stream.attempt == entry.attempt;
        entry.setbacks > 0
            && entry.ranges.stream_ids().any(|id| self.streams.get(&id).is_some_and(is_new))
    }

    /// Whether the request for `entry` shows whether its origin answers in order, where it has more files than there
    /// may be connections: the first one does, and none for a part can. Sooner known is a round trip less.
    fn shows_order(&self, entry: &Entry) -> bool {
        let state = &self.origins[entry.origin.0 as usize];
        let is_first = state.contact == Contact::None && state.streams == 0;
        let connections = state.budget.capacity().min(self.config.limits.max_connections);
        is_first
            && self.policy.allows_growth()
            && self.files_of(entry.origin.0 as usize) > connections
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
        let expected = entry.foreseen_size(&self.sizes);
        let wants_digest = self.config.verify && !entry.spec().is_verifiable();
        let anew = whole && entry.dirty;
        let state = &self.origins[entry.origin.0 as usize];
        // What a server says of the digest of a whole, or of a file that it has once given otherwise, is
        // best heard beside the whole.
        let may_begin = !anew && existing.is_none() && !wants_digest;
        let may_be_split = self.config.limits.max_streams_per_file != Some(1);
        let rate = || self.splits().of_each();
        let is_long = || parts::suit(expected, rate(), self.answers.mean());
        let begins = || may_begin && may_be_split && state.may_give_parts() && is_long();
        let bears_parts = !state.multiplexes() && !state.has_had_enough && !self.shows_order(entry);
        let in_parts = bears_parts && (!whole || begins());
        let (path, answer) = (self.link.estimate(), self.answers.mean());
        // All that are under way ask for their next parts, too.
        let others = self.streams.len() as u32;
        let turn = self.turns().and_then(|_| self.answers.wait_for_turn(others));
        let thought = turn.unwrap_or_else(|| self.answers.thought());
        let parts = in_parts.then(|| Outset { rtt: path.rtt, answer, thought, rate: rate() });
        let fetch = Fetch {
            stream,
            file,
            url: entry.url().clone(),
            validator: entry.validator.clone().filter(|_| !whole),
            total: entry.ranges.size().filter(|_| !whole),
            expected,
            range,
            parts,
            existing,
            anew,
            wants_digest,
        };
        let (origin, attempt, redirected) = (entry.origin, entry.attempt, entry.located.is_some());
        let entry = &mut self.files[file.index()];
        entry.dirty = true;
        let stands_in = entry.silences.pop();
        let brought_before = self.brought();
        let answered_before = self.origins[origin.0 as usize].answered;
        let ahead = self.ahead(origin, in_parts);
        self.note_activity(now);
        self.stall_check.get_or_insert(now + self.config.stall_timeout);
        self.next_look.get_or_insert(now + look_interval(path.rtt));
        self.streams.insert(
            stream,
            Stream {
                file,
                origin,
                attempt,
                began: now,
                whole,
                in_parts,
                redirected,
                has_asked: false,
                has_head: false,
                shares: None,
                brought_before,
                answered_before,
                ahead,
                stands_in,
                recent: Recent::starting(now),
            },
        );
        self.watch_ends(now);
        let answers = self.answers.count();
        let state = self.origin(origin);
        if state.streams == 0 {
            state.note_sign(now, answers);
        }
        state.add_stream();
        state.budget.on_request(now);
        self.note_streams(file);
        self.totals.requests += 1;
        self.actions.push(Action::Fetch(Box::new(fetch)));
    }
}
