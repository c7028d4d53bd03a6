//! Many files and many bytes through one process each, over 256 connections of loopback: whether
//! memory and descriptors stay flat and every digest is right. `cargo bench -p pelton-cli --bench
//! soak`; with numbers behind `--`: small files, large files, and the mebibytes of each.
//!
//! An origin in this process generates the bytes. The command checks each file by the digest in its
//! manifest, and each is removed when it is complete: /dev/shm holds those in transfer alone.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use pelton_core::catalog::{Digest, DigestAlgorithm};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginConfig};
use serde_json::{Value, json};

const SMALL_FILES: u64 = 20_000;
const SMALL: u64 = 8 * 1024;
const LARGE_FILES: u64 = 10;
const LARGE_MIB: u64 = 1024;
/// Between looks at a run, of which one of many files is over soon.
const LOOK: Duration = Duration::from_millis(10);
/// The second half of a run may need so much more memory than the first, beside what the report says
/// of each file, and so many descriptors.
const GROWTH: f64 = 1.15;
const REPORTED_KIB: f64 = 2.0;
const MORE_DESCRIPTORS: usize = 8;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The process at one moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    resident_kib: u64,
    descriptors: usize,
}

fn main() -> Outcome<()> {
    let numbers: Vec<u64> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (small, large) = (number(0, SMALL_FILES), number(1, LARGE_FILES));
    let size = number(2, LARGE_MIB) * 1024 * 1024;
    let home = PathBuf::from(format!("/dev/shm/pelton-soak-{}", std::process::id()));
    let file = |kind: &str, i, size| VirtualFile::new(format!("/{kind}/{i}"), size, i);
    let small: Vec<_> = (0..small).map(|i| file("small", i, SMALL + i % 1000)).collect();
    let large: Vec<_> = (0..large).map(|i| file("large", i, size)).collect();
    let soaked = soak("small files", &home, &small, &["-j", "256", "-s", "1"])
        .and_then(|()| soak("large files", &home, &large, &["-j", "2", "-s", "128"]));
    let _ = fs::remove_dir_all(&home);
    soaked
}

fn soak(name: &str, home: &Path, files: &[VirtualFile], numbers: &[&str]) -> Outcome<()> {
    if files.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(home.join("out"))?;
    let origin = Origin::start(OriginConfig { files: files.to_vec(), ..OriginConfig::default() })?;
    let listed: Vec<Value> = files
        .iter()
        .map(|file| {
            let value = file.sha256().into();
            let digest = Digest { algorithm: DigestAlgorithm::Sha256, value };
            json!({"url": origin.url(&file.path), "digest": digest.to_string()})
        })
        .collect();
    let manifest = home.join("manifest.json");
    fs::File::create(&manifest)?.write_all(&serde_json::to_vec(&json!({"files": listed}))?)?;
    let mut child = Command::new(env!("CARGO_BIN_EXE_pelton"))
        .args(["get", "--json", "--policy", "fixed", "-x", "256", "--max-total-connections", "256"])
        .args(numbers)
        .args(["--power-meter", "none", "-i"])
        .arg(&manifest)
        .arg("-d")
        .arg(home.join("out"))
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut summary = Value::Null;
    let process = child.id();
    let looking = thread::spawn(move || {
        let mut samples = Vec::new();
        while let Some(sample) = sample(process) {
            samples.push(sample);
            thread::sleep(LOOK);
        }
        samples
    });
    for line in lines {
        let event: Value = serde_json::from_str(&line?)?;
        match event["event"].as_str() {
            Some("file") if event["ok"] == true => {
                fs::remove_file(home.join("out").join(event["name"].as_str().ok_or("no name")?))?;
            }
            Some("file") => return Err(format!("{event}").into()),
            Some("summary") => summary = event,
            _ => {}
        }
    }
    if !child.wait()?.success() || summary["files_done"] != files.len() as u64 {
        return Err(format!("not complete: {summary}").into());
    }
    let samples = looking.join().map_err(|_| "nobody has looked at it")?;
    judge(name, &samples, &summary)
}

/// Compares the most memory of the second half with the most of the first, and descriptors as they were
/// half of the time: each connection may have a file open besides, and how many have is chance.
fn judge(name: &str, samples: &[Sample], summary: &Value) -> Outcome<()> {
    let (first, second) = samples.split_at(samples.len() / 2);
    let of_half = |half: &[Sample]| {
        let mut descriptors: Vec<usize> = half.iter().map(|sample| sample.descriptors).collect();
        descriptors.sort_unstable();
        Sample {
            resident_kib: half.iter().map(|sample| sample.resident_kib).max().unwrap_or_default(),
            descriptors: descriptors.get(half.len() / 2).copied().unwrap_or_default(),
        }
    };
    let (first, second) = (of_half(first), of_half(second));
    println!(
        "{name}: {} files, {} bytes in {:.1} s over {} connections, every digest right",
        summary["files_done"],
        summary["bytes"],
        summary["seconds"].as_f64().unwrap_or_default(),
        summary["connections"]
    );
    println!(
        "  most resident KiB in the first and second half: {} {}; median of descriptors: {} {}",
        first.resident_kib, second.resident_kib, first.descriptors, second.descriptors
    );
    let files = summary["files"].as_u64().unwrap_or_default() as f64;
    let allowed = first.resident_kib as f64 * GROWTH + files / 2.0 * REPORTED_KIB;
    if second.resident_kib as f64 > allowed {
        return Err("memory grows".into());
    }
    if second.descriptors > first.descriptors + MORE_DESCRIPTORS {
        return Err("descriptors grow".into());
    }
    Ok(())
}

/// Nothing where it has ended.
fn sample(process: u32) -> Option<Sample> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident_kib = resident?.split_whitespace().next()?.parse().ok()?;
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count();
    Some(Sample { resident_kib, descriptors })
}
