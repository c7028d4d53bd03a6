//! Turns a decision into files in lanes.

use pelton_algos::cluster::{Classes, SizeClass};
use pelton_algos::growth::LaneGrowth;
use pelton_algos::time::Timestamp;

use super::event::{Action, FileId};
use super::file::State;
use super::{Engine, OriginState};

impl Engine {
    /// Starts whatever the present decision, the budgets and the work allow.
    pub(super) fn fill(&mut self, now: Timestamp) {
        if self.paused || self.cancelled || self.waits_for_space() {
            return;
        }
        let Some(decision) = self.decision.take() else { return };
        self.start_files(now);
        self.note_drained(now);
        self.start_streams(now, &decision);
        self.decision = Some(decision);
    }

    /// From the last waiting file on, lanes grow into range streams: what was found of files says
    /// nothing about them.
    fn note_drained(&mut self, now: Timestamp) {
        let is_drained = self.waiting.is_empty();
        if is_drained && !self.is_drained {
            // What the path loses says as much of them.
            let planned = self.lanes_in_all() / self.widening();
            self.growth = LaneGrowth::default();
            self.widen_against_losses(now, planned);
        }
        self.is_drained = is_drained;
    }

    /// Each cluster's lanes take its files; lanes whose cluster has none left take others.
    fn start_files(&mut self, now: Timestamp) {
        if self.waiting.is_empty() {
            return;
        }
        for index in 0..self.lanes.len() {
            let lanes = self.lanes[index];
            while self.start_next(now, lanes.classes, lanes.count) {}
        }
        let all = self.lanes_in_all();
        while self.may_take_others() && self.start_next(now, Classes::ALL, all) {}
    }

    /// Whether files wait that lanes of other clusters may take.
    fn may_take_others(&self) -> bool {
        let has_lanes = |class| self.lanes.iter().any(|lanes| lanes.classes.contains(class));
        let may_be_taken = |class| self.lanes.len() > 1 || !has_lanes(class);
        SizeClass::ALL.into_iter().any(|it| self.waiting.count(it).files > 0 && may_be_taken(it))
    }

    /// Takes the next waiting file of `classes`, larger ones first, into one of so many `lanes`: from the origin
    /// that is used least.
    fn start_next(&mut self, now: Timestamp, classes: Classes, lanes: u32) -> bool {
        let shares = self.shares(classes, lanes);
        if !shares.has_free || self.has_most_files() || self.awaits_ramp(now) {
            return false;
        }
        // Files in transfer without a stream will have one in a moment.
        let about_to_be = |o: &OriginState| (o.streams + o.idle).div_ceil(self.pipelined(o));
        let separate = self.origins.iter().filter(|o| !o.multiplexes());
        let in_use: u32 = separate.map(about_to_be).sum();
        let total = self.config.limits.max_connections;
        let has_connection = |state: &OriginState| {
            in_use < total
                || !state.multiplexes()
                    && !(state.streams + state.idle).is_multiple_of(self.pipelined(state))
        };
        let next =
            SizeClass::ALL.into_iter().rev().filter(|c| classes.contains(*c)).find_map(|c| {
                let origins = self.waiting.origins(c).map(|id| (id, &self.origins[id.0 as usize]));
                origins
                    .filter(|(id, state)| has_connection(state) && self.has_lane_for(*id, &shares))
                    .filter(|(id, state)| self.room(now, *id) > state.idle)
                    .min_by_key(|(_, state)| shares.turn_of(state))
                    .map(|(id, _)| (c, id))
            });
        let Some((class, origin)) = next else { return false };
        let files = &self.files;
        let outstanding = |file: FileId| files[file.index()].outstanding();
        let state = &mut self.origins[origin.0 as usize];
        state.probes -= u32::from(state.is_silent());
        let refused_first = state.asks_again_first();
        let Some(file) = self.waiting.pop(class, origin, refused_first, outstanding) else {
            return false;
        };
        let entry = &mut self.files[file.index()];
        if entry.opened.is_some() {
            entry.state = State::Active;
        } else {
            entry.state = State::Opening;
            self.actions.push(Action::Open { file });
        }
        self.enter_lane(file);
        let pipelined = self.pipelined(&self.origins[origin.0 as usize]);
        let together = self.room.together.at_most(pipelined);
        self.ramp.on_request(now, self.active.len() as u32, self.room.each, together);
        true
    }

    /// Whether what would be asked for beyond what it was until now comes too fast.
    fn awaits_ramp(&mut self, now: Timestamp) -> bool {
        if self.room.each.is_zero() {
            return false;
        }
        let in_flight = self.active.len() as u32;
        let at = self.ramp.next(now, in_flight);
        // What is pipelined waits for what the windows bring.
        let is_pipelined = || {
            let together = self.origins.iter().map(|it| self.pipelined(it)).max().unwrap_or(1);
            let most = self.config.limits.max_connections.saturating_mul(together);
            !self.shares_connections() && in_flight >= most
        };
        if at <= now || is_pipelined() {
            return false;
        }
        self.ramp_at = Some(at);
        true
    }

    /// As many files are in transfer as the user allows.
    pub(super) fn has_most_files(&self) -> bool {
        self.config.limits.max_files.is_some_and(|most| self.active.len() >= most as usize)
    }
}
