//! `pelton-lab reproduce`: the papers' energy figures beside the models'.

use std::process::ExitCode;

use anyhow::Result;
use pelton_lab::reproduce::{papers_000, timers};

/// Compute papers/000 Figs 11, 12, 14 and 23 again; joules are modelled
#[derive(Debug, clap::Args)]
pub(crate) struct ReproduceArgs {}

#[expect(clippy::unnecessary_wraps, reason = "commands have one form")]
pub(crate) fn run(_args: &ReproduceArgs) -> Result<ExitCode> {
    println!("papers/000, radios of its section 3.2 (pelton_power::radio::n9_wlan, n9_3g)");
    for row in papers_000() {
        println!(
            "{:<52} paper {:>6.2} {unit}  model {:>6.2} {unit}  {:>+6.1} %",
            row.what,
            row.paper,
            row.model,
            row.difference() * 100.0,
            unit = row.unit,
        );
        println!("    given: {}", row.given);
        if row.difference().abs() > 0.15 {
            println!("    why: {}", row.why);
        }
    }
    println!("Fig 23: what bundling saves, by timers (the paper's bars are pictures: they fall)");
    for (t1, t2, saved) in timers() {
        println!("    T1 {t1} s, T2 {t2} s: {:.1} % in the model", saved * 100.0);
    }
    Ok(ExitCode::SUCCESS)
}
