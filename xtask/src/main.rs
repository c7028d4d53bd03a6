//! What CI and people both run: `cargo xtask lint`, `test`, `bench`, `soak`, `fuzz`, and what makes and
//! installs the C library.

mod android;
mod dependencies;
mod fuzz;
mod header;
mod install;
mod installed;
mod instructions;
mod java;
mod step;
mod tools;

use std::process::ExitCode;

use anyhow::{Result, bail};

use step::{cargo, has_cargo_command, note, run};

const USAGE: &str = "usage: cargo xtask COMMAND

  lint   formatting and clippy
  test   lint, every test, the documentation, and the rules about dependencies
  java   the Java part of test
  soak   20 000 small files and 10 GiB over 256 connections: nothing grows, every digest is right
  bench  the benchmarks: the pure decisions, whole transfers over loopback, and the C ABI
  instructions [--accept]
         count instructions under valgrind, and fail where 5 % came on top of what was accepted
  header [--check]
         write crates/ffi/include/pelton.h from the code, or see whether it is what that gives
  install --prefix DIR [--destdir DIR] [--debug]
         build and install libpelton, its header, the command, its pages and completions
  installed
         install to target/installed, and build and run the C and C++ examples with that
  android-check
         type-check the libraries for Android with Debian's compiler
  fuzz [--seconds N] [TARGET...]
         try every parser, or these, with what libFuzzer makes up";

/// The native half of the Java library is no part of what C programs link.
const JNI: &str = "--features=pelton-ffi/jni";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["lint"] => lint(),
        ["test"] => test(),
        ["java"] => java::test(),
        ["soak"] => soak(),
        ["bench"] => bench(),
        ["instructions"] => instructions::check(),
        ["instructions", "--accept"] => instructions::accept(),
        ["header"] => header::write(),
        ["header", "--check"] => header::check(),
        ["installed"] => installed::check(true),
        ["android-check"] => android::compiler().and_then(|compiler| android::check(&compiler)),
        ["install", ref options @ ..] => match install::Plan::parse(options) {
            Some(plan) => install::install(&plan),
            None => return usage(),
        },
        ["fuzz", ref rest @ ..] => fuzz::run(rest),
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn lint() -> Result<()> {
    run("formatting", &mut cargo(&["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--workspace", JNI, "--all-targets", "--", "-D", "warnings"];
    run("clippy", &mut cargo(&clippy))
}

fn test() -> Result<()> {
    let require_tools = in_ci();
    tools::check(require_tools)?;
    lint()?;

    let mut tests = cargo(&["test", "--workspace", JNI]);
    if require_tools {
        // An end-to-end test that misses its tool then fails instead of skipping itself.
        tests.env("PELTON_REQUIRE_TOOLS", "1");
    }
    run("tests: unit, property, end-to-end, documentation; examples build", &mut tests)?;

    java::test()?;

    let mut documentation = cargo(&["doc", "--workspace", JNI, "--no-deps"]);
    run("documentation", documentation.env("RUSTDOCFLAGS", "-D warnings"))?;

    header::check()?;
    installed::check(require_tools)?;
    if require_tools {
        instructions::check()?;
        check_android()?;
        fuzz::run(&["--seconds", "5"])?;
        quick_matrix()?;
    }
    dependencies::check_directions()?;
    dependencies::check_rust_version()?;
    if has_cargo_command("deny") {
        // The advisory database is fetched from the network, so it is no part of the tests.
        run(
            "licences, bans, sources",
            &mut cargo(&["deny", "check", "bans", "licenses", "sources"]),
        )
    } else {
        note("licences, bans, sources: skipped, cargo-deny is not installed");
        Ok(())
    }
}

/// The libraries for Android, where Debian's compiler can be had.
fn check_android() -> Result<()> {
    match android::compiler() {
        Ok(compiler) => android::check(&compiler),
        Err(error) => {
            note(&format!("type-checks for Android: skipped, {error:#}"));
            Ok(())
        }
    }
}

/// pelton against curl and aria2 on real packets, where this machine lets a process emulate links.
fn quick_matrix() -> Result<()> {
    let build = ["build", "--package", "pelton-cli", "--package", "pelton-lab"];
    run("the command and the lab", &mut cargo(&build))?;
    let lab = ["run", "--quiet", "--package", "pelton-lab", "--"];
    if cargo(&lab).arg("check").args(["--links", "20x60"]).status()?.success() {
        run("a matrix on real packets", cargo(&lab).args(["run", "--quick"]))
    } else {
        note("a matrix on real packets: skipped, this machine does not let it emulate links");
        Ok(())
    }
}

fn soak() -> Result<()> {
    let soak = ["bench", "--package", "pelton-cli", "--bench", "soak"];
    run("many files and many bytes, memory and descriptors", &mut cargo(&soak))
}

fn bench() -> Result<()> {
    run(
        "benchmarks of the decisions",
        &mut cargo(&["bench", "--package", "pelton-algos", "--bench", "decisions"]),
    )?;
    run(
        "benchmarks over loopback",
        &mut cargo(&["bench", "--package", "pelton-cli", "--bench", "loopback"]),
    )?;
    run(
        "benchmarks of the C ABI",
        &mut cargo(&["bench", "--package", "pelton-ffi", "--bench", "cpu"]),
    )
}

/// Whether a CI service runs this: they all set `CI`.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Fails with every line of `faults`, if there are any.
fn none_of(faults: &[String]) -> Result<()> {
    if !faults.is_empty() {
        bail!("{}", faults.join("\n       "));
    }
    Ok(())
}
