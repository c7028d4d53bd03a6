//! How many connections origins get.

use std::time::Duration;

use pelton_algos::connections;
use pelton_algos::crowding::Crowding;
use pelton_algos::pace::Pace;
use pelton_algos::spread::Further;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};

use super::event::Action;
use super::{Engine, OriginId, OriginState};
use crate::connection::{Origin, Protocol};

impl OriginState {
    /// One stream more. Where none share a connection each has one, as far as there may be more.
    pub(super) fn add_stream(&mut self) {
        self.streams += 1;
        if !self.multiplexes() {
            let most = self.told.map_or(u32::MAX, |(limit, ..)| limit);
            self.opened = self.opened.max(self.streams.min(most));
            // Where too many were closed for those that have requests, others have been opened.
            self.hastened = self.hastened.min(self.opened.saturating_sub(self.streams));
        }
    }
}

/// Connections that are opened ahead are there a round trip after the first ones.
const BEHIND_FIRST: u32 = 1;

impl Engine {
    /// A host was reached: how long the path is is known.
    pub(super) fn on_reached(&mut self, now: Timestamp, origin: &Origin, rtt: Duration) {
        let id = self.origin_id(origin);
        let has_begun = self.origin(id).note_reached();
        self.redecide |= has_begun;
        self.redecide |= self.link.measured_rtt().is_none();
        self.on_rtt(now, rtt);
        self.redecide |= self.spread.on_handshake(now, rtt);
        let least = self.link.estimate().rtt;
        if self.growth.on_handshake(now, rtt, least, self.goodput) {
            self.has_shrunk = true;
            self.redecide = true;
        }
    }

    /// A round trip took so long at most.
    pub(super) fn on_rtt(&mut self, now: Timestamp, rtt: Duration) {
        self.link.on_rtt(now, rtt);
        self.on_round_trip(now, rtt);
    }

    /// A round trip took so long of late. What was found out about numbers of lanes and streams holds for the path as it was.
    pub(super) fn on_round_trip(&mut self, now: Timestamp, took: Duration) {
        if !self.link.on_round_trip(now, took) {
            return;
        }
        self.growth.on_longer_path();
        self.spread.on_longer_path(now, self.link.estimate().rtt);
        self.free_path.end();
        self.slump.end();
        for state in &mut self.origins {
            state.crowding = Crowding::default();
            state.budget.on_no_crowd();
        }
        self.redecide = true;
    }

    /// A connection came up: what its origin speaks is known, and the first answers are on their way.
    pub(super) fn on_connected(&mut self, now: Timestamp, origin: &Origin, protocol: Protocol) {
        let id = self.origin_id(origin);
        let finds_out = self.finds_path_out();
        let state = self.origin(id);
        let tells = state.handshakes.on_done(now);
        self.redecide |= tells && finds_out;
        let state = self.origin(id);
        let multiplexes = protocol == Protocol::Http2;
        if !state.has_answered() && state.multiplexes() != multiplexes {
            state.budget.share_connections(multiplexes);
            self.redecide = true;
            let of_it = self.streams.values_mut().filter(|it| it.origin == id && !it.has_head);
            of_it.for_each(|stream| stream.in_parts &= !multiplexes);
            self.expect_thoughts(now);
        }
    }

    /// The first answers have told how large files are, or how fast the link is: where files are short,
    /// this says how many of them fill it.
    pub(super) fn widen_for_short_files(&mut self, now: Timestamp) {
        self.redecide = true;
        if !self.policy.allows_growth() || self.link.rests_on_hint() {
            return;
        }
        let Some(room) = self.room_for_short_files(&self.clusters()) else { return };
        self.room = room;
        let planned = (self.lanes_in_all() / self.widening()).max(1);
        let factor = self.most_lanes().div_ceil(planned);
        let rtt = self.link.estimate().rtt;
        // That others are here already, too, is no more than likely.
        let are_here = !self.waiting.is_empty() && self.waiting.bytes() == Bytes::ZERO;
        if self.sizes.knows_any() && !are_here {
            self.growth.widen(now, rtt, factor);
        } else {
            self.growth.widen_by_guess(now, rtt, factor);
        }
    }

    /// The transport saw at what pace the first answers come, mostly before any body says so.
    pub(super) fn on_pace(&mut self, now: Timestamp, pace: Pace) {
        let seen = self.link.seen_bandwidth();
        self.link.on_pace(pace);
        if seen.is_none_or(|seen| pace.rate > seen) {
            self.widen_for_short_files(now);
        } else {
            self.redecide = true;
        }
    }

