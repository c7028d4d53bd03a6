//! How many connections and requests a path has room for.

use std::time::Duration;

use pelton_algos::cluster::{self, Cluster};
use pelton_algos::connections::{self, Together};
use pelton_algos::energy::Forecast;
use pelton_algos::link::LinkEstimate;
use pelton_algos::opening::Work;
use pelton_algos::params::{DEFAULT_CHANNELS, SPLIT_FLOOR};
use pelton_algos::units::{BitRate, Bytes};

use super::Engine;
use super::origin::OriginState;
use crate::connection::Scheme;

/// What joules must come to for who waits longer: they are forecast, and time costs base power for sure.
const WORTH_WAITING: f64 = 0.95;

/// So many bandwidth-delay products are worth the handshakes of further connections, and what their windows lose until they grow.
const PRODUCTS_LEFT: u64 = 2;

/// A handshake over TLS takes two round trips, and the request behind it another one.
const BEHIND: u32 = 3;

/// Servers that think bear so many times the requests that they would bear over connections of their own: most allow a hundred
/// over each that is shared (RFC 9113, section 6.5.2).
const MOST_SHARED_THOUGHTS: u32 = 4;

/// Connections that the path has room for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Where each bears one request.
    pub(super) separate: u32,
    /// Those that are worth their handshakes, where joules are what counts.
    pub(super) worthwhile: u32,
    /// Where requests share them.
    pub(super) shared: u32,
    /// Of those, what larger files need where nothing more is tried.
    pub(super) few: u32,
    /// A path that was seen to be slow holds no more.
    pub(super) is_held: bool,
    /// Nothing was known of the path but the pace of first answers.
    pub(super) of_new_path: bool,
    /// Requests that share connections.
    pub(super) requests: u32,
    /// They are so many until so much has come.
    pub(super) until: Bytes,
    /// Requests for short files, of which several may wait on one HTTP/1.1 connection.
    pub(super) pipelined: u32,
    /// How long the path needs for each of these files, where that is known.
    pub(super) each: Duration,
    /// How many of them come together over a connection.
    pub(super) together: Together,
}

impl Default for Room {
    /// Nothing is known of the path.
    fn default() -> Self {
        Self {
            separate: u32::MAX,
            worthwhile: u32::MAX,
            shared: u32::MAX,
            few: 0,
            is_held: false,
            of_new_path: false,
            requests: u32::MAX,
            until: Bytes(u64::MAX),
            pipelined: 0,
            each: Duration::ZERO,
            together: Together::ALONE,
        }
    }
}

impl Engine {
    /// Finds out how many connections the path has room for. The numbers of a user are exact.
    pub(super) fn make_room(&mut self, clusters: &[Cluster]) {
        if !self.policy.allows_growth() {
            return;
        }
        let for_short_files = self.room_for_short_files(clusters);
        if for_short_files.is_none() {
            self.growth.end_guess();
        }
        let before = self.room.separate;
        self.room = for_short_files.unwrap_or_else(|| self.room_for_long_files(clusters));
        // What streams beyond those that a slow path holds have in flight is lost.
        self.has_shrunk |= self.room.is_held && self.room.separate < before;
    }

    fn room_for_long_files(&self, clusters: &[Cluster]) -> Room {
        let link = self.path_of_requests();
        let seen = self.link.seen_bandwidth().unwrap_or_default();
        let bandwidth = seen.max(link.bandwidth);
        let link = LinkEstimate { bandwidth, ..link };
        let times = self.spread.times();
        let held = self.held(&link, clusters);
        let short = self.few_on_short_path();
        let (separate, few) = held.map_or_else(
            || {
                let lossy = self.few_against_losses();
                let few = connections::multiplexed(&link).max(self.few_at_end());
                let few = few.min(short).max(self.few_in_use()).max(lossy);
                (connections::with_room(&link).max(lossy), few)
            },
            |few| (few, few),
        );
        let separate = separate.saturating_mul(times);
        let kept = if held.is_some() { 0 } else { self.kept_early().min(short) };
        let sharing = few.max(kept).saturating_mul(times);
        let shared = sharing.min(separate).max(kept);
        let shared = shared + u32::from(self.spread.probes());
        Room { separate, shared, few, is_held: held.is_some(), pipelined: 1, ..Room::default() }
    }

    /// Connections that larger files share and use at present: as long as a path seems to hold more than it does, it is
    /// given more of them, and who takes them away then takes windows that fill it.
    fn few_in_use(&self) -> u32 {
        let shares = self.origins.iter().filter(|origin| origin.multiplexes());
        let streams: u32 = shares.map(|origin| origin.streams).sum();
        self.room.few.min(streams / self.spread.times())
    }

    /// Whether no file waits, more is left than the path holds twice, and less comes over shared connections than it carries. Many
    /// files have enough connections, and their windows still grow.
    pub(super) fn is_short_at_end(&self) -> bool {
        self.waiting.is_empty()
            && self.active.len() < DEFAULT_CHANNELS as usize
            && self.shares_connections()
            && !self.is_thrifty()
            && !self.link.keeps_pace(self.goodput)
            && self.outstanding().0 > self.link.estimate().bdp().0.saturating_mul(PRODUCTS_LEFT)
    }

