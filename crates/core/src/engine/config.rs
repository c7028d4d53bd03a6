//! What an engine is built from, and what it counts.

use std::time::Duration;

use pelton_algos::cluster::ClusterConfig;
use pelton_algos::limits::RetryConfig;
use pelton_algos::link::LinkConfig;
use pelton_algos::params::DEFAULT_CONNECTIONS;
use pelton_algos::units::Bytes;

/// Ceilings that the user sets. They bind every policy; zero counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLimits {
    /// Files in transfer at once (`-j`).
    pub max_files: Option<u32>,
    /// Range streams of one file (`-s`).
    pub max_streams_per_file: Option<u32>,
    /// Connections to one origin (`-x`).
    pub max_connections_per_origin: u32,
    /// Connections over all origins.
    pub max_connections: u32,
    /// No range stream is made for fewer bytes (`-k`); without it, two stream windows.
    pub split_floor: Option<Bytes>,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            max_files: None,
            max_streams_per_file: None,
            max_connections_per_origin: DEFAULT_CONNECTIONS,
            max_connections: 2 * DEFAULT_CONNECTIONS,
            split_floor: None,
        }
    }
}

impl UserLimits {
    /// Nothing would ever move under a ceiling of zero: it counts as one.
    pub(super) fn at_least_one(self) -> Self {
        Self {
            max_files: self.max_files.map(|most| most.max(1)),
            max_streams_per_file: self.max_streams_per_file.map(|most| most.max(1)),
            max_connections_per_origin: self.max_connections_per_origin.max(1),
            max_connections: self.max_connections.max(1),
            split_floor: self.split_floor,
        }
    }
}

/// What an engine is built from.
#[derive(Debug, Clone, Copy)]
pub struct EngineConfig {
    /// The user's ceilings.
    pub limits: UserLimits,
    /// Hints and priors for the link estimate.
    pub link: LinkConfig,
    /// How boundaries between clusters follow from the link.
    pub clusters: ClusterConfig,
    /// Retries.
    pub retry: RetryConfig,
    /// A stream that brings nothing for this long has failed.
    pub stall_timeout: Duration,
    /// Replace an existing file that differs.
    pub overwrite: bool,
    /// Where the list has no digest of a file, one that lies beside it on the server (`SHA256SUMS`,
    /// `NAME.sha256`) or that its answer names (`Repr-Digest`, `Digest`, `Content-MD5`) is checked.
    pub verify: bool,
    /// The seed of the retry jitter.
    pub seed: u64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            limits: UserLimits::default(),
            link: LinkConfig::default(),
            clusters: ClusterConfig::default(),
            retry: RetryConfig::default(),
            stall_timeout: Duration::from_secs(30),
            overwrite: false,
            verify: false,
            seed: 0,
        }
    }
}

/// What the run has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Files of the list.
    pub files: u64,
    /// Files that are there.
    pub done: u64,
    /// Files given up.
    pub failed: u64,
    /// Body bytes that were kept.
    pub delivered: Bytes,
    /// Bytes of the whole list as far as known or predicted.
    pub expected: Bytes,
    /// Requests made.
    pub requests: u64,
    /// Requests made again after a failure.
    pub retries: u64,
}