    /// Something was lost on its way: connections have narrow windows, as far as the path is not full.
    pub(super) fn on_loss(&mut self, now: Timestamp) {
        self.losses.on_any();
        if self.link.was_full() || !self.policy.allows_growth() || self.link.rests_on_hint() {
            return;
        }
        let best = self.link.best_seen();
        let held = best.unwrap_or_default() * self.link.estimate().rtt;
        if self.goodput == BitRate::ZERO && connections::overfill_path(self.opened(), held) {
            return;
        }
        let was_known = self.losses.window().is_some();
        self.losses.on_loss(self.totals.delivered, self.goodput, best);
        if !was_known && self.losses.window().is_some() {
            self.redecide = true;
            self.widen_against_losses(now, self.lanes_in_all() / self.widening());
        }
    }

    /// As many lanes, or range streams, in place of those `planned`, as it takes to fill the path with the windows that
    /// losses leave them.
    pub(super) fn widen_against_losses(&mut self, now: Timestamp, planned: u32) {
        let most = self.few_against_losses().min(self.config.limits.max_connections_per_origin);
        let planned = planned.max(1);
        // The nearest: one too many of each costs as much as one too few.
        let factor = most.saturating_add(planned / 2) / planned;
        if factor > 1 && !self.link.was_full() {
            self.growth.widen(now, self.link.estimate().rtt, factor);
        }
    }

    /// Whether `origin` answers requests in their order became known.
    pub(super) fn on_pipelines(&mut self, now: Timestamp, origin: &Origin, does: bool) {
        let id = self.origin_id(origin);
        let state = self.origin(id);
        state.pipelines = Some(does && state.pipelines != Some(false));
        if does && self.link.seen_bandwidth().is_some() {
            self.widen_for_short_files(now);
        }
    }

    /// Requests that each connection to an origin bears where it is not shared over HTTP/2.
    pub(super) fn pipelined(&self, state: &OriginState) -> u32 {
        if state.multiplexes() || state.pipelines != Some(true) {
            return 1;
        }
        let connections = state.budget.capacity().min(self.config.limits.max_connections);
        connections::pipelined(self.room.pipelined, connections)
    }

    /// What one connection more could be of use for: twice of those that larger files share or have for
    /// themselves, or of those that short files have for themselves.
    pub(super) fn further_connections(&self) -> Further {
        let total = self.config.limits.max_connections;
        let are_short = self.room.requests != u32::MAX;
        // What else takes time than the path: a queue, as a handshake will tell, or the server.
        if are_short && self.answers.mean() < self.link.estimate().rtt * 2 {
            return Further::Nothing;
        }
        let probing = u32::from(self.spread.probes());
        let may_double = self.origins.iter().any(|origin| {
            let most = origin.budget.capacity().min(total);
            let room = if origin.multiplexes() { self.room.shared } else { self.room.separate };
            // Who has fewer requests than connections needs none more.
            let may_probe = if are_short {
                !origin.multiplexes() && origin.opened < most
            } else {
                origin.streams + probing >= room
            };
            // The room has the probe in it.
            may_probe && room.saturating_sub(probing).saturating_mul(2) <= most
        });
        match may_double {
            true => Further::Doubling,
            false if !are_short && self.kept_early() + probing >= self.room.shared => {
                Further::Proof
            }
            false => Further::Nothing,
        }
    }

    /// Connections that were opened while nothing was known, and that larger files share from then on: what
    /// a path that loses packets needs, or a long one at first, is there. Until a handshake tells that
    /// the path is full.
    pub(super) fn kept_early(&self) -> u32 {
        if self.spread.has_queued() {
            return 0;
        }
        connections::kept(self.opened_early())
    }

    /// Connections that requests share and that were opened while nothing was known.
    pub(super) fn opened_early(&self) -> u32 {
        let shares = self.origins.iter().filter(|origin| origin.multiplexes());
        shares.map(|origin| origin.opened_early).max().unwrap_or(0)
    }

