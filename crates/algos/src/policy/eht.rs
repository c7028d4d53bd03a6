//! EHT: the most throughput per joule (papers/001 section IV, Algorithm 3).

use std::time::Duration;

use super::{Decision, Observation, Plan, Policy, describe_link, describe_shares, heaviest_first};
use crate::cluster::Cluster;
use crate::energy::Forecast;
use crate::link::LinkEstimate;
use crate::params;
use crate::time::Timestamp;
use crate::units::{Bytes, Joules};

/// How a cluster's weight follows from its bytes and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weighting {
    /// "`cluster.weight <- cluster.totalSize * cluster.fileCount`" (Algorithm 3 line 7).
    #[default]
    Product,
    /// `log(1 + totalSize) x log(1 + fileCount)`, as HTEE of the same family does.
    Logarithmic,
}

/// What the search maximises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// Equation 1, throughput / energy, over the whole transfer: for fixed bytes rate^2 / power,
    /// the inverse energy-delay product.
    #[default]
    WholeTransfer,
    /// Throughput / energy of one window, to the letter. Over equal windows that is rate / power
    /// scaled by time: bytes per joule, which is LowE's objective.
    Literal,
}

/// The constants of [`Eht`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EhtConfig {
    /// How clusters are weighed.
    pub weighting: Weighting,
    /// What is maximised.
    pub objective: Objective,
    /// The step of the search: "`for i = 1; i <= maxCC; i += 3`" (line 14).
    pub step: u32,
    /// `efficientCC`, an input of the printed algorithm: the best number of channels that an
    /// earlier transfer over this link found. The search starts with it,
    /// instead of with what the model predicts.
    pub efficient_channels: Option<u32>,
    /// A window's ramp-up, which is not counted, in round trips.
    pub ramp_rtts: u32,
    /// A window's counted part, in round trips.
    pub window_rtts: u32,
    /// The least counted part: meters need some time to show a difference.
    pub shortest_window: Duration,
    /// The search may take at most this share of the expected transfer; else the model decides.
    pub search_share: f64,
    /// The search stops when this many windows in a row were clearly worse than the best.
    pub patience: u32,
    /// A window is clearly worse below this share of the best efficiency.
    pub clearly_worse: f64,
    /// The search runs again when bandwidth or RTT have changed by this factor.
    pub link_change: f64,
}

impl Default for EhtConfig {
    fn default() -> Self {
        Self {
            weighting: Weighting::default(),
            objective: Objective::default(),
            step: 3,
            efficient_channels: None,
            ramp_rtts: 4,
            window_rtts: 8,
            shortest_window: Duration::from_millis(800),
            search_share: 0.15,
            patience: 2,
            clearly_worse: 0.9,
            link_change: 1.5,
        }
    }
}

/// Energy-aware High Throughput: channels by weight, and a search for the number of active
/// channels with the best throughput per joule.
///
/// The printed search starts each candidate for a window of unstated length (HTEE: 5 s) and takes
/// the maximum of the *efficiencies*; what is wanted is the candidate that reached it.
///
/// Deviation: the printed search goes up from one channel. On a long link its first windows cost
/// most of what the search can gain, so this one starts where the model, or the memory of an
/// earlier transfer, puts the optimum, goes up from there while that pays, and then down.
#[derive(Debug, Clone)]
pub struct Eht {
    config: EhtConfig,
    phase: Phase,
}

#[derive(Debug, Clone)]
enum Phase {
    Undecided,
    Searching(Search),
    /// No size is known: what a model says of assumed files would be chance.
    Uninformed,
    Settled {
        channels: u32,
        link: LinkEstimate,
        searched: bool,
        why: String,
    },
}

#[derive(Debug, Clone)]
struct Search {
    candidates: Vec<u32>,
    current: usize,
    window: Window,
    best: Option<(u32, f64)>,
    worse_in_a_row: u32,
    tried: Vec<(u32, f64)>,
}

