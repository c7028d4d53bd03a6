//! How many connections origins get.

use pelton_algos::cluster::Cluster;
use pelton_algos::connections::{self, FEW_ROUND_TRIPS};

use super::event::Action;
use super::{Engine, OriginId};

/// Connections that the path has room for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Where each bears one request.
    pub(super) separate: u32,
    /// Where requests share them.
    pub(super) shared: u32,
}

impl Default for Room {
    /// Nothing is known of the path.
    fn default() -> Self {
        Self { separate: u32::MAX, shared: u32::MAX }
    }
}

impl Engine {
    /// Finds out how many connections the path has room for. The numbers of a user are exact.
    pub(super) fn make_room(&mut self, clusters: &[Cluster]) {
        if !self.policy.allows_growth() {
            return;
        }
        let link = self.link.estimate();
        let files: u64 = clusters.iter().map(|cluster| cluster.files).sum();
        let sizes =
            clusters.iter().map(|cluster| cluster.mean_size.0.saturating_mul(cluster.files));
        let bytes = sizes.fold(0, u64::saturating_add);
        // While no size is known, files are taken to be small: connections for nothing cost less
        // than round trips.
        let takes_few_round_trips =
            !self.sizes.knows_any() || bytes <= files.saturating_mul(FEW_ROUND_TRIPS.0);
        let room = connections::with_room(&link);
        let shared = connections::multiplexed(&link).saturating_mul(self.growth.windows());
        self.room = match (takes_few_round_trips, self.link.was_full()) {
            (true, false) => Room::default(),
            (true, true) => Room { shared: room, ..Room::default() },
            (false, _) => Room { separate: room, shared: shared.min(room) },
        };
    }

    /// Whether requests share connections, with room for twice as many of those.
    pub(super) fn may_spread(&self) -> bool {
        let room = connections::with_room(&self.link.estimate());
        self.origins.iter().any(|origin| {
            let room = origin.budget.capacity().min(room);
            origin.multiplexes && self.room.shared.saturating_mul(2) <= room
        })
    }

    /// Tells the driver how many connections each origin may have, and how many of them will
    /// surely be used, so that they open while the first requests are under way.
    pub(super) fn announce_connections(&mut self) {
        let Some(decision) = &self.decision else { return };
        let total = self.config.limits.max_connections;
        let planned = decision.connections();
        let lanes: u32 = decision.channels();
        let known_sizes = self.sizes.knows_any()
            && self.active.iter().all(|id| !self.files[id.index()].size_is_guessed());
        for index in 0..self.origins.len() {
            let id = OriginId(index as u32);
            let waiting = self.waiting.of_origin(id) as u32;
            let state = &mut self.origins[index];
            let files = waiting.saturating_add(state.files_in_transfer());
            let room = if state.multiplexes { self.room.shared } else { u32::MAX };
            let limit = state.budget.capacity().min(total).min(room);
            // Range streams are sure only where sizes are known; lanes are, as far as files go.
            let streams = if known_sizes && files <= lanes { planned } else { lanes.min(files) };
            let open = if files == 0 { 0 } else { streams.min(limit) };
            if state.told != Some((limit, open)) {
                state.told = Some((limit, open));
                self.actions.push(Action::Connections {
                    origin: state.origin.clone(),
                    limit,
                    open,
                });
            }
        }
    }
}
