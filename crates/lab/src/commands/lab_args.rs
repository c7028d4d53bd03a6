//! What every command takes that measures on real packets, and how it measures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use pelton_algos::units::{BitRate, Bytes};
use pelton_lab::bench::campaign::{Campaign, Conditions};
use pelton_lab::bench::clients::Programs;
use pelton_lab::bench::plan::Plan;
use pelton_lab::bench::results::{Results, SCHEMA};
use pelton_lab::bench::{Runner, Workspace, find_programs, schedule};
use pelton_lab::emulator::{CongestionControl, become_able, probe};

/// Above this rate it is measured first whether the machine can carry a link.
const SURELY_CARRIED: f64 = 100e6;

/// As of shells: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// Runs side by side, where they are slow: together below a tenth of what the emulator carries
    /// here. A faster one has the machine to itself.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// What the server's TCP follows.
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    congestion_control: Control,
    /// End a client that takes longer than this many seconds; by default what the cell deserves.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Write the results to FILE, as JSON.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Keep the finished runs of FILE, measure what is missing, and write all of it there. A FILE that
    /// does not exist yet is begun.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Leave out clients that are not installed.
    #[arg(long)]
    skip_missing: bool,
    /// Keep each run's packets in a file in DIR, in pcap's format.
    #[arg(long, value_name = "DIR")]
    packets: Option<PathBuf>,
    /// Where files lie while they are served and fetched; by default in memory, if there is room.
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// The program pelton; by default the one beside this program, else that on the path.
    #[arg(long, value_name = "FILE")]
    pelton: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Control {
    Cubic,
    Bbr,
}

impl Control {
    fn control(self) -> CongestionControl {
        match self {
            Self::Cubic => CongestionControl::Cubic,
            Self::Bbr => CongestionControl::Bbr,
        }
    }
}

/// What was measured, and how it ended.
pub(crate) struct Measured {
    pub(crate) results: Results,
    interrupted: bool,
    outcome: Result<()>,
}

