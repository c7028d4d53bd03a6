//! EHT: the most throughput per joule (papers/001 section IV, Algorithm 3).

mod config;
mod doubt;
mod search;

pub use config::{EhtConfig, Objective, Weighting};
use doubt::Doubt;
use search::{Found, Search};

use super::{
    Decision, Observation, Plan, Policy, count, describe_link, describe_shares, forecast,
    heaviest_first,
};
use crate::cluster::Cluster;
use crate::energy::Forecast;
use crate::link::LinkEstimate;
use crate::time::Timestamp;

/// So many times as many channels as a search could try are another question than it answered.
const MANY_MORE: u32 = 2;

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
    doubt: Doubt,
}

#[derive(Debug, Clone)]
enum Phase {
    Undecided,
    Searching(Search),
    /// No size is known: what a model says of assumed files would be chance.
    Uninformed,
    /// `searched` says what a search has found, if there was one.
    Settled {
        channels: u32,
        link: LinkEstimate,
        searched: Option<Found>,
    },
}

impl Default for Eht {
    fn default() -> Self {
        Self::new(EhtConfig::default())
    }
}

impl Eht {
    /// A policy that has not searched yet.
    pub fn new(config: EhtConfig) -> Self {
        Self { config, phase: Phase::Undecided, doubt: Doubt::default() }
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

    /// What the model expects of what is left with `channels`.
    fn forecast(&self, observation: &Observation<'_>, channels: u32) -> Forecast {
        let connections = self.decision(observation, channels, "").connections();
        forecast::forecast(observation, channels, connections)
    }

    /// The best candidate by the energy model; where the link was not told, the last that is about as
    /// good.
    fn by_model(&self, observation: &Observation<'_>) -> u32 {
        let rate = |channels: u32| {
            let expected = self.forecast(observation, channels);
            let (duration, energy) = forecast::cost(observation, &expected);
            (channels, self.config.efficiency(observation.remaining(), duration, energy))
        };
        let series = self.series(observation.limits.max_channels.max(1));
        let rated: Vec<_> = series.into_iter().map(rate).collect();
        let best = rated.iter().map(|(_, efficiency)| *efficiency).fold(0.0, f64::max);
        let about_as_good =
            |(_, efficiency): &&(u32, f64)| *efficiency >= best * self.config.as_good;
        let takes_model_at_its_word = observation.is_told || self.config.as_good >= 1.0;
        let insured = rated.iter().rfind(about_as_good).filter(|_| !takes_model_at_its_word);
        let found = insured.or_else(|| rated.iter().find(|(_, efficiency)| *efficiency >= best));
        found.map_or(1, |(channels, _)| *channels)
    }

    /// What to do first, or anew after the link changed: go by the model, and measure once the link
    /// and the sizes are known.
    fn begin(&self, now: Timestamp, observation: &Observation<'_>) -> Phase {
        if !observation.sizes_are_known && self.config.efficient_channels.is_none() {
            return Phase::Uninformed;
        }
        let start = self.config.efficient_channels.unwrap_or_else(|| self.by_model(observation));
        match self.affordable_search(now, observation, start) {
            Some(search) => Phase::Searching(search),
            None => Phase::Settled {
                channels: start.min(observation.limits.max_channels.max(1)),
                link: observation.link,
                searched: None,
            },
        }
    }

    /// A search from `start` on, if what it measures can still pay.
    fn affordable_search(
        &self,
        now: Timestamp,
        observation: &Observation<'_>,
        start: u32,
    ) -> Option<Search> {
        let candidates = self.candidates(start, observation.limits.max_channels.max(1));
        let (ramp, counted) = self.config.window_lengths(&observation.link);
        let cost = (ramp + counted).as_secs_f64() * candidates.len() as f64;
        let expected = observation.remaining() / observation.link.bandwidth;
        let pays = observation.is_measured
            && observation.energy.is_some()
            && candidates.len() > 1
            && cost <= expected.as_secs_f64() * self.config.search_share;
        pays.then(|| Search::new(&self.config, candidates, now, &observation.link, expected))
    }

    /// Takes note of the present totals, and moves on when a window has ended.
    fn continue_search(
        &self,
        now: Timestamp,
        observation: &Observation<'_>,
        mut search: Search,
    ) -> Phase {
        match search.on_totals(&self.config, now, observation) {
            None if search.is_elsewhere() => self.begin(now, observation),
            None => Phase::Searching(search),
            Some((channels, found)) => {
                Phase::Settled { channels, link: observation.link, searched: Some(found) }
            }
        }
    }

    /// Why `channels`, in words that are true now: the choice of a model is explained anew by what
    /// is left and known.
    fn why(&self, observation: &Observation<'_>, channels: u32) -> String {
        let cause = match (observation.energy, self.config.efficient_channels) {
            (_, Some(_)) => "as remembered",
            (None, _) => "no meter, so by model",
            _ if observation.is_measured => "too short to search, so by model",
            _ => "not measured yet, so by model",
        };
        let expected = self.forecast(observation, channels);
        let expected = forecast::describe(observation, &expected);
        let channels = count(channels, "channel");
        format!("{cause} {channels}: {expected} expected from here")
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

/// Whether a search that could try no more than `tried` channels was confined to a few of the `most` that are allowed
/// now: a server that has just refused many allowed no more.
const fn is_confined(tried: u32, most: u32) -> bool {
    tried <= most / MANY_MORE
}

impl Policy for Eht {
    fn name(&self) -> &'static str {
        "eht"
    }

    fn decide(&mut self, now: Timestamp, observation: &Observation<'_>) -> Decision {
        let most = observation.limits.max_channels.max(1);
        self.phase = match std::mem::replace(&mut self.phase, Phase::Undecided) {
            Phase::Undecided | Phase::Uninformed => self.begin(now, observation),
            Phase::Searching(search)
                if search.is_outdated(&self.config, &observation.link)
                    || is_confined(search.most(), most) =>
            {
                self.begin(now, observation)
            }
            Phase::Searching(search) => self.continue_search(now, observation, search),
            // A round trip that became longer and costs no throughput is a queue of one's own: it comes with
            // what was found best.
            Phase::Settled { link, .. }
                if observation.link.differs_in_bandwidth(&link, self.config.link_change) =>
            {
                self.begin(now, observation)
            }
            Phase::Settled { channels, link, searched: None } => {
                match self.affordable_search(now, observation, channels) {
                    Some(search) => Phase::Searching(search),
                    None => Phase::Settled { channels, link, searched: None },
                }
            }
            Phase::Settled { searched: Some(found), .. } if is_confined(found.most, most) => {
                self.begin(now, observation)
            }
            settled @ Phase::Settled { .. } => settled,
        };
        match &self.phase {
            // What was told is kept to.
            Phase::Settled { channels, searched: None, .. }
                if *channels < most && !observation.is_told =>
            {
                self.doubt.look(now, observation);
            }
            _ => self.doubt.rest(),
        }
        let link = describe_link(&observation.link);
        let (channels, why) = match &self.phase {
            Phase::Searching(search) => (search.channels().min(most), search.step()),
            Phase::Settled { channels, searched: Some(found), .. } => {
                (*channels.min(&most), found.why.clone())
            }
            Phase::Settled { channels, .. } if *channels < most && self.doubt.is_contradicted() => {
                let why = format!(
                    "far less comes than a model promised of fewer, so all {most} channels"
                );
                (most, why)
            }
            Phase::Settled { channels, .. } => {
                let channels = *channels.min(&most);
                (channels, self.why(observation, channels))
            }
            Phase::Undecided | Phase::Uninformed => {
                (most, format!("no size is known yet, so all {most} channels"))
            }
        };
        self.decision(observation, channels, &format!("throughput per joule: {link}, {why}"))
    }

    /// What a search has measured to be best stays, unless it was all that it could try: then still more
    /// may be better, as what a model predicted may prove too few.
    fn allows_growth(&self) -> bool {
        match &self.phase {
            Phase::Searching(_) => false,
            Phase::Settled { channels, searched: Some(found), .. } => *channels >= found.most,
            Phase::Undecided | Phase::Uninformed | Phase::Settled { searched: None, .. } => true,
        }
    }

    /// What a search measures, or has measured, is so many channels as they were planned.
    fn prefers_files(&self) -> bool {
        !matches!(self.phase, Phase::Searching(_) | Phase::Settled { searched: Some(_), .. })
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Searching(search) => Some(search.next_timeout()),
            _ => self.doubt.due(),
        }
    }
}

#[cfg(test)]
mod tests;
