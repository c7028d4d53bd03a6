//! `pelton-lab guard`: runs a program, measures it, and ends it when it shall end. A process of its
//! own, because a program's peak memory would otherwise begin with that of the one that starts it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use pelton_lab::bench::GuardReport;
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use wait4::Wait4;

/// A program that never ends is ended after so long, if nothing else is said.
const LONGEST: u64 = 1_000_000;

/// Run a program that ends with this one; for pelton-lab itself.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// Write seconds, CPU seconds and peak memory to FILE, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// End it after SECONDS.
    #[arg(long, value_name = "SECONDS", default_value_t = LONGEST)]
    timeout: u64,
    /// The program and its arguments.
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

/// Why the program ends.
enum End {
    Itself(std::io::Result<wait4::ResUse>, Duration),
    Signal,
}

pub(crate) fn run(args: &GuardArgs) -> Result<ExitCode> {
    // Whoever started this may be killed, and then nobody would end the program.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let (ends, end) = channel();
    let on_signal = ends.clone();
    ctrlc::set_handler(move || {
        // When nobody listens the program has ended.
        let _ = on_signal.send(End::Signal);
    })?;

    let (program, arguments) = args.command.split_first().ok_or_else(|| anyhow!("no program"))?;
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .process_group(0)
        .spawn()
        .with_context(|| format!("can't start {program}"))?;
    let group = Pid::from_child(&child);
    std::thread::spawn(move || {
        let outcome = child.wait4();
        let _ = ends.send(End::Itself(outcome, start.elapsed()));
    });

    let mut timed_out = false;
    let mut outcome = end.recv_timeout(Duration::from_secs(args.timeout));
    if let Err(RecvTimeoutError::Timeout) = outcome {
        timed_out = true;
        kill_process_group(group, Signal::KILL)?;
        outcome = end.recv().map_err(|_| RecvTimeoutError::Disconnected);
    }
    match outcome? {
        End::Signal => {
            kill_process_group(group, Signal::KILL)?;
            Ok(ExitCode::FAILURE)
        }
        End::Itself(used, time) => {
            let used = used.with_context(|| format!("can't wait for {program}"))?;
            // What it started and left behind ends, too. There may be nothing.
            let _ = kill_process_group(group, Signal::KILL);
            let report = GuardReport {
                seconds: time.as_secs_f64(),
                cpu_s: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
                peak_rss: used.rusage.maxrss,
                code: used.status.code(),
                timed_out,
            };
            if let Some(file) = &args.report {
                fs::write(file, serde_json::to_vec(&report)?)?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