    /// Connections that are opened for so many `files` while the first answers are on their way. Those tell
    /// how many more requests the path takes: then they need not wait for a round trip.
    pub(super) fn opened_ahead(&self, files: u64) -> u32 {
        if !self.finds_path_out() {
            return 0;
        }
        let most = self.config.limits.max_files.unwrap_or(u32::MAX);
        let link = self.link.estimate();
        let ahead = connections::ahead(&link, files, self.handshake()).min(most);
        let of = connections::of_unknown_sizes(files);
        ahead.min(self.worth_their_handshakes(&link, of, (u32::MAX, BEHIND_FIRST), ahead))
    }

    /// Whether the first answers are on their way, and nothing else has told how fast the path is.
    fn finds_path_out(&self) -> bool {
        self.link.measured_rtt().is_some()
            && self.link.seen_bandwidth().is_none()
            && self.policy.allows_growth()
            && !self.link.rests_on_hint()
    }

    /// Files of an origin that wait or are in transfer.
    pub(super) fn files_of(&self, index: usize) -> u32 {
        let waiting = self.waiting.of_origin(OriginId(index as u32)) as u32;
        waiting.saturating_add(self.origins[index].files_in_transfer())
    }

    /// Tells the driver how many connections each origin may have, and how many of them will
    /// surely be used, so that they open while the first requests are under way.
    pub(super) fn announce_connections(&mut self) {
        let Some(decision) = &self.decision else { return };
        let total = self.config.limits.max_connections.min(self.descriptors.capacity());
        let planned = decision.connections();
        let lanes: u32 = decision.channels();
        // A limit on the rate leaves no round trip to be saved.
        let grows = self.policy.allows_growth() && self.max_rate().is_none();
        let known_sizes = self.sizes.knows_any()
            && self.active.iter().all(|id| !self.files[id.index()].size_is_guessed());
        let files: Vec<u32> = (0..self.origins.len()).map(|index| self.files_of(index)).collect();
        let all: u64 = files.iter().map(|files| u64::from(*files)).sum();
        let ahead = self.opened_ahead(all);
        let proves = self.further_connections() == Further::Proof;
        let (finds_out, rtt) = (self.finds_path_out(), self.link.estimate().rtt);
        let mut left = total;
        let in_use = files.iter().filter(|files| **files > 0).count() as u32;
        for (index, files) in files.into_iter().enumerate() {
            let state = &mut self.origins[index];
            // Streams that share connections are not counted one by one: each of the others needs one.
            let others = in_use - u32::from(files > 0);
            let room = if state.multiplexes() {
                total.saturating_sub(others).max(1).min(self.room.shared)
            } else {
                total.min(self.room.worthwhile)
            };
            let limit = state.budget.capacity().min(room);
            // Origins have parts of what all have together.
            let part =
                |of_all: u32| (u64::from(of_all) * u64::from(files)).div_ceil(all.max(1)) as u32;
            // Range streams are sure only where sizes are known; lanes are, as far as files go.
            let are_sure = known_sizes && files <= lanes && !self.policy.prefers_files();
            let sure = if are_sure { part(planned) } else { part(lanes).min(files) };
            let ahead = if state.has_begun() { part(ahead).min(files) } else { 0 };
            let streams = sure.max(ahead);
            let streams = match self.spread.probes() {
                // One more than there are, however they came to be.
                true if !state.multiplexes() => state.opened.max(state.streams).saturating_add(1),
                true if state.streams + 1 >= limit || proves => limit,
                _ => streams,
            };
            // Whether it can be reached again is found out by those that are needed.
            let open = if files == 0 || state.connect_failures > 0 {
                0
            } else {
                streams.min(limit).min(left)
            };
            left -= open;
            let handshakes = finds_out.then(|| sure.max(state.handshakes.at_once(rtt)));
            let may_pipeline =
                grows && !state.multiplexes() && state.pipelines != Some(false) && files > limit;
            let pipelined = match self.room.pipelined {
                _ if !may_pipeline => 1,
                // That it can be done is found out before it is known whether it is of use.
                0 => 0,
                requests => connections::pipelined(requests, limit),
            };
            state.opened = state.opened.max(open);
            if self.spread.times() == 1 && !self.spread.probes() {
                state.opened_early = state.opened_early.max(open);
            }
            if state.told != Some((limit, open, handshakes, pipelined)) {
                state.told = Some((limit, open, handshakes, pipelined));
                self.actions.push(Action::Connections {
                    origin: state.origin.clone(),
                    limit,
                    open,
                    handshakes,
                    pipelined,
                });
            }
        }
    }
}
