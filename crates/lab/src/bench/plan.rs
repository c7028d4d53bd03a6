//! What shall be measured: cells of link and set, each with its clients; from names or from a file.

use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes};
use serde::Deserialize;
use thiserror::Error;

use super::clients::{Client, UnknownClient};
use super::floor;
use super::schedule::Load;
use crate::cells::{Cells, CellsError, FileSet, NamedLink};

/// Every run takes so long besides its transfer: namespaces, the server, the check of the files.
const OVERHEAD: Duration = Duration::from_millis(500);

/// Bytes a second at which files are read and hashed after a run. Assumed.
const CHECK_RATE: f64 = 300e6;

/// By what a client's rate may exceed its mean for longer than a moment. Assumed.
const PEAK: f64 = 2.0;

/// All names understood.
#[derive(Debug, Clone)]
pub struct Plan {
    /// In the order in which they are measured.
    pub cells: Vec<PlannedCell>,
    /// How often each client runs in each cell.
    pub repeats: u32,
    /// Of the files, and of the first repeat's link; each further repeat has the next.
    pub seed: u64,
}

/// A link, a set, and who fetches it.
#[derive(Debug, Clone)]
pub struct PlannedCell {
    /// The link's name.
    pub link_name: String,
    /// The link.
    pub link: NamedLink,
    /// The set's name.
    pub set_name: String,
    /// The set.
    pub set: FileSet,
    /// In the order in which they run.
    pub clients: Vec<Client>,
}

