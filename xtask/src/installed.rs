//! What `cargo xtask install` puts down works for programs that know nothing of this tree.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::install::{self, Plan};
use crate::step::{note, output, root, run};
use crate::{none_of, tools};

/// Programs that the check needs.
const TOOLS: [&str; 6] = ["cmake", "pkg-config", "cc", "c++", "nm", "python3"];

/// Each example, and the program that it builds.
const EXAMPLES: [(&str, &str); 2] = [("examples/c", "download"), ("examples/cpp", "download")];

/// A listing that the examples download, below the prefix.
const LIST: &str = "share/man/man1";

/// Installs, looks at what the library exports, builds the examples elsewhere and runs them.
pub(crate) fn check(require_tools: bool) -> Result<()> {
    if !cfg!(target_os = "linux") || !require_tools && !tools::have(&TOOLS) {
        note("the installed C library: skipped, it needs Linux, cmake, pkg-config and a compiler");
        return Ok(());
    }
    let prefix = root().join("target/installed");
    let _ = fs::remove_dir_all(&prefix);
    install::install(&Plan { prefix: prefix.clone(), destdir: None, debug: true })?;
    check_symbols(&prefix.join("lib/libpelton.so"))?;
    let elsewhere = Elsewhere::new()?;
    let server = Server::start(&prefix)?;
    for (example, program) in EXAMPLES {
        let copy = elsewhere.0.join(Path::new(example).file_name().unwrap_or_default());
        output(Command::new("cp").arg("-r").arg(root().join(example)).arg(&copy))?;
        let built = built_by_cmake(&prefix, &copy)?.join(program);
        downloads(&built, &server, &prefix, &copy.join("out"))?;
    }
    let built = linked_statically(&prefix, &elsewhere.0)?;
    downloads(&built, &server, &prefix, &elsewhere.0.join("out"))
}

/// The library exports what it is known to export. The Java binding's functions may be there too, when
/// it was built last, and in a debug build one for the tests.
fn check_symbols(library: &Path) -> Result<()> {
    note("exported symbols, and the SONAME");
    let listed = output(Command::new("nm").args(["-D", "--defined-only"]).arg(library))?;
    let names = listed.lines().filter_map(|line| line.split_whitespace().nth(2));
    let found: BTreeSet<&str> = names.filter(|name| !is_java(name) && *name != FOR_TESTS).collect();
    let golden = fs::read_to_string(root().join("crates/ffi/symbols.txt"))?;
    let golden: BTreeSet<&str> = golden.lines().collect();
    let gone = golden.difference(&found).map(|name| format!("{name} is no longer exported"));
    let new = found.difference(&golden).map(|name| {
        format!("{name} is exported: if it shall be, add it to crates/ffi/symbols.txt")
    });
    none_of(&gone.chain(new).collect::<Vec<_>>())?;
    let dynamic = output(Command::new("readelf").arg("-d").arg(library))?;
    let soname = format!("[libpelton.so.{}]", env!("CARGO_PKG_VERSION_MAJOR"));
    if !dynamic.contains(&soname) {
        bail!("{} has another SONAME than {soname}:\n{dynamic}", library.display());
    }
    Ok(())
}

const FOR_TESTS: &str = "pelton_panic_for_tests";

fn is_java(name: &str) -> bool {
    name.starts_with("Java_") || name.starts_with("JNI_")
}

/// Builds what is in `source` with cmake, which finds pelton through pkg-config. Gives the directory
/// of the program.
fn built_by_cmake(prefix: &Path, source: &Path) -> Result<PathBuf> {
    let build = source.join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(source).arg("-B").arg(&build);
    configure.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).stdout(Stdio::null());
    run("an example outside the tree", &mut configure)?;
    run("its build", Command::new("cmake").arg("--build").arg(&build).stdout(Stdio::null()))?;
    Ok(build)
}

/// Links the C example with the static library and what pelton.pc says that needs.
fn linked_statically(prefix: &Path, directory: &Path) -> Result<PathBuf> {
    let flags = output(
        Command::new("pkg-config")
            .args(["--static", "--cflags", "--libs", "pelton"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    )?;
    let flags = flags.split_whitespace().map(|flag| match flag {
        // Both libraries are there, and the linker would prefer the shared one.
        "-lpelton" => "-l:libpelton.a",
        other => other,
    });
    let built = directory.join("static");
    let mut link = Command::new("cc");
    link.arg(directory.join("c/download.c")).args(flags).arg("-o").arg(&built);
    run("the C example, linked statically", &mut link)?;
    Ok(built)
}

/// That `program` downloads the listing whole.
fn downloads(program: &Path, server: &Server, prefix: &Path, into: &Path) -> Result<()> {
    let mut download = Command::new(program);
    download.arg(into).arg(format!("http://127.0.0.1:{}/{LIST}/", server.port));
    // The server is here.
    download.env("no_proxy", "*").stdout(Stdio::null());
    run("a download by it", &mut download)?;
    output(Command::new("diff").arg("-r").arg(prefix.join(LIST)).arg(into))?;
    Ok(())
}

/// A directory outside the tree that goes with this.
struct Elsewhere(PathBuf);

impl Elsewhere {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("pelton-installed-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Python's file server, which ends with this.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(directory: &Path) -> Result<Self> {
        let mut process = Command::new("python3")
            .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory"])
            .arg(directory)
            .arg("0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("python3 did not start")?;
        let mut greeting = String::new();
        let says = process.stdout.take().context("python3 has no output")?;
        BufReader::new(says).read_line(&mut greeting)?;
        let port = greeting.split(" port ").nth(1).and_then(|rest| rest.split(' ').next());
        let port = port.and_then(|port| port.parse().ok());
        let mut server = Self { process, port: 0 };
        server.port = port.with_context(|| format!("python3 names no port: {greeting}"))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
