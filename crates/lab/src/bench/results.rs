//! What a matrix measured, as JSON: see docs/lab.md for the meaning of each field.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::energy::RunEnergy;

/// The version of this format.
pub const SCHEMA: u32 = 2;

/// All that one matrix measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// When it began, RFC 3339, UTC.
    pub date: String,
    /// The command that measured it.
    pub command: Vec<String>,
    /// How often each client was to run in each cell.
    pub repeats: u32,
    /// The seed of the first repeat; each further one has the next.
    pub seed: u64,
    /// Runs side by side, at most.
    pub jobs: usize,
    /// The version of pelton-lab.
    pub lab: String,
    /// The machine: kernel, cores.
    pub machine: String,
    /// The server's version.
    pub server: String,
    /// What the server's TCP followed.
    pub congestion_control: String,
    /// What each client that was measured says of its version.
    pub clients: BTreeMap<String, String>,
    /// The clients that were asked for and left out, with the reason.
    pub skipped: BTreeMap<String, String>,
    /// One for each link, set and client.
    pub cells: Vec<CellResult>,
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
    /// The radio of the link, by which pelton's clients decide.
    pub radio: String,
    /// The client's command line, `WORK` being the directory of the run.
    pub command: Vec<String>,
    /// Files in the set.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The floor, in seconds.
    pub floor_s: f64,
    /// Of the runs; absent without any.
    pub stats: Option<Stats>,
    /// What the runs brought, in the order of their seeds.
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
    /// What it drew, by radio; modelled.
    pub energy: BTreeMap<String, RunEnergy>,
    /// TCP connections that it opened.
    pub connections: u64,
    /// Towards the client.
    pub down: Traffic,
    /// Towards the server.
    pub up: Traffic,
    /// The share of packets that the emulator was more than a millisecond late with.
    pub late_share: f64,
    /// What pelton decided, and when; empty for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionLog>,
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
    /// TCP segments that were sent again.
    pub retransmitted: u64,
}

/// A decision of pelton, from the report that `pelton get --report` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionLog {
    /// Since the transfer began, seconds.
    pub at_s: f64,
    /// What each cluster got.
    pub allocations: Vec<Allocation>,
    /// Goodput at that moment, bits a second.
    pub throughput_bps: f64,
    /// Why.
    pub reason: String,
}

/// What a decision gave to one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// The cluster's name.
    pub cluster: String,
    /// Outstanding requests of one lane.
    pub pipelining: u32,
    /// Range streams of one file.
    pub parallelism: u32,
    /// Files at once.
    pub concurrency: u32,
    /// Range streams beyond those.
    pub spare_streams: u32,
}

/// Medians with their intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Of the seconds.
    pub seconds: Estimate,
    /// Of the joules under the link's radio; modelled.
    pub joules: Estimate,
    /// Of the client's CPU seconds.
    pub cpu_s: Estimate,
}

/// A median and an interval that holds the true one: see [`interval`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Why results can't be used.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It holds something else.
    #[error("it holds no results of `pelton-lab run`: {0}")]
    Json(serde_json::Error),
    /// It is of another version.
    #[error(
        "its format is version {0}, this program knows version {SCHEMA}; measure again, or use the pelton-lab that wrote it"
    )]
    Schema(u64),
}

impl Results {
    /// Reads what [`save`](Self::save) has written.
    ///
    /// # Errors
    /// As [`ResultsError`] says.
    pub fn load(file: &Path) -> Result<Self, ResultsError> {
        let value: serde_json::Value =
            serde_json::from_slice(&fs::read(file)?).map_err(ResultsError::Json)?;
        // Before the rest is looked at: other versions have other fields.
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema != u64::from(SCHEMA) => Err(ResultsError::Schema(schema)),
            _ => serde_json::from_value(value).map_err(ResultsError::Json),
        }
    }

    /// Puts the cells of each link and set beside each other, in the order in which they were first
    /// met.
    pub fn group(&mut self) {
        let places: Vec<_> =
            self.cells.iter().map(|cell| (cell.link.clone(), cell.set.clone())).collect();
        self.cells.sort_by_key(|cell| {
            places.iter().position(|(link, set)| (link, set) == (&cell.link, &cell.set))
        });
    }

    /// The cells of each link and set.
    pub fn groups(&self) -> impl Iterator<Item = &[CellResult]> {
        self.cells.chunk_by(|a, b| (&a.link, &a.set) == (&b.link, &b.set))
    }

    /// Writes them to `file`, whose old content stays until the new one is complete.
    ///
    /// # Errors
    /// What the file system says.
    pub fn save(&self, file: &Path) -> io::Result<()> {
        let mut new = file.as_os_str().to_owned();
        new.push(".new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(&new, file)
    }
}

impl CellResult {
    /// The value that `of` takes from each run.
    pub fn values(&self, of: impl Fn(&RunResult) -> f64) -> Vec<f64> {
        self.runs.iter().map(of).collect()
    }

    /// The joules of each run under `radio`; modelled.
    pub fn joules(&self, radio: &str) -> Vec<f64> {
        self.values(|run| run.energy.get(radio).map_or(0.0, RunEnergy::total))
    }