impl Search {
    /// Efficiency has clearly turned in this direction: goes on below the start, or ends.
    fn turn(&mut self) {
        let start = self.candidates[0];
        let below = (self.current..self.candidates.len()).find(|i| self.candidates[*i] < start);
        let going_down = self.candidates[self.current - 1] < start;
        self.current = below.filter(|_| !going_down).unwrap_or(self.candidates.len());
        self.worse_in_a_row = 0;
    }
}

#[derive(Debug, Clone, Copy)]
struct Window {
    counted_from: Timestamp,
    ends: Timestamp,
    start: Option<Totals>,
}

#[derive(Debug, Clone, Copy)]
struct Totals {
    at: Timestamp,
    delivered: Bytes,
    energy: Joules,
}

impl Default for Eht {
    fn default() -> Self {
        Self::new(EhtConfig::default())
    }
}

impl Eht {
    /// A policy that has not searched yet.
    pub const fn new(config: EhtConfig) -> Self {
        Self { config, phase: Phase::Undecided }
    }

    /// The number of active channels that the search or the model chose, once it has: the
    /// `efficientCC` to remember for the next transfer over this link.
    pub const fn efficient_channels(&self) -> Option<u32> {
        match self.phase {
            Phase::Settled { channels, .. } => Some(channels),
            _ => None,
        }
    }

    /// Channels a cluster when `channels` are active: `floor(channels x weight)`, at least 1 each;
    /// a sum above `channels` is taken from the largest, a remainder goes to the heaviest. With
    /// fewer channels than clusters the heaviest get one each.
    fn shares(&self, clusters: &[Cluster], channels: u32) -> Vec<u32> {
        let weights = self.weights(clusters);
        let mut heaviest: Vec<usize> = (0..clusters.len()).collect();
        heaviest.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
        if (channels as usize) < clusters.len() {
            let mut shares = vec![0; clusters.len()];
            heaviest.iter().take(channels as usize).for_each(|index| shares[*index] = 1);
            return shares;
        }
        // "cluster.channelAllocation <- |maxCC * cluster.weight|" (line 12)
        let mut shares: Vec<u32> =
            weights.iter().map(|weight| ((f64::from(channels) * weight) as u32).max(1)).collect();
        while shares.iter().sum::<u32>() > channels {
            let Some(most) = shares.iter_mut().max() else { break };
            *most -= 1;
        }
        if let Some(first) = heaviest.first() {
            shares[*first] += channels - shares.iter().sum::<u32>();
        }
        shares
    }

    fn weights(&self, clusters: &[Cluster]) -> Vec<f64> {
        let weight = |cluster: &Cluster| match self.config.weighting {
            Weighting::Product => cluster.bytes.as_f64() * cluster.files as f64,
            Weighting::Logarithmic => {
                cluster.bytes.as_f64().ln_1p() * (cluster.files as f64).ln_1p()
            }
        };
        let total: f64 = clusters.iter().map(weight).sum();
        // "cluster.weight <- cluster.weight / TotalWeight" (line 11); all-empty files weigh the same.
        let even = 1.0 / clusters.len().max(1) as f64;
        clusters.iter().map(|c| if total > 0.0 { weight(c) / total } else { even }).collect()
    }

    /// 1, 4, 7, ... and the maximum itself (line 14).
    fn series(&self, most: u32) -> Vec<u32> {
        let mut series: Vec<u32> = (1..=most).step_by(self.config.step.max(1) as usize).collect();
        if series.last() != Some(&most) {
            series.push(most);
        }
        series
    }

    /// The order in which channels are tried: `start`, then what is above it, then what is below.
    fn candidates(&self, start: u32, most: u32) -> Vec<u32> {
        let start = start.clamp(1, most);
        let series = self.series(most);
        let above = series.iter().copied().filter(|channels| *channels > start);
        let below = series.iter().rev().copied().filter(|channels| *channels < start);
        std::iter::once(start).chain(above).chain(below).collect()
    }

