//! `cargo xtask android-check`: the libraries type-check for Android, without an NDK.
//!
//! rustup's targets need a download from it, and so does Android's standard library. Debian has a
//! compiler with the source of that library, from which cargo builds it. Nothing is linked and no C is
//! compiled, so it shows that the Rust code type-checks for Android, and not that it runs there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::{cargo, note, output, root, run};

const TARGET: &str = "aarch64-linux-android";

/// Debian's compiler and what it needs to run; each name is that of a package or, with `*`, the
/// beginning of the one that a package before it depends on.
const PACKAGES: [(&str, Option<&str>); 5] = [
    ("rustc-web", None),
    ("rust-web-src", None),
    ("libstd-rust-web-dev", None),
    ("libstd-rust-web-", Some("libstd-rust-web-dev")),
    ("libllvm", Some("libstd-rust-web-")),
];

/// Type-checks what applications link, with the Java binding.
pub(crate) fn check(compiler: &Compiler) -> Result<()> {
    let mut check = cargo(&["check", "-Zbuild-std=std,panic_unwind", "--target", TARGET]);
    check.args(["--package", "pelton", "--package", "pelton-ffi", "--features", "pelton-ffi/jni"]);
    check.env("RUSTC", &compiler.rustc).env("LD_LIBRARY_PATH", &compiler.libraries);
    // `-Z` on a stable cargo.
    check.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", scratch().join("target"));
    // C is not type-checked: what would compile it does nothing.
    check.env("CC_aarch64_linux_android", "/bin/true").env("AR_aarch64_linux_android", "/bin/true");
    run(&format!("type-checks for Android ({TARGET})"), &mut check)
}

/// An unpacked compiler that has the source of the standard library.
pub(crate) struct Compiler {
    rustc: PathBuf,
    libraries: PathBuf,
}

/// The compiler, downloaded if it is not there yet.
///
/// # Errors
/// This machine has no `apt-get`, or no packages of a new enough compiler.
pub(crate) fn compiler() -> Result<Compiler> {
    let unpacked = scratch().join("rust");
    if !unpacked.is_dir() {
        unpack(&unpacked).context(
            "Debian's packages rustc-web and rust-web-src can't be had (try `apt-get update`)",
        )?;
    }
    let (rustc, libraries) =
        (unpacked.join("usr/bin/rustc"), unpacked.join("usr/lib/x86_64-linux-gnu"));
    let compiler = Compiler { rustc, libraries };
    let says = Command::new(&compiler.rustc)
        .arg("--version")
        .env("LD_LIBRARY_PATH", &compiler.libraries)
        .output()
        .context("Debian's rustc does not run here")?;
    let says = String::from_utf8_lossy(&says.stdout).trim().to_owned();
    let needed = env!("CARGO_PKG_RUST_VERSION");
    if !is_enough(&says, needed) {
        bail!("Debian's compiler is {says:?}, and pelton needs Rust {needed}");
    }
    note(&format!("Android is checked with Debian's {says}"));
    Ok(compiler)
}

/// Downloads the packages and unpacks them.
fn unpack(to: &Path) -> Result<()> {
    let packages = scratch().join("packages");
    let _ = fs::remove_dir_all(&packages);
    fs::create_dir_all(&packages)?;
    let mut names: Vec<String> = Vec::new();
    for (name, needed_by) in PACKAGES {
        let name = match needed_by {
            None => name.to_owned(),
            Some(before) => {
                let dependent = names.iter().rfind(|name| name.starts_with(before));
                dependency(dependent.context("no such package")?, name)?
            }
        };
        names.push(name);
    }
    let mut download = Command::new("apt-get");
    run("Debian's compiler", download.arg("download").args(&names).current_dir(&packages))?;
    // Whole or not at all, so that an interrupted run leaves nothing that looks finished.
    let partial = scratch().join("unpacking");
    let _ = fs::remove_dir_all(&partial);
    for package in fs::read_dir(&packages)? {
        output(Command::new("dpkg-deb").arg("-x").arg(package?.path()).arg(&partial))?;
    }
    fs::rename(&partial, to)?;
    Ok(fs::remove_dir_all(&packages)?)
}

/// The package whose name begins so and on which `package` depends.
fn dependency(package: &str, beginning: &str) -> Result<String> {
    let says = output(Command::new("apt-cache").args(["depends", package]))?;
    let names = says.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let found = names.into_iter().find(|name| name.starts_with(beginning));
    found.map(str::to_owned).with_context(|| format!("{package} needs no {beginning}*"))
}

/// Whether `rustc 1.96.0 (…)` is `needed` or later.
fn is_enough(says: &str, needed: &str) -> bool {
    let version = |text: &str| {
        let mut numbers = text.split('.').map(|number| number.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    let found = says.split(' ').nth(1).and_then(version);
    found.is_some() && found >= version(needed)
}

fn scratch() -> PathBuf {
    root().join("target/android-check")
}

#[cfg(test)]
mod tests {
    use super::is_enough;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (says, enough) in [
            ("rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)", true),
            ("rustc 1.90.0", true),
            ("rustc 2.0.0", true),
            ("rustc 1.9.0", false),
            ("rustc 1.85.0+dfsg3", false),
            ("", false),
        ] {
            assert_eq!(is_enough(says, "1.90"), enough, "{says}");
        }
    }
}
