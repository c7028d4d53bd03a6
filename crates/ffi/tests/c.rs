//! The C ABI from C: the cases of `tests/c`, plain, under `AddressSanitizer` and under valgrind.
//!
//! `cargo test -p pelton-ffi --test c`; `PELTON_C_MODES=plain` for one mode alone.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use pelton::algos::units::BitRate;
use pelton::{Digest, DigestAlgorithm};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{RawRequest, Reply, Scripted};
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig, Storm};
use tempfile::TempDir;

/// Longer than any case takes: one that is not over by then hangs.
const PATIENCE: Duration = Duration::from_secs(300);

const WARNINGS: [&str; 6] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"];

/// How a case is run.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    Plain,
    /// Compiled with `AddressSanitizer`, `LeakSanitizer` and `UndefinedBehaviorSanitizer`.
    Asan,
    Valgrind,
}

impl Mode {
    const ALL: [(Self, &str); 3] =
        [(Self::Plain, "plain"), (Self::Asan, "asan"), (Self::Valgrind, "valgrind")];
}

#[test]
fn the_header_is_c_and_cpp() {
    for (compiler, language, standard) in
        [("cc", "c", "c99"), ("cc", "c", "c17"), ("c++", "c++", "c++11"), ("c++", "c++", "c++20")]
    {
        if !has(compiler, "g++") {
            continue;
        }
        let mut command = Command::new(compiler);
        command.args(["-fsyntax-only", "-x", language, &format!("-std={standard}")]).args(WARNINGS);
        let output = command.arg(crate_dir().join("include/pelton.h")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // A header that is compiled alone is told so.
        assert!(output.status.success() || said.contains("pragma once"), "{standard}: {said}");
    }
}

macro_rules! cases {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*
    };
}

cases! {
    basics event_fd two_clients fork errors timeout tls local_errors nulls struct_sizes bad_values
    cancel_points cancel_sweep free_sweep pause_and_limits
    callbacks callback_commands callback_threads meter pipe
}

#[test]
fn download() {
    for out in run("download") {
        for file in set() {
            let name = file.path.trim_start_matches("/set/");
            for directory in ["listing", "manifest"] {
                let found = fs::read(out.path().join(directory).join(name)).unwrap();
                assert!(found == file.bytes(0..file.size), "{directory}/{name}");
            }
        }
    }
}

#[test]
fn descriptors() {
    for out in run("descriptors") {
        for (name, file) in ["one", "two"].iter().zip(set()) {
            let found = fs::read(out.path().join(name)).unwrap();
            assert!(found == file.bytes(0..file.size), "{name}");
        }
    }
}

/// Runs a case in every mode. Gives the directories that it wrote to.
fn run(case: &str) -> Vec<TempDir> {
    let chosen = std::env::var("PELTON_C_MODES").ok();
    let is_chosen =
        |name: &str| chosen.as_ref().is_none_or(|it| it.split(',').any(|it| it == name));
    let modes = Mode::ALL.into_iter().filter(|(_, name)| is_chosen(name)).map(|(mode, _)| mode);
    modes.filter_map(|mode| run_in(mode, case)).collect()
}

