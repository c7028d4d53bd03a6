//! `pelton-lab run` as people call it. Where the machine does not let a process emulate, or lacks
//! nginx, curl, aria2 or ip, each test says so and does nothing; a missing program is a failure where
//! `PELTON_REQUIRE_TOOLS` is set.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pelton_lab::bench::results::Results;
use pelton_lab::cells::Cells;
use pelton_lab::emulator::{Emulator, EmulatorConfig};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A link that is quick to test on, and one on which a client is still at work when it is ended.
const CELLS: &str = "
[links.near]
about = ''
down = { mbps = 40, delay_ms = 4, queue_kb = 100 }
up = { mbps = 40, delay_ms = 4, queue_kb = 100 }
[links.slow]
about = ''
down = { mbps = 0.1, delay_ms = 4, queue_kb = 100 }
up = { mbps = 0.1, delay_ms = 4, queue_kb = 100 }
[sets.few]
about = ''
groups = [{ name = 'few/page.html', files = 20, mean = 9000 }, { name = 'few/photo.jpg', files = 1, size = 900000 }]
";

/// One lab at a time: they share the machine's cores, and its list of allowed congestion controls.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn able() -> bool {
    let installed = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut dirs = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        dirs.any(|dir| dir.join(program).exists())
    };
    let missing: Vec<&str> = ["nginx", "curl", "aria2c", "ip"]
        .into_iter()
        .filter(|program| !installed(program))
        .collect();
    if !missing.is_empty() {
        let required = std::env::var_os("PELTON_REQUIRE_TOOLS").is_some();
        assert!(!required, "missing: {missing:?}");
        eprintln!("skipped: missing {missing:?}");
        return false;
    }
    let link = Cells::built_in().unwrap().link("20x30").unwrap().spec.clone();
    match Emulator::start(EmulatorConfig::new(link, 1)) {
        Err(error) if error.is_denied() => {
            eprintln!("skipped: {error}");
            false
        }
        _ => true,
    }
}

/// `pelton-lab run` with its files in `dir`.
fn lab(dir: &TempDir, arguments: &[&str]) -> Command {
    let cells = dir.path().join("cells.toml");
    fs::write(&cells, CELLS).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pelton-lab"));
    command.arg("run").arg("--cells").arg(cells).arg("--work").arg(dir.path());
    command.args(["--sets", "few"]).args(arguments);
    command
}

/// The processes that work in `dir`.
fn at_work_in(dir: &TempDir) -> Vec<String> {
    let place = dir.path().join("pelton-lab-").display().to_string();
    let command = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
    let commands = fs::read_dir("/proc").unwrap().filter_map(|entry| command(entry.unwrap()));
    commands.filter(|command| command.contains(&place)).collect()
}

fn workspaces(dir: &TempDir) -> usize {
    let entries = fs::read_dir(dir.path()).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    entries.map(name).filter(|name| name.to_string_lossy().starts_with("pelton-lab-")).count()
}

#[test]
fn a_matrix_is_measured_and_its_results_are_complete() {
    let _turn = turn();
    if !able() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results.json");
    let arguments = [
        "--links",
        "near",
        "--clients",
        "curl,curl-parallel-h2,curl-tls,aria2",
        "--jobs",
        "2",
        "--repeats",
        "2",
        "--out",
    ];
    let output = lab(&dir, &arguments).arg(&out).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let results: Results = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    assert_eq!(results.cells.len(), 4);
    for cell in &results.cells {
        assert_eq!((cell.runs.len(), cell.files, cell.bytes), (2, 21, 1_080_000), "{said}");
        for run in &cell.runs {
            assert!(run.seconds >= cell.floor_s, "{} took {}", cell.client, run.seconds);
            // Where the machine keeps the emulator from its work its queue overflows, and TCP sends again.
            let most = 1_300_000 + 1_500 * run.down.retransmitted;
            assert!(run.down.bytes > 1_080_000 && run.down.bytes < most, "{:?}", run.down);
            assert!(run.cpu_s > 0.0 && run.peak_rss > 1_000_000);
            let [wifi, lte] = ["wifi", "lte"].map(|radio| run.energy[radio].total());
            // 0.137 J a Mbit of at least 8.64 Mbit; LTE's tail alone is more than 10 J.
            assert!(wifi > 1.18 && wifi < 3.0 && lte > 10.0, "{:?}", run.energy);
        }
        assert!(cell.stats.unwrap().joules.median < 3.0, "the link's radio is Wi-Fi");
    }
    let connections = |index: usize| results.cells[index].runs[0].connections;
    assert_eq!((connections(0), connections(1), connections(2)), (1, 1, 1));
    assert!(connections(3) > 1);
    assert!(results.clients["curl"].starts_with("curl "));
    assert!(results.cells[2].command.contains(&"--cacert".to_owned()));
    assert_eq!(results.cells[0].command[..2], ["curl", "-sS"]);
    assert_eq!((results.jobs, results.repeats, results.command[1].as_str()), (2, 2, "run"));
    assert_eq!(workspaces(&dir), 0);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.lines().any(|line| line.starts_with("near  few  aria2")), "{table}");
}