    /// Connections that may be shared on a path that holds little.
    fn few_on_short_path(&self) -> u32 {
        let link = self.path_of_requests();
        let paced = self.link.paced_bandwidth().map(|bandwidth| LinkEstimate { bandwidth, ..link });
        paced.and_then(|link| connections::shared_on_short_path(&link)).unwrap_or(u32::MAX)
    }

    /// Connections that bring what is left then.
    fn few_at_end(&self) -> u32 {
        let paced = self.link.paced_bandwidth().filter(|_| self.is_short_at_end());
        let shares = self.origins.iter().filter(|origin| origin.multiplexes());
        let bearing = shares.map(|origin| origin.bearers.connections(origin.streams)).sum();
        paced.map_or(0, |paced| {
            connections::in_proportion(&self.link.estimate(), paced, self.goodput, bearing)
        })
    }

    /// Connections that fill the path with the windows that losses leave them.
    pub(super) fn few_against_losses(&self) -> u32 {
        if self.is_thrifty() {
            return 0;
        }
        let best = self.link.best_seen().unwrap_or_default();
        self.losses.connections(best * self.link.estimate().rtt)
    }

    /// Connections for which a path has room that was seen to be slow. Files that end before their windows have grown
    /// overfill nothing.
    fn held(&self, link: &LinkEstimate, clusters: &[Cluster]) -> Option<u32> {
        let is_long = |cluster: &Cluster| cluster.mean_size >= SPLIT_FLOOR;
        if !clusters.iter().all(is_long) {
            return None;
        }
        let bandwidth = self.link.paced_bandwidth()?;
        let held = connections::held(&LinkEstimate { bandwidth, ..*link });
        (held < DEFAULT_CHANNELS).then_some(held)
    }

    /// Before anything is known of files and link, the first requests find out. Nothing where the files
    /// take more than a few round trips.
    pub(super) fn room_for_short_files(&self, clusters: &[Cluster]) -> Option<Room> {
        let (files, Bytes(bytes)) = cluster::totals(clusters);
        // While no size is known, files are taken to be small: connections for nothing cost less
        // than round trips.
        let knows_sizes = self.sizes.knows_any();
        let mean_size = Bytes(if knows_sizes { bytes / files.max(1) } else { u64::MAX });
        let link = self.path_of_requests();
        let link = link.stretched_to(self.answers.wait_for_file(link.rtt));
        let seen = self.link.seen_bandwidth();
        let on = |bandwidth| LinkEstimate { bandwidth, ..link };
        let thought = seen.filter(|_| link.rtt > self.link.estimate().rtt).map(on);
        if knows_sizes && mean_size > connections::short_file(thought.as_ref()) {
            return None;
        }
        // Where nothing queues it carries more than is known of it.
        let on_free = self.free_path.times();
        let on = |bandwidth: BitRate| on(bandwidth * on_free);
        // Files that are here already bring no more than heads, whatever the path carries.
        let brings_heads = knows_sizes && mean_size == Bytes(0);
        let separate = match seen {
            _ if brings_heads => u32::MAX,
            // What the path carries is not known.
            Some(_) if self.waits_for_servers() => u32::MAX,
            Some(bandwidth) => connections::for_short_files(&on(bandwidth), mean_size),
            None if knows_sizes => connections::for_short_files(&on(BitRate::ZERO), mean_size),
            None => u32::MAX,
        };
        let known = seen.or_else(|| self.link.rests_on_hint().then_some(link.bandwidth)).map(on);
        let of_new_path = self.is_path_new();
        let (bytes, came) = (Bytes(bytes), self.brought());
        let there_and_most = (self.opened_early(), self.limits().max_connections);
        let sharing = connections::for_sharing(
            known.as_ref(),
            mean_size,
            bytes,
            there_and_most,
            of_new_path,
            came,
        );
        // A full path needs no more windows, and many files are under way over each.
        let shared = if self.link.was_full() {
            connections::with_room(&link)
        } else {
            sharing.connections.max(self.opened_ahead(files))
        };
        let shared = shared.min(self.few_on_short_path().max(self.few_against_losses()));
        let of = if knows_sizes { (files, bytes) } else { connections::of_unknown_sizes(files) };
        let as_seen = seen.map_or(link, |bandwidth| LinkEstimate { bandwidth, ..link });
        let over_shared = (u32::MAX, BEHIND);
        let shared = shared.min(self.worth_their_handshakes(&as_seen, of, over_shared, shared));
        // Nothing is saved of a server's thoughts, nor of redirects, by asking behind one another.
        let path = self.link.estimate();
        let pipelined = seen.map_or(0, |bandwidth| {
            let answer = connections::answer(mean_size);
            connections::for_pipelined_files(&LinkEstimate { bandwidth, ..path }, answer)
        });
        // Servers that think for long leave a path empty that seems to be slow.
        let times = self.spread.times();
        let separate = separate.saturating_mul(times).saturating_add(self.spread.probes().into());
        let requests = match known {
            // As many as over connections of their own.
            _ if brings_heads => self.limits().max_connections,
            Some(_) if self.waits_for_servers() => self.thoughts_at_once(),
            None => sharing.requests.min(self.first_answers_at_once()),
            Some(_) => sharing.requests,
        };
        let requests = requests.saturating_mul(times);
        let pipelined = match seen.map(|bandwidth| LinkEstimate { bandwidth, ..link }) {
            Some(link) if !self.pays_for_heads(&link, files, bytes, separate, pipelined) => 1,
            _ => pipelined,
        };
        // What has come lately counts, too: the path may have become faster.
        let best = self.link.best_seen().zip(seen).map(|(best, seen)| best.max(seen));
        let each = match best {
            Some(best) if knows_sizes && !brings_heads && !self.waits_for_servers() => {
                connections::answer(mean_size).min(connections::FIRST_FLIGHT) / (best * on_free)
            }
            _ => Duration::ZERO,
        };
        let in_order = self.origins.iter().all(|origin| origin.pipelines != Some(false));
        let of_each =
            if in_order { connections::pipelined(pipelined, DEFAULT_CHANNELS) } else { 1 };
        let worthwhile = self.worth_their_handshakes(&as_seen, of, (of_each, BEHIND), separate);
        // Requests that share connections cost no handshake.
        let separate =
            if self.shares_all_connections() { separate } else { separate.min(worthwhile) };
        let together = Together::with_a_flight(mean_size);
        Some(Room {
            separate,
            worthwhile,
            shared,
            of_new_path,
            requests,
            until: sharing.until,
            pipelined,
            each,
            together,
            ..Room::default()
        })
    }

