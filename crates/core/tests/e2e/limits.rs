//! Limits that the caller sets, at the start and while a run is under way.

use std::time::Duration;

use pelton_algos::policy::{Fixed, FixedConfig};
use pelton_algos::units::{BitRate, Bytes};
use pelton_core::connection::{HttpConfig, ProtocolChoice, TlsOptions};
use pelton_core::engine::{EngineConfig, UserLimits};
use pelton_core::{ClientBuilder, Job, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig, Storm};

use crate::support::{assert_holds, builder, by_path, engine, report_of, run, run_with_events};

const MBIT: u32 = 1_000;

fn at_most(kbps: u32) -> EngineConfig {
    let mut config = engine();
    config.limits.max_rate = Some(BitRate::from_kbps(kbps));
    config
}

/// Two files at once over one stream each.
fn two_at_once() -> Fixed {
    Fixed::new(FixedConfig { concurrency: 2, parallelism: 1, pipelining: 2 })
}

fn serving(files: &[VirtualFile], tls: bool) -> Origin {
    Origin::start(OriginConfig { files: files.to_vec(), tls, ..OriginConfig::default() }).unwrap()
}

/// Every way in which bodies come: spliced, decrypted, in frames.
fn protocols() -> [(bool, ProtocolChoice); 4] {
    [
        (false, ProtocolChoice::Http1),
        (false, ProtocolChoice::Http2PriorKnowledge),
        (true, ProtocolChoice::Http1),
        (true, ProtocolChoice::Auto),
    ]
}

fn speaking(builder: ClientBuilder, protocol: ProtocolChoice) -> ClientBuilder {
    let tls = TlsOptions { insecure: true, ..TlsOptions::default() };
    builder.http(HttpConfig { protocol, tls, ..HttpConfig::default() })
}

