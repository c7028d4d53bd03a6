//! `pelton completions` and `pelton man`.

use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use pelton_core::Result;

use crate::args::Cli;
use crate::exit::{self, usage};
use crate::output;

/// Prints the script that makes `shell` complete pelton's flags.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "pelton", &mut script);
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page of pelton, or of its command `name`.
pub(crate) fn man(name: Option<&str>) -> Result<ExitCode> {
    let mut pelton = Cli::command();
    pelton.build();
    let command = match name {
        None => pelton,
        Some(name) => page_of(&pelton, name)?,
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| exit::io("the page", error))?;
    output::print(&page)?;
    Ok(ExitCode::SUCCESS)
}

fn page_of(pelton: &Command, name: &str) -> Result<Command> {
    let command = pelton.find_subcommand(name).ok_or_else(|| {
        let known: Vec<&str> = pelton.get_subcommands().map(Command::get_name).collect();
        usage(format!("pelton has no command {name}; it has {}", known.join(", ")))
    })?;
    Ok(command.clone())
}
