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

/// Runs until `bytes` have arrived, lets the server send `further` bytes, which is at no moment of the
/// program's own rhythm, and kills.
fn run_and_kill(run: &Run, origin: &Origin, bytes: u64, further: u64) {
    let list = origin.url("/b/");
    let mut child = run.command(&["get", "--json", "-x", "8", "-r", &list]).spawn().unwrap();
    drop(child.stdin.take());
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    for line in lines {
        // The last line may be torn.
        let Ok(event) = serde_json::from_str::<Value>(&line) else { break };
        let arrived = match event["event"].as_str() {
            Some("progress" | "summary") => event["bytes"].as_u64().unwrap(),
            _ => continue,
        };
        if arrived >= bytes {
            let sent = origin.bytes_sent();
            while origin.bytes_sent() < sent + further && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            break;
        }
    }
    child.wait().unwrap();
}

/// Bytes of the batch that are on the disk, in parts or complete: all that has come out of the sockets.
/// What is still zero is not counted, though one byte of 256 is.
fn written(run: &Run) -> u64 {
    let right = |file: &VirtualFile| {
        let name = file.path.trim_start_matches("/b/");
        let paths = [name.to_owned(), format!("{name}.part")].map(|name| run.folder().join(name));
        let found = paths.iter().find_map(|path| std::fs::read(path).ok()).unwrap_or_default();
        let expected = file.bytes(0..file.size);
        let equal = found.iter().zip(&expected).filter(|(found, expected)| found == expected);
        equal.filter(|(found, _)| **found != 0).count() as u64
    };
    batch().iter().map(right).sum()
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
    let names = std::fs::read_dir(run.folder()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let others: Vec<String> = names
        .filter(|name| !batch().iter().any(|file| file.path == format!("/b/{name}")))
        .collect();
    assert_eq!(others, [] as [&str; 0], "nothing else is left");
}

/// What the server sends twice, but for what lay unread in the sockets of the killed process, which no
/// client can keep: on a busy machine that is more than a path holds. What was read is on the disk.
#[test]
fn a_killed_batch_goes_on_where_it_was() {
    let total: u64 = batch().iter().map(|file| file.size).sum();
    let mut worst = 0;
    for kill in 1..=kills() {
        let (origin, run) = (origin(), Run::new());
        run_and_kill(&run, &origin, total * kill / (kills() + 1), kill * 7_919 % 300_000);
        let (sent, written) = (origin.bytes_sent(), written(&run));
        let mut again = run.command(&["get", "-q", "-r", &origin.url("/b/")]);
        assert!(again.stdin(Stdio::null()).status().unwrap().success());
        assert_complete(&run);
        let sent_again = origin.bytes_sent() - sent;
        let twice = (written + sent_again).saturating_sub(total);
        assert!(twice * 20 < total, "{twice} of {written} bytes came twice after kill {kill}");
        worst = worst.max(twice);
    }
    println!("{worst} of {total} bytes came twice at most");
}

#[test]
fn a_batch_that_is_killed_over_and_over_ends() {
    let (origin, run) = (origin(), Run::new());
    for kill in 0..kills() * 3 / 10 + 3 {
        run_and_kill(&run, &origin, 400_000, kill * 7_919 % 100_000);
    }
    let mut final_run = run.command(&["get", "-q", "-r", &origin.url("/b/")]);
    assert!(final_run.stdin(Stdio::null()).status().unwrap().success());
    assert_complete(&run);
}
