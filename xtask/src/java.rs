//! The Java and Kotlin libraries, which Maven builds and tests.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::step::{cargo, note, run};

/// Tests the Java and Kotlin libraries, assembles the Android archive without its native libraries, and
/// builds the example from what was installed. Without Maven and a JDK it only says so.
pub(crate) fn test() -> Result<()> {
    if !["mvn", "javac"].into_iter().all(is_there) {
        note("Java: skipped, mvn or javac is missing: apt-get install maven default-jdk-headless");
        return Ok(());
    }
    let mut build = maven("bindings/java");
    // The library that is tested was compiled as the other tests are, which takes a fraction of the time.
    build.args(["-Dcargo.profile=dev", "-Dcargo.folder=debug"]);
    build.args(["install", "-Pandroid", "-Dandroid.without.libraries=true"]);
    run("Java: library, Kotlin, archive for Android", &mut build)?;
    let mut example = maven("examples/java");
    // Outside the tree: whatever the build leaves goes with the other artefacts.
    run("Java: the example, from what is installed", example.arg("compile"))
}

/// Maven in a folder of the workspace, with a repository of the workspace's own.
fn maven(folder: &str) -> Command {
    let workspace = cargo(&[]).get_current_dir().unwrap_or(Path::new(".")).to_owned();
    let mut command = Command::new("mvn");
    command.args(["--batch-mode", "--no-transfer-progress", "--quiet"]);
    command.current_dir(workspace.join(folder)).stdin(Stdio::null());
    command
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
