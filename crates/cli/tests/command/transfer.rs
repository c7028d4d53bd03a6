//! The command against an origin on this machine.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::process::Command;

use pelton_core::catalog::{Digest, DigestAlgorithm};
use pelton_core::digest::hash_file;
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig, Storm};
use serde_json::Value;

use crate::common::{Run, said};

fn files() -> Vec<VirtualFile> {
    [("/d/a.bin", 300_000), ("/d/b.txt", 12_000), ("/d/sub/c.bin", 3_000_000), ("/d/empty", 0)]
        .into_iter()
        .enumerate()
        .map(|(seed, (path, size))| VirtualFile::new(path, size, seed as u64))
        .collect()
}

fn origin() -> Origin {
    Origin::start(OriginConfig { files: files(), ..OriginConfig::default() }).unwrap()
}

fn behaving(path: &str, behaviour: OriginBehaviour) -> Origin {
    let behaviour_by_path = vec![(path.to_owned(), behaviour)];
    Origin::start(OriginConfig { files: files(), behaviour_by_path, ..OriginConfig::default() })
        .unwrap()
}

fn events(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The command below `limit` of the shell's, with files of which each has a connection of its own.
#[cfg(unix)]
fn limited(run: &Run, limit: &str, url: &str) -> std::process::Output {
    let pelton = run.command(&[]);
    let line = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).arg(pelton.get_program()).current_dir(run.folder());
    shell.args(["get", "--policy", "fixed", "-j", "64", "-x", "64", "-d", "out", url]);
    shell.output().unwrap()
}

#[cfg(unix)]
fn small_ones() -> Origin {
    let files = (0..100).map(|i| VirtualFile::new(format!("/d/{i}"), 100_000, i)).collect();
    Origin::start(OriginConfig { files, ..OriginConfig::default() }).unwrap()
}

#[cfg(unix)]
#[test]
fn a_process_that_may_open_little_loses_no_file() {
    let origin = small_ones();
    for limit in ["-n 40", "-S -n 20"] {
        let run = Run::new();
        let ended = said(limited(&run, limit, &origin.url("/d/")));
        assert_eq!(ended.code, 0, "{limit}: {}", ended.stderr);
        assert_eq!(fs::read_dir(run.folder().join("out")).unwrap().count(), 100, "{limit}");
    }
}

#[cfg(unix)]
#[test]
fn a_process_that_may_open_nothing_says_what_to_raise() {
    let origin = small_ones();
    for limit in 4..16 {
        let run = Run::new();
        let ended = said(limited(&run, &format!("-n {limit}"), &origin.url("/d/")));
        assert_eq!(ended.code, 17, "{limit}: {}", ended.stderr);
        assert!(ended.stderr.contains("raise `ulimit -n`"), "{limit}: {}", ended.stderr);
    }
}

fn assert_there(run: &Run, name: &str, file: &VirtualFile) {
    let found = hash_file(&run.folder().join(name), DigestAlgorithm::Sha256).unwrap();
    assert_eq!(found, file.sha256(), "{name}");
}

#[test]
fn a_tree_arrives_with_its_structure() {
    let (origin, run) = (origin(), Run::new());
    let told = run.pelton(&["get", "-r", "-d", "out", &origin.url("/d/")]);
    assert_eq!((told.code, told.stdout.as_str()), (0, ""), "{}", told.stderr);
    assert!(told.stderr.starts_with("4 files, 3.31 MB in "), "{}", told.stderr);
    for file in files() {
        assert_there(&run, &file.path.replace("/d/", "out/"), &file);
    }
    let again = run.pelton(&["get", "-r", "-d", "out", &origin.url("/d/")]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.starts_with("4 files, 4 already there, 0 B in "), "{}", again.stderr);
}

#[test]
fn every_policy_brings_the_same_bytes() {
    let origin = origin();
    for policy in ["lowe", "hat", "eht", "fixed"] {
        let run = Run::new();
        let told = run.pelton(&["get", "-r", &origin.url("/d/"), "--policy", policy, "-q"]);
        assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{policy}");
        for file in files() {
            assert_there(&run, &file.path.replace("/d/", ""), &file);
        }
    }
}

#[test]
fn only_one_level_and_what_the_globs_allow() {
    let (origin, run) = (origin(), Run::new());
    run.pelton(&["get", &origin.url("/d/"), "--exclude", "*.txt"]);
    assert!(run.folder().join("a.bin").exists() && run.folder().join("empty").exists());
    assert!(!run.folder().join("b.txt").exists() && !run.folder().join("sub").exists());
}

