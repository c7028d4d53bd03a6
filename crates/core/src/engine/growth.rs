//! How lanes and range streams grow beyond their plan, and how many of them there are.

use std::time::Duration;

use pelton_algos::answers::Answer;
use pelton_algos::cluster::Cluster;
use pelton_algos::connections;
use pelton_algos::growth::{LaneUse, Response};
use pelton_algos::params::{self, Allocation};
use pelton_algos::policy::Decision;
use pelton_algos::spread::Further;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;

use super::lanes::Lanes;
use super::{Engine, OriginState};

/// A link estimate that moved by less than this does not call for another decision.
const MATERIAL_CHANGE: f64 = 1.15;

/// The least time over which growth of lanes is judged.
const SETTLE: Duration = Duration::from_millis(150);

impl Engine {
    /// How lanes are used at present, where they may grow.
    fn lane_use(&self) -> Option<LaneUse> {
        if !self.policy.allows_growth() || self.is_at_limit() {
            return None;
        }
        let lanes = self.lanes_in_all();
        // Without files that wait, what grows is range streams.
        let (in_use, most) = if self.waiting.is_empty() {
            (self.streams.len() as u32, self.most_streams())
        } else {
            (lanes, self.most_lanes())
        };
        Some(LaneUse {
            rate: self.goodput,
            all_busy: self.has_work_for_more() && self.turns().is_none(),
            times_used: self.times_used(),
            may_double: in_use.saturating_mul(3) / 2 <= most && !self.do_several_fill_the_path(),
            is_filling: self.link.is_filling(),
            settle: self.settle(),
        })
    }

    /// How many times the planned lanes are in use, whole ones: files that were begun when more were planned are in transfer still.
    pub(super) fn times_used(&self) -> u32 {
        let planned = (self.lanes_in_all() / self.growth.factor()).max(1);
        let files: u32 = self.origins.iter().map(OriginState::files_in_transfer).sum();
        (files / planned).max(1)
    }

    /// Whether several streams fill the path: a lone one may have its rate from its server.
    fn do_several_fill_the_path(&self) -> bool {
        let are_long = self.room.requests == u32::MAX;
        are_long && self.streams.len() > 1 && !self.policy.is_thrifty() && self.is_full_by_few()
    }

    /// How long a change of lanes and streams takes to show.
    pub(super) fn settle(&self) -> Duration {
        (self.link.estimate().rtt * 3).max(SETTLE)
    }

    /// A head came: lanes may grow.
    pub(super) fn note_response(&mut self, now: Timestamp, answer: Answer) {
        self.redecide |= self.brought() >= self.room.until;
        let queued = answer.took.saturating_sub(self.answers.add(answer));
        // On a path that has become longer nothing comes meanwhile, either.
        let always_thought = self.answers.always_thought(answer.rtt);
        self.link.on_answer(now, answer.took.saturating_sub(always_thought));
        // The formulas fill a link that is known: prompt responses tell nothing new of it.
        if self.link.rests_on_hint() || self.link.seen_bandwidth().is_none() {
            return;
        }
        // Who brings what the path was seen to carry needs no more. Streams that have just begun grow by themselves: what
        // that comes to is worth waiting for where a lane too many costs more than time.
        let are_short = self.room.requests != u32::MAX;
        let may_wait = self.is_thrifty() && self.link.is_filling();
        // The first answers of a slow path are prompt: what fills it is behind them. LowE has few lanes there.
        let is_held = !self.policy.is_thrifty()
            && self.room.is_held
            && self.streams.len() >= self.room.separate as usize;
        if !are_short && (may_wait || is_held || self.link.keeps_pace(self.goodput)) {
            return;
        }
        let rtt = self.link.estimate().rtt;
        let took = if self.are_answers_thought_about() { queued } else { answer.took };
        let response = Response { took, at_least: answer.rtt };
        let lanes = self.lane_use();
        let may_be_free = are_short && lanes.is_some() && !self.waits_elsewhere();
        if let Some(lanes) = lanes {
            self.redecide |= self.growth.on_response(now, response, rtt, lanes);
        }
        let seen = self.link.seen_bandwidth().unwrap_or_default();
        if self.free_path.on_response(now, response, rtt, seen, may_be_free) {
            self.redecide = true;
            if self.free_path.is_free() {
                self.widen_for_short_files(now);
            }
        }
    }

    /// Whether answers wait for their servers, of which the path tells nothing.
    fn waits_elsewhere(&self) -> bool {
        self.turns().is_some() || self.are_answers_thought_about()
    }

    /// A new sample of goodput: lanes may grow, and the link may have changed.
    pub(super) fn note_rate(&mut self, now: Timestamp) {
        let link = self.link.estimate();
        let settle = self.settle();
        let is_full = self.growth.is_full(now, settle);
        let streams = self.streams.len() as u32;
        self.slump.on_rate(now, self.link.brings_less(), streams, is_full, settle);
        for state in self.origins.iter_mut().filter(|state| state.served > 0) {
            self.redecide |= state.budget.on_served(now);
        }
        self.note_slowed_requests(now);
        if let Some(lanes) = self.lane_use() {
            let before = self.widening();
            if !self.growth.is_trying() {
                // A request more costs less than a connection, and is tried first.
                let is_first = self.are_slowed && lanes.may_double && !self.growth.rests(now);
                let further = if is_first { Further::Nothing } else { self.further_connections() };
                self.redecide |= self.spread.on_rate(now, lanes, further);
            }
            if !self.spread.is_busy() {
                self.redecide |= self.growth.on_rate(now, lanes);
            }
            self.has_shrunk |= self.widening() < before;
        }
        let moved = self.decided_for.is_none_or(|before| {
            let window = |a: Bytes, b: Bytes| a.as_f64() > b.as_f64() * MATERIAL_CHANGE;
            link.differs_from(&before, MATERIAL_CHANGE)
                || window(link.stream_window, before.stream_window)
                || window(before.stream_window, link.stream_window)
        });
        self.redecide |= moved || self.room.of_new_path && !self.is_path_new();
        self.redecide |= self.is_short_at_end();
        let is_faster = self.decided_for.is_some_and(|before| link.bandwidth > before.bandwidth);
        if moved && is_faster && self.free_path.is_free() {
            self.widen_for_short_files(now);
        }
    }

