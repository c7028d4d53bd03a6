//! How much a policy loses against the oracle, over a grid.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pelton_algos::cluster::ClusterConfig;
use pelton_algos::policy::{Eht, EhtConfig, FixedConfig, Hat, LowE, Policy};
use pelton_core::engine::UserLimits;

use super::Scenario;
use super::grid::{Grid, GridCell};
use super::oracle::{Costs, Goal, Oracle};
use super::oracles::Oracles;

/// Losses of a packet are luck: lossy cells are run with so many seeds.
const SEEDS_WITH_LOSS: u64 = 3;
/// The target of ALGORITHMS: the worst loses at most this, or one round trip.
const WORST_ALLOWED: f64 = 0.10;
/// What is better than the oracle by more asks for an explanation.
const UNEXPLAINED: f64 = -0.02;

/// A policy with the goal that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adaptive {
    /// LowE, judged by energy.
    LowE,
    /// HAT, judged by time.
    Hat,
    /// EHT, judged by throughput / energy.
    Eht,
}

impl Adaptive {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hat, Self::LowE, Self::Eht];

    /// What it is for.
    pub const fn goal(self) -> Goal {
        match self {
            Self::LowE => Goal::Energy,
            Self::Hat => Goal::Time,
            Self::Eht => Goal::Efficiency,
        }
    }

    /// A fresh policy.
    pub fn policy(self) -> Box<dyn Policy> {
        match self {
            Self::LowE => Box::<LowE>::default(),
            Self::Hat => Box::new(Hat),
            Self::Eht => Box::new(Eht::default()),
        }
    }

    /// The one called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowE => "lowe",
            Self::Hat => "hat",
            Self::Eht => "eht",
        }
    }
}

/// One policy in one cell.
#[derive(Debug, Clone)]
pub struct Regret {
    /// Where.
    pub cell: GridCell,
    /// Who.
    pub policy: Adaptive,
    /// Result / oracle - 1, by the policy's goal. Negative where it beats the oracle.
    pub regret: f64,
    /// What the policy cost by its goal.
    pub cost: f64,
    /// The oracle's numbers for that goal.
    pub oracle: FixedConfig,
    /// What they cost.
    pub oracle_cost: f64,
    /// Cost / cost of one connection - 1.
    pub against_one: f64,
    /// One round trip as a share of the oracle's time.
    pub round_trip: f64,
}

impl Regret {
    fn new(cell: &GridCell, policy: Adaptive, oracle: &Oracle, costs: &Costs) -> Self {
        let goal = policy.goal();
        let cost = costs.of(goal);
        let (numbers, oracle_cost) = oracle.best(goal);
        Self {
            cell: cell.clone(),
            policy,
            regret: cost / oracle_cost - 1.0,
            cost,
            oracle: numbers,
            oracle_cost,
            against_one: cost / oracle.one_connection(goal) - 1.0,
            round_trip: cell.rtt.as_secs_f64() / oracle.best(Goal::Time).1,
        }
    }

    /// Whether it loses more than a tenth, and more than a round trip.
    pub fn misses_target(&self) -> bool {
        self.regret > WORST_ALLOWED.max(self.round_trip)
    }

    /// Whether no static numbers do as well, by more than luck.
    pub fn beats_oracle(&self) -> bool {
        self.regret < UNEXPLAINED
    }
}

/// Constants with which policies are run; by default those that they have.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Variant {
    /// Where clusters meet.
    pub clusters: ClusterConfig,
    /// EHT's own.
    pub eht: EhtConfig,
    /// Ceilings that the user may set, and their defaults.
    pub limits: UserLimits,
}

impl Variant {
    fn policy(&self, policy: Adaptive) -> Box<dyn Policy> {
        match policy {
            Adaptive::Eht => Box::new(Eht::new(self.eht)),
            other => other.policy(),
        }
    }
}

