//! `cargo xtask install`: the libraries, the header, the command and its pages, where C programs and
//! shells look for them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::{cargo, note, output, root, run};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// As in the SONAME, which crates/ffi/build.rs sets.
const MAJOR: &str = env!("CARGO_PKG_VERSION_MAJOR");

/// What a program that links the static library needs besides: `rustc --print native-static-libs`.
const LIBS_PRIVATE: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// Commands of pelton that have a page of their own.
const PAGES: [&str; 4] = ["get", "list", "meter", "demo"];

/// Each shell and its completion file.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/pelton"),
    ("zsh", "share/zsh/site-functions/_pelton"),
    ("fish", "share/fish/vendor_completions.d/pelton.fish"),
];

/// What is installed where.
pub(crate) struct Plan {
    /// Where it will be when it is used, such as /usr/local.
    pub(crate) prefix: PathBuf,
    /// Where that is now, for packages; `None`: it is the root.
    pub(crate) destdir: Option<PathBuf>,
    /// As the tests are built.
    pub(crate) debug: bool,
}

impl Plan {
    /// Reads `--prefix DIR [--destdir DIR] [--debug]`.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut plan = Self { prefix: PathBuf::new(), destdir: None, debug: false };
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            match argument {
                "--prefix" => plan.prefix = arguments.next()?.into(),
                "--destdir" => plan.destdir = Some(arguments.next()?.into()),
                "--debug" => plan.debug = true,
                _ => return None,
            }
        }
        (!plan.prefix.as_os_str().is_empty()).then_some(plan)
    }

    /// Where a file of the prefix is put.
    fn place(&self, path: &str) -> PathBuf {
        let placed = self.prefix.join(path);
        match &self.destdir {
            Some(root) => root.join(placed.strip_prefix("/").unwrap_or(&placed)),
            None => placed,
        }
    }
}

/// Builds everything and installs it.
pub(crate) fn install(plan: &Plan) -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("install knows the names of shared libraries on Linux only");
    }
    if !plan.prefix.is_absolute() {
        bail!("--prefix {}: give an absolute path", plan.prefix.display());
    }
    let build: &[&str] = if plan.debug {
        // What `cargo test --workspace` has built: of fewer packages cargo would build it all anew, as
        // their dependencies have fewer features.
        &["build", "--workspace", "--all-targets"]
    } else {
        &["build", "--release", "--package", "pelton-cli", "--package", "pelton-ffi"]
    };
    run("the libraries and the command", &mut cargo(build))?;
    let out = target()?.join(if plan.debug { "debug" } else { "release" });
    libraries(plan, &out)?;
    pages(plan, &out.join("pelton"))?;
    note(&format!("installed below {}", plan.place("").display()));
    Ok(())
}

fn libraries(plan: &Plan, built: &Path) -> Result<()> {
    let shared = format!("libpelton.so.{VERSION}");
    copy(&built.join("libpelton_ffi.so"), &plan.place(&format!("lib/{shared}")), 0o755)?;
    for link in [format!("libpelton.so.{MAJOR}"), "libpelton.so".to_owned()] {
        let place = plan.place(&format!("lib/{link}"));
        // It may be another version's.
        let _ = fs::remove_file(&place);
        symlink(&shared, &place).with_context(|| place.display().to_string())?;
    }
    copy(&built.join("libpelton_ffi.a"), &plan.place("lib/libpelton.a"), 0o644)?;
    let ffi = root().join("crates/ffi");
    copy(&ffi.join("include/pelton.h"), &plan.place("include/pelton.h"), 0o644)?;
    let template = fs::read_to_string(ffi.join("pelton.pc.in"))?;
    let config = template
        .replace("@PREFIX@", &plan.prefix.display().to_string())
        .replace("@VERSION@", VERSION)
        .replace("@LIBS_PRIVATE@", LIBS_PRIVATE);
    write(&plan.place("lib/pkgconfig/pelton.pc"), &config)
}

fn pages(plan: &Plan, pelton: &Path) -> Result<()> {
    copy(pelton, &plan.place("bin/pelton"), 0o755)?;
    let print = |arguments: &[&str]| output(Command::new(pelton).args(arguments));
    write(&plan.place("share/man/man1/pelton.1"), &print(&["man"])?)?;
    for page in PAGES {
        let place = plan.place(&format!("share/man/man1/pelton-{page}.1"));
        write(&place, &print(&["man", page])?)?;
    }
    for (shell, place) in COMPLETIONS {
        write(&plan.place(place), &print(&["completions", shell])?)?;
    }
    Ok(())
}

/// Where cargo builds.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let target =
        metadata["target_directory"].as_str().context("cargo names no target directory")?;
    Ok(target.into())
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let shown = || format!("{} to {}", from.display(), to.display());
    fs::create_dir_all(to.parent().unwrap_or(to)).with_context(shown)?;
    // A program that runs from the old file keeps it.
    let _ = fs::remove_file(to);
    fs::copy(from, to).with_context(shown)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).with_context(shown)
}

fn write(to: &Path, text: &str) -> Result<()> {
    let shown = || to.display().to_string();
    fs::create_dir_all(to.parent().unwrap_or(to)).with_context(shown)?;
    fs::write(to, text).with_context(shown)
}
