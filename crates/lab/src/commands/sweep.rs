//! `pelton-lab sweep`: what the policies lose with other constants.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use pelton_lab::sim::regret::{Regret, Variant, percent, quantile};
use pelton_lab::sim::sweep::{CONSTANTS, Constant};

use super::grid_part::GridPart;

/// Compare values of the schedulers' constants over the grid of `regret`, one constant after the other.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Only constants whose names begin so, as `eht.` or `large_from_bdp`.
    #[arg(long, value_name = "NAME", default_value = "")]
    of: String,
    #[command(flatten)]
    part: GridPart,
}

pub(crate) fn run(args: &SweepArgs) -> Result<ExitCode> {
    let constants: Vec<&Constant> =
        CONSTANTS.iter().filter(|constant| constant.name.starts_with(&args.of)).collect();
    if constants.is_empty() {
        let names: Vec<_> = CONSTANTS.iter().map(|constant| constant.name).collect();
        bail!("no constant begins with {:?}; there are {}", args.of, names.join(", "));
    }
    let mut policies: Vec<_> = constants.iter().flat_map(|c| c.policies).copied().collect();
    policies.sort_by_key(|policy| policy.name());
    policies.dedup();
    let mut variants = vec![Variant::default()];
    for constant in &constants {
        for value in constant.values {
            let variant = constant.variant(*value);
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
    }
    let regrets = args.part.measure(&policies, &variants)?;
    outln!(
        "{:<27} {:>7}  {:<6} {:>8} {:>8} {:>8} {:>8}  {:>6}",
        "constant",
        "value",
        "policy",
        "mean",
        "median",
        "90 %",
        "worst",
        "missed"
    );
    for constant in constants {
        for value in constant.values {
            let variant = constant.variant(*value);
            let Some(at) = variants.iter().position(|known| *known == variant) else { continue };
            let mark = if at == 0 { "*" } else { " " };
            for policy in constant.policies {
                let of_policy = regrets[at].iter().filter(|regret| regret.policy == *policy);
                outln!(
                    "{:<27} {:>6}{mark}  {:<6} {}",
                    constant.name,
                    value,
                    policy.name(),
                    spread(of_policy.collect())
                );
            }
        }
    }
    outln!("* as it is");
    Ok(ExitCode::SUCCESS)
}

/// Mean, median, 90 %, worst, and how many miss the target. The mean is that of the factors by which more
/// is paid than the oracle pays.
fn spread(mut regrets: Vec<&Regret>) -> String {
    regrets.sort_by(|a, b| a.regret.total_cmp(&b.regret));
    if regrets.is_empty() {
        return "no cell".to_owned();
    }
    let logarithms: f64 = regrets.iter().map(|regret| regret.regret.ln_1p()).sum();
    let mean = (logarithms / regrets.len() as f64).exp_m1();
    let shown = [mean].into_iter().chain([0.5, 0.9, 1.0].map(|share| quantile(&regrets, share)));
    let shown: Vec<_> = shown.map(|regret| format!("{:>8}", percent(regret))).collect();
    let missed = regrets.iter().filter(|regret| regret.misses_target()).count();
    format!("{}  {missed:>6}", shown.join(" "))
}