#[test]
fn a_client_that_takes_too_long_is_ended_and_named() {
    let _turn = turn();
    if !able() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        ["--links", "slow", "--clients", "axel,curl", "--repeats", "1", "--timeout", "1"];
    let output = lab(&dir, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("slow, few, curl: failed 1 x: ended after 1 s"), "{said}{why}");
    assert_eq!((workspaces(&dir), at_work_in(&dir)), (0, Vec::new()));
}

/// Starts two runs that last, side by side, waits until their clients are at work, and sends the lab
/// `signal`.
fn signalled(dir: &TempDir, signal: Signal) -> Option<i32> {
    let arguments = ["--links", "slow", "--clients", "curl,curl-six", "--repeats", "1"];
    let mut lab = lab(dir, &arguments)
        .args(["--jobs", "2"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(lab.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("2/2: slow, few, curl")));
    let clients = || at_work_in(dir).iter().filter(|c| c.starts_with("curl")).count();
    until(|| clients() == 2);
    kill_process(Pid::from_child(&lab), signal).unwrap();
    // Else it could not say more and would end of that.
    std::thread::spawn(move || lines.for_each(drop));
    lab.wait().unwrap().code()
}

fn until(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "it did not happen");
        std::thread::yield_now();
    }
}

#[test]
fn an_interrupt_leaves_nothing() {
    let _turn = turn();
    if able() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(signalled(&dir, Signal::INT), Some(130));
        assert_eq!((workspaces(&dir), at_work_in(&dir)), (0, Vec::new()));
    }
}

#[test]
fn a_kill_leaves_files_and_the_next_run_removes_them() {
    let _turn = turn();
    if able() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(signalled(&dir, Signal::KILL), None);
        until(|| at_work_in(&dir).is_empty());
        assert_eq!(workspaces(&dir), 1);
        let next = ["--links", "near", "--clients", "curl", "--repeats", "1"];
        assert!(lab(&dir, &next).output().unwrap().status.success());
        assert_eq!(workspaces(&dir), 0);
    }
}

#[test]
fn impossible_names_are_answered_before_anything_starts() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (["--links", "moon"], "pelton-lab: there is no link \"moon\"; there are 10x60, "),
        (
            ["--clients", "gopher"],
            "pelton-lab: there is no client \"gopher\"; there are pelton-lowe, ",
        ),
        (["--repeats", "0"], "pelton-lab: --repeats 0 measures nothing\n"),
        (["--jobs", "0"], "pelton-lab: --jobs 0 measures nothing\n"),
        (["--pelton", "/none/pelton"], "pelton-lab: --pelton /none/pelton: No such file"),
    ] {
        let output = lab(&dir, &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(said.starts_with(expected) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_client_that_is_missing_ends_the_matrix_unless_it_may_be_left_out() {
    let _turn = turn();
    if !able() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // A path on which curl is all that there is.
    let path = dir.path().join("bin");
    fs::create_dir(&path).unwrap();
    for program in ["curl", "ip"] {
        let found =
            ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].map(|dir| format!("{dir}/{program}"));
        let found = found.into_iter().find(|file| fs::exists(file).unwrap()).unwrap();
        std::os::unix::fs::symlink(found, path.join(program)).unwrap();
    }
    let arguments = ["--links", "near", "--clients", "aria2,curl", "--repeats", "1"];
    let run = |more: &[&str]| lab(&dir, &arguments).args(more).env("PATH", &path).output().unwrap();
    let output = run(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("pelton-lab: aria2 can't run: aria2c: No such file"), "{said}");
    assert!(said.contains("install the Debian package aria2\n(--skip-missing leaves"), "{said}");
    let output = run(&["--skip-missing"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("pelton-lab: left out: aria2 can't run: "), "{said}");
}

#[test]
fn what_is_resumed_keeps_its_runs_and_gets_those_that_are_missing() {
    let _turn = turn();
    if !able() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("results.json");
    let resume = |arguments: &[&str]| {
        let mut lab = lab(&dir, &["--links", "near", "--resume"]);
        let output = lab.arg(&file).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = resume(&["--clients", "curl", "--repeats", "1"]);
    assert_eq!(code, Some(0), "{said}");
    let first = Results::load(&file).unwrap();
    let (code, said) = resume(&["--clients", "curl,curl-parallel", "--repeats", "2"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("pelton-lab: 3 runs, about "), "{said}");
    let second = Results::load(&file).unwrap();
    assert_eq!(second.cells[0].runs[0], first.cells[0].runs[0]);
    let counts: Vec<_> = second.cells.iter().map(|cell| cell.runs.len()).collect();
    assert_eq!((counts, second.repeats), (vec![2, 2], 2));
    let (code, said) = resume(&["--clients", "curl", "--seed", "5"]);
    assert_eq!(code, Some(1));
    let expected = "seed: it was measured with 1, and now it is 5\n";
    assert!(said.contains("can't resume") && said.ends_with(expected), "{said}");
}
