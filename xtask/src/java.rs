//! The Java and Kotlin libraries, which Maven builds and tests.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::step::{note, root, run};

/// Tests the Java and Kotlin libraries, assembles the Android archive without its native libraries, and
/// builds the example from what was installed. Without Maven and a JDK it only says so.
pub(crate) fn test() -> Result<()> {
    if !["mvn", "javac"].into_iter().all(is_there) {
        note("Java: skipped, mvn or javac is missing: apt-get install maven default-jdk-headless");
        return Ok(());
    }
    let mut build = maven(&root().join("bindings/java"));
    build.args(["install", "-Pandroid", "-Dandroid.without.libraries=true"]);
    // Optimised it would take minutes to compile.
    build.args(["-Dcargo.profile=dev", "-Dcargo.folder=debug"]);
    run("Java: library, Kotlin, archive for Android", &mut build)?;
    example()
}

/// Builds the example outside the tree, where it has nothing but what was installed.
fn example() -> Result<()> {
    const FILES: [&str; 2] = ["pom.xml", "src/main/java/example/Download.java"];
    let outside = std::env::temp_dir().join(format!("pelton-example-{}", std::process::id()));
    for file in FILES {
        let copy = outside.join(file);
        fs::create_dir_all(copy.parent().unwrap_or(&outside))?;
        fs::copy(root().join("examples/java").join(file), copy)?;
    }
    let built = run("Java: the example outside the tree", maven(&outside).arg("compile"));
    fs::remove_dir_all(&outside)?;
    built
}

fn maven(folder: &Path) -> Command {
    let mut command = Command::new("mvn");
    command.args(["--batch-mode", "--no-transfer-progress", "--quiet"]);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
