//! What a run tells while it goes on: the events of [`crate::Job::events`] and, one a line as
//! JSON, of `pelton get --json`.
//!
//! The schema is versioned by [`SCHEMA`]; fields are added without a new version, and removed or
//! changed only with one. Times are seconds, sizes bytes, rates bits a second, energy joules.

use serde::Serialize;

use crate::connection::Protocol;

/// The version of the event schema, in every `plan` event.
pub const SCHEMA: u32 = 1;

/// Something that a run tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// What will be done, before the first byte.
    Plan(Plan),
    /// A file's transfer begins.
    Start(FileStart),
    /// Channels or streams are dealt anew.
    Decision(DecisionMade),
    /// What was there of a file is worth nothing: it starts anew.
    Restart(FileRestart),
    /// A file is there, or given up.
    File(FileReport),
    /// How far the run is; at most four a second, and once more at the end.
    Progress(Progress),
    /// Something moves only when something outside has changed.
    Waiting(Waiting),
    /// Something is of no use that was asked for, and the run goes on without it.
    Warning(Warning),
    /// Everything is over.
    Summary(Summary),
}

/// Something is of no use that was asked for, and the run goes on without it: a list of digests that is
/// none, or a meter that has stopped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    /// Since the run began, seconds.
    pub at_s: f64,
    /// Where it is; nothing where it is the meter, which could not tell the joules of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// One line for people: what it is, and why.
    pub reason: String,
}

/// Something moves only when something outside has changed: the disk is full, or a host is away.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waiting {
    /// Since the run began, seconds.
    pub at_s: f64,
    /// Bytes still to come, as far as known.
    pub bytes_needed: u64,
    /// Bytes that are free, where the disk is full and that can be known. A quota may allow fewer.
    pub bytes_free: Option<u64>,
    /// For what, and for how long.
    pub reason: String,
}

/// The link as it is believed to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LinkReport {
    /// Round-trip time, seconds.
    pub rtt_s: f64,
    /// Bandwidth, bits a second.
    pub bandwidth_bps: f64,
    /// Bandwidth-delay product, bytes.
    pub bdp_bytes: u64,
    /// What one stream can keep in flight, bytes.
    pub stream_window_bytes: u64,
}

/// One cluster of files that are not finished.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterReport {
    /// `small`, `medium`, `large`, or a merge such as `medium+large`.
    pub cluster: String,
    /// Files.
    pub files: u64,
    /// Bytes still to come.
    pub bytes: u64,
    /// Mean file size, bytes.
    pub mean_size_bytes: u64,
}

/// What one cluster was given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AllocationReport {
    /// The cluster's name.
    pub cluster: String,
    /// Outstanding requests of one lane (HTTP/2).
    pub pipelining: u32,
    /// Range streams of one file.
    pub parallelism: u32,
    /// Files at once.
    pub concurrency: u32,
    /// Range streams beyond those, over all of its files: channels that find no file.
    pub spare_streams: u32,
    /// Files in transfer when this was written.
    pub active_files: u32,
    /// Streams in flight when this was written.
    pub active_streams: u32,
}

/// What will be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The policy's name.
    pub policy: String,
    /// Files in the list.
    pub files: u64,
    /// Files whose size nothing tells yet.
    pub files_of_unknown_size: u64,
    /// Bytes of the list, as far as known or predicted.
    pub bytes: u64,
    /// The link.
    pub link: LinkReport,
    /// The clusters.
    pub clusters: Vec<ClusterReport>,
    /// What each gets.
    pub parameters: Vec<AllocationReport>,
    /// Connections that the formulas asked for, before spare channels passed on and before the
    /// budget.
    pub wanted_connections: u32,
    /// Why.
    pub reason: String,
    /// Where joules come from, or why there are none.
    pub energy_source: String,
}

/// A file's transfer begins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileStart {
    /// Since the run began, seconds.
    pub at_s: f64,
    /// Its name under the directory.
    pub name: String,
    /// Where from.
    pub url: String,
}

/// What was there of a file is worth nothing: it starts anew.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileRestart {
    /// Since the run began, seconds.
    pub at_s: f64,
    /// Its name under the directory.
    pub name: String,
    /// Where it is asked for.
    pub url: String,
    /// Bytes that were there and come again.
    pub bytes_lost: u64,
    /// Why: the server's file has changed, or what else is wrong with it.
    pub reason: String,
}

/// Channels or streams are dealt anew.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecisionMade {
    /// Since the run began, seconds.
    pub at_s: f64,
    /// What each cluster gets.
    pub allocations: Vec<AllocationReport>,
    /// Connections that the formulas asked for, before spare channels passed on and before the
    /// budget.
    pub wanted_connections: u32,
    /// Why.
    pub reason: String,
    /// Goodput at that moment, bits a second.
    pub throughput_bps: f64,
    /// Energy so far, joules.
    pub energy_j: Option<f64>,
}

/// Why a file was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    /// The exit code that this failure alone would give.
    pub code: u8,
    /// The kind by name: see [`crate::ErrorKind::name`].
    pub kind: &'static str,
    /// Whether a rerun may succeed.
    pub retryable: bool,
    /// One line for people.
    pub message: String,
}

