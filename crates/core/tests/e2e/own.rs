//! What callers bring themselves: writers, sinks, policies, meters.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use pelton_algos::cluster::Classes;
use pelton_algos::params::{Allocation, Parameters};
use pelton_algos::policy::{Decision, Observation, Policy};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{Bytes, Joules};
use pelton_core::catalog::{Digest, FileSpec};
use pelton_core::engine::{EngineConfig, Opened, Resumable};
use pelton_core::sink::{Output, Sink, Space};
use pelton_core::{Error, ErrorKind, Result, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::sets;
use pelton_power::{MeterError, PowerMeter, Reading, Scope, Source, SourceKind, Traffic};

use crate::support::{
    assert_holds, builder, by_path, client, engine, file, policies, recursively, report_of, run,
    try_run,
};

/// A writer that lets the test see what it was given.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A pipe takes what it has room for.
        let taken = bytes.len().min(5_000);
        self.0.lock().unwrap().extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn large() -> VirtualFile {
    VirtualFile::new("/f", 1_500_000, 4)
}

fn start() -> Origin {
    Origin::start(OriginConfig { files: vec![large()], ..OriginConfig::default() }).unwrap()
}

#[test]
fn a_writer_gets_the_bytes_in_order() {
    for (policy, builder) in policies() {
        let origin = start();
        let written = Shared::default();
        let client = builder.build().unwrap();
        let download = client.download([origin.url("/f")]).to_writer(Box::new(written.clone()));
        let report = run(download);
        assert!(report.is_complete(), "{policy}: {:?}", report.files);
        assert!(*written.0.lock().unwrap() == large().bytes(0..large().size), "{policy}");
        assert_eq!(origin.requests(), 1, "{policy}: one stream");
    }
}

#[test]
fn a_writer_gets_each_byte_once_though_the_body_breaks_off() {
    for takes_ranges in [true, false] {
        let server = Scripted::start(move |request| {
            let range = request.field("range").and_then(|field| {
                let (first, last) = field.strip_prefix("bytes=")?.split_once('-')?;
                Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
            });
            let head = |status| {
                let units = if takes_ranges { "bytes" } else { "none" };
                Reply::status(status).field("ETag", "\"1\"").field("Accept-Ranges", units)
            };
            match (request.number, range) {
                (0, _) => head("200 OK")
                    .field("Content-Length", large().size)
                    .body(large().bytes(0..700_000))
                    .close(),
                (_, Some((first, last))) => head("206 Partial Content")
                    .field("Content-Length", last + 1 - first)
                    .field("Content-Range", format!("bytes {first}-{last}/{}", large().size))
                    .body(large().bytes(first..last + 1)),
                (_, None) => head("200 OK")
                    .field("Content-Length", large().size)
                    .body(large().bytes(0..large().size)),
            }
        })
        .unwrap();
        let written = Shared::default();
        let download = client().download([server.url("/f")]).to_writer(Box::new(written.clone()));
        let report = run(download);
        assert!(report.is_complete(), "{takes_ranges}: {:?}", report.files);
        assert!(*written.0.lock().unwrap() == large().bytes(0..large().size), "{takes_ranges}");
    }
}

#[test]
fn a_writer_never_gets_two_versions_mixed() {
    for (size, seed) in [(large().size, 77), (300_000, 4)] {
        let server = Scripted::start(move |request| {
            let version = match request.number {
                0 => large(),
                _ => VirtualFile::new("/f", size, seed),
            };
            let reply = Reply::status("200 OK").field("Content-Length", version.size);
            match request.number {
                0 => reply.body(version.bytes(0..700_000)).close(),
                _ => reply.body(version.bytes(0..version.size)),
            }
        })
        .unwrap();
        let written = Shared::default();
        let download = client().download([server.url("/f")]).to_writer(Box::new(written.clone()));
        let report = run(download);
        assert_eq!(report.summary.exit_code, ErrorKind::CannotResume.exit_code());
        assert!(*written.0.lock().unwrap() == large().bytes(0..700_000));
    }
}

#[test]
fn a_writer_takes_one_file_and_checks_its_digest() {
    let origin = start();
    let urls = [origin.url("/f"), origin.url("/g")];
    let download = client().download(urls).to_writer(Box::new(Shared::default()));
    let error = try_run(download).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{}", error.message());
    assert_eq!(origin.requests(), 0, "before the first byte");

    let mut spec = FileSpec::from_url(origin.url("/f").parse().unwrap()).unwrap();
    spec.digest = Some(Digest::parse(&format!("sha-256={}", "0".repeat(64))).unwrap());
    let report = run(client().download([spec]).to_writer(Box::new(Shared::default())));
    assert_eq!(report.summary.exit_code, ErrorKind::Checksum.exit_code());
    let message = &report.files[0].error.as_ref().unwrap().message;
    assert!(message.contains("its bytes have been passed on already"), "{message}");
}

struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn a_writer_that_fails_ends_the_run() {
    let origin = start();
    let report = run(client().download([origin.url("/f")]).to_writer(Box::new(Broken)));
    let error = file(&report, "f").error.clone().unwrap();
    assert_eq!(error.kind, "file_io", "{}", error.message);
    assert_eq!(report.summary.exit_code, ErrorKind::FileIo.exit_code());
    assert_eq!(report.summary.retries, 0);
}

/// Keeps files in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

struct MemoryFile {
    memory: Memory,
    name: String,
    bytes: Vec<u8>,
}

impl Sink for Memory {
    fn open(&mut self, spec: &FileSpec) -> (Opened, Box<dyn Output>) {
        let (memory, name) = (self.clone(), spec.name.clone());
        (Opened::Fresh, Box::new(MemoryFile { memory, name, bytes: Vec::new() }))
    }
}

impl Output for MemoryFile {
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let (start, end) = (offset as usize, offset as usize + data.len());
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[start..end].copy_from_slice(data);
        Ok(())
    }

    fn set_size(&mut self, size: u64) -> Result<()> {
        self.bytes.reserve(size as usize);
        Ok(())
    }

    fn restart(&mut self) -> Result<()> {
        self.bytes.clear();
        Ok(())
    }

    fn finish_takes_long(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>, _: Option<SystemTime>, _: Option<&Resumable>) -> Result<()> {
        self.memory.0.lock().unwrap().insert(self.name, self.bytes);
        Ok(())
    }

    fn abandon(self: Box<Self>, _: Option<&Resumable>) {}
}