#[test]
fn json_goes_to_standard_output_and_ends_with_the_summary() {
    let (origin, run) = (origin(), Run::new());
    let told = run.pelton(&["get", "-r", "--json", &origin.url("/d/")]);
    let events = events(&told.stdout);
    let of_kind = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(events[0]["event"], "plan");
    assert_eq!(events[0]["schema"], 1);
    assert_eq!(
        (of_kind("plan"), of_kind("start"), of_kind("file"), of_kind("summary")),
        (1, 4, 4, 1)
    );
    let summary = events.last().unwrap();
    assert_eq!(summary["event"], "summary");
    assert_eq!(summary["files_done"], 4);
    assert_eq!(summary["bytes"], 3_312_000);
    assert_eq!(summary["exit_code"], 0);
    assert!(summary["energy_source"].as_str().unwrap().starts_with("modelled: "));
}

#[test]
fn without_a_meter_there_are_no_joules() {
    let (origin, run) = (origin(), Run::new());
    let told = run.pelton(&["get", "--json", "--power-meter=none", &origin.url("/d/b.txt")]);
    let events = events(&told.stdout);
    assert_eq!(events.last().unwrap()["energy_j"], Value::Null);
}

#[test]
fn one_file_can_have_another_name_or_go_to_standard_output() {
    let (origin, run) = (origin(), Run::new());
    let file = &files()[1];
    let url = origin.url(&file.path);
    assert_eq!(run.pelton(&["get", &url, "-d", "x", "-o", "y/z"]).code, 0);
    assert_there(&run, "x/y/z", file);
    let output = run.command(&["get", &url, "-o", "-"]).output().unwrap();
    assert_eq!(output.stdout, file.bytes(0..file.size));
    assert!(!output.stderr.is_empty());
}

#[test]
fn a_checksum_is_checked() {
    let (origin, run) = (origin(), Run::new());
    let wrong = format!("sha-256={}", "00".repeat(32));
    let told = run.pelton(&["get", &origin.url("/d/b.txt"), "--checksum", &wrong]);
    assert_eq!(told.code, 32, "{}", told.stderr);
    assert!(!run.folder().join("b.txt").exists());
}

#[test]
fn failures_are_named_and_give_their_code() {
    let (origin, run) = (origin(), Run::new());
    let told = run.pelton(&["get", "-q", &origin.url("/d/b.txt"), &origin.url("/d/none")]);
    assert_eq!(told.code, 3);
    assert!(told.stderr.starts_with("1 of 2 files failed:\n  none  "), "{}", told.stderr);
    assert!(told.stderr.contains("404"), "{}", told.stderr);
    assert!(run.folder().join("b.txt").exists());
}