/// One run of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRun {
    /// The place of its cell in the plan.
    pub cell: usize,
    /// The place of its client in the cell.
    pub client: usize,
    /// The seed of its link.
    pub seed: u64,
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// A link or a set that is none.
    #[error(transparent)]
    Cells(#[from] CellsError),
    /// A client that is none.
    #[error(transparent)]
    Client(#[from] UnknownClient),
    /// The file is no matrix.
    #[error("{0}")]
    Toml(#[from] Box<toml::de::Error>),
    /// Nothing would be run.
    #[error("{0} measures nothing")]
    Empty(&'static str),
}

/// A matrix as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MatrixText {
    repeats: u32,
    clients: Vec<String>,
    cells: Vec<CellText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CellText {
    link: String,
    sets: Vec<String>,
    /// Instead of those of the matrix.
    clients: Option<Vec<String>>,
    /// Clients of the matrix that are left out here.
    #[serde(default)]
    without: Vec<String>,
}

impl Plan {
    /// Every one of `links` with every one of `sets`, by all `clients`.
    ///
    /// # Errors
    /// The first name that is none.
    pub fn of_names(
        cells: &Cells,
        links: &[String],
        sets: &[String],
        clients: &[Client],
        (repeats, seed): (u32, u64),
    ) -> Result<Self, PlanError> {
        let mut plan = Self { cells: Vec::new(), repeats, seed };
        for link in links {
            plan.add(cells, link, sets, clients)?;
        }
        plan.checked("--repeats 0")
    }

    /// The cells of `text`, a file such as docs/matrix.toml; `repeats` instead of its own.
    ///
    /// # Errors
    /// The first mistake.
    pub fn of_matrix(
        text: &str,
        cells: &Cells,
        repeats: Option<u32>,
        seed: u64,
    ) -> Result<Self, PlanError> {
        let text: MatrixText = toml::from_str(text).map_err(Box::new)?;
        let repeats = repeats.unwrap_or(text.repeats);
        let mut plan = Self { cells: Vec::new(), repeats, seed };
        for cell in text.cells {
            let names = cell.clients.as_ref().unwrap_or(&text.clients);
            let mut clients = Client::parse_list(&names.join(","))?;
            for name in &cell.without {
                let left_out = Client::parse_list(name)?;
                clients.retain(|client| !left_out.contains(client));
            }
            plan.add(cells, &cell.link, &cell.sets, &clients)?;
        }
        plan.checked("repeats = 0")
    }

    fn add(
        &mut self,
        cells: &Cells,
        link_name: &str,
        sets: &[String],
        clients: &[Client],
    ) -> Result<(), PlanError> {
        let link = cells.link(link_name)?;
        for name in sets {
            for (set_name, set) in cells.sets(name)? {
                self.cells.push(PlannedCell {
                    link_name: link_name.to_owned(),
                    link: link.clone(),
                    set_name: set_name.to_owned(),
                    set: set.clone(),
                    clients: clients.to_vec(),
                });
            }
        }
        Ok(())
    }

    fn checked(self, zero: &'static str) -> Result<Self, PlanError> {
        if self.repeats == 0 {
            return Err(PlanError::Empty(zero));
        }
        if self.cells.iter().all(|cell| cell.clients.is_empty()) {
            return Err(PlanError::Empty("a matrix without links, sets or clients"));
        }
        Ok(self)
    }

    /// Each client once.
    pub fn clients(&self) -> Vec<&Client> {
        let mut clients: Vec<&Client> = Vec::new();
        for client in self.cells.iter().flat_map(|cell| &cell.clients) {
            if !clients.contains(&client) {
                clients.push(client);
            }
        }
        clients
    }

    /// Leaves out what `keep` does not keep.
    pub fn retain_clients(&mut self, keep: impl Fn(&Client) -> bool) {
        for cell in &mut self.cells {
            cell.clients.retain(&keep);
        }
    }

    /// All runs, interleaved: what the machine does meanwhile meets every client of a cell alike.
    pub fn runs(&self) -> Vec<PlannedRun> {
        let mut runs = Vec::new();
        for (index, cell) in self.cells.iter().enumerate() {
            for repeat in 0..self.repeats {
                runs.extend((0..cell.clients.len()).map(|client| PlannedRun {
                    cell: index,
                    client,
                    seed: self.seed + u64::from(repeat),
                }));
            }
        }
        runs
    }

    /// What a run takes.
    pub fn load(&self, run: &PlannedRun) -> Load {
        let cell = &self.cells[run.cell];
        let (bytes, files) = cell.size(self.seed);
        let client = &cell.clients[run.client];
        let floor = floor(&cell.link.spec, client.protocol, files, bytes);
        let time = client.estimate(floor, cell.link.spec.rtt(), files) + OVERHEAD;
        let check = bytes.as_f64() / CHECK_RATE;
        let mean = bytes / time;
        let rate = if mean * PEAK < cell.rate() { mean * PEAK } else { cell.rate() };
        Load { rate, seconds: time.as_secs_f64() + check }
    }
}

impl PlannedCell {
    /// The bytes and the number of the files.
    pub fn size(&self, seed: u64) -> (Bytes, usize) {
        let files = self.set.files(seed, self.link.spec.down.peak_rate());
        (files.iter().map(|file| Bytes(file.size)).sum(), files.len())
    }

    /// The highest rate in either direction.
    pub fn rate(&self) -> BitRate {
        self.link.spec.down.peak_rate().max(self.link.spec.up.peak_rate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRIX: &str = "
repeats = 3
clients = ['curl', 'axel', 'pelton-eht']
[[cells]]
link = 'lte'
sets = ['small', 'mixed']
without = ['axel']
[[cells]]
link = '3g'
sets = ['tiny']
clients = ['wget']
";

    fn plan(text: &str) -> Result<Plan, PlanError> {
        Plan::of_matrix(text, &Cells::built_in().unwrap(), None, 7)
    }

    #[test]
    fn a_matrix_is_cells_with_their_clients() {
        let plan = plan(MATRIX).unwrap();
        let shown: Vec<_> = plan
            .cells
            .iter()
            .map(|cell| {
                let clients: Vec<_> = cell.clients.iter().map(|c| c.name.as_str()).collect();
                format!("{} {} {}", cell.link_name, cell.set_name, clients.join(" "))
            })
            .collect();
        assert_eq!(
            shown,
            ["lte small curl pelton-eht", "lte mixed curl pelton-eht", "3g tiny wget"]
        );
        assert_eq!(plan.clients().len(), 3);
        let runs = plan.runs();
        assert_eq!(runs.len(), 2 * 2 * 3 + 3);
        // Each client once before any runs again.
        let first: Vec<_> = runs[..3].iter().map(|run| (run.client, run.seed)).collect();
        assert_eq!(first, [(0, 7), (1, 7), (0, 8)]);
        // 400 files of 4.8 MB, one after the other over 60 ms: 24 s and 1.3 s of bytes.
        let load = plan.load(&runs[0]);
        assert!((25.0..29.0).contains(&load.seconds), "{load:?}");
        // Twice 38.4 Mbit in that time: far below the link's 30 Mbit/s.
        assert!((2.5..3.2).contains(&load.rate.mbps()), "{load:?}");
        let fast = Client::parse_list("pelton-eht").unwrap();
        let medium = ["medium".to_owned()];
        let lte = ["lte".to_owned()];
        let plan = Plan::of_names(&Cells::built_in().unwrap(), &lte, &medium, &fast, (1, 1));
        let plan = plan.unwrap();
        assert_eq!(plan.load(&plan.runs()[0]).rate, BitRate::from_mbps(30.0));
    }

    #[test]
    fn the_documented_matrix_is_one() {
        let plan = plan(include_str!("../../../../docs/matrix.toml")).unwrap();
        assert!(plan.cells.len() >= 16, "{}", plan.cells.len());
    }

    #[test]
    fn a_broken_matrix_is_refused_with_the_reason() {
        for (from, to, expected) in [
            ("repeats = 3", "repeats = 0", "repeats = 0 measures nothing"),
            ("'lte'", "'lte9'", "there is no link \"lte9\""),
            ("'tiny'", "'huger'", "there is no set \"huger\""),
            ("'wget'", "'gopher'", "there is no client \"gopher\""),
            ("sets = ['tiny']", "set = 'tiny'", "TOML parse error at line 10"),
        ] {
            let error = plan(&MATRIX.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
