//! What the tests share: quick clients, ways to run a download, and a look at its directory.

pub(crate) mod servers;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use pelton_algos::policy::{Eht, Fixed, FixedConfig, Hat, LowE};
use pelton_algos::retries::RetryConfig;
use pelton_algos::units::Bytes;
use pelton_core::catalog::WalkOptions;
use pelton_core::engine::EngineConfig;
use pelton_core::events::FileReport;
use pelton_core::{Client, ClientBuilder, Download, Error, Job, Report, RunEvent};
use pelton_lab::content::VirtualFile;

/// Longer than any test takes: a run that is not over by then hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Retries at once, ranges of files that are small.
pub(crate) fn engine() -> EngineConfig {
    let mut config = EngineConfig {
        retry: RetryConfig {
            attempts: 3,
            first_delay: Duration::from_millis(1),
            longest_delay: Duration::from_millis(20),
            ..RetryConfig::default()
        },
        disk_patience: Duration::ZERO,
        ..EngineConfig::default()
    };
    config.limits.split_floor = Some(Bytes::kib(16));
    config
}

/// A client that retries at once and measures no energy.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder().engine(engine()).no_meter()
}

pub(crate) fn client() -> Client {
    builder().build().unwrap()
}

/// One file at once over one stream.
pub(crate) fn one_stream() -> Client {
    let one = FixedConfig { concurrency: 1, parallelism: 1, ..FixedConfig::default() };
    builder().policy(Fixed::new(one)).build().unwrap()
}

/// Four files at once, four streams a file.
pub(crate) fn four_by_four() -> Fixed {
    Fixed::new(FixedConfig { concurrency: 4, parallelism: 4, pipelining: 4 })
}

/// Every policy by its name.
pub(crate) fn policies() -> [(&'static str, ClientBuilder); 4] {
    [
        ("LowE", builder().policy(LowE::default())),
        ("HAT", builder().policy(Hat)),
        ("EHT", builder().policy(Eht::default())),
        ("fixed", builder().policy(four_by_four())),
    ]
}

pub(crate) fn recursively() -> WalkOptions {
    WalkOptions { recursive: true, ..WalkOptions::default() }
}

/// Runs a download to its end.
pub(crate) fn run(download: Download) -> Report {
    try_run(download).map_err(|error| error.message()).expect("the run starts")
}

/// Runs a download that may be refused as a whole.
pub(crate) fn try_run(download: Download) -> Result<Report, Error> {
    report_of(download.start().unwrap())
}

/// The end of a job.
pub(crate) fn report_of(job: Job) -> Result<Report, Error> {
    let (out, report) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody listens any more when the test has lost its patience.
        let _ = out.send(job.blocking_report());
    });
    report.recv_timeout(PATIENCE).expect("the run ends")
}

/// Runs a download to its end and keeps what it told.
pub(crate) fn run_with_events(download: Download) -> (Report, Vec<RunEvent>) {
    let mut job = download.start().unwrap();
    let mut events = job.events();
    let report = report_of(job).map_err(|error| error.message()).expect("the run starts");
    let told = std::iter::from_fn(|| events.blocking_next()).collect();
    (report, told)
}

/// What the report says of the file called `name`.
pub(crate) fn file<'a>(report: &'a Report, name: &str) -> &'a FileReport {
    let mut found = report.files.iter().filter(|file| file.name == name);
    let file = found.next().unwrap_or_else(|| panic!("no report of {name}: {:?}", report.files));
    assert!(found.next().is_none(), "{name} is reported twice");
    file
}

/// The names of all files below `directory` with their contents.
pub(crate) fn tree(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

/// The names of all files below `directory`.
pub(crate) fn names(directory: &Path) -> BTreeSet<String> {
    if directory.exists() { tree(directory).into_keys().collect() } else { BTreeSet::new() }
}

/// Asserts that `directory` holds exactly `files`, under the names that `named` gives, and nothing
/// else: no parts, no state.
pub(crate) fn assert_holds(
    directory: &Path,
    files: &[VirtualFile],
    named: impl Fn(&VirtualFile) -> &str,
) {
    let found = tree(directory);
    let expected: BTreeSet<&str> = files.iter().map(&named).collect();
    assert_eq!(found.keys().map(String::as_str).collect::<BTreeSet<_>>(), expected);
    for file in files {
        let name = named(file);
        assert!(found[name] == file.bytes(0..file.size), "{name} has other bytes");
        let modified = fs::metadata(directory.join(name)).unwrap().modified().unwrap();
        assert_eq!(whole_seconds(modified), whole_seconds(file.modified()), "{name}");
    }
}

/// Its path below the root of the server.
pub(crate) fn by_path(file: &VirtualFile) -> &str {
    file.path.trim_start_matches('/')
}

/// The last part of its path.
pub(crate) fn by_last_part(file: &VirtualFile) -> &str {
    file.path.rsplit('/').next().unwrap()
}

fn whole_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}
