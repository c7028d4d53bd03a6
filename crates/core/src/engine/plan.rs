//! When a decision is due, and what the policy is shown.

use std::time::Duration;

use pelton_algos::cluster::{self, Classes, Cluster, SizeClass};
use pelton_algos::connections;
use pelton_algos::handshakes::TLS_HANDSHAKE;
use pelton_algos::link::LinkEstimate;
use pelton_algos::params::{self, Allocation, DEFAULT_CHANNELS, FEW_CHANNELS, Limits};
use pelton_algos::policy::{Decision, Observation};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};

use super::Engine;
use super::event::Action;
use super::origin::OriginState;
use super::rates::connections_within;
use crate::connection::Scheme;

/// From this round trip on a lane too few costs more than one too many.
const LONG_PATH: Duration = Duration::from_millis(100);

/// Files of so many bandwidth-delay products together fill a path although their windows begin small.
const FILLING_BDPS: f64 = 4.0;

/// A lane without a stream for this long, beside two round trips, is idle.
const IDLE: Duration = Duration::from_millis(100);

/// Decisions are told at most so often. Where files of many sizes end, work is dealt anew with each.
const ANNOUNCED: Duration = Duration::from_millis(250);

/// Files and streams of one cluster in transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterUse {
    /// The cluster's size classes.
    pub classes: Classes,
    /// Files in transfer.
    pub files: u32,
    /// Range streams in flight.
    pub streams: u32,
}

impl Engine {
    /// Files and streams in transfer, per cluster of the present decision.
    pub fn usage(&self) -> Vec<ClusterUse> {
        let Some(decision) = &self.decision else { return Vec::new() };
        let mut usage: Vec<ClusterUse> = decision
            .allocations
            .iter()
            .map(|a| ClusterUse { classes: a.classes, files: 0, streams: 0 })
            .collect();
        for file in self.active.iter() {
            let entry = &self.files[file.index()];
            if let Some(cluster) = usage.iter_mut().find(|u| u.classes.contains(entry.class)) {
                cluster.files += 1;
                cluster.streams += entry.ranges.streams() as u32;
            }
        }
        usage
    }

    /// Unfinished files by cluster: those that wait and those in transfer.
    pub fn clusters(&self) -> Vec<Cluster> {
        let mut by_class = SizeClass::ALL.map(|class| {
            let count = self.waiting.count(class);
            (class, count.files, count.bytes, count.bytes)
        });
        let delayed = self.delayed.iter().map(|(_, file)| *file);
        let out_of_lanes = delayed.filter(|file| !self.active.contains(*file));
        for file in self.active.iter().chain(out_of_lanes) {
            let entry = &self.files[file.index()];
            let (_, files, outstanding, sizes) = &mut by_class[entry.class as usize];
            *files += 1;
            *outstanding += entry.outstanding();
            *sizes += entry.expected;
        }
        let clusters: Vec<Cluster> = by_class
            .into_iter()
            .filter(|(_, files, ..)| *files > 0)
            .map(|(class, files, outstanding, sizes)| Cluster {
                mean_size: Bytes(sizes / files),
                ..Cluster::new(class, files, Bytes(outstanding))
            })
            .collect();
        cluster::merge_equal(&clusters, &self.link.estimate(), &self.limits())
    }

    /// Connections that users and servers allow, whatever the path has room for.
    pub(super) fn allowed_connections(&self) -> u32 {
        let user = self.config.limits;
        let capacity = self.origins.iter().map(|origin| origin.budget.capacity());
        let capacity =
            capacity.reduce(u32::saturating_add).unwrap_or(user.max_connections_per_origin);
        user.max_connections.min(capacity).min(connections_within(self.max_rate())).max(1)
    }

    /// What a decision has to keep to at present.
    pub fn limits(&self) -> Limits {
        let user = self.config.limits;
        let max_connections = self.allowed_connections().min(self.room.separate).max(1);
        let channels = if self.is_thrifty() { FEW_CHANNELS } else { DEFAULT_CHANNELS };
        Limits {
            max_channels: channels.min(max_connections).max(1),
            max_files: user.max_files.unwrap_or(u32::MAX),
            max_streams_per_file: user.max_streams_per_file.unwrap_or(u32::MAX).max(1),
            max_connections,
            split_floor: self.split_floor(),
        }
    }

    /// The same for these files: a limit on the rate may leave no work for as many channels.
    fn limits_for(&self, clusters: &[Cluster]) -> Limits {
        let limits = self.limits();
        let Some(rate) = self.max_rate().filter(|_| self.sizes.knows_any()) else { return limits };
        let (files, bytes) = cluster::totals(clusters);
        let mean_size = Bytes(bytes.0 / files.max(1));
        let channels = connections::within_limit(rate, &self.path_of_requests(), mean_size);
        Limits { max_channels: limits.max_channels.min(channels), ..limits }
    }

    /// What connections have brought: files, and handshakes.
    pub(super) fn brought(&self) -> Bytes {
        self.totals.delivered + self.handshakes()
    }

