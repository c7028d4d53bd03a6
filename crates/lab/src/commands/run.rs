//! `pelton-lab run`: a matrix of links, sets and clients on real packets.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use pelton_lab::bench::clients::Client;
use pelton_lab::bench::plan::Plan;
use pelton_lab::cells::Cells;

use super::cells::CellsSource;
use super::lab_args::LabArgs;
use super::matrix;

/// How often each client runs in each cell if nothing says so.
const REPEATS: u32 = 5;

/// Measure clients on emulated links: real nginx, real packets.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Two links, two sets, pelton against curl and aria2, once: within two minutes.
    #[arg(long, conflicts_with_all = ["matrix", "links", "sets", "clients", "repeats", "sweep"])]
    quick: bool,
    /// The cells and clients of FILE, such as docs/matrix.toml.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["links", "sets", "clients", "sweep"])]
    matrix: Option<PathBuf>,
    /// The links, separated by commas: see `pelton-lab cells`.
    #[arg(long, value_delimiter = ',', default_value = "lte,wifi-near,50x200")]
    links: Vec<String>,
    /// The sets, separated by commas; `pages` = the 40 pages of papers/002.
    #[arg(long, value_delimiter = ',', default_value = "small,medium,mixed")]
    sets: Vec<String>,
    /// The clients, separated by commas; `all`; `fixed:PP,P,CC` = pelton with these numbers.
    #[arg(
        long,
        default_value = "pelton-lowe,pelton-hat,pelton-eht,pelton-eht-h2,curl,curl-parallel,curl-parallel-h2,wget,wget2,aria2,aria2-tuned,axel,lftp"
    )]
    clients: String,
    /// Add every static cell, to find the best: fixed:PP,P,CC for CC 1 to 32 and P 1 to 8.
    #[arg(long)]
    sweep: bool,
    /// How often each client runs in each cell: 5, or what the matrix says.
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Seed of the first repeat's losses and jitter; each further repeat has the next.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    lab: LabArgs,
    #[command(flatten)]
    source: CellsSource,
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let cells = args.source.load()?;
    let measured = args.lab.measure(plan(args, &cells)?)?;
    outln!("{}", matrix::show(&measured.results));
    measured.code()
}

fn plan(args: &RunArgs, cells: &Cells) -> Result<Plan> {
    if let Some(file) = &args.matrix {
        let named = || file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(named)?;
        return Plan::of_matrix(&text, cells, args.repeats, args.seed).with_context(named);
    }
    if args.quick {
        let names = |list: [&str; 2]| list.map(str::to_owned);
        let clients = Client::parse_list("pelton-eht,pelton-hat,curl,aria2")?;
        let (links, sets) = (names(["40x60", "wifi-near"]), names(["page-100-10240", "medium"]));
        return Ok(Plan::of_names(cells, &links, &sets, &clients, (1, args.seed))?);
    }
    let mut clients = Client::parse_list(&args.clients)?;
    if args.sweep {
        clients.extend(Client::sweep());
    }
    let repeats = args.repeats.unwrap_or(REPEATS);
    Ok(Plan::of_names(cells, &args.links, &args.sets, &clients, (repeats, args.seed))?)
}