    /// How many times the planned lanes and streams are used.
    pub(super) fn widening(&self) -> u32 {
        self.growth.factor().saturating_mul(self.spread.times())
    }

    /// Lanes of all clusters.
    pub(super) fn lanes_in_all(&self) -> u32 {
        self.lanes.iter().fold(0, |sum, lanes| sum.saturating_add(lanes.count))
    }

    /// Lanes over all clusters that growth may reach.
    pub(super) fn most_lanes(&self) -> u32 {
        let limits = self.limits();
        let pipelined = self.origins.iter().map(|origin| self.pipelined(origin)).max().unwrap_or(1);
        let share = self.shares_all_connections();
        let are_long = self.room.requests == u32::MAX;
        let lanes = match pipelined {
            1 => limits.max_connections,
            _ => limits.max_connections.saturating_mul(pipelined).min(self.room.pipelined),
        };
        // Further ones that share as many connections bring no window: each only waits for others, if not for its server.
        if share && are_long && self.are_slowed {
            let of_each = self.lanes.iter().map(|lanes| lanes.files).max().unwrap_or(1).max(1);
            return (self.config.limits.max_connections / of_each)
                .clamp(1, limits.max_files.max(1));
        }
        let think = share && self.are_answers_thought_about();
        let lanes = if think && !are_long { lanes.max(self.thoughts_at_once()) } else { lanes };
        let wait_for_windows = share && are_long && !think;
        let windows = if wait_for_windows { self.room.shared } else { u32::MAX };
        lanes.min(limits.max_files).min(windows)
    }

    /// Where requests that share connections bring far less than the first answers told of the path, although nothing is lost,
    /// their servers may give each its rate: until more of them have brought no more.
    fn note_slowed_requests(&mut self, now: Timestamp) {
        let is_in_vain = self.growth.rests(now) && self.growth.factor() == 1;
        let is_lossless = self.shares_connections() && self.losses.window().is_none();
        self.are_slowed =
            is_lossless && !is_in_vain && (self.are_slowed || self.has_stayed_far_from_full());
    }

    /// Range streams that growth may reach: those that share connections would wait for each other.
    pub(super) fn most_streams(&self) -> u32 {
        let of_origin =
            |origin: &OriginState| origin.budget.capacity().min(self.windows_of(origin));
        let streams = self.origins.iter().map(of_origin).fold(0, u32::saturating_add);
        streams.min(self.most_lanes())
    }

    /// Lanes of each allocation, as often as growth says. Where files are too small for the range streams that were planned
    /// for them, the connections that are left bring further files, as far as channels go.
    pub(super) fn widened_lanes(&self, decision: &Decision, clusters: &[Cluster]) -> Vec<Lanes> {
        let (link, limits) = (self.link.estimate(), self.limits());
        let factor = self.widening();
        let most = if factor == 1 { decision.max_channels } else { self.most_lanes() };
        let most = most.min(limits.max_files);
        let mut spare = most.saturating_sub(decision.channels());
        let widen = |allocation: &Allocation| {
            let planned = allocation.parameters;
            let Some(cluster) = clusters.iter().find(|c| c.classes == allocation.classes) else {
                return planned.concurrency;
            };
            let usable =
                params::usable_parallelism(cluster, &link, &limits).min(planned.parallelism);
            let lanes = planned.connections().div_ceil(usable.max(1)).max(planned.concurrency);
            let extra = lanes.saturating_mul(factor).saturating_sub(planned.concurrency);
            let extra = extra.min(spare);
            spare -= extra;
            planned.concurrency + extra
        };
        let counts: Vec<u32> = decision.allocations.iter().map(widen).collect();
        let all = counts.iter().fold(0, |sum: u32, count| sum.saturating_add(*count));
        let files = |allocation: &Allocation| {
            let planned = allocation.parameters.pipelining;
            let cluster = clusters.iter().find(|c| c.classes == allocation.classes);
            // The numbers of a user are exact.
            match cluster.filter(|_| self.policy.allows_growth()) {
                Some(cluster) => {
                    connections::files_of_lane(&link, cluster.mean_size, all).min(planned)
                }
                None => planned,
            }
        };
        let lanes = |(allocation, count): (&Allocation, u32)| Lanes {
            classes: allocation.classes,
            count,
            files: files(allocation),
        };
        decision.allocations.iter().zip(counts).map(lanes).collect()
    }

    /// Whether a file in transfer has room for one more range stream.
    fn any_has_room_for_streams(&self) -> bool {
        let floor = self.splits().of_gap().0;
        self.active.iter().map(|id| &self.files[id.index()]).any(|entry| {
            let streams = entry.ranges.streams() as u64 + 1;
            entry.takes_ranges
                && entry.not_before.is_none()
                && entry.outstanding() / streams >= floor
        })
    }

    fn has_work_for_more(&self) -> bool {
        !self.waiting.is_empty() || self.any_has_room_for_streams()
    }

    /// Whether it is still open how many connections shall be shared: until then nothing is measured.
    pub(super) fn awaits_spread(&self) -> bool {
        let may_spread = self.further_connections() != Further::Nothing;
        let is_open = !self.spread.has_found() && may_spread && self.has_work_for_more();
        is_open || self.spread.is_busy()
    }
}
