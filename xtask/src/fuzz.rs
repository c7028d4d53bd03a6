//! Fuzzing with libFuzzer, on the stable compiler: what it needs of instrumentation are flags of LLVM.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::{cargo, note, run as step};

/// Inline counters at every edge, and what is compared with what.
const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";
const DEFAULT_SECONDS: u64 = 60;

/// Fuzzes each of the named targets, all if none is named, for a while.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let (seconds, named) = match arguments {
        ["--seconds", seconds, named @ ..] => {
            (seconds.parse().context("--seconds needs a number")?, named)
        }
        named => (DEFAULT_SECONDS, named),
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = &here.parent().unwrap_or(here).join("fuzz");
    let known = targets(folder)?;
    if let Some(unknown) = named.iter().find(|name| !known.iter().any(|known| known == *name)) {
        bail!("there is no fuzz target {unknown}; known are {}", known.join(", "));
    }
    let host = host()?;
    let build = ["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host];
    let target = folder.join("target");
    // With a target of their own the flags do not reach build scripts.
    let mut build = cargo(&build);
    build.env("RUSTFLAGS", INSTRUMENTATION).env("CARGO_TARGET_DIR", &target);
    step("fuzz targets", &mut build)?;
    let programs = target.join(&host).join("release");
    for name in known.iter().filter(|name| named.is_empty() || named.contains(&name.as_str())) {
        let corpus = folder.join("corpus").join(name);
        let artifacts = folder.join("artifacts").join(name);
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&artifacts)?;
        let mut fuzz = Command::new(programs.join(name));
        fuzz.arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args(["-rss_limit_mb=1024", "-timeout=10", "-print_final_stats=1", "-verbosity=0"])
            .arg(&corpus)
            .arg(folder.join("seeds").join(name));
        step(&format!("fuzzing {name} for {seconds} s"), &mut fuzz)?;
    }
    note("fuzzing: no crash, no hang, no leak of memory");
    Ok(())
}

/// The names of the targets, which are those of their files.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let files = fs::read_dir(folder.join("targets"))?;
    let paths = files.map(|file| Ok(file?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let stems = paths.iter().filter_map(|path| path.file_stem()?.to_str());
    let mut names: Vec<String> = stems.map(str::to_owned).collect();
    names.sort();
    Ok(names)
}

fn host() -> Result<String> {
    let version = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(version.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}
