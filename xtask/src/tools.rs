//! Programs that end-to-end tests compare pelton with or download from.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::none_of;
use crate::step::note;

/// Each program, and the Debian package that has it.
const NEEDED: [(&str, &str); 14] = [
    ("nginx", "nginx-light"),
    ("curl", "curl"),
    ("wget", "wget"),
    ("python3", "python3"),
    ("openssl", "openssl"),
    ("aria2c", "aria2"),
    ("axel", "axel"),
    ("ip", "iproute2"),
    ("c++", "g++"),
    ("cmake", "cmake"),
    ("pkg-config", "pkg-config"),
    ("valgrind", "valgrind"),
    ("mvn", "maven"),
    ("javac", "default-jdk-headless"),
];

/// Names the missing programs. It fails when they are `required`; otherwise the tests that need
/// one skip themselves.
pub(crate) fn check(required: bool) -> Result<()> {
    note("tools for the end-to-end tests");
    let directories = directories();
    let missing: Vec<String> = NEEDED
        .iter()
        .filter(|(program, _)| !directories.iter().any(|dir| dir.join(program).is_file()))
        .map(|(program, package)| format!("{program} is missing: apt-get install {package}"))
        .collect();
    if required {
        return none_of(&missing);
    }
    for line in missing {
        println!("    {line}; the tests that need it are skipped");
    }
    Ok(())
}

/// Whether every one of `programs` is there.
pub(crate) fn have(programs: &[&str]) -> bool {
    let directories = directories();
    programs.iter().all(|program| directories.iter().any(|dir| dir.join(program).is_file()))
}

/// `PATH`, and where Debian keeps nginx, which is not on every user's `PATH`.
fn directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned()]).collect()
}