#[test]
fn a_limited_run_is_never_faster() {
    let mut files: Vec<_> =
        (0..40).map(|i| VirtualFile::new(format!("/small/{i}"), 4_000, i)).collect();
    files.push(VirtualFile::new("/large", 700_000, 99));
    let bytes = Bytes(files.iter().map(|file| file.size).sum());
    for (tls, protocol) in protocols() {
        let origin = serving(&files, tls);
        let out = tempfile::tempdir().unwrap();
        let client = speaking(builder().engine(at_most(8 * MBIT)), protocol).build().unwrap();
        let urls: Vec<_> = files.iter().map(|file| origin.url(&file.path)).collect();
        let named = |file: &VirtualFile| file.path.rsplit('/').next().unwrap().to_owned();
        let report = run(client.download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{protocol:?}: {:?}", report.files);
        let seconds = report.summary.seconds;
        let least = (bytes / BitRate::from_kbps(8 * MBIT)).as_secs_f64() - 0.05;
        assert!(seconds >= least, "{protocol:?} with TLS {tls}: {seconds} s, {least} s at least");
        for file in &files {
            assert!(
                std::fs::read(out.path().join(named(file))).unwrap() == file.bytes(0..file.size)
            );
        }
    }
}

#[test]
fn files_share_a_limit_evenly() {
    let files = [VirtualFile::new("/a", 600_000, 1), VirtualFile::new("/b", 2_000_000, 2)];
    for (tls, protocol) in protocols() {
        let origin = serving(&files, tls);
        let out = tempfile::tempdir().unwrap();
        let builder = builder().engine(at_most(8 * MBIT)).policy(two_at_once());
        let client = speaking(builder, protocol).build().unwrap();
        let urls = files.each_ref().map(|file| origin.url(&file.path));
        let (report, events) = run_with_events(client.download(urls).into_dir(out.path()));
        assert!(report.is_complete());
        assert_level(&events, ["a", "b"], 150_000);
        assert_holds(out.path(), &files, by_path);
    }
}

/// Two files get the same from when both have begun: whichever is first has all there is until then. What
/// is saved while nothing comes, and a pause of the machine, let them be `apart`.
fn assert_level(events: &[RunEvent], names: [&str; 2], apart: u64) {
    let mut at_first = None;
    let mut compared = 0;
    for event in events {
        let RunEvent::Progress(progress) = event else { continue };
        let bytes = names.map(|name| {
            let file = progress.active.iter().find(|file| file.name == name);
            file.map_or(0, |file| file.bytes)
        });
        if bytes.contains(&0) {
            continue;
        }
        let before = *at_first.get_or_insert(bytes);
        let [one, other] = [bytes[0] - before[0], bytes[1] - before[1]];
        assert!(one.abs_diff(other) < apart, "{bytes:?} after {before:?}");
        compared += 1;
    }
    assert!(compared > 1, "nothing was told of both at once");
}

/// No file of `events` has more than `bytes_at` says of its name and that time.
fn assert_never_more(events: &[RunEvent], bytes_at: impl Fn(&str, Duration) -> f64) {
    let mut seen = 0;
    for event in events {
        let RunEvent::Progress(progress) = event else { continue };
        for file in &progress.active {
            let most = bytes_at(&file.name, Duration::from_secs_f64(progress.at_s));
            let bytes = file.bytes;
            assert!(bytes as f64 <= most, "{}: {bytes} bytes, {most} at most", file.name);
            seen += bytes;
        }
    }
    assert!(seen > 0, "nothing was told of files under way");
}

#[test]
fn each_origin_has_a_limit_of_its_own_below_that_of_the_run() {
    for (tls, protocol) in protocols() {
        // One origin has one file, the other two that share what it may bring.
        let alone = [VirtualFile::new("/alone", 1_000_000, 1)];
        let shared = ["/one", "/other"].map(|path| VirtualFile::new(path, 500_000, 2));
        let origins = [serving(&alone, tls), serving(&shared, tls)];
        let out = tempfile::tempdir().unwrap();
        let mut config = engine();
        let rate = BitRate::from_kbps(4 * MBIT);
        config.limits.max_rate_per_origin = Some(rate);
        let three = FixedConfig { concurrency: 3, parallelism: 1, pipelining: 2 };
        let builder = builder().engine(config).policy(Fixed::new(three));
        let client = speaking(builder, protocol).build().unwrap();
        let urls = [origins[0].url("/alone"), origins[1].url("/one"), origins[1].url("/other")];
        let (report, events) = run_with_events(client.download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{protocol:?}: {:?}", report.files);
        // 50 ms are saved.
        let of_rate = |time: Duration| (rate * (time + Duration::from_millis(60))).as_f64();
        assert_never_more(&events, |_, time| of_rate(time));
        let least = (Bytes(1_000_000) / rate).as_secs_f64() - 0.06;
        assert!(report.summary.seconds >= least, "{protocol:?}: {} s", report.summary.seconds);
        assert_level(&events, ["one", "other"], 100_000);
        for event in &events {
            let RunEvent::Progress(progress) = event else { continue };
            let of_origin = progress.active.iter().filter(|file| file.name != "alone");
            let bytes = of_origin.map(|file| file.bytes).sum::<u64>();
            assert!(bytes as f64 <= of_rate(Duration::from_secs_f64(progress.at_s)));
        }
        let [one, other] = shared;
        let [alone] = alone;
        assert_holds(out.path(), &[alone, one, other], by_path);
    }
}

#[test]
fn the_downloads_of_a_client_share_its_limit() {
    let files = [VirtualFile::new("/one", 500_000, 1), VirtualFile::new("/other", 500_000, 2)];
    let origin = serving(&files, false);
    let client = builder().build().unwrap();
    let rate = BitRate::from_kbps(4 * MBIT);
    client.set_max_rate(Some(rate));
    let out = tempfile::tempdir().unwrap();
    let begun = std::time::Instant::now();
    let start = |file: &VirtualFile| {
        let download = client.download([origin.url(&file.path)]).into_dir(out.path());
        download.start().unwrap()
    };
    let jobs = files.each_ref().map(start);
    for job in jobs {
        let report = report_of(job).map_err(|error| error.message()).unwrap();
        assert!(report.is_complete());
    }
    let least = (Bytes(1_000_000) / rate).as_secs_f64() - 0.06;
    assert!(begun.elapsed().as_secs_f64() >= least, "{:?}", begun.elapsed());
    assert_holds(out.path(), &files, by_path);
}

/// Its first bytes come at 10 kB/s.
fn assert_begins_slowly(job: &mut Job) {
    let mut events = job.events();
    let began = loop {
        match events.blocking_next().unwrap() {
            RunEvent::Progress(progress) if progress.bytes > 0 => break progress,
            _ => {}
        }
    };
    assert!(began.bytes < 100_000, "{} bytes at 10 kB/s", began.bytes);
}

/// It does not go on as it began.
fn assert_ends_fast(job: Job) {
    let report = report_of(job).map_err(|error| error.message()).unwrap();
    assert!(report.is_complete());
    assert!(report.summary.seconds < 90.0, "100 s at 10 kB/s: {} s", report.summary.seconds);
}

#[test]
fn a_limit_of_a_client_can_be_lifted_while_a_download_is_under_way() {
    let files = [VirtualFile::new("/f", 1_000_000, 1)];
    let origin = serving(&files, false);
    let out = tempfile::tempdir().unwrap();
    let client = builder().build().unwrap();
    client.set_max_rate(Some(BitRate::from_kbps(80)));
    let mut job = client.download([origin.url("/f")]).into_dir(out.path()).start().unwrap();
    assert_begins_slowly(&mut job);
    client.clone().set_max_rate(None);
    assert_ends_fast(job);
    assert_holds(out.path(), &files, by_path);
}

#[test]
fn a_limit_can_be_set_and_lifted_while_running() {
    let files = [VirtualFile::new("/f", 1_000_000, 1)];
    let origin = serving(&files, false);
    let out = tempfile::tempdir().unwrap();
    let client = builder().engine(at_most(80)).build().unwrap();
    let mut job = client.download([origin.url("/f")]).into_dir(out.path()).start().unwrap();
    assert_begins_slowly(&mut job);
    job.set_limits(UserLimits::default());
    assert_ends_fast(job);
    assert_holds(out.path(), &files, by_path);
}

#[test]
fn what_was_refused_is_asked_for_over_the_same_connection_once() {
    for (requests, connections) in [(1, 1), (2, 2)] {
        let files = [VirtualFile::new("/f", 20_000, 1)];
        let storm = Some(Storm { status: 503, requests, retry_after: None });
        let behaviour = OriginBehaviour { storm, ..OriginBehaviour::default() };
        let config = OriginConfig { files: files.to_vec(), behaviour, ..OriginConfig::default() };
        let origin = Origin::start(config).unwrap();
        let out = tempfile::tempdir().unwrap();
        let client = builder().build().unwrap();
        let report = run(client.download([origin.url("/f")]).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        assert_eq!((report.summary.retries, origin.connections()), (requests, connections));
    }
}

#[test]
fn what_a_server_bears_is_remembered_across_runs_on_request() {
    let files: Vec<_> = (0..60).map(|i| VirtualFile::new(format!("/{i}"), 20_000, i)).collect();
    // The first thirty requests are too many.
    let storm = Some(Storm { status: 503, requests: 30, retry_after: None });
    let behaviour = OriginBehaviour { storm, ..OriginBehaviour::default() };
    let config = OriginConfig { files: files.clone(), behaviour, ..OriginConfig::default() };
    let origin = Origin::start(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("cache/origins");
    let many = Fixed::new(FixedConfig { concurrency: 32, parallelism: 1, pipelining: 1 });
    let opened = |remembers: bool| {
        let builder = builder().policy(many);
        let builder = if remembers { builder.origin_memory(&memory) } else { builder };
        let out = tempfile::tempdir().unwrap();
        let urls = files.iter().map(|file| origin.url(&file.path)).collect::<Vec<_>>();
        let secret = urls.iter().map(|url| url.replace("//", "//user:hunter2@"));
        let report = run(builder.build().unwrap().download(secret).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        report.summary.connections
    };
    opened(true);
    let text = std::fs::read_to_string(&memory).unwrap();
    let (_, record) = text.trim_end().split_once(' ').unwrap();
    let record: serde_json::Value = serde_json::from_str(record).unwrap();
    assert_eq!(record["origin"], origin.url("").trim_end_matches('/'));
    let borne = record["connections"].as_u64().unwrap();
    assert!((8..32).contains(&borne), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("/59"), "{text}");
    let next = opened(true);
    assert!(next <= borne + 1, "{next} connections were opened, {borne} are borne");
    assert!(opened(false) > borne + 1, "nothing is remembered unless it is asked for");
    std::fs::write(&memory, "nonsense\n").unwrap();
    assert!(opened(true) > borne + 1, "nonsense says nothing");
}
