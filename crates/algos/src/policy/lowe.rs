//! LowE: the least energy (papers/001 section IV, Algorithm 1).

use super::{
    Decision, Observation, Plan, Policy, count, describe_link, describe_shares, forecast,
    heaviest_first,
};
use crate::energy::Forecast;
use crate::params::{self, Limits};
use crate::time::Timestamp;
use crate::units::Bytes;

/// What the energy model must promise before the formulas' number of connections is cut: its seconds
/// are estimates, and a transfer that was slowed down for nothing costs base power.
const WORTH: f64 = 0.95;

/// Lowest-possible Energy: each cluster takes just the channels that its formula asks for.
///
/// As printed, "`maxCC <- availChannel`" (line 2) is reversed and "`while (availChannel != 0)`"
/// (line 10) does not end. The reading: `availChannel <- maxCC`, and the loop runs until channels
/// or clusters are used up. Every cluster gets at least one channel before another gets more; with
/// fewer channels than clusters the heaviest are served.
///
/// "minimizing energy consumption with no concern on performance, which brings flexibility on
/// transfer completion time": inside that freedom the energy model chooses. Before the first byte
/// LowE compares the formulas' plan with plans of 1, 2, 4, ... connections, and at any time with
/// plans of more channels, by the joules of the whole transfer: promotion, tail, CPU and base power
/// over the time that it would take, and what opening connections costs. It takes the cheapest if
/// that saves 5 %. So it neither crawls while the device draws base power, nor wakes a radio or opens
/// connections for nothing. It begins with all channels until a size is known, unless fewer connections are
/// cheaper.
#[derive(Debug, Clone, Copy, Default)]
pub struct LowE {
    /// Connections that the model chose below what the formulas ask for.
    thrift: Option<u32>,
}

impl LowE {
    /// Channels a cluster, and what was available before each took its own.
    fn shares(observation: &Observation<'_>) -> (Vec<u32>, Vec<u32>) {
        let Observation { clusters, link, limits, .. } = observation;
        // It wants no more streams than its formulas give, so lanes are all that channels are for.
        let channels = limits.max_channels.min(limits.max_files);
        let mut shares = vec![0; clusters.len()];
        let mut left = vec![channels];
        if (channels as usize) < clusters.len() {
            for index in heaviest_first(clusters).into_iter().take(channels as usize) {
                shares[index] = 1;
            }
            return (shares, left);
        }
        let mut available = channels;
        for (index, cluster) in clusters.iter().enumerate() {
            // "for each c_i in C do" (line 6), from small to large; one channel is kept for each
            // cluster that is still to come.
            let to_come = (clusters.len() - 1 - index) as u32;
            let optimal = params::wanted(cluster, link, limits, available).concurrency;
            shares[index] = optimal.min(available - to_come);
            // "availChannel <- maxCC - assignedChannels" (line 11)
            available -= shares[index];
            left.push(available);
        }
        (shares, left)
    }

    /// What the formulas ask for within the observation's limits.
    fn formulas(observation: &Observation<'_>) -> Decision {
        Self::with_shares(observation, Self::shares(observation))
    }

    /// The formulas with channels dealt on, one by one to the cluster with the most files for each
    /// of its own, until there are `channels`.
    fn widened(observation: &Observation<'_>, channels: u32) -> Decision {
        let (mut shares, left) = Self::shares(observation);
        while shares.iter().sum::<u32>() < channels {
            let files = |index: usize| observation.clusters[index].files;
            let open = (0..shares.len()).filter(|index| u64::from(shares[*index]) < files(*index));
            let per_lane = |index: &usize| files(*index) / u64::from(shares[*index].max(1));
            let Some(index) = open.max_by_key(per_lane) else { break };
            shares[index] += 1;
        }
        Self::with_shares(observation, (shares, left))
    }

    fn with_shares(observation: &Observation<'_>, shares: (Vec<u32>, Vec<u32>)) -> Decision {
        let (shares, left) = shares;
        let channels = left[0];
        let left: Vec<_> = left.iter().map(u32::to_string).collect();
        let reason = format!(
            "least energy: {} asks for {} of {channels} channels (left {})",
            describe_link(&observation.link),
            describe_shares(observation.clusters, &shares),
            left.join(" -> "),
        );
        let small_to_large: Vec<usize> = (0..observation.clusters.len()).collect();
        let priority = heaviest_first(observation.clusters);
        Plan::new(observation, shares, channels).finish(reason, &small_to_large, &priority)
    }