impl Measured {
    /// The exit code, once the results have been shown.
    pub(crate) fn code(self) -> Result<ExitCode> {
        if self.interrupted {
            note!("pelton-lab: interrupted; what was measured until then is above");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        self.outcome?;
        let failed = self.results.cells.iter().any(|cell| !cell.failures.is_empty());
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

impl LabArgs {
    /// Where packets are kept, if they are.
    pub(crate) fn packets(&self) -> Option<&Path> {
        self.packets.as_deref()
    }

    /// Carries out `plan`, or what of it is not yet in the results that are resumed.
    pub(crate) fn measure(&self, mut plan: Plan) -> Result<Measured> {
        if self.jobs == 0 {
            bail!("--jobs 0 measures nothing");
        }
        let programs = find_programs(self.pelton.as_deref())?;
        let (clients, skipped) = self.present(&mut plan, &programs)?;
        let fresh = self.fresh(&plan, clients, skipped)?;
        let results = self.resumed(fresh)?;

        become_able()?;
        let workspace = Workspace::create(&self.place(&plan)?)?;
        let mut runner = Runner::new(workspace, programs)?;
        runner.congestion_control = self.congestion_control.control();
        if let Some(dir) = &self.packets {
            std::fs::create_dir_all(dir).with_context(|| format!("--packets {}", dir.display()))?;
            runner.packet_logs = Some(dir.clone());
        }
        let interrupted = interruption(&runner)?;
        let conditions = Conditions {
            jobs: self.jobs,
            budget: self.budget(&plan)?,
            timeout: self.timeout.map(Duration::from_secs),
            out: self.out.clone().or_else(|| self.resume.clone()),
        };
        let campaign = Campaign::new(&plan, &runner, conditions, results)?;
        let minutes = campaign.estimate().as_secs_f64() / 60.0;
        note!("pelton-lab: {} runs, about {minutes:.1} min", campaign.left());
        let (results, outcome) = campaign.run();
        Ok(Measured { results, interrupted: interrupted.load(Ordering::Relaxed), outcome })
    }

    /// Checks which clients are installed. One that is not ends everything, or is left out where this
    /// was asked for.
    fn present(
        &self,
        plan: &mut Plan,
        programs: &Programs,
    ) -> Result<(BTreeMap<String, String>, BTreeMap<String, String>)> {
        let (mut present, mut missing) = (BTreeMap::new(), BTreeMap::new());
        for client in plan.clients() {
            match client.version(programs) {
                Ok(version) => {
                    present.insert(client.name.clone(), version);
                }
                Err(error) => {
                    let (program, remedy) = client.program(programs);
                    let why = format!("{}: {error}; {remedy}", program.display());
                    missing.insert(client.name.clone(), why);
                }
            }
        }
        let named = missing.iter().map(|(client, why)| format!("{client} can't run: {why}"));
        if !missing.is_empty() && !self.skip_missing {
            let lines: Vec<_> = named.collect();
            bail!("{}\n(--skip-missing leaves such clients out)", lines.join("\n"));
        }
        for line in named {
            note!("pelton-lab: left out: {line}");
        }
        plan.retain_clients(|client| present.contains_key(&client.name));
        if present.is_empty() {
            bail!("no client of the matrix is installed");
        }
        Ok((present, missing))
    }

    /// Results without a run.
    fn fresh(
        &self,
        plan: &Plan,
        clients: BTreeMap<String, String>,
        skipped: BTreeMap<String, String>,
    ) -> Result<Results> {
        let mut command: Vec<String> = std::env::args().collect();
        if let Some(program) = command.first_mut() {
            "pelton-lab".clone_into(program);
        }
        Ok(Results {
            schema: SCHEMA,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command,
            repeats: plan.repeats,
            seed: plan.seed,
            jobs: self.jobs,
            lab: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine(),
            server: Runner::server_version()?,
            congestion_control: self.congestion_control.control().name().to_owned(),
            clients,
            skipped,
            cells: Vec::new(),
        })
    }

    /// The results of the file that is resumed, made into a part of `fresh`; `fresh` without one.
    fn resumed(&self, fresh: Results) -> Result<Results> {
        let Some(file) = self.resume.as_deref().filter(|file| file.exists()) else {
            return Ok(fresh);
        };
        let named = || format!("can't resume {}", file.display());
        let mut old = Results::load(file).with_context(named)?;
        differ(&old, &fresh).with_context(named)?;
        old.repeats = old.repeats.max(fresh.repeats);
        old.jobs = old.jobs.max(fresh.jobs);
        old.clients.extend(fresh.clients);
        old.skipped = fresh.skipped;
        Ok(old)
    }

    /// A directory with room for the files of so many runs as may go on at once, served and fetched.
    fn place(&self, plan: &Plan) -> Result<PathBuf> {
        let sizes = plan.cells.iter().map(|cell| cell.size(plan.seed).0.0);
        let needed = Bytes(sizes.max().unwrap_or(0) * 2 * self.jobs as u64);
        let free = |dir: &Path| {
            let stat = rustix::fs::statvfs(dir);
            stat.map_or(Bytes::ZERO, |stat| Bytes(stat.f_bavail * stat.f_frsize))
        };
        if let Some(dir) = &self.work {
            if free(dir) < needed {
                bail!("--work {} has {} free, and {needed} are needed", dir.display(), free(dir));
            }
            return Ok(dir.clone());
        }
        let (memory, disk) = (PathBuf::from("/dev/shm"), std::env::temp_dir());
        // Half of what is free in memory is left to others.
        if free(&memory) >= needed + needed {
            Ok(memory)
        } else if free(&disk) >= needed {
            Ok(disk)
        } else {
            bail!(
                "{needed} are needed for files, more than {} has free; say where with --work",
                disk.display()
            )
        }
    }

    /// What runs side by side may move together. Refuses a link that this machine can't carry.
    fn budget(&self, plan: &Plan) -> Result<BitRate> {
        let fastest = plan.cells.iter().max_by(|a, b| a.rate().bps().total_cmp(&b.rate().bps()));
        let Some(fastest) = fastest else { return Ok(BitRate::ZERO) };
        if self.jobs == 1 && fastest.rate().bps() <= SURELY_CARRIED {
            return Ok(BitRate::ZERO);
        }
        let capacity = probe::capacity()?;
        if fastest.rate() > capacity {
            bail!(
                "{} has {}, and the emulator carries {capacity} on this machine now; leave it out, or run when the machine is idle",
                fastest.link_name,
                fastest.rate(),
            );
        }
        Ok(schedule::budget(capacity))
    }
}

/// Fails when runs of `new` can't stand beside those of `old`.
fn differ(old: &Results, new: &Results) -> Result<()> {
    let same = [
        ("seed", &old.seed.to_string(), &new.seed.to_string()),
        ("pelton-lab", &old.lab, &new.lab),
        ("machine", &old.machine, &new.machine),
        ("server", &old.server, &new.server),
        ("congestion control", &old.congestion_control, &new.congestion_control),
    ];
    for (what, old, new) in same {
        if old != new {
            bail!("{what}: it was measured with {old}, and now it is {new}");
        }
    }
    for (client, old) in &old.clients {
        if let Some(new) = new.clients.get(client).filter(|new| *new != old) {
            bail!("{client}: it was measured with {old}, and now it is {new}");
        }
    }
    Ok(())
}

/// A flag that Ctrl-C sets, as it sets that of the runner.
fn interruption(runner: &Runner) -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::clone(&runner.interrupted);
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    Ok(interrupted)
}

fn machine() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("Linux {}, {} cores", kernel.trim(), cores)
}
