//! How many instructions some work takes, under valgrind, against what it took when the counts were
//! last accepted. Unlike times they are the same on a busy machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::install::target;
use crate::none_of;
use crate::step::{cargo, note, output, root, run};
use crate::tools;

/// The accepted counts, and the compiler and architecture that they are of.
const ACCEPTED: &str = "crates/instructions/counts.json";
const PACKAGE: &str = "pelton-instructions";
/// Memory is laid out at random, and hash tables are seeded so: below this a difference may be chance.
const TOLERANCE: f64 = 0.05;

/// Instructions by the name of the work.
type Counts = BTreeMap<String, u64>;

/// Counts, and fails where more than 5 % came on top of what was accepted.
pub(crate) fn check() -> Result<()> {
    if !tools::have(&["valgrind"]) {
        note("instructions: skipped, valgrind is not installed");
        return Ok(());
    }
    let text = fs::read_to_string(file()).with_context(|| ACCEPTED)?;
    let accepted: Value = serde_json::from_str(&text).with_context(|| ACCEPTED)?;
    let before: Counts =
        serde_json::from_value(accepted["counts"].clone()).with_context(|| ACCEPTED)?;
    let now = count()?;
    let machine = machine()?;
    let is_comparable = machine.iter().all(|(key, value)| accepted[key] == **value);
    let Comparison { lines, faults } = compare(&before, &now, is_comparable);
    print!("{lines}");
    if !is_comparable {
        let [rustc, architecture] = ["rustc", "architecture"].map(|key| &accepted[key]);
        note(&format!("not compared: the accepted counts are of rustc {rustc} for {architecture}"));
    }
    none_of(&faults)
}

/// Counts, and takes what comes out for what it has to be.
pub(crate) fn accept() -> Result<()> {
    let counts = count()?;
    print!("{}", compare(&Counts::new(), &counts, false).lines);
    let mut accepted = json!({ "counts": counts });
    for (key, value) in machine()? {
        accepted[key] = value.into();
    }
    fs::write(file(), format!("{accepted:#}\n")).with_context(|| ACCEPTED)
}

fn file() -> PathBuf {
    root().join(ACCEPTED)
}

/// What counts depend on besides the code.
fn machine() -> Result<[(&'static str, String); 2]> {
    let version = output(Command::new("rustc").arg("-vV").current_dir(root()))?;
    let release = version.lines().find_map(|line| line.strip_prefix("release: "));
    let release = release.context("rustc does not tell its release")?;
    Ok([("rustc", release.to_owned()), ("architecture", std::env::consts::ARCH.to_owned())])
}

fn count() -> Result<Counts> {
    let build = ["build", "--release", "--package", PACKAGE];
    run("what is counted", &mut cargo(&build))?;
    let program = target()?.join("release").join(PACKAGE);
    let names = output(&mut Command::new(&program))?;
    note("instructions, by valgrind");
    names.lines().map(|name| Ok((name.to_owned(), count_one(&program, name)?))).collect()
}

/// Cachegrind without its caches is the cheapest tool that counts.
fn count_one(program: &Path, name: &str) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .arg(name);
    let ran = valgrind.output().context("valgrind does not start")?;
    let said = String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        bail!("{name}: valgrind failed, {}\n{said}", ran.status);
    }
    total(&said).with_context(|| format!("{name}: valgrind told no count:\n{said}"))
}

/// The number of `==1234== I   refs:      12,345,678`.
fn total(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("refs:") && line.contains(" I "))?;
    line.rsplit(' ').next()?.replace(',', "").parse().ok()
}

/// Counts beside those that were accepted.
struct Comparison {
    /// One for each work, for people.
    lines: String,
    /// What must not be.
    faults: Vec<String>,
}

fn compare(before: &Counts, now: &Counts, is_comparable: bool) -> Comparison {
    let (mut lines, mut faults) = (String::new(), Vec::new());
    for (name, &count) in now {
        let _ = write!(lines, "    {name}: {count}");
        match before.get(name) {
            _ if !is_comparable => {}
            None => faults.push(format!("{name}: {count} instructions were never {ACCEPT}")),
            Some(&was) => {
                let change = count as f64 / was as f64 - 1.0;
                let _ = write!(lines, ", accepted were {was} ({:+.1} %)", change * 100.0);
                if change > TOLERANCE {
                    faults.push(format!(
                        "{name}: {count} instructions, {:.1} % more than the {was} of before: \
                         mend it, or have it {ACCEPT}",
                        change * 100.0
                    ));
                } else if change < -TOLERANCE {
                    let _ = write!(lines, ": fewer, have it {ACCEPT}");
                }
            }
        }
        lines.push('\n');
    }
    Comparison { lines, faults }
}

/// How counts are accepted.
const ACCEPT: &str = "accepted with `cargo xtask instructions --accept`";

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(named: &[(&str, u64)]) -> Counts {
        named.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn the_count_is_found_in_what_valgrind_says() {
        let said = "==7== Cachegrind, a cache and branch-prediction profiler\n\
            ==7== Command: target/release/pelton-instructions I refs\n\
            ==7== \n==7== I   refs:      1,012,345,678\n";
        assert_eq!(total(said), Some(1_012_345_678));
        assert_eq!(total("==7== I refs:        42\n"), Some(42), "as newer versions say it");
        assert_eq!(total("==7== Command: x\n"), None);
    }

    #[test]
    fn more_than_five_percent_on_top_fail() {
        let before = counts(&[("fewer", 1_000), ("more", 1_000), ("slightly", 1_000)]);
        let now = counts(&[("fewer", 940), ("more", 1_051), ("slightly", 1_049)]);
        let Comparison { lines, faults } = compare(&before, &now, true);
        assert_eq!(faults.len(), 1, "{faults:?}");
        for part in ["more: 1051", "5.1 % more", "1000", "instructions --accept"] {
            assert!(faults[0].contains(part), "{faults:?}");
        }
        assert!(lines.contains("fewer: 940, accepted were 1000 (-6.0 %): fewer, have it accepted"));
    }

    #[test]
    fn new_work_fails_until_its_count_is_there() {
        let faults = compare(&Counts::new(), &counts(&[("new", 5)]), true).faults;
        assert!(faults[0].contains("new: 5 instructions were never accepted"), "{faults:?}");
    }

    #[test]
    fn counts_of_another_compiler_are_shown_alone() {
        let Comparison { lines, faults } =
            compare(&counts(&[("a", 1)]), &counts(&[("a", 9)]), false);
        assert_eq!((lines.as_str(), faults.len()), ("    a: 9\n", 0));
    }
}