fn run_in(mode: Mode, case: &str) -> Option<TempDir> {
    // valgrind does not see that the assembly of ring writes what it encrypts.
    let is_blind = mode == Mode::Valgrind && case == "tls";
    if is_blind
        || !has("cc", "build-essential")
        || mode == Mode::Valgrind && !has("valgrind", "valgrind")
    {
        return None;
    }
    let built = built();
    let out = tempfile::tempdir().unwrap();
    let mut command = match mode {
        Mode::Valgrind => {
            let mut command = Command::new("valgrind");
            command.args([
                "--quiet",
                "--error-exitcode=99",
                "--leak-check=full",
                "--fair-sched=yes",
            ]);
            command.args(["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]);
            command.arg(built.path().join("suite"));
            command.env("FEW", "1");
            command
        }
        Mode::Asan => Command::new(built.path().join("suite-asan")),
        Mode::Plain => Command::new(built.path().join("suite")),
    };
    command.arg(case).env("OUT", out.path()).envs(servers().settings.iter().cloned());
    command.env("ASAN_OPTIONS", "detect_stack_use_after_return=1").stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (ended, end) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        let _ = stderr.read_to_string(&mut said);
        let _ = ended.send(());
        said
    });
    let hangs = end.recv_timeout(PATIENCE).is_err();
    if hangs {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    let said = reader.join().unwrap();
    assert!(status.success() && !hangs, "{case}, {mode:?}: {status}, hangs: {hangs}\n{said}");
    Some(out)
}

/// The programs, and the library under the names by which they find it.
fn built() -> &'static TempDir {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    BUILT.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let library = library();
        for name in ["libpelton.so", "libpelton.so.0"] {
            symlink(&library, directory.path().join(name)).unwrap();
        }
        compile(directory.path(), "suite", &[]);
        compile(directory.path(), "suite-asan", &["-fsanitize=address,undefined"]);
        directory
    })
}

/// What cargo built beside this test.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    here.parent().unwrap().join("libpelton_ffi.so").canonicalize().unwrap()
}