#[test]
fn an_own_sink() {
    for (policy, builder) in policies() {
        let files = sets::demo_mixed(1);
        let origin =
            Origin::start(OriginConfig { files: files.clone(), ..OriginConfig::default() })
                .unwrap();
        let memory = Memory::default();
        let client = builder.build().unwrap();
        let download = client.download([origin.url("/")]).walk(recursively());
        assert!(run(download.to_sink(Box::new(memory.clone()))).is_complete());
        let stored = memory.0.lock().unwrap();
        assert_eq!(stored.len(), files.len());
        for file in files {
            assert!(stored[by_path(&file)] == file.bytes(0..file.size), "{policy} {}", file.path);
        }
    }
}

/// Has no room for the files of this user.
struct Exhausted;

impl Sink for Exhausted {
    fn open(&mut self, _: &FileSpec) -> (Opened, Box<dyn Output>) {
        let cause = io::Error::from(io::ErrorKind::QuotaExceeded);
        let error = Error::new(ErrorKind::DiskFull, "no room").with_source(cause);
        let file = MemoryFile { memory: Memory::default(), name: String::new(), bytes: Vec::new() };
        (Opened::Failed(error.into()), Box::new(file))
    }

    fn space(&self) -> Option<Space> {
        Some(Space { mount: "/disk".into(), free: Bytes::mib(99) })
    }
}

#[test]
fn a_run_that_waits_within_a_quota_says_so() {
    let origin = start();
    let patient = EngineConfig { disk_patience: Duration::from_secs(60), ..engine() };
    let client = builder().engine(patient).build().unwrap();
    let mut job = client.download([origin.url("/f")]).to_sink(Box::new(Exhausted)).start().unwrap();
    let mut events = job.events();
    let reason = loop {
        match events.blocking_next().unwrap() {
            RunEvent::Waiting(waiting) => break waiting.reason,
            RunEvent::Summary(summary) => panic!("{summary:?}"),
            _ => {}
        }
    };
    assert!(reason.starts_with("the disk quota on /disk is used up, and "), "{reason}");
    job.cancel();
    report_of(job).unwrap();
}

/// Two files at once, three streams each, whatever comes.
#[derive(Debug, Clone)]
struct TwoByThree;

impl Policy for TwoByThree {
    fn name(&self) -> &'static str {
        "two by three"
    }

    fn decide(&mut self, _: Timestamp, observation: &Observation<'_>) -> Decision {
        assert!(!observation.clusters.is_empty());
        let parameters = Parameters { pipelining: 1, parallelism: 3, concurrency: 2 };
        let allocations = vec![Allocation { classes: Classes::ALL, parameters }];
        Decision::new(allocations, "because the test says so")
    }
}

#[test]
fn an_own_policy() {
    let files = sets::demo_mixed(1);
    let origin =
        Origin::start(OriginConfig { files: files.clone(), ..OriginConfig::default() }).unwrap();
    let out = tempfile::tempdir().unwrap();
    let client = builder().policy(TwoByThree).build().unwrap();
    let download = client.download([origin.url("/")]).walk(recursively());
    let report = run(download.into_dir(out.path()));
    assert!(report.is_complete());
    assert_eq!(report.summary.policy, "two by three");
    let plan = report.plan.unwrap();
    assert_eq!(plan.reason, "because the test says so");
    assert_eq!(plan.parameters[0].parallelism, 3);
    assert_holds(out.path(), &files, by_path);
}

