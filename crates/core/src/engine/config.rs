//! What an engine is built from, and what it counts.

use std::time::Duration;

use pelton_algos::cluster::ClusterConfig;
use pelton_algos::link::LinkConfig;
use pelton_algos::memory;
use pelton_algos::params::DEFAULT_CONNECTIONS;
use pelton_algos::retries::RetryConfig;
use pelton_algos::units::{BitRate, Bytes};

use super::rates::connections_within;

/// No link of today is as slow, and a server that sends a byte now and then is: 125 B/s.
const MIN_RATE: BitRate = BitRate::from_kbps(1);

/// Ceilings that the user sets. They bind every policy; zero counts as one.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// Bytes of bodies come no faster than this, over all files together; files share it evenly.
    pub max_rate: Option<BitRate>,
    /// The same for each origin, below [`max_rate`](Self::max_rate).
    pub max_rate_per_origin: Option<BitRate>,
    /// Buffers and windows of connections, and listings while they are read, hold no more than this
    /// together. It bounds the number of connections, at least one of which there is; less than 1 MiB
    /// counts as 1 MiB.
    pub max_memory: Bytes,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            max_files: None,
            max_streams_per_file: None,
            max_connections_per_origin: DEFAULT_CONNECTIONS,
            max_connections: 2 * DEFAULT_CONNECTIONS,
            split_floor: None,
            max_rate: None,
            max_rate_per_origin: None,
            max_memory: memory::DEFAULT_LIMIT,
        }
    }
}

impl UserLimits {
    /// Nothing would ever move under a ceiling of zero: it counts as one, and a rate of zero as none.
    /// Connections that memory or a limit on the rate of an origin has no room for are none.
    pub(super) fn usable(self) -> Self {
        let some = |rate: Option<BitRate>| rate.filter(|rate| *rate > BitRate::ZERO);
        let max_rate_per_origin = some(self.max_rate_per_origin);
        let of_rate = connections_within(max_rate_per_origin);
        Self {
            max_files: self.max_files.map(|most| most.max(1)),
            max_streams_per_file: self.max_streams_per_file.map(|most| most.max(1)),
            max_connections_per_origin: self.max_connections_per_origin.clamp(1, of_rate),
            max_connections: self.max_connections.clamp(1, memory::connections(self.max_memory)),
            split_floor: self.split_floor,
            max_rate: some(self.max_rate),
            max_rate_per_origin,
            max_memory: self.max_memory,
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
    /// So has one that brings less than this over that time.
    pub min_rate: BitRate,
    /// A run whose disk is full waits so long for space; zero fails the file at once.
    pub disk_patience: Duration,
    /// Replace an existing file that differs.
    pub overwrite: bool,
    /// Where the list has no digest of a file, one that lies beside it on the server (`SHA256SUMS`,
    /// `NAME.sha256`) or that its answer names (`Repr-Digest`, `Digest`, `Content-MD5`) is checked.
    pub verify: bool,
    /// A file whose server tells no version of it (neither a strong `ETag` nor `Last-Modified`) is taken to stay as it is
    /// during the run, and is split: RFC 9110 section 15.3.7.3 joins parts of one version alone, and nothing shows here
    /// that two of them are. A digest in the list does the same, and is checked.
    pub assume_unchanged: bool,
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
            min_rate: MIN_RATE,
            disk_patience: Duration::from_secs(60),
            overwrite: false,
            verify: false,
            assume_unchanged: false,
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
