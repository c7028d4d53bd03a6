//! The oracle: the best static numbers for a goal, found by running them all.

use pelton_algos::policy::{Fixed, FixedConfig, Policy};
use pelton_core::connection::Protocol;

use super::{Ending, Scenario};

/// Numbers of the sweep before it is refined.
const SWEPT: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Outstanding requests of a lane that are swept over HTTP/2.
const PIPELINING: [u32; 3] = [1, 8, 64];
/// Connections at most: what the policies may have too.
const MOST_CONNECTIONS: u32 = 64;
/// Requests under way at most over HTTP/2.
const MOST_REQUESTS: u32 = 1024;

/// Of the sweep, so many for each goal are run with every seed.
const FINALISTS: usize = 4;

/// What a policy is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Seconds.
    Time,
    /// Joules, modelled.
    Energy,
    /// Throughput / energy over the whole transfer: equation 1 of papers/001.
    Efficiency,
}

impl Goal {
    /// All goals.
    pub const ALL: [Self; 3] = [Self::Time, Self::Energy, Self::Efficiency];

    /// What people read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Energy => "energy",
            Self::Efficiency => "throughput/energy",
        }
    }

    /// What a run costs: less is better. Without end where files are missing.
    pub fn cost(self, ending: &Ending) -> f64 {
        if !ending.is_complete {
            return f64::INFINITY;
        }
        match self {
            Self::Time => ending.seconds,
            Self::Energy => ending.energy.get(),
            Self::Efficiency => 1.0 / ending.throughput_per_joule(),
        }
    }
}

/// What a way to transfer costs by each goal: means over seeds, in the order of [`Goal::ALL`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs(pub [f64; 3]);

impl Costs {
    /// Runs `policy` with each seed.
    pub fn measure(
        scenario: &Scenario<'_>,
        seeds: &[u64],
        policy: impl Fn() -> Box<dyn Policy>,
    ) -> Self {
        let mut sums = [0.0; 3];
        for seed in seeds {
            let mut scenario = scenario.clone();
            scenario.seed = *seed;
            scenario.engine.seed = *seed;
            let ending = scenario.run(policy());
            for (sum, goal) in sums.iter_mut().zip(Goal::ALL) {
                *sum += goal.cost(&ending);
            }
        }
        Self(sums.map(|sum| sum / seeds.len().max(1) as f64))
    }

    /// The cost by `goal`.
    pub const fn of(&self, goal: Goal) -> f64 {
        self.0[goal as usize]
    }
}

/// The best static numbers of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    pub(super) tried: Vec<(FixedConfig, Costs)>,
}

impl Oracle {
    /// Sweeps pipelining, parallelism and concurrency, the same for all clusters, and goes on around the
    /// best of each goal until nothing there is better, all with the first of `seeds`; then runs the best
    /// few of each goal, and one connection, with all of them.
    pub fn sweep(scenario: &Scenario<'_>, seeds: &[u64]) -> Self {
        let first = &seeds[..seeds.len().min(1)];
        let mut coarse = Self::default();
        for concurrency in SWEPT {
            for parallelism in SWEPT {
                for pipelining in PIPELINING {
                    let config = FixedConfig { concurrency, parallelism, pipelining };
                    coarse.try_one(scenario, first, config);
                }
            }
        }
        let mut fine = Self::default();
        fine.try_one(scenario, seeds, FixedConfig::default());
        for goal in Goal::ALL {
            coarse.climb(scenario, first, goal);
            for config in coarse.in_order(goal).into_iter().take(FINALISTS) {
                fine.try_one(scenario, seeds, config);
            }
        }
        fine
    }

    fn climb(&mut self, scenario: &Scenario<'_>, seeds: &[u64], goal: Goal) {
        loop {
            let best = self.best(goal).0;
            for config in around(best) {
                self.try_one(scenario, seeds, config);
            }
            if self.best(goal).0 == best {
                return;
            }
        }
    }

    fn try_one(&mut self, scenario: &Scenario<'_>, seeds: &[u64], config: FixedConfig) {
        let FixedConfig { concurrency, parallelism, pipelining } = config;
        let over_http2 = scenario.origin.protocol == Protocol::Http2;
        let too_many = concurrency * parallelism > MOST_CONNECTIONS
            || concurrency * pipelining > MOST_REQUESTS
            // Over HTTP/1.1 a lane has one request whatever this says; with several range streams
            // requests are many already.
            || (pipelining > 1 && (!over_http2 || parallelism > 4));
        if too_many || self.tried.iter().any(|(tried, _)| *tried == config) {
            return;
        }
        let costs = Costs::measure(scenario, seeds, || Box::new(Fixed::new(config)));
        self.tried.push((config, costs));
    }

    fn in_order(&self, goal: Goal) -> Vec<FixedConfig> {
        let mut order: Vec<_> = self.tried.iter().collect();
        order.sort_by(|a, b| a.1.of(goal).total_cmp(&b.1.of(goal)));
        order.into_iter().map(|(config, _)| *config).collect()
    }

    /// The best numbers for `goal` and what they cost.
    pub fn best(&self, goal: Goal) -> (FixedConfig, f64) {
        let costs = self.tried.iter().map(|(config, costs)| (*config, costs.of(goal)));
        costs.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((FixedConfig::default(), f64::INFINITY))
    }

    /// What one connection costs by `goal`.
    pub fn one_connection(&self, goal: Goal) -> f64 {
        let plain = self.tried.iter().find(|(config, _)| *config == FixedConfig::default());
        plain.map_or(f64::INFINITY, |(_, costs)| costs.of(goal))
    }
}

/// What lies next to `best`: between the numbers of the sweep, and of these.
fn around(best: FixedConfig) -> [FixedConfig; 6] {
    let FixedConfig { concurrency: cc, parallelism: p, pipelining: pp } = best;
    let less = |number: u32| (number * 3 / 4).max(1);
    // One more at least, so that small numbers have a neighbour above too.
    let more = |number: u32| (number * 3 / 2).max(number + 1);
    [
        FixedConfig { concurrency: less(cc), ..best },
        FixedConfig { concurrency: more(cc), ..best },
        FixedConfig { parallelism: less(p), ..best },
        FixedConfig { parallelism: more(p), ..best },
        FixedConfig { pipelining: less(pp), ..best },
        FixedConfig { pipelining: more(pp), ..best },
    ]
}
