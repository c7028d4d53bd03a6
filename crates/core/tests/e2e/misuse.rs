//! What an application does wrong, or what it brings does: it is told, and nothing hangs or goes astray.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};

use std::time::Duration;

use pelton_algos::link::LinkConfig;
use pelton_algos::policy::{Decision, Observation, Policy};
use pelton_algos::retries::RetryConfig;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Joules};
use pelton_core::catalog::FileSpec;
use pelton_core::connection::{Connected, Connector};
use pelton_core::engine::{EngineConfig, UserLimits};
use pelton_core::{ErrorKind, Result, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_power::{MeterError, PowerMeter, Reading, Scope, Source, SourceKind, Traffic};

use tokio::io::AsyncReadExt;

use crate::support::{builder, client, engine, names, run, run_with_events, try_run};

fn start() -> Origin {
    let files = vec![VirtualFile::new("/f", 1_500_000, 4), VirtualFile::new("/g", 30_000, 5)];
    Origin::start(OriginConfig { files, ..OriginConfig::default() }).unwrap()
}

fn spec(origin: &Origin) -> FileSpec {
    FileSpec::from_url(origin.url("/g").parse().unwrap()).unwrap()
}

struct Panics;

impl Write for Panics {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        panic!("the writer's own fault");
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct PanicsToo;

impl Connector for PanicsToo {
    fn connect<'a>(
        &'a self,
        _: &'a str,
        _: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>> {
        panic!("the connector's own fault");
    }
}

#[test]
fn a_panic_of_a_writer_or_a_connector_fails_the_file() {
    let origin = start();
    let report = run(client().download([origin.url("/f")]).to_writer(Box::new(Panics)));
    let careless = builder().connector(Arc::new(PanicsToo)).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let other = run(careless.download([origin.url("/f")]).into_dir(out.path()));
    for (report, whose) in [(report, "writer"), (other, "connector")] {
        let failure = report.files[0].error.as_ref().unwrap();
        assert_eq!(failure.kind, ErrorKind::Internal.name());
        let expected = format!("a panic: the {whose}'s own fault");
        assert!(failure.message.contains(&expected), "{}", failure.message);
    }
}

/// Gives no stream to anything, or panics.
#[derive(Debug, Clone)]
struct Useless {
    panics: bool,
}

impl Policy for Useless {
    fn name(&self) -> &'static str {
        "useless"
    }

    fn decide(&mut self, _: Timestamp, _: &Observation<'_>) -> Decision {
        assert!(!self.panics, "the policy's own fault");
        Decision::new(Vec::new(), "nothing")
    }
}

#[test]
fn a_policy_that_gives_nothing_gives_one_stream_and_one_that_panics_is_told_of() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    let with = |panics| {
        let client = builder().policy(Useless { panics }).build().unwrap();
        client.download([origin.url("/f"), origin.url("/g")]).into_dir(out.path())
    };
    let report = run(with(false));
    assert_eq!(report.summary.files_done, 2, "{:?}", report.files);
    let reason = report.plan.unwrap().reason;
    assert!(reason.contains("one file at a time"), "{reason}");

    let error = try_run(with(true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.message().contains("the policy's own fault"), "{}", error.message());
}

#[test]
fn names_lead_nowhere_else_and_headers_are_sent_or_refused() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    let into = out.path().join("in/ner");
    for name in ["../evil", "/abs", "a/../../evil", "a//b", "", "a\\b"] {
        let spec = FileSpec { name: name.to_owned(), ..spec(&origin) };
        let error = try_run(client().download([spec]).into_dir(&into)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{name}: {}", error.message());
    }
    let other = FileSpec {
        name: "./g".to_owned(),
        url: origin.url("/f").parse().unwrap(),
        ..spec(&origin)
    };
    let error = try_run(client().download([spec(&origin), other]).into_dir(&into)).unwrap_err();
    assert!(error.message().contains("would both write"), "{}", error.message());
    for (name, value) in [("X-A", "a\r\nEvil: 1"), ("no header", "x")] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let spec = FileSpec { headers, ..spec(&origin) };
        let error = try_run(client().download([spec]).into_dir(&into)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{name}: {}", error.message());
    }
    assert_eq!(origin.requests(), 0);
    assert!(names(out.path()).is_empty());

    let echo = Scripted::start(|request| {
        let told = request.field("x-token").unwrap_or("none").to_owned();
        Reply::status("200 OK").field("Content-Length", told.len()).body(told.into_bytes())
    })
    .unwrap();
    let url = echo.url("/token").parse().unwrap();
    let headers = vec![("X-Token".to_owned(), "secret\n".to_owned())];
    let spec = FileSpec { headers, ..FileSpec::from_url(url).unwrap() };
    assert!(run(client().download([spec]).into_dir(out.path())).is_complete());
    assert_eq!(std::fs::read(out.path().join("token")).unwrap(), b"secret");
}

#[test]
fn a_listing_that_fails_beside_files_counts_as_one_that_failed() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    let urls = [origin.url("/g"), origin.url("/missing/")];
    let (report, events) = run_with_events(client().download(&urls).into_dir(out.path()));
    let summary = &report.summary;
    assert_eq!((summary.files, summary.files_done, summary.files_failed), (2, 1, 1));
    assert_eq!(summary.exit_code, ErrorKind::NotFound.exit_code());
    let last = events.iter().rev().find_map(|event| match event {
        RunEvent::Progress(progress) => Some(progress),
        _ => None,
    });
    let last = last.expect("the last progress is that of the end");
    assert_eq!((last.files, last.files_done, last.files_failed, last.bytes), (2, 1, 1, 30_000));
}

