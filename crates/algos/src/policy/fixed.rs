//! Fixed: the user's numbers, exactly.

use super::{Decision, Observation, Policy};
use crate::cluster::Classes;
use crate::params::{self, Allocation, Parameters};
use crate::time::Timestamp;

/// The numbers of a [`Fixed`] policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedConfig {
    /// Files at once.
    pub concurrency: u32,
    /// Range streams of one file.
    pub parallelism: u32,
    /// Outstanding requests of one lane over HTTP/2.
    pub pipelining: u32,
}

impl Default for FixedConfig {
    /// One file after the other over one stream: what a plain client does.
    fn default() -> Self {
        Self { concurrency: 1, parallelism: 1, pipelining: 1 }
    }
}

/// The same numbers for all files, whatever the link: a baseline, and a cell of the oracle's sweep.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fixed(FixedConfig);

impl Fixed {
    /// A policy that always answers `config`; zeros count as one.
    pub fn new(config: FixedConfig) -> Self {
        Self(FixedConfig {
            concurrency: config.concurrency.max(1),
            parallelism: config.parallelism.max(1),
            pipelining: config.pipelining.max(1),
        })
    }
}

impl Policy for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn decide(&mut self, _now: Timestamp, observation: &Observation<'_>) -> Decision {
        let FixedConfig { concurrency, parallelism, pipelining } = self.0;
        let mut reason =
            format!("fixed: {concurrency} files at once, {parallelism} streams a file");
        if pipelining > 1 {
            reason = format!("{reason}, {pipelining} requests outstanding in a lane over HTTP/2");
        }
        let parameters = Parameters { pipelining, parallelism, concurrency };
        let mut allocations = vec![Allocation { classes: Classes::ALL, parameters }];
        let wanted_connections = params::connections(&allocations);
        let budget = observation.limits.max_connections;
        if wanted_connections > budget {
            params::fit_to_budget(&mut allocations, &[parallelism], budget, &[0]);
            reason = format!("{reason}; {wanted_connections} connections wanted, {budget} allowed");
        }
        Decision {
            wanted_connections,
            max_channels: concurrency,
            ..Decision::new(allocations, reason)
        }
    }

    fn allows_growth(&self) -> bool {
        false
    }
}
