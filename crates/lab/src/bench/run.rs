//! One run: an emulator, a server, a client, what they used, and whether the files are right.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use super::clients::{Client, Programs, Task};
use super::energy;
use super::results::{DecisionLog, RunResult, Traffic};
use super::server::{self, Certificates};
use super::{PreparedSet, Workspace};
use crate::cells::NamedLink;
use crate::emulator::{
    CongestionControl, DirectionStats, Emulator, EmulatorConfig, Namespace, SERVER,
};

/// Runs clients, each on a link of its own and against a server of its own.
pub struct Runner {
    /// Where files lie.
    pub workspace: Workspace,
    /// The clients that are built here.
    pub programs: Programs,
    /// What the server's TCP follows.
    pub congestion_control: CongestionControl,
    /// Where the packets of each run are kept, if they are.
    pub packet_logs: Option<PathBuf>,
    /// Set to end the runs under way.
    pub interrupted: Arc<AtomicBool>,
    certificates: Certificates,
    /// This program, which has the command `guard`.
    guard: PathBuf,
}

/// What shall be run.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The link's name.
    pub link_name: &'a str,
    /// The link.
    pub link: &'a NamedLink,
    /// What is fetched.
    pub set: &'a PreparedSet,
    /// By whom.
    pub client: &'a Client,
    /// Of the link.
    pub seed: u64,
    /// When the client is ended.
    pub timeout: Duration,
    /// Numbers the run among those that go on at the same time.
    pub slot: usize,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The client failed; others may not.
    #[error("{0}")]
    Client(String),
    /// Nobody can go on.
    #[error(transparent)]
    Lab(#[from] anyhow::Error),
}

/// What `pelton-lab guard` reports of the program that it ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GuardReport {
    /// From its start to its end.
    pub seconds: f64,
    /// User and system time.
    pub cpu_s: f64,
    /// Bytes.
    pub peak_rss: u64,
    /// Exit code, or `None` after a signal.
    pub code: Option<i32>,
    /// Whether it was ended because it took too long.
    pub timed_out: bool,
}

impl Runner {
    /// A runner whose files lie in `workspace`.
    ///
    /// # Errors
    /// When this program's path is unknown, or a certificate can't be written.
    pub fn new(workspace: Workspace, programs: Programs) -> Result<Self> {
        Ok(Self {
            certificates: Certificates::make(workspace.path())?,
            guard: std::env::current_exe().context("can't find this program's own file")?,
            workspace,
            programs,
            congestion_control: CongestionControl::Cubic,
            packet_logs: None,
            interrupted: Arc::default(),
        })
    }

    /// The server's version.
    ///
    /// # Errors
    /// When nginx is missing.
    pub fn server_version() -> Result<String> {
        server::version()
    }

    /// Runs what `order` says; gives what was measured and the command line as people read it.
    ///
    /// # Errors
    /// [`Failure::Client`] when the client fails, takes too long, or stores other bytes.
    pub fn run(&self, order: &Order<'_>) -> Result<(RunResult, Vec<String>), Failure> {
        // Nothing in it is left from another run: no cookies, no memory of servers.
        let dir = self.workspace.path().join(format!("slot-{}", order.slot));
        let out = dir.join("out");
        for new in [&out, &dir.join("home")] {
            fs::create_dir_all(new).context("can't make a directory for the client")?;
        }
        let outcome = self.run_in(order, &dir, &out);
        fs::remove_dir_all(&dir).context("can't remove the client's files")?;
        outcome
    }

    fn run_in(
        &self,
        order: &Order<'_>,
        dir: &Path,
        out: &Path,
    ) -> Result<(RunResult, Vec<String>), Failure> {
        let task = Task {
            set: order.set,
            server: &SERVER.to_string(),
            out,
            inputs: dir,
            authority: &self.certificates.authority,
            radio: order.link.radio,
            programs: &self.programs,
        };
        let command =
            order.client.command(&task).context("can't write the client's input files")?;
        let mut result = self.measure(order, dir, &command)?;
        order.set.verify(out).map_err(|fault| Failure::Client(format!("wrong bytes: {fault}")))?;
        if order.client.reports() {
            result.decisions = decisions(&task.report())?;
        }
        Ok((result, task.shown(&command)))
    }

