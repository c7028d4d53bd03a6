//! Limits that the caller sets, at the start and while a run is under way.

use pelton_algos::policy::{Fixed, FixedConfig};
use pelton_algos::units::{BitRate, Bytes};
use pelton_core::connection::{HttpConfig, ProtocolChoice, TlsOptions};
use pelton_core::engine::{EngineConfig, UserLimits};
use pelton_core::{ClientBuilder, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginConfig};

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
        let mut compared = 0;
        for event in events {
            let RunEvent::Progress(progress) = event else { continue };
            let [one, other] = progress.active.as_slice() else { continue };
            // 50 ms are saved at most while only one of them had begun.
            let apart = one.bytes.abs_diff(other.bytes);
            assert!(apart < 150_000, "{protocol:?}: {:?}", progress.active);
            compared += 1;
        }
        assert!(compared > 0, "600 kB of each take more than a second");
        assert_holds(out.path(), &files, by_path);
    }
}

#[test]
fn a_limit_can_be_set_and_lifted_while_running() {
    let files = [VirtualFile::new("/f", 1_000_000, 1)];
    let origin = serving(&files, false);
    let out = tempfile::tempdir().unwrap();
    let client = builder().engine(at_most(80)).build().unwrap();
    let mut job = client.download([origin.url("/f")]).into_dir(out.path()).start().unwrap();
    let mut events = job.events();
    let began = loop {
        match events.blocking_next().unwrap() {
            RunEvent::Progress(progress) if progress.bytes > 0 => break progress,
            _ => {}
        }
    };
    assert!(began.bytes < 100_000, "{} bytes at 10 kB/s", began.bytes);
    job.set_limits(UserLimits::default());
    let report = report_of(job).map_err(|error| error.message()).unwrap();
    assert!(report.is_complete());
    assert!(report.summary.seconds < 90.0, "100 s at 10 kB/s: {} s", report.summary.seconds);
    assert_holds(out.path(), &files, by_path);
}
