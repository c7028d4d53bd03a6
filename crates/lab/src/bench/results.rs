//! What a matrix measured, as JSON: see docs/lab.md for the meaning of each field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of this format.
pub const SCHEMA: u32 = 1;

/// All that one call of `pelton-lab run` measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When it began, RFC 3339, UTC.
    pub date: String,
    /// The seed of the first repeat; each further one has the next.
    pub seed: u64,
    /// The version of pelton-lab.
    pub lab: String,
    /// The machine: kernel, cores.
    pub machine: String,
    /// The server's version.
    pub server: String,
    /// What the server's TCP followed.
    pub congestion_control: String,
    /// The clients that were measured, by name.
    pub clients: BTreeMap<String, ClientInfo>,
    /// The clients that were asked for and left out, with the reason.
    pub skipped: BTreeMap<String, String>,
    /// One for each link, set and client.
    pub cells: Vec<CellResult>,
}

/// A client that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    /// What it says of its version.
    pub version: String,
    /// Its command line in its last run.
    pub command: Vec<String>,
}

/// One client on one link with one set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The link's name.
    pub link: String,
    /// The set's name.
    pub set: String,
    /// The client's name.
    pub client: String,
    /// Files in the set.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The floor, in seconds.
    pub floor_s: f64,
    /// What the runs brought, in the order of the repeats.
    pub runs: Vec<RunResult>,
    /// What failed, in words.
    pub failures: Vec<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Seed of the link.
    pub seed: u64,
    /// From the start of the client to its end.
    pub seconds: f64,
    /// CPU seconds of the client, user and system.
    pub cpu_s: f64,
    /// The client's peak resident memory, bytes.
    pub peak_rss: u64,
    /// TCP connections that it opened.
    pub connections: u64,
    /// Towards the client.
    pub down: Traffic,
    /// Towards the server.
    pub up: Traffic,
    /// The share of packets that the emulator was more than a millisecond late with.
    pub late_share: f64,
}

/// What entered one direction of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// IP packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets of them that the link lost.
    pub lost: u64,
    /// Packets of them that found the queue full.
    pub overflowed: u64,
}

impl CellResult {
    /// The seconds of each run.
    pub fn seconds(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.seconds).collect()
    }
}

/// The median; 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// An interval that holds the true median with at least 95 % probability, whatever the distribution:
/// between two order statistics, by the binomial distribution. Below six values no such interval is
/// wide enough (of five, least and greatest hold it with 93.75 %): then it is that of least and
/// greatest.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let sorted = sorted(values);
    let Some(last) = sorted.len().checked_sub(1) else { return (0.0, 0.0) };
    let count = sorted.len() as f64;
    // How likely exactly, and at most, `cut` of the values lie below the true median.
    let mut exactly = 0.5_f64.powf(count);
    let mut at_most = exactly;
    let mut cut = 0;
    while cut < last / 2 {
        exactly *= (count - cut as f64) / (cut as f64 + 1.0);
        if at_most + exactly > 0.025 {
            break;
        }
        at_most += exactly;
        cut += 1;
    }
    (sorted[cut], sorted[last - cut])
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the values themselves come back")]
    fn medians_and_their_intervals() {
        let values = |count: u32| (1..=count).rev().map(f64::from).collect::<Vec<_>>();
        assert_eq!(median(&values(5)), 3.0);
        assert_eq!(median(&values(4)), 2.5);
        assert_eq!(interval(&values(1)), (1.0, 1.0));
        assert_eq!(interval(&values(5)), (1.0, 5.0));
        // The table of the sign test: of 6 the 1st and last, of 9 the 2nd, of 20 the 6th.
        assert_eq!(interval(&values(6)), (1.0, 6.0));
        assert_eq!(interval(&values(9)), (2.0, 8.0));
        assert_eq!(interval(&values(20)), (6.0, 15.0));
        assert_eq!((median(&[]), interval(&[])), (0.0, (0.0, 0.0)));
    }
}