#[test]
fn who_cancels_at_once_gets_a_report() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    // It answers when the run is over.
    let (over, is_over) = mpsc::channel::<()>();
    let is_over = Mutex::new(is_over);
    let slow = Scripted::start(move |_| {
        let _ = is_over.lock().unwrap().recv();
        Reply::status("404 Not Found").field("Content-Length", 0)
    })
    .unwrap();
    for url in [origin.url("/f"), slow.url("/listing/")] {
        let job = client().download([url]).into_dir(out.path()).start().unwrap();
        job.cancel();
        let report = job.blocking_report().unwrap();
        assert_eq!(report.summary.exit_code, ErrorKind::Cancelled.exit_code());
        assert!(report.files.iter().all(|file| file.error.as_ref().unwrap().retryable));
    }
    drop(over);
}

/// Goes back, and then has drawn without end.
#[derive(Debug, Clone, Default)]
struct Broken(u32);

impl PowerMeter for Broken {
    fn source(&self) -> Source {
        Source { kind: SourceKind::Measured, name: "broken".to_owned() }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn read(&mut self, at: Timestamp, _: &Traffic) -> Result<Reading, MeterError> {
        self.0 += 1;
        let joules = [5.0, 2.0, f64::INFINITY][(self.0 as usize - 1).min(2)];
        Ok(Reading { at, total: Joules::new(joules), parts: None })
    }

    fn finish(&mut self, at: Timestamp, traffic: &Traffic) -> Result<Reading, MeterError> {
        self.read(at, traffic)
    }
}

#[test]
fn readings_that_can_not_be_true_give_no_joules_and_a_warning() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    let client = builder().meter(Broken::default()).build().unwrap();
    let (report, events) =
        run_with_events(client.download([origin.url("/f")]).into_dir(out.path()));
    assert_eq!(report.summary.energy_j, None);
    let is_told = |event: &RunEvent| matches!(event, RunEvent::Warning(warning) if warning.reason.contains("can't be true"));
    assert!(events.iter().any(is_told), "{events:?}");
}

#[test]
fn who_pauses_sees_that_nothing_moves() {
    let origin = start();
    let out = tempfile::tempdir().unwrap();
    let max_rate = Some(BitRate::from_mbps(4.0));
    let limits = UserLimits { max_rate, ..UserLimits::default() };
    let config = EngineConfig { limits, ..engine() };
    let client = builder().engine(config).build().unwrap();
    let mut job = client.download([origin.url("/f")]).into_dir(out.path()).start().unwrap();
    let mut events = job.events();
    let mut paused = false;
    while let Some(event) = events.blocking_next() {
        let RunEvent::Progress(progress) = event else { continue };
        if !paused && progress.bytes > 0 {
            assert!(progress.throughput_bps > 0.0 && progress.remaining_s.is_some());
            job.pause();
            paused = true;
        }
        if paused && progress.throughput_bps == 0.0 {
            assert_eq!(progress.remaining_s, None);
            job.cancel();
        }
    }
    assert_eq!(job.blocking_report().unwrap().summary.exit_code, ErrorKind::Cancelled.exit_code());
}

#[test]
fn the_longest_times_are_no_end_of_a_run() {
    let (origin, longest) = (start(), Duration::MAX);
    let link = LinkConfig { prior_rtt: longest, memory: longest, ..LinkConfig::default() };
    let retry =
        RetryConfig { first_delay: longest, longest_delay: longest, ..RetryConfig::default() };
    let limits = UserLimits::default();
    for rtt_hint in [None, Some(longest)] {
        let link = LinkConfig { rtt_hint, ..link };
        let config = EngineConfig { link, retry, limits, stall_timeout: longest, ..engine() };
        let client = builder().engine(config).build().unwrap();
        let out = tempfile::tempdir().unwrap();
        let report =
            run(client.download([origin.url("/f"), origin.url("/g")]).into_dir(out.path()));
        assert_eq!((report.summary.exit_code, report.summary.files_done), (0, 2));
    }
    // A pause without end, until somebody cancels.
    let config = EngineConfig { retry, ..engine() };
    let client = builder().engine(config).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let mut job = client.download(["http://127.0.0.1:1/f"]).into_dir(out.path()).start().unwrap();
    let mut events = job.events();
    while !matches!(events.blocking_next().unwrap(), RunEvent::Progress(_)) {}
    job.cancel();
    assert_eq!(job.blocking_report().unwrap().summary.exit_code, 130);
}

#[tokio::test]
async fn who_stops_waiting_for_a_catalog_ends_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/listing/", listener.local_addr().unwrap());
    for plans in [false, true] {
        let download = client().download([url.as_str()]);
        let asked = async move {
            if plans { download.plan().await.map(drop) } else { download.catalog().await.map(drop) }
        };
        let mut connection = tokio::select! {
            told = asked => panic!("nobody answers: {told:?}"),
            accepted = listener.accept() => accepted.unwrap().0,
        };
        let mut request = Vec::new();
        connection.read_to_end(&mut request).await.unwrap();
    }
}
