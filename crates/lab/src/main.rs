//! The command `pelton-lab`: the testbed of pelton.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures pelton on modelled links
#[derive(Debug, Parser)]
#[command(name = "pelton-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one transfer in virtual time
    Simulate(commands::simulate::Args),
    /// Compare the policies with the best static numbers, over a grid of links and sets
    Regret(commands::regret::Args),
    /// Say what recorded packets cost in joules
    Energy(commands::energy::Args),
    /// Compute the papers' energy figures again
    Reproduce(commands::reproduce::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Simulate(args) => commands::simulate::run(&args),
        Command::Regret(args) => commands::regret::run(&args),
        Command::Energy(args) => commands::energy::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pelton-lab: {error}");
            ExitCode::FAILURE
        }
    }
}