    /// Body bits a second, from the median time.
    pub fn throughput_bps(&self) -> f64 {
        let seconds = median(&self.values(|run| run.seconds));
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// Adds a run, in the order of seeds, and reckons the statistics anew.
    pub fn add(&mut self, run: RunResult) {
        let place = self.runs.partition_point(|other| other.seed < run.seed);
        self.runs.insert(place, run);
        self.stats = Some(Stats {
            seconds: Estimate::of(&self.values(|run| run.seconds)),
            joules: Estimate::of(&self.joules(&self.radio)),
            cpu_s: Estimate::of(&self.values(|run| run.cpu_s)),
        });
    }
}

impl DecisionLog {
    /// Range streams that it asks for over all clusters.
    pub fn streams(&self) -> u32 {
        let of = |a: &Allocation| a.concurrency * a.parallelism + a.spare_streams;
        self.allocations.iter().map(of).sum()
    }
}

impl Estimate {
    /// Of these values.
    pub fn of(values: &[f64]) -> Self {
        let (low, high) = interval(values);
        Self { median: median(values), low, high }
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
pub(crate) mod tests {
    use super::*;

    /// A run of which nothing matters but these.
    pub(crate) fn run(seed: u64, seconds: f64, joules: f64) -> RunResult {
        let traffic = Traffic { packets: 9, bytes: 900, lost: 1, overflowed: 0, retransmitted: 1 };
        let energy = RunEnergy { radio_j: joules, cpu_j: 0.0, base_j: 0.0, extrapolated: false };
        RunResult {
            seed,
            seconds,
            cpu_s: 0.1,
            peak_rss: 1_000_000,
            energy: ["wifi", "lte"].map(|radio| (radio.to_owned(), energy)).into(),
            connections: 1,
            down: traffic,
            up: traffic,
            late_share: 0.0,
            decisions: Vec::new(),
        }
    }

    /// A client that brought a megabyte in these runs: seconds and joules.
    pub(crate) fn cell(link: &str, set: &str, client: &str, runs: &[(f64, f64)]) -> CellResult {
        let mut cell = CellResult {
            link: link.to_owned(),
            set: set.to_owned(),
            client: client.to_owned(),
            radio: "wifi".to_owned(),
            command: vec![client.to_owned()],
            files: 10,
            bytes: 1_000_000,
            floor_s: 1.0,
            stats: None,
            runs: Vec::new(),
            failures: Vec::new(),
        };
        for (seed, (seconds, joules)) in (1..).zip(runs) {
            cell.add(run(seed, *seconds, *joules));
        }
        cell
    }

    pub(crate) fn results(cells: Vec<CellResult>) -> Results {
        let clients = cells.iter().map(|c| (c.client.clone(), format!("{} 1.0", c.client)));
        Results {
            schema: SCHEMA,
            date: "2026-11-20T12:00:00Z".to_owned(),
            command: ["pelton-lab", "run", "--links", "lte"].map(str::to_owned).to_vec(),
            repeats: 2,
            seed: 1,
            jobs: 1,
            lab: "0.1.0".to_owned(),
            machine: "Linux, 2 cores".to_owned(),
            server: "nginx/1.22.1".to_owned(),
            congestion_control: "cubic".to_owned(),
            clients: clients.collect(),
            skipped: BTreeMap::new(),
            cells,
        }
    }

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

    #[test]
    fn runs_stand_in_the_order_of_their_seeds_whenever_they_come() {
        let mut cell = cell("lte", "small", "curl", &[]);
        for (seed, seconds) in [(3, 30.0), (1, 10.0), (2, 20.0)] {
            cell.add(run(seed, seconds, 2.0 * seconds));
        }
        assert_eq!(cell.runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [1, 2, 3]);
        let stats = cell.stats.unwrap();
        let estimate = |median, low, high| Estimate { median, low, high };
        assert_eq!(stats.seconds, estimate(20.0, 10.0, 30.0));
        assert_eq!(stats.joules, estimate(40.0, 20.0, 60.0));
        assert!((cell.throughput_bps() - 400_000.0).abs() < 1e-6);
    }

    #[test]
    fn cells_of_a_link_and_a_set_stand_together() {
        let cell = |link, client| cell(link, "small", client, &[]);
        let mut results = results(vec![cell("lte", "a"), cell("3g", "a"), cell("lte", "b")]);
        results.group();
        let groups: Vec<_> =
            results.groups().map(|cells| (cells[0].link.as_str(), cells.len())).collect();
        assert_eq!(groups, [("lte", 2), ("3g", 1)]);
    }

    #[test]
    fn results_come_back_from_their_file_and_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("results.json");
        let results = results(vec![cell("lte", "small", "curl", &[(1.0, 2.0), (3.0, 4.0)])]);
        results.save(&file).unwrap();
        assert_eq!(Results::load(&file).unwrap(), results);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        for (text, expected) in [
            ("{\"schema\": 1}", "its format is version 1"),
            ("{\"schema\": 2}", "it holds no results of `pelton-lab run`: missing field"),
            ("nothing", "it holds no results of `pelton-lab run`: expected"),
        ] {
            fs::write(&file, text).unwrap();
            let error = Results::load(&file).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