/// What is run where.
#[derive(Debug)]
pub struct Measurement<'a> {
    /// The cells.
    pub grid: &'a Grid,
    /// Decides which packets are lost.
    pub seed: u64,
    /// Who is run.
    pub policies: &'a [Adaptive],
    /// With which constants.
    pub variants: &'a [Variant],
    /// What the oracle has found before. It runs once a cell, whatever the variants.
    pub oracles: &'a Oracles,
}

impl Measurement<'_> {
    /// Runs all of it. The regrets of each variant.
    pub fn run(&self) -> Vec<Vec<Regret>> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(cell) = self.grid.cells.get(index) else { return };
                        let regrets = self.in_cell(cell);
                        if let Ok(mut done) = done.lock() {
                            done.push((index, regrets));
                        }
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_default();
        done.sort_by_key(|(index, _)| *index);
        let mut of_variants = vec![Vec::new(); self.variants.len()];
        for (_, of_cell) in done {
            for (all, regrets) in of_variants.iter_mut().zip(of_cell) {
                all.extend(regrets);
            }
        }
        of_variants
    }

    fn in_cell(&self, cell: &GridCell) -> Vec<Vec<Regret>> {
        let Some(files) = self.grid.files(cell) else { return Vec::new() };
        let Ok(link) = cell.link(files.bytes()) else { return Vec::new() };
        let scenario = Scenario::new(&link, cell.origin, files, self.seed);
        let count = if cell.loss_percent > 0.0 { SEEDS_WITH_LOSS } else { 1 };
        let seeds: Vec<u64> = (self.seed..self.seed + count).collect();
        let oracle = self.oracles.of(cell, self.seed, || Oracle::sweep(&scenario, &seeds));
        let regrets = |variant: &Variant| {
            let mut scenario = scenario.clone();
            scenario.engine.clusters = variant.clusters;
            scenario.engine.limits = variant.limits;
            let regret = |policy: &Adaptive| {
                let costs = Costs::measure(&scenario, &seeds, || variant.policy(*policy));
                Regret::new(cell, *policy, &oracle, &costs)
            };
            self.policies.iter().map(regret).collect()
        };
        self.variants.iter().map(regrets).collect()
    }
}

/// What people read of many regrets.
#[derive(Debug)]
pub struct Summary<'a>(pub &'a [Regret]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<6} {:<18} {:>6} {:>8} {:>8} {:>8} {:>8}  {:>6}  where it is worst",
            "policy", "goal", "cells", "best", "median", "90 %", "worst", "missed"
        )?;
        for policy in Adaptive::ALL {
            let mut regrets: Vec<&Regret> = self.0.iter().filter(|r| r.policy == policy).collect();
            regrets.sort_by(|a, b| a.regret.total_cmp(&b.regret));
            let Some(worst) = regrets.last() else { continue };
            let at = |share| percent(quantile(&regrets, share));
            writeln!(
                f,
                "{:<6} {:<18} {:>6} {:>8} {:>8} {:>8} {:>8}  {:>6}  {}",
                policy.name(),
                policy.goal().name(),
                regrets.len(),
                at(0.0),
                at(0.5),
                at(0.9),
                at(1.0),
                regrets.iter().filter(|r| r.misses_target()).count(),
                worst.cell,
            )?;
        }
        let slower = self.0.iter().filter(|r| r.against_one > 0.0);
        match slower.max_by(|a, b| a.against_one.total_cmp(&b.against_one)) {
            None => writeln!(f, "No policy is ever worse than one connection."),
            Some(worst) => writeln!(
                f,
                "Worse than one connection by {} at most: {} in {}",
                percent(worst.against_one),
                worst.policy.name(),
                worst.cell
            ),
        }
    }
}

/// What `share` of `sorted`, of which there is at least one, are no worse than.
pub fn quantile(sorted: &[&Regret], share: f64) -> f64 {
    let index = (share * (sorted.len() - 1) as f64).round() as usize;
    sorted[index].regret
}

/// `+3.1 %`.
pub fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}