    /// Of so many connections those that are worth their handshakes, where joules are what counts: as many as are usual, or
    /// more. No bound for everybody else.
    pub(super) fn worth_their_handshakes(
        &self,
        link: &LinkEstimate,
        (files, bytes): (u64, Bytes),
        (of_each, behind): (u32, u32),
        most: u32,
    ) -> u32 {
        let handshake = self.handshake();
        if !self.policy.is_thrifty() || handshake == Bytes::ZERO {
            return u32::MAX;
        }
        let there = u32::try_from(self.opened()).unwrap_or(u32::MAX).max(DEFAULT_CHANNELS);
        let work = Work { files, bytes, of_each, behind, handshake };
        let most = most.min(self.config.limits.max_connections);
        work.connections(link, there, most, |forecast| self.energy_model.0.predict(forecast))
    }

    /// How many answers are asked for at once over connections that are shared, before the first one has told how fast
    /// the path is: handshakes have.
    fn first_answers_at_once(&self) -> u32 {
        let rtt = self.link.estimate().rtt;
        let are_told = |origin: &&OriginState| {
            origin.origin.scheme == Scheme::Https && origin.opened >= DEFAULT_CHANNELS
        };
        let of_each = self.origins.iter().filter(are_told);
        let told = of_each.map(|origin| origin.handshakes.answers_at_once(rtt));
        told.reduce(u32::saturating_add).unwrap_or(u32::MAX)
    }

    /// Whether nothing is known of the path but the pace of first answers: neither was it full, nor has it lost anything by
    /// chance.
    pub(super) fn is_path_new(&self) -> bool {
        !self.link.was_full() && self.losses.window().is_none()
    }

    /// Whether all that is known of the path is what servers bring that think about each answer.
    fn waits_for_servers(&self) -> bool {
        self.link.waits_for_servers() && self.are_answers_thought_about()
    }

    /// Requests at once over shared connections to servers that think about each: as many as over connections of their own,
    /// and twice as many as have been answered.
    pub(super) fn thoughts_at_once(&self) -> u32 {
        let separate = self.allowed_connections();
        let answered = self.answers.count().saturating_mul(2);
        answered.clamp(separate, separate.saturating_mul(MOST_SHARED_THOUGHTS))
    }

    /// Whether so many requests that wait on each connection are worth the request for a head behind each of them,
    /// where joules are what counts.
    fn pays_for_heads(
        &self,
        link: &LinkEstimate,
        files: u64,
        bytes: Bytes,
        separate: u32,
        pipelined: u32,
    ) -> bool {
        let connections = self.limits().max_connections.min(separate);
        if !self.policy.is_thrifty() || pipelined <= connections {
            return true;
        }
        let handshake = self.handshake();
        let joules = |at_once, requests_of_each| {
            let forecast =
                connections::forecast_of_short_files(link, files, bytes, at_once, requests_of_each);
            let model = &self.energy_model.0;
            model.predict(&Forecast { connections, handshake, ..forecast }).get()
        };
        joules(pipelined, 2) * WORTH_WAITING < joules(connections, 1)
    }
}
