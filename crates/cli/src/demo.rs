//! `pelton demo`: the policies at work against a plain download, on this machine alone.

mod picture;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use pelton_algos::policy::{Eht, Fixed, Hat, LowE};
use pelton_algos::units::Bytes;
use pelton_core::catalog::{DigestAlgorithm, FileSpec};
use pelton_core::connection::{HttpConfig, Proxies, TcpConnector};
use pelton_core::digest::hash_file;
use pelton_core::events::Summary;
use pelton_core::{Client, ClientBuilder, Error, ErrorKind, Job, Report, Result, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::link::Link;
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::sets;
use pelton_lab::shaper::ShapedConnector;
use pelton_power::{CpuClock, Modelled, ModelledConfig, NetworkEnergyModel};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::args::DemoArgs;
use crate::output::count;
use crate::progress::style;
use crate::{exit, logging, output, stop};

/// The set of files is the same at each run.
const SEED: u64 = 1;

/// What is compared: a name for people, and the policy.
type Contestant = (&'static str, fn(ClientBuilder) -> ClientBuilder);

const CONTESTANTS: [Contestant; 4] = [
    ("sequential", |client| client.policy(Fixed::default())),
    ("LowE", |client| client.policy(LowE::default())),
    ("HAT", |client| client.policy(Hat)),
    ("EHT", |client| client.policy(Eht::default())),
];

/// One line of `pelton demo --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    event: &'static str,
    name: &'static str,
    #[serde(flatten)]
    summary: Summary,
}

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    logging::start(&args.text, None)?;
    let (link, files) = (Link::demo(), sets::demo_mixed(SEED));
    let config = OriginConfig { files: files.clone(), ..OriginConfig::default() };
    let origin = Origin::start(config).map_err(|error| exit::io("the demo's origin", error))?;
    let speaks = !args.text.quiet && !args.text.json;
    if speaks {
        output::print(introduction(&link, &files).as_bytes())?;
    }
    let draws = !args.text.quiet && !args.text.no_progress && io::stderr().is_terminal();
    let runtime = stop::runtime()?;
    let mut outcomes = Vec::new();
    for (name, policy) in CONTESTANTS {
        let bar = bar(name, draws);
        let outcome = runtime.block_on(compete(name, policy, &origin, link, &files, &bar));
        bar.finish_and_clear();
        let outcome = outcome?;
        if args.text.json {
            output::json_line(&outcome)?;
        } else if !draws && !args.text.quiet {
            output::tell(&format!("{name}: {:.2} s", outcome.summary.seconds));
        }
        outcomes.push(outcome);
    }
    if !args.text.json {
        output::print(picture::draw(&outcomes).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn introduction(link: &Link, files: &[VirtualFile]) -> String {
    let bytes: Bytes = files.iter().map(|file| Bytes(file.size)).sum();
    format!(
        "{}, {bytes}, from this machine over a link of {} and {} ms, {} in flight a stream.\n\
         Each way of fetching them in turn; joules as a phone on Wi-Fi would use them (modelled).\n\n",
        count(files.len() as u64, "file"),
        link.rate,
        link.rtt.as_millis(),
        link.stream_window,
    )
}

fn bar(name: &'static str, draws: bool) -> ProgressBar {
    let target = if draws { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    ProgressBar::with_draw_target(Some(1), target)
        .with_style(style("{prefix:10} {bar:40.cyan/dim} {msg}"))
        .with_prefix(name)
}

/// Downloads the files in one way and compares what arrived with what was sent.
async fn compete(
    name: &'static str,
    policy: fn(ClientBuilder) -> ClientBuilder,
    origin: &Origin,
    link: Link,
    files: &[VirtualFile],
    bar: &ProgressBar,
) -> Result<Outcome> {
    let folder = tempfile::tempdir().map_err(|error| exit::io("a temporary directory", error))?;
    let power = ModelledConfig::default();
    let client = Client::builder()
        .connector(Arc::new(ShapedConnector::new(link, TcpConnector::default())))
        .http(HttpConfig { proxies: Proxies::Direct, ..HttpConfig::default() })
        .energy_model(NetworkEnergyModel::new(power.clone()))
        .meter(Modelled::with_clock(power, ThreadCpu));
    let specs = files.iter().map(|file| spec(origin, file)).collect::<Result<Vec<_>>>()?;
    let job = policy(client).build()?.download(specs).into_dir(folder.path()).start()?;
    let report = follow(job, bar).await?;
    if report.summary.exit_code == exit::INTERRUPTED {
        return Err(Error::new(ErrorKind::Cancelled, "the demo was interrupted"));
    }
    if !report.is_complete() {
        let why = report.files.into_iter().find_map(|file| file.error);
        let why = why.map_or_else(|| "it was not complete".to_owned(), |error| error.message);
        return Err(Error::new(ErrorKind::Internal, format!("{name}: {why}")));
    }
    verify(files, folder.path())?;
    Ok(Outcome { event: "demo", name, summary: report.summary })
}

/// A file of the origin with its size as a directory listing would show it.
fn spec(origin: &Origin, file: &VirtualFile) -> Result<FileSpec> {
    let url = origin.url(&file.path).parse().map_err(|error: url::ParseError| {
        Error::new(ErrorKind::Internal, "the demo's URL").with_source(error)
    })?;
    let name = file.path.trim_start_matches('/').to_owned();
    Ok(FileSpec { name, size_hint: Some(file.size), ..FileSpec::from_url(url)? })
}

async fn follow(mut job: Job, bar: &ProgressBar) -> Result<Report> {
    let _interrupt = stop::Interrupt::listen(job.canceller())?;
    let mut events = job.events();
    while let Some(event) = events.next().await {
        if let RunEvent::Progress(progress) = event {
            bar.set_length(progress.bytes_expected.max(1));
            bar.set_position(progress.bytes);
            bar.set_message(count(progress.connections, "connection"));
        }
    }
    job.report().await
}

fn verify(files: &[VirtualFile], folder: &Path) -> Result<()> {
    for file in files {
        let path = folder.join(file.path.trim_start_matches('/'));
        let found = hash_file(&path, DigestAlgorithm::Sha256)
            .map_err(|error| exit::io(path.display(), error))?;
        if found != file.sha256() {
            let line = format!("{}: not what the origin sent", file.path);
            return Err(Error::new(ErrorKind::Checksum, line));
        }
    }
    Ok(())
}

/// The CPU time of the thread that asks: of the download alone, without the origin that shares the
/// process.
#[derive(Debug, Clone, Copy)]
struct ThreadCpu;

impl CpuClock for ThreadCpu {
    fn cpu_time(&self) -> Duration {
        Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
    }
}
