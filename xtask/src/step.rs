//! Running one command after the other, each under a line that says what it is.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// A cargo command in the root of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    // Set by the cargo that runs xtask: the same toolchain serves every step.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workspace()).stdin(Stdio::null());
    command
}

/// The root of the workspace.
pub(crate) fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Whether `cargo NAME` exists.
pub(crate) fn has_cargo_command(name: &str) -> bool {
    let mut command = cargo(&[name, "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Prints one line about the progress.
pub(crate) fn note(line: &str) {
    println!("==> {line}");
}

/// Runs `command` to its end and fails when it does.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<()> {
    let line = shown(command);
    note(&format!("{name}: {line}"));
    let began = Instant::now();
    let status = command.status().with_context(|| format!("`{line}` did not start"))?;
    if !status.success() {
        bail!("{name}: `{line}` failed, {status}");
    }
    println!("    done in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Runs `command` and gives what it wrote to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{line}` did not start"))?;
    if !output.status.success() {
        bail!("`{line}` failed, {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` wrote no UTF-8"))
}

/// The command as a person would type it.
fn shown(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    std::iter::once(program.to_string_lossy()).chain(arguments).collect::<Vec<_>>().join(" ")
}
