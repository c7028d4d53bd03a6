//! Rules about dependencies that the compiler does not check.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::none_of;
use crate::step::{cargo, note, output};

/// Each of our libraries, and which of ours it may depend on: the arrows point one way.
const DIRECTIONS: [(&str, &[&str]); 6] = [
    ("pelton-algos", &[]),
    ("pelton-power", &["pelton-algos"]),
    ("pelton-core", &["pelton-algos", "pelton-power"]),
    ("pelton", &["pelton-algos", "pelton-power", "pelton-core"]),
    ("pelton-lab", &["pelton-algos", "pelton-power", "pelton-core"]),
    ("pelton-ffi", &["pelton-algos", "pelton-power", "pelton-core", "pelton"]),
];

/// What code that only decides has no use for.
const NO_IO: [&str; 6] = ["tokio", "h2", "hyper", "reqwest", "mio", "socket2"];

/// Libraries whose code is pure: nothing of [`NO_IO`] below them.
const PURE: [&str; 2] = ["pelton-algos", "pelton-power"];

/// Each of our libraries depends only on what it may.
pub(crate) fn check_directions() -> Result<()> {
    note("directions of dependencies");
    let mut faults = Vec::new();
    for (package, allowed) in DIRECTIONS {
        faults.extend(forbidden(package, allowed, &normal_dependencies(package)?));
    }
    none_of(&faults)
}

/// One line for each of the dependencies `below` that `package` must not have.
fn forbidden(package: &str, allowed: &[&str], below: &BTreeSet<String>) -> Vec<String> {
    let ours = |name: &&String| *name == "pelton" || name.starts_with("pelton-");
    let does_io = |name: &&String| PURE.contains(&package) && NO_IO.contains(&name.as_str());
    let wrong_way = below.iter().filter(ours).filter(|name| !allowed.contains(&name.as_str()));
    let impure = below.iter().filter(does_io);
    wrong_way
        .map(|name| format!("{package} must not depend on {name}: dependencies point one way"))
        .chain(impure.map(|name| format!("{package} must not depend on {name}: it does no I/O")))
        .collect()
}

/// The names of everything that `package` links, however deep, itself left out.
fn normal_dependencies(package: &str) -> Result<BTreeSet<String>> {
    let tree =
        ["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let lines = output(&mut cargo(&tree))?;
    let names = lines.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| *name != package).map(str::to_owned).collect())
}

/// Every package declares the oldest Rust that it builds with.
pub(crate) fn check_rust_version() -> Result<()> {
    note("declared Rust version");
    let metadata = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    if metadata.contains(r#""rust_version":null"#) {
        none_of(&["a package lacks `rust-version.workspace = true` in its Cargo.toml".to_owned()])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(package: &str, allowed: &[&str], below: &[&str]) -> usize {
        forbidden(package, allowed, &below.iter().map(|&name| name.to_owned()).collect()).len()
    }

    #[test]
    fn arrows_that_point_back_are_faults() {
        assert_eq!(faults("pelton-power", &["pelton-algos"], &["pelton-algos", "rustix"]), 0);
        assert_eq!(faults("pelton-power", &["pelton-algos"], &["pelton-algos", "pelton-core"]), 1);
        assert_eq!(faults("pelton-core", &["pelton-algos"], &["pelton", "pelton-lab"]), 2);
    }

    #[test]
    fn only_pure_libraries_go_without_io() {
        assert_eq!(faults("pelton-algos", &[], &["mio", "tokio"]), 2);
        assert_eq!(faults("pelton-core", &[], &["mio", "tokio"]), 0);
    }
}
