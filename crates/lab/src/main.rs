//! `pelton-lab`: measures pelton and its peers on emulated links.

#[macro_use]
mod out;
mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The testbed of pelton.
#[derive(Debug, Parser)]
#[command(name = "pelton-lab", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Cells(commands::cells::CellsArgs),
    Simulate(commands::simulate::SimulateArgs),
    Regret(commands::regret::RegretArgs),
    Sweep(commands::sweep::SweepArgs),
    Energy(commands::energy::EnergyArgs),
    Report(commands::report::ReportArgs),
    Reproduce(Box<commands::reproduce::ReproduceArgs>),
    #[cfg(target_os = "linux")]
    Check(commands::check::CheckArgs),
    #[cfg(target_os = "linux")]
    Run(Box<commands::run::RunArgs>),
    #[cfg(target_os = "linux")]
    Validate(commands::validate::ValidateArgs),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Guard(commands::guard::GuardArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Cells(args) => commands::cells::run(&args),
        Command::Simulate(args) => commands::simulate::run(&args),
        Command::Regret(args) => commands::regret::run(&args),
        Command::Sweep(args) => commands::sweep::run(&args),
        Command::Energy(args) => commands::energy::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        #[cfg(target_os = "linux")]
        Command::Check(args) => commands::check::run(&args),
        #[cfg(target_os = "linux")]
        Command::Run(args) => commands::run::run(&args),
        #[cfg(target_os = "linux")]
        Command::Validate(args) => commands::validate::run(&args),
        #[cfg(target_os = "linux")]
        Command::Guard(args) => commands::guard::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            note!("pelton-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
