//! The command is killed, so that it can put nothing in order, and run again.
//!
//! `PELTON_CRASH_KILLS=100 cargo test --release -p pelton-cli --test command crash` kills at a
//! hundred instants instead of a few.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use pelton_algos::units::BitRate;
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig};
use serde_json::Value;

use crate::common::Run;

/// Small, medium and large files, 6 MB in all.
fn batch() -> Vec<VirtualFile> {
    let sizes = (0..60_u64).map(|i| 4_000 + 150 * i).chain((0..10).map(|i| 80_000 + 5_000 * i));
    let sizes = sizes.chain([1_500_000, 2_500_000]);
    (0..).zip(sizes).map(|(i, size)| VirtualFile::new(format!("/b/{i}.bin"), size, i)).collect()
}

fn origin() -> Origin {
    let behaviour = OriginBehaviour {
        rate_per_connection: Some(BitRate::from_mbps(8.0)),
        ..OriginBehaviour::default()
    };
    Origin::start(OriginConfig { files: batch(), behaviour, ..OriginConfig::default() }).unwrap()
}

/// Runs until `bytes` have arrived and kills. Whether it was still running.
fn run_and_kill(run: &Run, list: &str, bytes: u64) -> bool {
    let mut child = run.command(&["get", "--json", "-x", "8", "-r", list]).spawn().unwrap();
    drop(child.stdin.take());
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut arrived = 0;
    for line in lines {
        let event: Value = serde_json::from_str(&line).unwrap();
        match event["event"].as_str() {
            Some("progress") => arrived = event["bytes"].as_u64().unwrap(),
            Some("summary") => break,
            _ => {}
        }
        if arrived >= bytes {
            child.kill().unwrap();
            break;
        }
    }
    !child.wait().unwrap().success()
}

fn kills() -> u64 {
    std::env::var("PELTON_CRASH_KILLS").map_or(4, |kills| kills.parse().unwrap())
}

fn assert_complete(run: &Run) {
    for file in batch() {
        let name = file.path.trim_start_matches('/').trim_start_matches("b/").to_owned();
        let found = std::fs::read(run.folder().join(&name)).unwrap();
        assert!(found == file.bytes(0..file.size), "{name} has other bytes");
    }
    let names = std::fs::read_dir(run.folder()).unwrap().count();
    assert_eq!(names, batch().len(), "nothing else is left");
}

#[test]
fn a_killed_batch_goes_on_where_it_was() {
    let total: u64 = batch().iter().map(|file| file.size).sum();
    for kill in 1..=kills() {
        let (origin, run) = (origin(), Run::new());
        let list = origin.url("/b/");
        run_and_kill(&run, &list, total * kill / (kills() + 1));
        let mut again = run.command(&["get", "-q", "-r", &list]);
        assert!(again.stdin(Stdio::null()).status().unwrap().success());
        assert_complete(&run);
        let twice = origin.bytes_sent().saturating_sub(total);
        assert!(twice * 20 < total, "{twice} of {total} bytes came twice after kill {kill}");
    }
}

#[test]
fn a_batch_that_is_killed_over_and_over_ends() {
    let (origin, run) = (origin(), Run::new());
    let list = origin.url("/b/");
    for _ in 0..kills() * 3 / 10 + 3 {
        run_and_kill(&run, &list, 400_000);
    }
    let mut final_run = run.command(&["get", "-q", "-r", &list]);
    assert!(final_run.stdin(Stdio::null()).status().unwrap().success());
    assert_complete(&run);
}