fn compile(directory: &Path, name: &str, flags: &[&str]) {
    let sources = fs::read_dir(crate_dir().join("tests/c")).unwrap();
    let sources = sources.map(|entry| entry.unwrap().path());
    let output = Command::new("cc")
        .args(["-std=gnu11", "-pthread"])
        .args(WARNINGS)
        .args(flags)
        .arg("-I")
        .arg(crate_dir().join("include"))
        .args(sources.filter(|path| path.extension().is_some_and(|it| it == "c")))
        .arg("-L")
        .arg(directory)
        .arg("-lpelton")
        .arg(format!("-Wl,-rpath,{}", directory.display()))
        .arg("-o")
        .arg(directory.join(name))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether `program` runs. Without it a test passes, unless `PELTON_REQUIRE_TOOLS` is 1.
fn has(program: &str, package: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let runs = command.status().is_ok_and(|status| status.success());
    if !runs {
        let message = format!("{program} is missing: install the Debian package {package}");
        assert!(std::env::var_os("PELTON_REQUIRE_TOOLS").is_none_or(|it| it != "1"), "{message}");
        eprintln!("skipped: {message}");
    }
    runs
}

/// What the cases download from, and the variables that tell them where it is.
struct Servers {
    settings: Vec<(&'static str, String)>,
    _origins: (Origin, Origin, Scripted, TempDir),
}

/// Files with a listing.
fn set() -> [VirtualFile; 4] {
    [
        VirtualFile::new("/set/a.bin", 300_000, 1),
        VirtualFile::new("/set/b.bin", 40_000, 2),
        VirtualFile::new("/set/c.bin", 1, 3),
        VirtualFile::new("/set/deep/d.bin", 70_000, 4),
    ]
}

fn servers() -> &'static Servers {
    static SERVERS: OnceLock<Servers> = OnceLock::new();
    SERVERS.get_or_init(|| {
        let good = good_origin();
        let bad = Scripted::start(badly).unwrap();
        let files = vec![VirtualFile::new("/f", 1000, 1)];
        let tls =
            Origin::start(OriginConfig { files, tls: true, ..OriginConfig::default() }).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let authority = directory.path().join("ca.pem");
        fs::write(&authority, tls.certificate_pem().unwrap()).unwrap();
        let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let origin = |url: String| url.trim_end_matches('/').to_owned();
        let settings = vec![
            ("VERSION", env!("CARGO_PKG_VERSION").to_owned()),
            ("GOOD", origin(good.url("/"))),
            ("BAD", origin(bad.url("/"))),
            ("TLS", origin(tls.url("/"))),
            ("NOBODY", format!("http://{nobody}")),
            ("CA", authority.display().to_string()),
            ("A_SIZE", set()[0].size.to_string()),
            ("MANIFEST", manifest(&set())),
            (
                "ONE_DIGEST",
                format!("{}\n checksum={}\n", good.url("/set/a.bin"), digest(&set()[0])),
            ),
            (
                "WRONG_DIGEST",
                format!("{}\n checksum={}\n", good.url("/set/a.bin"), digest(&set()[1])),
            ),
        ];
        Servers { settings, _origins: (good, tls, bad, directory) }
    })
}

fn good_origin() -> Origin {
    let slowly = |mbit| OriginBehaviour {
        rate_per_connection: Some(BitRate::from_mbps(mbit)),
        ..OriginBehaviour::default()
    };
    let answering = |status: u16| {
        let storm = Storm { status, requests: u64::MAX, retry_after: None };
        let behaviour = OriginBehaviour { storm: Some(storm), ..OriginBehaviour::default() };
        (format!("/status/{status}"), behaviour)
    };
    let circle =
        OriginBehaviour { redirect_to: Some("/circle".to_owned()), ..OriginBehaviour::default() };
    let mut files = set().to_vec();
    files.push(VirtualFile::new("/other/a.bin", 1000, 9));
    for (path, size) in [("/slow", 50_000_000), ("/slow2", 50_000_000), ("/short-slow", 400_000)] {
        files.push(VirtualFile::new(path, size, 5));
    }
    let mut behaviour_by_path = vec![
        ("/circle".to_owned(), circle),
        ("/slow".to_owned(), slowly(8.0)),
        ("/slow2".to_owned(), slowly(8.0)),
        ("/short-slow".to_owned(), slowly(1.0)),
    ];
    behaviour_by_path.extend([401, 418, 500, 503].map(answering));
    Origin::start(OriginConfig { files, behaviour_by_path, ..OriginConfig::default() }).unwrap()
}

/// What no honest server does.
fn badly(request: &RawRequest) -> Reply {
    let page = "<html><title>Welcome</title><a href=\"x\">x</a></html>";
    match request.target() {
        "/hang" => Reply::status("200 OK").field("Content-Length", 1000).body("abc").hang(),
        "/short" => Reply::status("200 OK").field("Content-Length", 100).body("abc").close(),
        "/changing" => changing(request),
        "/reset" => Reply::raw("").reset(),
        "/page/" => Reply::status("200 OK")
            .field("Content-Type", "text/html")
            .field("Content-Length", page.len())
            .body(page),
        "/hang/" => Reply::raw("").hang(),
        _ => Reply::raw("SSH-2.0-OpenSSH_9.9\r\n").close(),
    }
}

/// Each answer is another version; that to the first request breaks off.
fn changing(request: &RawRequest) -> Reply {
    let version = VirtualFile::new("/f", 1_000_000, request.number as u64);
    let with_etag = |status| Reply::status(status).field("ETag", version.etag());
    let range = request.field("range").and_then(|field| {
        let (first, last) = field.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
    });
    let Some((first, last)) = range else {
        let head = with_etag("200 OK").field("Content-Length", version.size);
        return head.field("Accept-Ranges", "bytes").body(version.bytes(0..300_000)).close();
    };
    with_etag("206 Partial Content")
        .field("Content-Length", last - first + 1)
        .field("Content-Range", format!("bytes {first}-{last}/{}", version.size))
        .body(version.bytes(first..last + 1))
}

fn digest(file: &VirtualFile) -> String {
    Digest { algorithm: DigestAlgorithm::Sha256, value: file.sha256().to_vec() }.to_string()
}

fn manifest(files: &[VirtualFile]) -> String {
    let entry = |file: &VirtualFile| {
        let name = file.path.trim_start_matches("/set/");
        format!(
            r#"{{"url":"{name}","name":"{name}","size":{},"digest":"{}"}}"#,
            file.size,
            digest(file)
        )
    };
    format!(r#"{{"files":[{}]}}"#, files.iter().map(entry).collect::<Vec<_>>().join(","))
}