    fn measure(
        &self,
        order: &Order<'_>,
        dir: &Path,
        command: &[String],
    ) -> Result<RunResult, Failure> {
        let (link, set, seed) = (order.link, order.set, order.seed);
        let name = format!("{}-{}-{}-{seed}.pcap", order.link_name, set.name, order.client);
        let log = self.packet_logs.as_deref().unwrap_or(dir).join(name);
        let config = EmulatorConfig {
            link: link.spec.clone(),
            seed,
            congestion_control: self.congestion_control,
            packet_log: Some(log.clone()),
        };
        let emulator = Emulator::start(config).map_err(|error| anyhow!(error))?;
        let nginx = server::start(&emulator, &self.guard, dir, &set.root, &self.certificates)?;
        let report = self.run_client(emulator.client(), dir, command, order.timeout)?;
        let stats = emulator.stats();
        let [down, up] = emulator.retransmitted().map_err(|error| anyhow!(error))?;
        drop(nginx);
        // From here on the log is complete.
        emulator.stop().map_err(|error| anyhow!(error))?;
        let [cpu, lasted] = [report.cpu_s, report.seconds].map(Duration::from_secs_f64);
        Ok(RunResult {
            seed,
            seconds: report.seconds,
            cpu_s: report.cpu_s,
            peak_rss: report.peak_rss,
            energy: energy::charge(&log, link.radio, cpu, lasted)
                .context("can't read the run's packets")?,
            connections: stats.connections,
            down: traffic(stats.down, down),
            up: traffic(stats.up, up),
            late_share: stats.late_share,
            decisions: Vec::new(),
        })
    }

    fn run_client(
        &self,
        namespace: &Namespace,
        dir: &Path,
        line: &[String],
        timeout: Duration,
    ) -> Result<GuardReport, Failure> {
        let (report, said) = (dir.join("guard.json"), dir.join("client.log"));
        let log = fs::File::create(&said).context("can't write the client's log")?;
        let mut command = Command::new(&self.guard);
        command.arg("guard").arg("--report").arg(&report);
        command.args(["--timeout", &timeout.as_secs().to_string(), "--"]).args(line);
        // Nobody's configuration files, proxies or memory of earlier runs.
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", dir.join("home")).env("LC_ALL", "C");
        let errors = log.try_clone().context("can't write the client's log")?;
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let mut guarded = spawn_guarded(namespace, command)?;
        while guarded.try_wait()?.is_none() {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Failure::Lab(anyhow!("interrupted")));
            }
            // Time is taken by the guard; this is how soon its end is seen.
            thread::sleep(Duration::from_millis(5));
        }
        let said = fs::read(&said).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let Ok(text) = fs::read_to_string(&report) else {
            return Err(Failure::Client(format!("it could not be run: {last}")));
        };
        let report: GuardReport = serde_json::from_str(&text).context("the guard's report")?;
        match report.code {
            _ if report.timed_out => {
                Err(Failure::Client(format!("ended after {} s", timeout.as_secs())))
            }
            Some(0) => Ok(report),
            Some(code) => Err(Failure::Client(format!("exit {code}: {last}"))),
            None => Err(Failure::Client(format!("ended by a signal: {last}"))),
        }
    }
}

fn traffic(stats: DirectionStats, retransmitted: u64) -> Traffic {
    let DirectionStats { packets, bytes, lost, overflowed } = stats;
    Traffic { packets, bytes, lost, overflowed, retransmitted }
}

/// The decisions in the report that `pelton get` wrote to `file`.
fn decisions(file: &Path) -> Result<Vec<DecisionLog>> {
    /// The part of it that is kept.
    #[derive(Deserialize)]
    struct Report {
        decisions: Vec<DecisionLog>,
    }
    let text = fs::read(file).context("can't read the report of pelton")?;
    let report: Report = serde_json::from_slice(&text).context("the report of pelton")?;
    Ok(report.decisions)
}

/// A guard and the program that it guards. Both end when this is dropped.
pub(super) struct Guarded(Child);

/// Starts `command`, which is a guard, inside `namespace`.
pub(super) fn spawn_guarded(namespace: &Namespace, mut command: Command) -> Result<Guarded> {
    use std::os::unix::process::CommandExt;
    // A group of its own: Ctrl-C at a terminal is ours to handle.
    command.process_group(0);
    let child = namespace.run(move || command.spawn())?.context("can't start the guard")?;
    Ok(Guarded(child))
}

impl Guarded {
    pub(super) fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process};
        // Nothing to do about a guard that has ended already.
        if let Ok(None) = self.0.try_wait()
            && let Some(pid) = Pid::from_raw(self.0.id().cast_signed())
        {
            let _ = kill_process(pid, Signal::TERM);
            let _ = self.0.wait();
        }
    }
}

/// Where the programs that are built here are: `pelton` as said, or beside this program, or else on
/// the path; `reqwest_loop` among the examples beside this program.
///
/// # Errors
/// When `pelton` is not where it was said to be.
pub fn find_programs(pelton: Option<&Path>) -> Result<Programs> {
    let here = std::env::current_exe().context("can't find this program's own file")?;
    let here = here.parent().unwrap_or(Path::new("."));
    let pelton = match pelton {
        Some(said) => {
            said.canonicalize().with_context(|| format!("--pelton {}", said.display()))?
        }
        None => Some(here.join("pelton")).filter(|file| file.is_file()).unwrap_or("pelton".into()),
    };
    Ok(Programs { pelton, reqwest: here.join("examples/reqwest_loop") })
}