    /// The formulas over `connections` connections: as many lanes as there are files for, and the
    /// rest as their streams.
    fn narrowed<'a>(observation: &Observation<'a>, connections: u32) -> Observation<'a> {
        let files: u64 = observation.clusters.iter().map(|cluster| cluster.files).sum();
        let lanes = connections.min(u32::try_from(files).unwrap_or(u32::MAX)).max(1);
        let limits = observation.limits;
        let narrowed = Limits {
            max_channels: limits.max_channels.min(lanes),
            max_connections: limits.max_connections.min(connections),
            max_streams_per_file: limits.max_streams_per_file.min((connections / lanes).max(1)),
            ..limits
        };
        Observation { limits: narrowed, ..*observation }
    }

    fn forecast(observation: &Observation<'_>, decision: &Decision) -> Forecast {
        forecast::forecast(observation, decision.channels(), decision.connections())
    }

    /// The number of connections, below those of `formulas`, for which the model promises the least
    /// joules, if they are worth it.
    fn cheaper(observation: &Observation<'_>, formulas: &Decision) -> Option<u32> {
        let joules = |observation: &Observation<'_>, decision: &Decision| {
            observation.energy_model.predict(&Self::forecast(observation, decision)).get()
        };
        let asked = formulas.connections();
        let fewer = std::iter::successors(Some(1_u32), |n| n.checked_mul(2));
        let costs = fewer.take_while(|connections| *connections < asked).map(|connections| {
            let narrowed = Self::narrowed(observation, connections);
            (connections, joules(&narrowed, &Self::formulas(&narrowed)))
        });
        let (connections, least) = costs.min_by(|a, b| a.1.total_cmp(&b.1))?;
        (least < joules(observation, formulas) * WORTH).then_some(connections)
    }

    /// All channels while no size is known: files may be short and the path long, and what is found out a round trip
    /// later costs power for as long.
    fn begins_with_all(observation: &Observation<'_>) -> Option<Decision> {
        let most = observation.limits.max_channels.min(observation.limits.max_files);
        (!observation.sizes_are_known).then(|| Self::widened(observation, most))
    }

    /// The plan of more channels than `formulas` asks for with which the model promises the least
    /// joules, if it is worth it: the sooner it is over, the less base power is drawn.
    fn faster(observation: &Observation<'_>, formulas: &Decision) -> Option<Decision> {
        let joules = |decision: &Decision| {
            observation.energy_model.predict(&Self::forecast(observation, decision)).get()
        };
        let most = observation.limits.max_channels.min(observation.limits.max_files);
        let more = std::iter::successors(formulas.channels().checked_mul(2), |n| n.checked_mul(2));
        let more = more.take_while(|channels| *channels < most).chain([most]);
        let plans = more.map(|channels| Self::widened(observation, channels));
        let plans = plans.filter(|plan| plan.channels() > formulas.channels());
        let cheapest = plans.min_by(|a, b| joules(a).total_cmp(&joules(b)))?;
        (joules(&cheapest) < joules(formulas) * WORTH).then_some(cheapest)
    }
}

impl Policy for LowE {
    fn name(&self) -> &'static str {
        "lowe"
    }

    fn decide(&mut self, _now: Timestamp, observation: &Observation<'_>) -> Decision {
        let formulas = Self::formulas(observation);
        // Once bytes move, connections are paid for and the radio is awake. A link that is used
        // sparingly seems slow: formulas that ask for as little change nothing.
        let asks_for_less = self.thrift.is_some_and(|thrift| formulas.connections() <= thrift);
        if !asks_for_less && (observation.delivered == Bytes::ZERO || self.thrift.is_some()) {
            self.thrift = Self::cheaper(observation, &formulas);
        }
        let Some(connections) = self.thrift.filter(|_| !asks_for_less) else {
            let describe = |plan: &Decision| {
                forecast::describe(observation, &Self::forecast(observation, plan))
            };
            let all = Self::begins_with_all(observation).filter(|_| !asks_for_less);
            let faster = Self::faster(observation, &formulas).filter(|_| !asks_for_less);
            let (plan, instead) = match (all, faster) {
                (Some(plan), _) => (plan, ", as no size is known yet".to_owned()),
                (None, Some(plan)) => {
                    let instead = format!(
                        ", by model; the formulas' {} would take {}",
                        count(formulas.channels(), "channel"),
                        describe(&formulas),
                    );
                    (plan, instead)
                }
                (None, None) => (formulas, String::new()),
            };
            let expected = describe(&plan);
            let reason = format!("{}; {expected} expected from here{instead}", plan.reason);
            return Decision { reason, ..plan };
        };
        let narrowed = Self::narrowed(observation, connections);
        let thrifty = Self::formulas(&narrowed);
        let expected = forecast::describe(&narrowed, &Self::forecast(&narrowed, &thrifty));
        let instead = forecast::describe(observation, &Self::forecast(observation, &formulas));
        let reason = format!(
            "least energy: {}, by model {}: {expected} expected from here; the formulas' {} would \
             take {instead}",
            describe_link(&observation.link),
            count(connections, "connection"),
            formulas.connections(),
        );
        Decision { reason, ..thrifty }
    }

    /// Parts of files cost what is under way when one is cut, which the radio has received for nothing.
    fn prefers_files(&self) -> bool {
        true
    }

    fn is_thrifty(&self) -> bool {
        true
    }

    /// More lanes than the model chose would cost what it saves.
    fn allows_growth(&self) -> bool {
        self.thrift.is_none()
    }
}