    fn window_lengths(&self, link: &LinkEstimate) -> (Duration, Duration) {
        let ramp = link.rtt * self.config.ramp_rtts;
        let counted = (link.rtt * self.config.window_rtts).max(self.config.shortest_window);
        (ramp, counted)
    }

    fn window(&self, now: Timestamp, link: &LinkEstimate) -> Window {
        let (ramp, counted) = self.window_lengths(link);
        Window { counted_from: now + ramp, ends: now + ramp + counted, start: None }
    }

    /// Equation 1 for `bytes` in `time` with `energy`.
    fn efficiency(&self, bytes: Bytes, time: Duration, energy: Joules) -> f64 {
        let seconds = time.as_secs_f64().max(1e-9);
        let bits = bytes.as_f64() * 8.0;
        let joules = energy.get().max(1e-9);
        match self.config.objective {
            Objective::WholeTransfer => bits * bits / (seconds * joules),
            Objective::Literal => bits / seconds / joules,
        }
    }

    /// How long the model expects the transfer to take with `channels`: as long as the link needs
    /// for the bytes, or the channels for the files, or one of them for its longest file. A channel
    /// moves a file at its streams' windows, and needs at least a round trip for it.
    fn predicted_duration(observation: &Observation<'_>, channels: u32) -> Duration {
        let Observation { link, limits, clusters, .. } = observation;
        let rtt = link.rtt.as_secs_f64();
        let trips = |cluster: &Cluster| {
            let streams = params::usable_parallelism(cluster, link, limits);
            let a_trip = link.stream_window.scale(f64::from(streams)).max(Bytes(1));
            (cluster.mean_size.as_f64() / a_trip.as_f64()).max(1.0)
        };
        let longest = clusters.iter().map(trips).fold(0.0, f64::max) * rtt;
        let all: f64 = clusters.iter().map(|c| c.files as f64 * trips(c)).sum::<f64>() * rtt;
        let by_link = (observation.remaining() / link.bandwidth).as_secs_f64();
        let seconds = by_link.max(all / f64::from(channels.max(1))).max(longest);
        // Two round trips pass before the first byte: the handshake and the request.
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4) + link.rtt * 2
    }

    /// The best candidate by the energy model, with its predicted seconds and joules.
    fn by_model(&self, observation: &Observation<'_>) -> (u32, Duration, Joules) {
        let bytes = observation.remaining();
        let mut best = (1, Duration::ZERO, Joules::ZERO, f64::MIN);
        for channels in self.series(observation.limits.max_channels.max(1)) {
            let duration = Self::predicted_duration(observation, channels);
            let connections = self.decision(observation, channels, "").connections();
            let rate = bytes / duration;
            let energy =
                observation.energy_model.predict(&Forecast { bytes, rate, duration, connections });
            let efficiency = self.efficiency(bytes, duration, energy);
            if efficiency > best.3 {
                best = (channels, duration, energy, efficiency);
            }
        }
        (best.0, best.1, best.2)
    }

    /// What to do first, or anew after the link changed: go by the model, and measure once the link
    /// and the sizes are known.
    fn begin(&self, now: Timestamp, observation: &Observation<'_>) -> Phase {
        if !observation.sizes_are_known && self.config.efficient_channels.is_none() {
            return Phase::Uninformed;
        }
        let (by_model, seconds, joules) = self.by_model(observation);
        let start = self.config.efficient_channels.unwrap_or(by_model);
        if let Some(search) = self.affordable_search(now, observation, start) {
            return Phase::Searching(search);
        }
        let channels = start.min(observation.limits.max_channels.max(1));
        let cause = match (observation.energy, self.config.efficient_channels) {
            (_, Some(_)) => "as remembered",
            (None, _) => "no meter, so by model",
            _ if observation.is_measured => "too short to search, so by model",
            _ => "not measured yet, so by model",
        };
        let seconds = seconds.as_secs_f64();
        let why = format!("{cause} {channels} channels: {seconds:.1} s and {joules} expected");
        Phase::Settled { channels, link: observation.link, searched: false, why }
    }

    /// A search from `start` on, if what it measures can still pay.
    fn affordable_search(
        &self,
        now: Timestamp,
        observation: &Observation<'_>,
        start: u32,
    ) -> Option<Search> {
        let candidates = self.candidates(start, observation.limits.max_channels.max(1));
        let (ramp, counted) = self.window_lengths(&observation.link);
        let cost = (ramp + counted).as_secs_f64() * candidates.len() as f64;
        let expected = (observation.remaining() / observation.link.bandwidth).as_secs_f64();
        let pays = observation.is_measured
            && observation.energy.is_some()
            && candidates.len() > 1
            && cost <= expected * self.config.search_share;
        pays.then(|| Search {
            candidates,
            current: 0,
            window: self.window(now, &observation.link),
            best: None,
            worse_in_a_row: 0,
            tried: Vec::new(),
        })
    }

    /// Takes note of the present totals, and moves on when a window has ended.
    fn continue_search(
        &self,
        now: Timestamp,
        observation: &Observation<'_>,
        mut search: Search,
    ) -> Phase {
        let totals = Totals {
            at: now,
            delivered: observation.delivered,
            energy: observation.energy.unwrap_or_default(),
        };
        if now >= search.window.counted_from && search.window.start.is_none() {
            search.window.start = Some(totals);
        }
        let Some(start) = search.window.start.filter(|_| now >= search.window.ends) else {
            return Phase::Searching(search);
        };
        let channels = search.candidates[search.current];
        let efficiency = self.efficiency(
            totals.delivered.saturating_sub(start.delivered),
            totals.at - start.at,
            totals.energy.saturating_sub(start.energy),
        );
        search.tried.push((channels, efficiency));
        match search.best {
            Some((_, best)) if efficiency < best * self.config.clearly_worse => {
                search.worse_in_a_row += 1;
            }
            Some((_, best)) if efficiency <= best => search.worse_in_a_row = 0,
            _ => {
                search.best = Some((channels, efficiency));
                search.worse_in_a_row = 0;
            }
        }
        search.current += 1;
        if search.worse_in_a_row >= self.config.patience {
            search.turn();
        }
        if search.current < search.candidates.len() {
            search.window = self.window(now, &observation.link);
            return Phase::Searching(search);
        }
        let (best, _) = search.best.unwrap_or((channels, efficiency));
        let tried: Vec<_> =
            search.tried.iter().map(|(channels, e)| format!("{channels}: {e:.3e}")).collect();
        let why =
            format!("searched, {best} channels are best (rate^2/power: {})", tried.join(", "));
        Phase::Settled { channels: best, link: observation.link, searched: true, why }
    }

    fn decision(&self, observation: &Observation<'_>, channels: u32, reason: &str) -> Decision {
        let clusters = observation.clusters;
        let shares = self.shares(clusters, channels);
        let weights: Vec<_> = self.weights(clusters).iter().map(|w| format!("{w:.3}")).collect();
        let dealt = describe_shares(clusters, &shares);
        let reason = format!("{reason}, by weights {}: {dealt}", weights.join(", "));
        let large_to_small: Vec<usize> = (0..observation.clusters.len()).rev().collect();
        let priority = heaviest_first(observation.clusters);
        Plan::new(observation, shares, channels).finish(reason, &large_to_small, &priority)
    }
}

