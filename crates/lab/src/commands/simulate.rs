//! `pelton-lab simulate`: one transfer in virtual time.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use pelton_algos::policy::{Eht, Fixed, FixedConfig, Hat, LowE, Policy};
use pelton_core::connection::Protocol;
use pelton_lab::model::LinkSpec;
use pelton_lab::sim::grid::Grid;
use pelton_lab::sim::oracle::{Goal, Oracle};
use pelton_lab::sim::{FileList, OriginConfig, Scenario, chart};
use pelton_power::Radio;

use super::cells::CellsSource;

/// Run one transfer in virtual time.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A link of cells.toml.
    #[arg(long, value_name = "NAME", required_unless_present = "cell")]
    link: Option<String>,
    /// A set of cells.toml.
    #[arg(long, value_name = "NAME", required_unless_present = "cell")]
    set: Option<String>,
    /// Instead of link, set and protocol: a cell as `regret` names it.
    #[arg(long, value_name = "CELL", conflicts_with_all = ["link", "set", "protocol"])]
    cell: Option<String>,
    /// Who decides.
    #[arg(long, value_enum, default_value_t = PolicyName::Eht)]
    policy: PolicyName,
    /// For `fixed`: files at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    cc: u32,
    /// For `fixed`: range streams of one file.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    p: u32,
    /// For `fixed` over HTTP/2: outstanding requests of one lane.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pp: u32,
    /// What the server speaks.
    #[arg(long, value_enum, default_value_t = Speaks::H1Tls)]
    protocol: Speaks,
    /// The server's time from a request to its response, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    latency: u64,
    /// Decides which packets are lost, the jitter and the sizes of the set's files.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Instead of one run: the best static numbers for each goal.
    #[arg(long, conflicts_with_all = ["policy", "svg"])]
    oracle: bool,
    /// Draw the run.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    source: CellsSource,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PolicyName {
    Lowe,
    Hat,
    Eht,
    Fixed,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Speaks {
    H1,
    H2,
    H1Tls,
    H2Tls,
}

impl SimulateArgs {
    fn policy(&self) -> Box<dyn Policy> {
        match self.policy {
            PolicyName::Lowe => Box::<LowE>::default(),
            PolicyName::Hat => Box::new(Hat),
            PolicyName::Eht => Box::new(Eht::default()),
            PolicyName::Fixed => Box::new(Fixed::new(FixedConfig {
                concurrency: self.cc,
                parallelism: self.p,
                pipelining: self.pp,
            })),
        }
    }

    fn origin(&self) -> OriginConfig {
        let (protocol, tls) = match self.protocol {
            Speaks::H1 => (Protocol::Http11, false),
            Speaks::H2 => (Protocol::Http2, false),
            Speaks::H1Tls => (Protocol::Http11, true),
            Speaks::H2Tls => (Protocol::Http2, true),
        };
        let latency = Duration::from_millis(self.latency);
        OriginConfig { latency, ..OriginConfig::plain(protocol, tls) }
    }
}

/// What is fetched from where over what.
struct Place {
    name: String,
    link: LinkSpec,
    origin: OriginConfig,
    files: FileList,
    /// By whose model joules are charged, and decisions made.
    radio: Radio,
}

impl Place {
    fn scenario(&self, seed: u64) -> Scenario<'_> {
        let mut scenario = Scenario::new(&self.link, self.origin, &self.files, seed);
        scenario.power.radio = self.radio.profile();
        scenario
    }
}

impl SimulateArgs {
    fn place(&self) -> Result<Place> {
        match (&self.cell, &self.link, &self.set) {
            (Some(cell), ..) => self.place_of_grid(cell),
            (None, Some(link), Some(set)) => self.place_of_cells(link, set),
            _ => bail!("name a link and a set, or a cell"),
        }
    }

    fn place_of_grid(&self, name: &str) -> Result<Place> {
        let grid = Grid::full(self.seed)?;
        let cell = grid.cells.iter().find(|cell| cell.to_string() == name);
        let cell = cell.ok_or_else(|| anyhow!("no cell of the grid is called {name:?}"))?;
        let files = grid.files(cell).context("its set is gone")?.clone();
        let link = cell.link(files.bytes())?;
        Ok(Place { name: name.to_owned(), link, origin: cell.origin, files, radio: Radio::Wifi })
    }

    fn place_of_cells(&self, link: &str, set: &str) -> Result<Place> {
        let cells = self.source.load()?;
        let found = cells.link(link)?;
        let (spec, radio) = (found.spec.clone(), found.radio);
        let found = cells.sets(set)?;
        let [(_, found)] = found[..] else {
            bail!("`pages` are forty sets: name one of them, as page-050-1024");
        };
        let files = FileList::new(&found.files(self.seed, spec.down.peak_rate()))?;
        let origin = self.origin();
        let name = format!("{set} over {link}, {}", origin.name());
        Ok(Place { name, link: spec, origin, files, radio })
    }
}

pub(crate) fn run(args: &SimulateArgs) -> Result<ExitCode> {
    let place = args.place()?;
    if args.oracle {
        out!("{}", best_numbers(&place, args.seed));
        return Ok(ExitCode::SUCCESS);
    }
    let policy = args.policy();
    let (radio, policy_name) = (place.radio.name(), policy.name());
    let title = format!("{}, {policy_name}, radio {radio}, seed {}", place.name, args.seed);
    let mut scenario = place.scenario(args.seed);
    scenario.traced = true;
    let ending = scenario.run(policy);
    outln!("{title}");
    out!("{}", chart::text(&ending));
    if let Some(file) = &args.svg {
        let drawn = chart::svg(&title, &ending);
        fs::write(file, drawn).with_context(|| format!("can't write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn best_numbers(place: &Place, seed: u64) -> String {
    let scenario = place.scenario(seed);
    // Losses are luck.
    let oracle = Oracle::sweep(&scenario, &[seed, seed + 1, seed + 2]);
    let mut text = format!("{}, the best static numbers, seed {seed}\n", place.name);
    for goal in Goal::ALL {
        let (FixedConfig { concurrency, parallelism, pipelining }, cost) = oracle.best(goal);
        let shown = match goal {
            Goal::Time => format!("{cost:.3} s"),
            Goal::Energy => format!("{cost:.1} J (modelled)"),
            Goal::Efficiency => format!("{:.3e} bit/s/J", 1.0 / cost),
        };
        let _ = writeln!(
            text,
            "{:<17}  {shown:>16}  fixed:{pipelining},{parallelism},{concurrency}",
            goal.name()
        );
    }
    text
}
