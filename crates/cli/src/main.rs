//! The command `pelton`: parse, resolve, dispatch.
//!
//! | module | holds |
//! |---|---|
//! | `args` | the command line as people type it |
//! | `config` | what variables and the file of settings add to it |
//! | `values` | how single values are read |
//! | `resolve` | from flags to the types of pelton-core |
//! | `energy` | which meter and radio are meant |
//! | `get`, `list`, `meter`, `demo`, `pages` | the commands |
//! | `output`, `progress`, `logging` | what is said: JSON, text, bars, the log |
//! | `exit`, `stop` | exit codes and signals |

mod args;
mod config;
mod demo;
mod energy;
mod exit;
mod get;
mod list;
mod logging;
mod meter;
mod output;
mod pages;
mod progress;
mod resolve;
mod route;
mod stop;
mod values;

use std::process::ExitCode;

use args::Command;
use config::{Refusal, Surroundings};

/// Reads `text` as the file of settings of `get`.
#[cfg(fuzzing)]
pub fn fuzz_settings(text: &str) {
    let typed = ["pelton", "get", "http://h/f"].map(std::ffi::OsString::from);
    let file = Some(("config.toml".into(), text.to_owned()));
    let _ = config::parse(&typed, || Ok(Surroundings { variable: Box::new(|_| None), file }));
}

/// More files and sockets at once: what is allowed to begin with is meant for programs that count them
/// in a byte.
#[cfg(unix)]
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, the run has fewer at once.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(not(unix))]
fn raise_descriptors() {}

/// Who types a URL where a command belongs wants it downloaded.
fn with_hint(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && word.contains("://")
    {
        let hint = format!("to download it: pelton get '{word}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

fn main() -> ExitCode {
    raise_descriptors();
    let typed: Vec<_> = std::env::args_os().collect();
    let cli = match config::parse(&typed, Surroundings::of_process) {
        Ok(cli) => cli,
        Err(Refusal::Clap(error)) => with_hint(*error).exit(),
        Err(Refusal::Setting(error)) => return exit::fail(&error),
    };
    let result = match cli.command {
        Command::Get(args) => get::run(&args),
        Command::List(args) => list::run(&args),
        Command::Meter(args) => meter::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions { shell } => pages::completions(shell),
        Command::Man { command } => pages::man(command.as_deref()),
    };
    result.unwrap_or_else(|error| exit::fail(&error))
}