impl Policy for Eht {
    fn name(&self) -> &'static str {
        "eht"
    }

    fn decide(&mut self, now: Timestamp, observation: &Observation<'_>) -> Decision {
        let most = observation.limits.max_channels.max(1);
        self.phase = match std::mem::replace(&mut self.phase, Phase::Undecided) {
            Phase::Undecided | Phase::Uninformed => self.begin(now, observation),
            Phase::Searching(search) => self.continue_search(now, observation, search),
            Phase::Settled { link, .. }
                if observation.link.differs_from(&link, self.config.link_change) =>
            {
                self.begin(now, observation)
            }
            Phase::Settled { channels, link, searched: false, why } => {
                match self.affordable_search(now, observation, channels) {
                    Some(search) => Phase::Searching(search),
                    None => Phase::Settled { channels, link, searched: false, why },
                }
            }
            settled @ Phase::Settled { .. } => settled,
        };
        let link = describe_link(&observation.link);
        let (channels, reason) = match &self.phase {
            Phase::Searching(search) => {
                let channels = search.candidates[search.current].min(most);
                let step =
                    format!("window {} of at most {}", search.current + 1, search.candidates.len());
                (
                    channels,
                    format!("throughput per joule: {link}, trying {channels} channels ({step})"),
                )
            }
            Phase::Settled { channels, why, .. } => {
                (*channels.min(&most), format!("throughput per joule: {link}, {why}"))
            }
            Phase::Undecided | Phase::Uninformed => {
                let why = format!("no size is known yet, so all {most} channels");
                (most, format!("throughput per joule: {link}, {why}"))
            }
        };
        self.decision(observation, channels, &reason)
    }

    /// What a search has measured to be best stays; what a model predicted may prove too few.
    fn allows_growth(&self) -> bool {
        !matches!(self.phase, Phase::Searching(_) | Phase::Settled { searched: true, .. })
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Searching(Search { window, .. }) if window.start.is_none() => {
                Some(window.counted_from)
            }
            Phase::Searching(Search { window, .. }) => Some(window.ends),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::ConstantPower;
    use crate::params::tests::{worked_clusters, worked_limits, worked_link};
    use crate::units::BitRate;

    #[test]
    fn weights_and_channels_of_the_worked_example() {
        let eht = Eht::default();
        let rounded: Vec<_> =
            eht.weights(&worked_clusters()).iter().map(|w| (w * 1000.0).round() / 1000.0).collect();
        assert_eq!(rounded, [0.612, 0.357, 0.031]);
        // 9, 5, and a floor of 0.49 lifted to 1; the sixteenth goes to the heaviest.
        assert_eq!(eht.shares(&worked_clusters(), 16), [10, 5, 1]);
        assert_eq!(eht.shares(&worked_clusters(), 2), [1, 1, 0]);
    }

    fn observation<'a>(clusters: &'a [Cluster], model: &'a ConstantPower) -> Observation<'a> {
        Observation {
            link: worked_link(),
            clusters,
            limits: worked_limits(),
            is_measured: true,
            sizes_are_known: true,
            delivered: Bytes::ZERO,
            energy: Some(Joules::ZERO),
            energy_model: model,
        }
    }

    /// Drives a search in virtual time with the given goodput and power a number of channels.
    fn search(
        eht: &mut Eht,
        goodput: impl Fn(u32) -> BitRate,
        watts: impl Fn(u32) -> f64,
    ) -> Vec<u32> {
        let clusters =
            [Cluster::new(crate::cluster::SizeClass::Medium, 10_000, Bytes(7_000_000_000))];
        let model = ConstantPower::default();
        let mut seen = observation(&clusters, &model);
        let mut tried = Vec::new();
        let mut now = Timestamp::START;
        for _ in 0..100 {
            let channels = eht.decide(now, &seen).channels();
            if tried.last() != Some(&channels) {
                tried.push(channels);
            }
            let Some(next) = eht.next_timeout() else { return tried };
            let step = next - now;
            seen.delivered += goodput(channels) * step;
            seen.energy =
                seen.energy.map(|e| e + Joules::new(watts(channels) * step.as_secs_f64()));
            now = next;
        }
        panic!("the search does not end");
    }

    #[test]
    fn the_search_finds_the_knee_and_stops_early() {
        // Throughput saturates at 7 channels, each channel costs power.
        let goodput = |channels: u32| BitRate::from_mbps(7.0 * f64::from(channels.min(7)));
        let watts = |channels: u32| 1.0 + 0.3 * f64::from(channels);
        for (start, expected) in [
            (1, vec![1, 4, 7, 10, 13, 7]),
            (4, vec![4, 7, 10, 13, 1, 7]),
            (13, vec![13, 16, 10, 7, 4, 1, 7]),
        ] {
            let config = EhtConfig { efficient_channels: Some(start), ..EhtConfig::default() };
            let mut eht = Eht::new(config);
            assert_eq!(search(&mut eht, goodput, watts), expected, "from {start}");
            assert_eq!(eht.efficient_channels(), Some(7));
        }
    }

    #[test]
    fn nothing_is_searched_before_anything_is_measured() {
        let clusters =
            [Cluster::new(crate::cluster::SizeClass::Medium, 10_000, Bytes(7_000_000_000))];
        let model = ConstantPower::default();
        let mut seen = observation(&clusters, &model);
        seen.is_measured = false;
        let mut eht = Eht::default();
        let decision = eht.decide(Timestamp::START, &seen);
        assert!(decision.reason.contains("not measured yet"), "{}", decision.reason);
        seen.is_measured = true;
        let decision = eht.decide(Timestamp::from_millis(2_000), &seen);
        assert!(decision.reason.contains("trying"), "{}", decision.reason);
    }

    #[test]
    fn a_remembered_value_starts_the_search() {
        let config = EhtConfig { efficient_channels: Some(9), ..EhtConfig::default() };
        let mut eht = Eht::new(config);
        let tried = search(&mut eht, |_| BitRate::from_mbps(10.0), f64::from);
        assert_eq!(tried[0], 9);
        assert_eq!(eht.efficient_channels(), Some(1));
    }

    #[test]
    fn a_short_transfer_goes_by_the_model() {
        let clusters = worked_clusters();
        let model = ConstantPower::default();
        let mut eht = Eht::default();
        let decision = eht.decide(Timestamp::START, &observation(&clusters, &model));
        assert!(decision.reason.contains("too short to search"), "{}", decision.reason);
        assert_eq!(eht.next_timeout(), None);
        assert!(eht.efficient_channels().is_some());
    }

    #[test]
    fn the_literal_objective_prefers_fewer_joules_to_less_time() {
        let goodput = |channels: u32| BitRate::from_mbps(10.0 + f64::from(channels));
        let watts = |channels: u32| 1.0 + 0.2 * f64::from(channels);
        let mut whole = Eht::default();
        search(&mut whole, goodput, watts);
        let mut literal =
            Eht::new(EhtConfig { objective: Objective::Literal, ..EhtConfig::default() });
        search(&mut literal, goodput, watts);
        assert!(literal.efficient_channels() < whole.efficient_channels());
    }

    #[test]
    fn without_sizes_all_channels_are_used_and_then_the_model() {
        let clusters = worked_clusters();
        let model = ConstantPower::default();
        let mut seen = observation(&clusters, &model);
        seen.sizes_are_known = false;
        let mut eht = Eht::default();
        let blind = eht.decide(Timestamp::START, &seen);
        assert_eq!(blind.max_channels, seen.limits.max_channels);
        assert!(blind.reason.contains("no size is known yet"), "{}", blind.reason);
        assert_eq!(eht.efficient_channels(), None);
        seen.sizes_are_known = true;
        seen.energy = None;
        let informed = eht.decide(Timestamp::from_millis(300), &seen);
        assert!(informed.reason.contains("by model"), "{}", informed.reason);
    }

    #[test]
    fn a_changed_link_is_searched_again() {
        let mut eht = Eht::default();
        search(&mut eht, |_| BitRate::from_mbps(10.0), |_| 1.0);
        let clusters =
            [Cluster::new(crate::cluster::SizeClass::Medium, 10_000, Bytes(7_000_000_000))];
        let model = ConstantPower::default();
        let mut seen = observation(&clusters, &model);
        seen.link.bandwidth = BitRate::from_mbps(10.0);
        let decision = eht.decide(Timestamp::from_millis(60_000), &seen);
        assert!(decision.reason.contains("trying"), "{}", decision.reason);
    }
}