    fn handshakes(&self) -> Bytes {
        Bytes(self.handshake().0.saturating_mul(self.opened()))
    }

    /// Connections that are, or were, open at once to each origin.
    pub(super) fn opened(&self) -> u64 {
        self.origins.iter().map(|origin| u64::from(origin.opened)).sum()
    }

    /// Whether servers think about answers. What they say first over many connections may fill a slow path by itself.
    pub(super) fn are_answers_thought_about(&self) -> bool {
        let first_words = self.handshakes();
        // Later answers have no handshakes before them.
        let is_first = u64::from(self.answers.count()) <= self.opened();
        let queued = match self.link.seen_bandwidth() {
            _ if !is_first || self.link.waits_for_servers() => Duration::ZERO,
            Some(bandwidth) => first_words / bandwidth,
            None if first_words > Bytes::ZERO => return false,
            None => Duration::ZERO,
        };
        self.answers.are_thought_about(self.link.estimate().rtt + queued)
    }

    /// The link as requests see it: a server that thinks makes the path as long as its answers take.
    pub(super) fn path_of_requests(&self) -> LinkEstimate {
        let link = self.link.estimate();
        if self.are_answers_thought_about() {
            link.stretched_to(link.rtt + self.answers.thought())
        } else {
            link
        }
    }

    /// The link as plans see it: as fast as the user lets it be. Where few lanes are enough it is as fast as it
    /// was seen to be: streams that have just begun come to more by themselves.
    fn allowed_link(&self) -> LinkEstimate {
        let link = self.path_of_requests();
        let seen = self.link.seen_bandwidth().filter(|_| self.is_thrifty());
        let known = [self.max_rate(), seen].into_iter().flatten().map(BitRate::bps);
        let bandwidth = known.fold(link.bandwidth.bps(), f64::min);
        LinkEstimate { bandwidth: BitRate::from_bps(bandwidth), ..link }
    }

    /// A stream starts. After a pause of more than a few round trips, what was not delivered during
    /// the pause says nothing about the link; between two files of a lane it does: it is what the
    /// lane costs.
    pub(super) fn note_activity(&mut self, now: Timestamp) {
        let pause = self.link.estimate().rtt * 2 + IDLE;
        if self.streams.is_empty()
            && self.idle_since.is_some_and(|since| now.saturating_since(since) > pause)
        {
            self.link.on_idle(now);
        }
    }

    /// A file of `class` has left its cluster: if none waits there, its channel is free.
    pub(super) fn redecide_if_drained(&mut self, class: SizeClass) {
        let Some(decision) = &self.decision else { return };
        let cluster = decision.allocations.iter().find(|a| a.classes.contains(class));
        self.redecide |= cluster.is_some_and(|cluster| {
            SizeClass::ALL
                .into_iter()
                .filter(|class| cluster.classes.contains(*class))
                .all(|class| self.waiting.count(class).files == 0)
        });
    }

    /// Whether there is anything to decide about.
    pub(super) fn may_decide(&self) -> bool {
        let unfinished =
            !(self.waiting.is_empty() && self.active.is_empty() && self.delayed.is_empty());
        unfinished && !self.paused && !self.cancelled && !self.waits_for_space()
    }

    pub(super) fn decide_if_due(&mut self, now: Timestamp) {
        let asked_for = self.policy.next_timeout().is_some_and(|at| now >= at);
        if !self.may_decide() || !(self.redecide || asked_for) {
            return;
        }
        self.redecide = false;
        self.recluster_if_due();
        let clusters = self.clusters();
        self.make_room(&clusters);
        let link = self.link.estimate();
        let sizes_are_known = self.sizes.knows_any();
        let observation = Observation {
            link: self.allowed_link(),
            clusters: &clusters,
            limits: self.limits_for(&clusters),
            is_measured: self.link.was_full() && sizes_are_known && !self.awaits_spread(),
            is_told: self.config.link.bandwidth_hint.is_some(),
            sizes_are_known,
            delivered: self.totals.delivered,
            handshake: self.handshake(),
            just_came: self.just_came,
            energy: self.energy,
            energy_model: &*self.energy_model.0,
        };
        let mut decision = self.policy.decide(now, &observation);
        decision.allow_one(&clusters);
        self.put_files_first(&mut decision, &clusters, &observation.limits);
        self.decided_for = Some(link);
        self.refill = true;
        self.lanes = self.widened_lanes(&decision, &clusters);
        self.decision = Some(decision);
        self.announce_connections();
    }

