//! `pelton-lab regret`: what the policies lose against the oracle.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use pelton_lab::sim::grid::Grid;
use pelton_lab::sim::regret::{self, Regret, Summary, percent};

/// Cells that are named for each policy, the worst first.
const NAMED: usize = 10;

/// Compare the policies with the best static numbers, over a grid of links and sets.
#[derive(Debug, Args)]
pub(crate) struct RegretArgs {
    /// A part of the grid instead of all of it.
    #[arg(long)]
    quick: bool,
    /// Decides which packets are lost; the same seed gives the same output.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Name the worst cells of each policy.
    #[arg(long)]
    worst: bool,
    /// Write every cell to a file of comma-separated values.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

pub(crate) fn run(args: &RegretArgs) -> Result<ExitCode> {
    let grid = if args.quick { Grid::quick(args.seed)? } else { Grid::full(args.seed)? };
    println!("{} cells, seed {}; joules are modelled", grid.cells.len(), args.seed);
    let regrets = regret::measure(&grid, args.seed);
    print!("{}", Summary(&regrets));
    if args.worst {
        print!("{}", worst(&regrets));
    }
    if let Some(file) = &args.csv {
        fs::write(file, csv(&regrets))
            .with_context(|| format!("can't write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn worst(regrets: &[Regret]) -> String {
    let mut text = String::new();
    for policy in regret::Adaptive::ALL {
        let mut of_policy: Vec<&Regret> = regrets.iter().filter(|r| r.policy == policy).collect();
        of_policy.sort_by(|a, b| b.regret.total_cmp(&a.regret));
        let _ = writeln!(text, "\n{} by {}:", policy.name(), policy.goal().name());
        for regret in of_policy.into_iter().take(NAMED) {
            let oracle = regret.oracle;
            let _ = writeln!(
                text,
                "{:>10}  {}: {:.4} against {:.4} with pp {}, p {}, cc {}",
                percent(regret.regret),
                regret.cell,
                regret.cost,
                regret.oracle_cost,
                oracle.pipelining,
                oracle.parallelism,
                oracle.concurrency,
            );
        }
    }
    text
}

fn csv(regrets: &[Regret]) -> String {
    let mut text = "policy,goal,mbps,rtt_ms,loss_percent,drift,set,origin,regret,cost,oracle_cost,\
                    pp,p,cc,against_one,misses\n"
        .to_owned();
    for regret in regrets {
        let (cell, oracle) = (&regret.cell, regret.oracle);
        let _ = writeln!(
            text,
            "{},{},{},{},{},{:?},{},{},{:.5},{:.6e},{:.6e},{},{},{},{:.5},{}",
            regret.policy.name(),
            regret.policy.goal().name(),
            cell.rate.mbps(),
            cell.rtt.as_millis(),
            cell.loss_percent,
            cell.drift,
            cell.set,
            cell.origin.name(),
            regret.regret,
            regret.cost,
            regret.oracle_cost,
            oracle.pipelining,
            oracle.parallelism,
            oracle.concurrency,
            regret.against_one,
            regret.misses_target(),
        );
    }
    text
}
