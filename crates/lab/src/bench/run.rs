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

use super::clients::{Client, Task};
use super::results::{RunResult, Traffic};
use super::server::{self, Certificates};
use super::{PreparedSet, Workspace};
use crate::emulator::{
    CongestionControl, DirectionStats, Emulator, EmulatorConfig, Namespace, SERVER,
};
use crate::model::LinkSpec;

/// Runs clients, one at a time, each on a link of its own and against a server of its own.
pub struct Runner {
    /// Where files lie.
    pub workspace: Workspace,
    /// The program `pelton`.
    pub pelton: PathBuf,
    /// What the server's TCP follows.
    pub congestion_control: CongestionControl,
    /// Where the packets of each run are logged, if they are.
    pub packet_logs: Option<PathBuf>,
    /// Set to end the run under way.
    pub interrupted: Arc<AtomicBool>,
    certificates: Certificates,
    /// This program, which has the command `guard`.
    guard: PathBuf,
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
    pub fn new(workspace: Workspace, pelton: PathBuf) -> Result<Self> {
        Ok(Self {
            certificates: Certificates::make(workspace.path())?,
            guard: std::env::current_exe().context("can't find this program's own file")?,
            workspace,
            pelton,
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

    /// Has `client` fetch `set` over `link`; gives what was measured and the command line.
    ///
    /// # Errors
    /// [`Failure::Client`] when it fails, takes longer than `timeout`, or stores other bytes.
    pub fn run(
        &self,
        (link_name, link): (&str, &LinkSpec),
        set: &PreparedSet,
        client: &Client,
        seed: u64,
        timeout: Duration,
    ) -> Result<(RunResult, Vec<String>), Failure> {
        let dir = self.workspace.path();
        let out = dir.join("out");
        fs::create_dir_all(&out).context("can't make a directory for the client")?;
        let task = Task {
            set,
            server: &SERVER.to_string(),
            out: &out,
            inputs: dir,
            authority: &self.certificates.authority,
            pelton: &self.pelton,
        };
        let command = client.command(&task).context("can't write the client's input files")?;
        let log_name = format!("{link_name}-{}-{client}-{seed}.pcap", set.name);
        let config = EmulatorConfig {
            link: link.clone(),
            seed,
            congestion_control: self.congestion_control,
            packet_log: self.packet_logs.as_ref().map(|dir| dir.join(log_name)),
        };
        let outcome = self.measure(config, set, &command, timeout);
        let checked = outcome.and_then(|result| {
            set.verify(&out).map_err(|fault| Failure::Client(format!("wrong bytes: {fault}")))?;
            Ok(result)
        });
        fs::remove_dir_all(&out).context("can't remove the client's files")?;
        Ok((checked?, command))
    }

    fn measure(
        &self,
        config: EmulatorConfig,
        set: &PreparedSet,
        command: &[String],
        timeout: Duration,
    ) -> Result<RunResult, Failure> {
        let seed = config.seed;
        let emulator = Emulator::start(config).map_err(|error| anyhow!(error))?;
        let dir = self.workspace.path();
        let nginx = server::start(&emulator, &self.guard, dir, &set.root, &self.certificates)?;
        let report = self.run_client(emulator.client(), command, timeout)?;
        let stats = emulator.stats();
        drop(nginx);
        emulator.stop().map_err(|error| anyhow!(error))?;
        Ok(RunResult {
            seed,
            seconds: report.seconds,
            cpu_s: report.cpu_s,
            peak_rss: report.peak_rss,
            connections: stats.connections,
            down: traffic(stats.down),
            up: traffic(stats.up),
            late_share: stats.late_share,
        })
    }

    fn run_client(
        &self,
        namespace: &Namespace,
        line: &[String],
        timeout: Duration,
    ) -> Result<GuardReport, Failure> {
        let dir = self.workspace.path();
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

fn traffic(stats: DirectionStats) -> Traffic {
    let DirectionStats { packets, bytes, lost, overflowed } = stats;
    Traffic { packets, bytes, lost, overflowed }
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

/// Where `pelton` is: as said, or beside this program, or else on the path.
///
/// # Errors
/// When it is not where it was said to be.
pub fn find_pelton(said: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = said {
        return path.canonicalize().with_context(|| format!("--pelton {}", path.display()));
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("pelton")));
    Ok(beside.filter(|file| file.is_file()).unwrap_or_else(|| "pelton".into()))
}
