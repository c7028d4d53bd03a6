//! `pelton-lab regret`: what the policies lose against the oracle.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use pelton_lab::sim::regret::{Adaptive, Regret, Summary, Variant, percent};

use super::grid_part::GridPart;

/// Cells that are named for each policy, the worst first.
const NAMED: usize = 10;

/// Compare the policies with the best static numbers, over a grid of links and sets.
#[derive(Debug, Args)]
pub(crate) struct RegretArgs {
    #[command(flatten)]
    part: GridPart,
    /// Name the worst cells of each policy, and those in which it beats the oracle.
    #[arg(long)]
    worst: bool,
    /// Write every cell to a file of comma-separated values.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

pub(crate) fn run(args: &RegretArgs) -> Result<ExitCode> {
    let regrets = args.part.measure(&Adaptive::ALL, &[Variant::default()])?.concat();
    out!("{}", Summary(&regrets));
    if args.worst {
        out!("{}", extremes(&regrets));
    }
    if let Some(file) = &args.csv {
        fs::write(file, csv(&regrets))
            .with_context(|| format!("can't write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Of each policy the cells in which it loses most, and those in which it beats the oracle.
fn extremes(regrets: &[Regret]) -> String {
    let mut text = String::new();
    for policy in Adaptive::ALL {
        let mut of_policy: Vec<&Regret> = regrets.iter().filter(|r| r.policy == policy).collect();
        of_policy.sort_by(|a, b| b.regret.total_cmp(&a.regret));
        let _ = writeln!(text, "\n{} by {}:", policy.name(), policy.goal().name());
        for regret in of_policy.iter().take(NAMED) {
            let _ = writeln!(text, "{}", line(regret));
        }
        let beaten: Vec<&&Regret> = of_policy.iter().filter(|r| r.beats_oracle()).rev().collect();
        let _ = writeln!(text, "better than the oracle by more than 2 % in {}:", beaten.len());
        for regret in beaten.into_iter().take(NAMED) {
            let _ = writeln!(text, "{}", line(regret));
        }
    }
    text
}

fn line(regret: &Regret) -> String {
    let oracle = regret.oracle;
    format!(
        "{:>10}  {}: {:.4e} against {:.4e} with pp {}, p {}, cc {}",
        percent(regret.regret),
        regret.cell,
        regret.cost,
        regret.oracle_cost,
        oracle.pipelining,
        oracle.parallelism,
        oracle.concurrency,
    )
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