/// Counts its readings as joules, and ten for the tail.
#[derive(Debug, Clone, Default)]
struct Counting(f64);

impl PowerMeter for Counting {
    fn source(&self) -> Source {
        Source { kind: SourceKind::Measured, name: "counting".to_owned() }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn read(&mut self, at: Timestamp, _: &Traffic) -> Result<Reading, MeterError> {
        self.0 += 1.0;
        Ok(Reading { at, total: Joules::new(self.0), parts: None })
    }

    fn finish(&mut self, at: Timestamp, traffic: &Traffic) -> Result<Reading, MeterError> {
        assert!(traffic.received.0 >= large().size);
        self.0 += 9.0;
        self.read(at, traffic)
    }
}

#[test]
fn an_own_meter() {
    let origin = start();
    let client = builder().meter(Counting::default()).build().unwrap();
    for _ in 0..2 {
        let out = tempfile::tempdir().unwrap();
        let report = run(client.download([origin.url("/f")]).into_dir(out.path()));
        let summary = report.summary;
        let joules = summary.energy_j.unwrap();
        assert!(joules >= 11.0 && joules.fract() == 0.0, "each run has a meter of its own");
        assert_eq!(summary.energy_source.as_deref(), Some("measured: counting"));
        assert_eq!(report.plan.unwrap().energy_source, "measured: counting");
        let expected = summary.throughput_bps / joules;
        assert!((summary.throughput_per_joule.unwrap() / expected - 1.0).abs() < 1e-9);
        assert_eq!(summary.energy_radio_j, None);
    }
}

#[test]
fn a_catalog_and_a_plan_fetch_no_file() {
    let files = sets::demo_mixed(1);
    let origin =
        Origin::start(OriginConfig { files: files.clone(), ..OriginConfig::default() }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let urls: Vec<String> = files.iter().map(|file| origin.url(&file.path)).collect();
    let catalog = runtime.block_on(client().download(urls.clone()).catalog()).unwrap();
    let sizes: Vec<_> = catalog.files.iter().map(|spec| spec.size_hint.unwrap()).collect();
    assert_eq!(sizes, files.iter().map(|file| file.size).collect::<Vec<_>>());
    let report = runtime.block_on(client().download(urls).plan()).unwrap();
    let plan = report.plan.unwrap();
    assert_eq!(plan.files, 47);
    assert_eq!(plan.bytes, files.iter().map(|file| file.size).sum::<u64>());
    assert_eq!(origin.bytes_sent(), 0);
}

#[test]
fn what_a_catalog_cannot_find_is_named_and_the_rest_is_there() {
    let origin = start();
    let refused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (there, missing) = (origin.url("/f"), origin.url("/none"));
    let dead = format!("http://{refused}/x");
    let urls = [missing.as_str(), there.as_str(), dead.as_str()];
    let catalog = runtime.block_on(client().download(urls).catalog()).unwrap();
    assert_eq!(catalog.files.len(), 1);
    let failed: Vec<_> =
        catalog.failed.iter().map(|file| (file.name.as_str(), &file.url)).collect();
    assert_eq!(failed, [("none", &missing), ("x", &dead)]);
    let codes: Vec<_> = catalog.failed.iter().map(|f| f.error.as_ref().unwrap().code).collect();
    assert_eq!((codes, catalog.exit_code()), (vec![3, 6], 7));
    let report = runtime.block_on(client().download(urls).plan()).unwrap();
    assert_eq!((report.plan.unwrap().files, report.files.len()), (1, 2));
    assert_eq!((report.summary.exit_code, report.summary.files_failed), (7, 2));
    let none = runtime.block_on(client().download([missing]).plan()).unwrap();
    assert_eq!((none.plan, none.summary.exit_code), (None, 3));
}

#[test]
fn a_server_that_refuses_head_still_tells_sizes() {
    let body = "x".repeat(700);
    let signed = Scripted::start(move |request| {
        if request.head.starts_with("HEAD") {
            return Reply::status("403 Forbidden").field("Content-Length", 0);
        }
        let reply = Reply::status("206 Partial Content").field("Content-Length", 1);
        reply.field("Content-Range", format!("bytes 0-0/{}", body.len())).body("x")
    })
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let catalog = runtime.block_on(client().download([signed.url("/f")]).catalog()).unwrap();
    assert_eq!(catalog.files[0].size_hint, Some(700));
    assert_eq!(catalog.exit_code(), 0);
}

#[test]
fn a_plan_is_for_the_link_that_was_named() {
    let origin = start();
    let mut engine = crate::support::engine();
    engine.link.rtt_hint = Some(std::time::Duration::from_millis(200));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let client = pelton_core::Client::builder().engine(engine).build().unwrap();
    let report = runtime.block_on(client.download([origin.url("/f")]).plan()).unwrap();
    let plan = report.plan.unwrap();
    assert!((plan.link.rtt_s - 0.2).abs() < 1e-9, "{:?}", plan.link);
    assert!(plan.reason.contains("not measured yet"), "{}", plan.reason);
}