#[test]
fn what_failed_is_listed_and_can_be_asked_for_again() {
    let (origin, run) = (origin(), Run::new());
    let none = origin.url("/d/none");
    let urls = [origin.url("/d/b.txt"), none.clone()];
    let told = run.pelton(&["get", "-q", "--failed-list", "failed", &urls[0], &urls[1]]);
    assert_eq!(told.code, 3);
    let list = fs::read_to_string(run.folder().join("failed")).unwrap();
    assert_eq!(list, format!("{none}\n  out=none\n"));
    origin.put(VirtualFile::new("/d/none", 5_000, 9));
    let told = run.pelton(&["get", "-q", "-i", "failed", "--failed-list", "failed"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(fs::read(run.folder().join("failed")).unwrap(), b"");
    assert_eq!(fs::metadata(run.folder().join("none")).unwrap().len(), 5_000);
}

#[test]
fn different_failures_are_seven() {
    let locked = OriginBehaviour {
        basic_auth: Some(("me".to_owned(), "secret".to_owned())),
        ..OriginBehaviour::default()
    };
    let (origin, run) = (behaving("/d/a.bin", locked), Run::new());
    let (a, none) = (origin.url("/d/a.bin"), origin.url("/d/none"));
    assert_eq!(run.pelton(&["get", &a, &none]).code, 7);
    assert_eq!(run.pelton(&["get", &a]).code, 24);
    assert_eq!(run.pelton(&["get", &a, "-u", "me:secret"]).code, 0);
    assert_there(&run, "a.bin", &files()[0]);
}

#[test]
fn netrc_logs_in_and_is_found_at_home() {
    let locked = OriginBehaviour {
        basic_auth: Some(("me".to_owned(), "secret".to_owned())),
        ..OriginBehaviour::default()
    };
    let (origin, run) = (behaving("/d/b.txt", locked), Run::new());
    let text = "machine 127.0.0.1 login me password secret\n";
    fs::write(run.folder().join(".netrc"), text).unwrap();
    assert_eq!(run.pelton(&["get", "--netrc", &origin.url("/d/b.txt")]).code, 0);
}

#[test]
fn a_refused_connection_is_a_network_failure() {
    let told = Run::new().pelton(&["get", "--tries=1", "http://127.0.0.1:1/x"]);
    assert_eq!(told.code, 6, "{}", told.stderr);
    assert!(told.stderr.contains("run the same command again to go on"), "{}", told.stderr);
}

#[test]
fn http2_without_asking_to_a_server_that_lacks_it_is_explained() {
    let old = Scripted::start(|_| Reply::raw("HTTP/1.1 400 Bad Request\r\n\r\n").hang()).unwrap();
    let flags = ["--http2-prior-knowledge", "--retry-wait=1ms", "--tries=2"];
    let told = Run::new().pelton(&["get", flags[0], flags[1], flags[2], &old.url("/x")]);
    assert_eq!(told.code, 6, "{}", told.stderr);
    let advice = "the server does not speak HTTP/2: leave out --http2-prior-knowledge";
    assert!(told.stderr.contains(advice), "{}", told.stderr);
}

#[test]
fn tries_bound_the_attempts() {
    let storm = Storm { status: 500, requests: u64::MAX, retry_after: None };
    let broken = OriginBehaviour { storm: Some(storm), ..OriginBehaviour::default() };
    let (origin, run) = (behaving("/d/b.txt", broken), Run::new());
    let flags = ["--tries=2", "--retry-wait=10ms"];
    let told = run.pelton(&["get", flags[0], flags[1], &origin.url("/d/b.txt")]);
    assert_eq!(told.code, 22, "{}", told.stderr);
    assert_eq!(origin.hits("/d/b.txt"), 2);
}

#[test]
fn an_existing_file_that_differs_is_kept_unless_overwritten() {
    let (origin, run) = (origin(), Run::new());
    let (url, path) = (origin.url("/d/b.txt"), run.folder().join("b.txt"));
    fs::write(&path, "mine").unwrap();
    assert_eq!(run.pelton(&["get", &url]).code, 13);
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    assert_eq!(run.pelton(&["get", &url, "--overwrite"]).code, 0);
    assert_there(&run, "b.txt", &files()[1]);
}

#[test]
fn a_dry_run_fetches_nothing_and_says_why() {
    let (origin, run) = (origin(), Run::new());
    let told = run.pelton(&[
        "get",
        "-r",
        "--dry-run",
        "--bandwidth=50M",
        "--rtt=200ms",
        &origin.url("/d/"),
    ]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    for word in ["4 files, 3.31 MB", "50.0 Mbit/s", "because   ", "joules    modelled: "] {
        assert!(told.stdout.contains(word), "{word} is not in:\n{}", told.stdout);
    }
    assert!(!run.folder().join("a.bin").exists());
    assert!(origin.log().iter().all(|entry| entry.method == "HEAD" || entry.path.ends_with('/')));
}

#[test]
fn a_report_is_the_whole_run() {
    let (origin, run) = (origin(), Run::new());
    run.pelton(&["get", &origin.url("/d/"), "--report", "run.json"]);
    let report: Value =
        serde_json::from_slice(&fs::read(run.folder().join("run.json")).unwrap()).unwrap();
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
    assert_eq!(report["summary"]["exit_code"], 0);
    assert!(!report["decisions"].as_array().unwrap().is_empty());
}

#[test]
fn a_list_shows_names_and_sizes() {
    let (origin, run) = (origin(), Run::new());
    let told = run.pelton(&["list", "-r", &origin.url("/d/")]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("   300 kB  a.bin\n"), "{}", told.stdout);
    assert!(told.stdout.contains("  3.00 MB  sub/c.bin\n"), "{}", told.stdout);
    assert_eq!(told.stderr, "4 files, 3.31 MB\n");
    let told = run.pelton(&["list", "--json", &origin.url("/d/b.txt")]);
    assert_eq!(events(&told.stdout)[0]["size"], 12_000);
}

#[test]
fn a_checksum_list_has_its_files_beside_base_url() {
    let (origin, run) = (origin(), Run::new());
    let value = files()[1].sha256().to_vec();
    let digest = Digest { algorithm: DigestAlgorithm::Sha256, value }.to_string();
    let hex = digest.trim_start_matches("sha-256=");
    let run = run.stdin(&format!("{hex}  b.txt\n"));
    let told = run.pelton(&["get", "-i", "-", "--base-url", &origin.url("/d"), "--json"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let file = events(&told.stdout).into_iter().find(|event| event["event"] == "file").unwrap();
    assert_eq!(file["digest"], digest);
}

#[test]
fn a_log_tells_decisions_and_files() {
    let (origin, run) = (origin(), Run::new());
    run.pelton(&["get", "-q", "--log", "run.log", &origin.url("/d/b.txt")]);
    let log = fs::read_to_string(run.folder().join("run.log")).unwrap();
    assert!(log.contains("b.txt: 12.0 kB in ") && log.contains(" -> "), "{log}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let slow = OriginBehaviour {
        rate_per_connection: Some(pelton_algos::units::BitRate::from_mbps(4.0)),
        ..OriginBehaviour::default()
    };
    let (origin, run) = (behaving("/d/sub/c.bin", slow), Run::new());
    let url = origin.url("/d/sub/c.bin");
    let mut child = run.command(&["get", "--json", "-s", "1", &url]).spawn().unwrap();
    drop(child.stdin.take());
    // The pipe must stay open: a reader that is gone ends the run, too.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_under_way = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["event"] == "progress" && event["bytes"].as_u64().unwrap() > 200_000
    };
    assert!(lines.by_ref().any(|line| is_under_way(&line.unwrap())), "it ended by itself");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let rest: Vec<String> = lines.map(|line| line.unwrap()).collect();
    let told = said(child.wait_with_output().unwrap());
    assert_eq!(told.code, 130, "{}", told.stderr);
    assert!(told.stderr.contains("run the same command again to go on"), "{}", told.stderr);
    let summary: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!(summary["exit_code"], 130);

    let told = run.pelton(&["get", "--json", &url]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let file = events(&told.stdout).into_iter().find(|event| event["event"] == "file").unwrap();
    assert!(file["resumed_from"].as_u64().unwrap() > 100_000, "{file}");
    assert_there(&run, "c.bin", &files()[2]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_reader_does_not_read_can_be_stopped() {
    let (origin, run) = (origin(), Run::new());
    let (_unread, mut full) = std::io::pipe().unwrap();
    // As much as it holds: the first line of the run is too much.
    full.write_all(&vec![b'\n'; 64 * 1024]).unwrap();
    let mut command = run.command(&["get", "--json", &origin.url("/d/b.txt")]);
    let mut child = command.stdout(full).spawn().unwrap();
    while !run.folder().join("b.txt").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let status = loop {
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(130));
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_stops_the_run_quietly_and_parts_are_kept() {
    let slow = OriginBehaviour {
        rate_per_connection: Some(pelton_algos::units::BitRate::from_mbps(4.0)),
        ..OriginBehaviour::default()
    };
    let (origin, run) = (behaving("/d/sub/c.bin", slow), Run::new());
    let url = origin.url("/d/sub/c.bin");
    let mut child = run.command(&["get", "--json", "-s", "1", &url]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_under_way = |line: String| line.contains(r#""event":"progress""#);
    assert!(lines.by_ref().any(|line| is_under_way(line.unwrap())), "it ended by itself");
    drop(lines);
    let told = said(child.wait_with_output().unwrap());
    assert_eq!((told.code, told.stderr.as_str()), (130, ""));
    assert!(run.folder().join("c.bin.part").exists());
    assert!(run.folder().join("c.bin.part.state").exists());
    // Nobody to tell on either side: no panic.
    let mut child = run.command(&["get", "--json", &origin.url("/d/none")]).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    let code = child.wait().unwrap().code();
    assert!(code == Some(3) || code == Some(130), "{code:?}");
}

#[cfg(unix)]
#[test]
fn a_reader_of_the_file_that_has_seen_enough_stops_the_run_quietly() {
    let (origin, run) = (origin(), Run::new());
    let url = origin.url("/d/sub/c.bin");
    let mut child = run.command(&["get", "-o", "-", "--report", "r.json", &url]).spawn().unwrap();
    drop(child.stdout.take());
    let told = said(child.wait_with_output().unwrap());
    assert_eq!((told.code, told.stderr.as_str()), (130, ""));
    let report = fs::read(run.folder().join("r.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["summary"]["exit_code"], 130);
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow_so_large_is_named() {
    let (origin, run) = (origin(), Run::new());
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 100; exec \"$0\" get \"$1\"", env!("CARGO_BIN_EXE_pelton")]);
    limited.arg(origin.url("/d/sub/c.bin")).current_dir(run.folder());
    let told = said(limited.output().unwrap());
    assert_eq!(told.code, 17, "{}", told.stderr);
    assert!(told.stderr.contains("c.bin.part can't be written: File too large"), "{}", told.stderr);
}

#[test]
fn a_run_that_cannot_begin_says_so_in_json_and_in_its_report() {
    let (origin, run) = (origin(), Run::new());
    let none = origin.url("/none/");
    for (arguments, code) in [
        (&["example.org"][..], 2),
        (&["-i", "nowhere"], 17),
        (&["http://host.invalid/", "--tries=1"], 6),
        (&[none.as_str()], 3),
        (&[none.as_str(), "--dry-run"], 3),
        (&["http://127.0.0.1:9/x", "--log", "no/such/dir/log"], 17),
    ] {
        let flags = ["get", "--json", "--report", "run.json"];
        let told = run.pelton(&[&flags, arguments].concat());
        assert_eq!(told.code, code, "{arguments:?}: {}", told.stderr);
        let events = events(&told.stdout);
        assert_eq!(events.len(), 1, "{arguments:?}: {events:?}");
        assert_eq!(events[0]["event"], "summary");
        assert_eq!(events[0]["exit_code"], code);
        let message = events[0]["error"]["message"].as_str().unwrap();
        assert_eq!(told.stderr, format!("pelton: {message}\n"));
        let report = fs::read(run.folder().join("run.json")).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["summary"]["exit_code"], code);
    }
}

#[test]
fn a_report_or_log_that_cannot_be_written_is_found_before_the_first_byte() {
    let (origin, run) = (origin(), Run::new());
    for (flag, path) in [("--report", "no/run.json"), ("--log", "no/run.log")] {
        let told = run.pelton(&["get", &origin.url("/d/b.txt"), flag, path]);
        assert_eq!(told.code, 17, "{}", told.stderr);
        assert!(told.stderr.starts_with(&format!("pelton: {path}: ")), "{}", told.stderr);
    }
    assert_eq!(origin.requests(), 0);
    assert!(!run.folder().join("b.txt").exists());
}

#[test]
fn a_dry_run_has_a_summary_and_a_report() {
    let (origin, run) = (origin(), Run::new());
    let (there, none) = (origin.url("/d/a.bin"), origin.url("/d/none"));
    let flags = ["get", "--dry-run", "--json", "--report", "plan.json"];
    let told = run.pelton(&[&flags, &[there.as_str()][..]].concat());
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
    let kinds = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
    };
    let found = events(&told.stdout);
    assert_eq!(kinds(&found), ["plan", "summary"]);
    assert_eq!((&found[1]["files"], &found[1]["files_done"]), (&1.into(), &0.into()));
    let report = fs::read(run.folder().join("plan.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["plan"]["bytes"], 300_000);
    let told = run.pelton(&[&flags, &[there.as_str(), none.as_str()][..]].concat());
    assert_eq!(told.code, 3);
    assert!(told.stderr.starts_with("1 of 2 files failed:\n  none  "), "{}", told.stderr);
    assert_eq!(kinds(&events(&told.stdout)), ["file", "plan", "summary"]);
}

#[test]
fn a_list_names_what_is_not_there_and_shows_the_rest() {
    let (origin, run) = (origin(), Run::new());
    let (there, none) = (origin.url("/d/b.txt"), origin.url("/d/none"));
    let told = run.pelton(&["list", &none, &there]);
    assert_eq!((told.code, told.stdout.as_str()), (3, "  12.0 kB  b.txt\n"));
    let expected = format!("1 of 2 files failed:\n  none  {none}: HTTP 404 Not Found");
    assert!(told.stderr.contains(&expected), "{}", told.stderr);
    let told = run.pelton(&["list", "--json", &none, &there]);
    let found = events(&told.stdout);
    assert_eq!((told.code, found.len()), (3, 2));
    assert_eq!(found[1]["error"]["kind"], "not_found");
    let told = run.pelton(&["list", &origin.url("/d/"), "--include", "*.csv"]);
    assert_eq!(told.code, 3);
    assert!(told.stderr.contains("nothing matches"), "{}", told.stderr);
}
