//! `pelton-lab validate`: the simulator beside the packet emulator.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::Args;
use pelton_lab::bench::clients::Client;
use pelton_lab::bench::results::{interval, median};
use pelton_lab::bench::validation::{Comparison, ValidationCell, ValidationCells, median_error};
use pelton_lab::bench::{Failure, Order, Runner, Workspace, find_programs};
use pelton_lab::cells::Cells;
use pelton_lab::emulator::become_able;
use pelton_lab::sim::FileList;
use pelton_lab::sim::regret::percent;
use pelton_lab::sim::stand_in::StandIn;

use super::table::table;

/// Losses are luck: the simulator is cheap enough to be asked so often.
const SIMULATED_SEEDS: u64 = 11;
/// No cell takes longer.
const PATIENCE: Duration = Duration::from_secs(180);

/// Compare simulated with measured times, in the cells of crates/lab/validation.toml.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// How often each cell is measured.
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    /// Seed of the first repeat's losses and jitter; each further one has the next.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only the cells whose link, set or client is called so.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only the cells that the simulator was made with.
    #[arg(long)]
    fitted: bool,
    /// Write the table to FILE, as Markdown.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The program pelton; by default the one beside this program, else that on the path.
    #[arg(long, value_name = "FILE")]
    pelton: Option<PathBuf>,
}

pub(crate) fn run(args: &ValidateArgs) -> Result<ExitCode> {
    let cells = Cells::built_in().context("cells.toml")?;
    let asked = asked(args)?;
    let programs = find_programs(args.pelton.as_deref())?;
    let server = Runner::server_version()?;
    become_able()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    let mut runner = Runner::new(Workspace::create(&std::env::temp_dir())?, programs)?;
    runner.interrupted = interrupted;

    let mut comparisons = Vec::new();
    for (index, (cell, held_out)) in asked.iter().enumerate() {
        let ValidationCell { link, set, client } = cell;
        note!("{}/{}: {link}, {set}, {client}", index + 1, asked.len());
        let comparison = compare(args, &cells, &runner, cell, *held_out)?;
        note!("    {}", percent(comparison.error()));
        comparisons.push(comparison);
    }
    out!("{}", shown(&comparisons));
    if let Some(file) = &args.out {
        let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let head = format!(
            "{}, pelton-lab {}, {server}, cubic, seed {}, {} runs of each cell on real packets and {SIMULATED_SEEDS} simulated ones",
            date,
            env!("CARGO_PKG_VERSION"),
            args.seed,
            args.repeats
        );
        fs::write(file, markdown(&head, &comparisons))
            .with_context(|| format!("can't write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn asked(args: &ValidateArgs) -> Result<Vec<(ValidationCell, bool)>> {
    let ValidationCells { fitted, held_out } =
        ValidationCells::built_in().context("validation.toml")?;
    let wanted = |cell: &ValidationCell| {
        args.only.as_ref().is_none_or(|name| [&cell.link, &cell.set, &cell.client].contains(&name))
    };
    let held_out = held_out.into_iter().filter(|_| !args.fitted).map(|cell| (cell, true));
    let asked: Vec<_> = fitted
        .into_iter()
        .map(|cell| (cell, false))
        .chain(held_out)
        .filter(|(cell, _)| wanted(cell))
        .collect();
    if args.repeats == 0 || asked.is_empty() {
        bail!("nothing to compare: --repeats 0, or no cell that --only names");
    }
    Ok(asked)
}

fn compare(
    args: &ValidateArgs,
    cells: &Cells,
    runner: &Runner,
    cell: &ValidationCell,
    held_out: bool,
) -> Result<Comparison> {
    let link = cells.link(&cell.link)?;
    let client = Client::parse_list(&cell.client)?;
    let (&[(name, set)], [client]) = (&cells.sets(&cell.set)?[..], &client[..]) else {
        bail!("{} and {} are to be one set and one client", cell.set, cell.client);
    };
    let Some(stand_in) = StandIn::of(client) else { bail!("{client} can't be simulated") };
    let files = set.files(args.seed, link.spec.down.peak_rate());
    let list = FileList::new(&files)?;
    let simulated = (args.seed..args.seed + SIMULATED_SEEDS)
        .map(|seed| stand_in.run(&link.spec, &list, seed).seconds)
        .collect();
    let prepared = runner.workspace.prepare(name, files)?;
    let mut measured = Vec::new();
    for seed in args.seed..args.seed + u64::from(args.repeats) {
        let order = Order {
            link_name: &cell.link,
            link,
            set: &prepared,
            client,
            seed,
            timeout: PATIENCE,
            slot: 0,
        };
        match runner.run(&order) {
            Ok((run, _)) => measured.push(run.seconds),
            Err(Failure::Client(why)) => bail!("{}, {}, {client}: {why}", cell.link, cell.set),
            Err(Failure::Lab(error)) => return Err(error),
        }
    }
    fs::remove_dir_all(&prepared.root)?;
    Ok(Comparison { cell: cell.clone(), held_out, simulated, measured })
}

const HEADER: [&str; 8] =
    ["link", "set", "client", "held out", "simulated s", "range", "measured s", "error"];

fn rows(comparisons: &[Comparison]) -> impl Iterator<Item = [String; 8]> {
    comparisons.iter().map(|comparison| {
        let ValidationCell { link, set, client } = &comparison.cell;
        let (low, high) = interval(&comparison.simulated);
        [
            link.clone(),
            set.clone(),
            client.clone(),
            if comparison.held_out { "yes".to_owned() } else { String::new() },
            format!("{:.2}", median(&comparison.simulated)),
            format!("{low:.2}-{high:.2}"),
            format!("{:.2}", median(&comparison.measured)),
            percent(comparison.error()),
        ]
    })
}

fn summary(comparisons: &[Comparison]) -> String {
    let of = |held_out: bool| comparisons.iter().filter(move |c| c.held_out == held_out);
    let worst = of(true).map(|c| c.error().abs()).fold(0.0, f64::max);
    format!(
        "median error {:.1} % of {} cells; of those held out, {:.1} % at worst of {}\n",
        100.0 * median_error(of(false)),
        of(false).count(),
        100.0 * worst,
        of(true).count()
    )
}

fn shown(comparisons: &[Comparison]) -> String {
    let mut table = table(&HEADER, 4);
    for row in rows(comparisons) {
        table.add_row(row);
    }
    format!("{}\n\n{}", table.trim_fmt(), summary(comparisons))
}

fn markdown(head: &str, comparisons: &[Comparison]) -> String {
    let mut text =
        format!("# The simulator beside real packets\n\n`pelton-lab validate`: {head}.\n\n");
    let mut line = |cells: &[String]| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(&HEADER.map(str::to_owned));
    line(&HEADER.map(|_| "---".to_owned()));
    for row in rows(comparisons) {
        line(&row);
    }
    text + "\n" + &summary(comparisons)
}