/// A file is there, or given up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileReport {
    /// Since the run began, seconds.
    pub at_s: f64,
    /// Its name under the directory.
    pub name: String,
    /// Where from.
    pub url: String,
    /// Its size, or what of it is there, bytes.
    pub bytes: u64,
    /// From its first request to its end, seconds.
    pub seconds: f64,
    /// Connections that brought it.
    pub connections: u32,
    /// Protocol of its last response.
    pub protocol: Option<Protocol>,
    /// Bytes that an earlier run had left.
    pub resumed_from: u64,
    /// How often what was there was worth nothing, and the file started anew.
    pub restarts: u32,
    /// It was there already and nothing was transferred.
    pub already_there: bool,
    /// The digest that was checked, as `algorithm=hex`.
    pub digest: Option<String>,
    /// What it drew while its bytes moved, joules; files that moved together share by their bytes.
    /// The radio's tail belongs to the whole run and is not in it.
    pub energy_j: Option<f64>,
    /// Throughput over energy (papers/001 equation 1), bits a second a joule.
    pub throughput_per_joule: Option<f64>,
    /// Whether it is there and verified.
    pub ok: bool,
    /// Why it is not.
    pub error: Option<Box<ErrorReport>>,
}

/// How far the run is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    /// Since the run began, seconds.
    pub at_s: f64,
    /// Files in the list.
    pub files: u64,
    /// Files that are there.
    pub files_done: u64,
    /// Files given up.
    pub files_failed: u64,
    /// Body bytes received.
    pub bytes: u64,
    /// Body bytes of the whole list, as far as known or predicted.
    pub bytes_expected: u64,
    /// Goodput over the last sample, bits a second.
    pub throughput_bps: f64,
    /// Energy so far, joules.
    pub energy_j: Option<f64>,
    /// Connections open.
    pub connections: u32,
    /// Files and streams in transfer by cluster.
    pub clusters: Vec<AllocationReport>,
    /// Files in transfer; the first few of them.
    pub active: Vec<ActiveFile>,
    /// Expected time to the end at this rate, seconds.
    pub remaining_s: Option<f64>,
}

/// A file in transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActiveFile {
    /// Its name.
    pub name: String,
    /// Bytes that are there.
    pub bytes: u64,
    /// Its size, if known.
    pub size: Option<u64>,
}

/// What the files of one size class took and cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterCost {
    /// `small`, `medium` or `large`, as each file was last classified.
    pub cluster: String,
    /// Files that were transferred.
    pub files: u64,
    /// Body bytes received for them.
    pub bytes: u64,
    /// From the first one's start to the last one's end, seconds.
    pub seconds: f64,
    /// What they drew, joules, with a part of what belongs to no file (the radio's tail) by bytes.
    pub energy_j: Option<f64>,
    /// Throughput over energy (papers/001 equation 1), bits a second a joule.
    pub throughput_per_joule: Option<f64>,
}

/// Everything is over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The policy's name.
    pub policy: String,
    /// Files in the list.
    pub files: u64,
    /// Files that are there.
    pub files_done: u64,
    /// Files given up.
    pub files_failed: u64,
    /// Body bytes received.
    pub bytes: u64,
    /// From the start to the last file's end, seconds.
    pub seconds: f64,
    /// `bytes` over `seconds`, bits a second.
    pub throughput_bps: f64,
    /// Energy of the run with its tail, joules.
    pub energy_j: Option<f64>,
    /// The radio's part of it.
    pub energy_radio_j: Option<f64>,
    /// The CPU's part of it.
    pub energy_cpu_j: Option<f64>,
    /// What the device draws merely for being awake.
    pub energy_base_j: Option<f64>,
    /// Where joules come from: `measured: ...` or `modelled: ...`.
    pub energy_source: Option<String>,
    /// Throughput over energy (papers/001 equation 1), bits a second a joule.
    pub throughput_per_joule: Option<f64>,
    /// The same by cluster.
    pub clusters: Vec<ClusterCost>,
    /// Connections opened.
    pub connections: u64,
    /// Requests made.
    pub requests: u64,
    /// Requests made again.
    pub retries: u64,
    /// CPU time of this process during the run, seconds.
    pub cpu_s: f64,
    /// What the command exits with.
    pub exit_code: u8,
    /// What kept the run from beginning.
    pub error: Option<ErrorReport>,
}

impl Summary {
    /// The summary of a run that transferred nothing and was not meant to do more.
    pub(crate) fn of_nothing(policy: &str) -> Self {
        Self {
            policy: policy.to_owned(),
            files: 0,
            files_done: 0,
            files_failed: 0,
            bytes: 0,
            seconds: 0.0,
            throughput_bps: 0.0,
            energy_j: None,
            energy_radio_j: None,
            energy_cpu_j: None,
            energy_base_j: None,
            energy_source: None,
            throughput_per_joule: None,
            clusters: Vec::new(),
            connections: 0,
            requests: 0,
            retries: 0,
            cpu_s: 0.0,
            exit_code: 0,
            error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_each_file_stays_small() {
        assert!(size_of::<FileReport>() <= 160, "{} bytes", size_of::<FileReport>());
    }
}