    /// Connections that are planned as range streams bring further files instead, where there are enough. The
    /// formulas are kept to where the link was told.
    fn put_files_first(&self, decision: &mut Decision, clusters: &[Cluster], limits: &Limits) {
        let may = self.policy.prefers_files() && self.sizes.knows_any();
        if !may || self.link.rests_on_hint() {
            return;
        }
        let is_thrifty = self.is_thrifty();
        let files: u64 = clusters.iter().map(|cluster| cluster.files).sum();
        // A large file would wait behind further ones over shared connections, where each cut leaves
        // what the server has written on its way.
        let shares = self.origins.iter().any(OriginState::multiplexes);
        let most = match (shares, is_thrifty) {
            (true, _) => decision.channels(),
            (false, true) => decision.max_channels,
            // No file can be shared at the end: others follow those that end first, as others take longer on a full path.
            (false, false) if self.give_wholes() => {
                decision.channels().max(u32::try_from(files / 3).unwrap_or(u32::MAX))
            }
            (false, false) => u32::MAX,
        };
        decision.prefer_files(clusters, most.min(limits.max_files), shares || is_thrifty);
    }

    /// Whether all files come from servers that give no ranges.
    fn give_wholes(&self) -> bool {
        self.origins.iter().all(|origin| origin.has_answered() && !origin.gives_ranges)
    }

    /// Whether few lanes are enough at first. Until sizes are known files may be short, and over a long path
    /// each lane too few costs round trips.
    pub(super) fn is_thrifty(&self) -> bool {
        self.policy.is_thrifty()
            && self.sizes.knows_any()
            && !self.link.rests_on_hint()
            && self.path_of_requests().rtt < LONG_PATH
            && self.few_files_fill_the_path()
    }

    /// Whether a few files at once are more than a path brings while their windows grow, and each is long enough for that
    /// to last: a lane that waits for the last packet of a short one is missed where there are few.
    fn few_files_fill_the_path(&self) -> bool {
        let counts = SizeClass::ALL.map(|class| self.waiting.count(class));
        let files = counts.iter().map(|count| count.files).sum::<u64>().max(1);
        let mean_size = self.waiting.bytes().0 / files;
        let few = mean_size as f64 * f64::from(FEW_CHANNELS);
        let are_long = mean_size >= params::SPLIT_FLOOR.0;
        self.waiting.is_empty()
            || are_long && few >= self.link.estimate().bdp().as_f64() * FILLING_BDPS
    }

    /// What opening a connection brings: TLS, where it is spoken at all.
    pub(super) fn handshake(&self) -> Bytes {
        let encrypted = self.origins.iter().any(|state| state.origin.scheme == Scheme::Https);
        if encrypted { TLS_HANDSHAKE } else { Bytes::ZERO }
    }

    /// Tells the driver of the present decision if it deals lanes or streams in another way than
    /// the one that was told last, and that was not just now.
    pub(super) fn announce(&mut self, now: Timestamp) {
        let Some(decision) = self.decision.as_ref().filter(|_| self.may_decide()) else { return };
        let waits = |classes: Classes| {
            let mut classes = SizeClass::ALL.into_iter().filter(|class| classes.contains(*class));
            classes.any(|class| self.waiting.count(class).files > 0)
        };
        let is_due = self.announced.as_ref().is_none_or(|(at, told)| {
            now.saturating_since(*at) >= ANNOUNCED && is_news(told, &decision.allocations, waits)
        });
        if is_due {
            self.announced = Some((now, decision.allocations.clone()));
            self.actions.push(Action::Decided(decision.clone()));
        }
    }

    /// Clusters waiting files anew when the boundaries have moved or sizes were learnt. The latter
    /// at 1, 2, 4, 8, ... learnt sizes, so that it costs little however long the list is.
    pub(super) fn recluster_if_due(&mut self) {
        let boundaries = self.config.clusters.boundaries(&self.link.estimate());
        let learnt = self.sizes_learnt >= self.recluster_at;
        if !learnt && !boundaries.moved_far_from(&self.boundaries) {
            return;
        }
        while self.recluster_at <= self.sizes_learnt {
            self.recluster_at *= 2;
        }
        self.boundaries = boundaries;
        for file in self.waiting.drain() {
            self.enqueue(file);
        }
        let reclassified = self.active.to_vec();
        for file in reclassified {
            let (class, expected) = self.classify(file);
            self.files[file.index()].expected = expected;
            self.move_to(file, class, self.files[file.index()].origin);
        }
    }
}

/// Whether `now` deals lanes or streams in another way than `before`. Lanes are dealt to files that
/// wait: those of a cluster without any only end, and a cluster that consists of a few files in
/// transfer comes and goes with them. Pipelining follows the mean size of what is left and moves
/// with every file.
fn is_news(before: &[Allocation], now: &[Allocation], waits: impl Fn(Classes) -> bool) -> bool {
    let none_wait = !waits(Classes::ALL);
    now.iter().any(|allocation| {
        let Some(told) = before.iter().find(|told| told.classes == allocation.classes) else {
            return none_wait || waits(allocation.classes);
        };
        let (told, dealt) = (told.parameters, allocation.parameters);
        let lanes_moved = told.concurrency != dealt.concurrency && waits(allocation.classes);
        let lanes_grew = told.concurrency < dealt.concurrency && none_wait;
        told.parallelism != dealt.parallelism || lanes_moved || lanes_grew
    })
}
