//! What a run says: text for people on standard error, JSON on standard output.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes, Joules};
use pelton_core::events::{AllocationReport, FileReport, Plan, Summary};
use pelton_core::{ErrorKind, Report, Result, RunEvent};
use serde::Serialize;

use crate::args::TextArgs;
use crate::exit;
use crate::progress::Display;

/// Failed files that are shown; `--json` and `--report` have all.
const SHOWN_FAILURES: usize = 20;

/// The kind of files that were not complete when the run was interrupted.
const CANCELLED: &str = ErrorKind::Cancelled.name();

/// Says what happens, as loud and in the form that was asked for.
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    verbose: bool,
    display: Option<Display>,
}

impl Output {
    /// Progress is drawn only on a terminal.
    pub(crate) fn new(text: &TextArgs) -> Self {
        let draws = !text.quiet && !text.no_progress && io::stderr().is_terminal();
        Self {
            json: text.json,
            quiet: text.quiet,
            verbose: text.verbose > 0,
            display: draws.then(Display::new),
        }
    }

    /// Where progress is drawn, so that others can write beside it.
    pub(crate) fn display(&self) -> Option<&Display> {
        self.display.as_ref()
    }

    /// Takes note of `event`.
    pub(crate) fn event(&mut self, event: &RunEvent) -> Result<()> {
        if self.json {
            json_line(event)?;
        }
        if let Some(line) = describe(event) {
            tracing::info!("{line}");
            if self.verbose {
                self.say(&line);
            }
        }
        if let Some(display) = &mut self.display {
            display.event(event);
        }
        Ok(())
    }

    /// A line for people.
    pub(crate) fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        match &self.display {
            Some(display) => display.beside(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// The last words: failures, and what the run did.
    pub(crate) fn finish(mut self, report: &Report) {
        if let Some(display) = self.display.take() {
            display.clear();
        }
        // Failures are said even if nothing else is.
        eprint!("{}", failures(&report.files, report.summary.files));
        self.say(&summary(&report.summary));
        let code = report.summary.exit_code;
        let resumable = report.files.iter().any(|f| f.error.as_ref().is_some_and(|e| e.retryable));
        if code == exit::INTERRUPTED {
            self.say("interrupted: run the same command again to go on");
        } else if resumable {
            self.say("run the same command again to go on");
        }
    }
}

/// One line of JSON on standard output.
pub(crate) fn json_line(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| exit::io("standard output", io::Error::other(error)))?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    let written = out.write_all(&line).and_then(|()| out.flush());
    written.map_err(|error| exit::io("standard output", error))
}

/// Text on standard output. A reader that has seen enough is no failure.
pub(crate) fn print(text: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(exit::io("standard output", error))
        }
        _ => Ok(()),
    }
}

/// A line for people, for the events that are worth one.
fn describe(event: &RunEvent) -> Option<String> {
    match event {
        RunEvent::Decision(decision) => {
            let parts: Vec<String> = decision.allocations.iter().map(allocation).collect();
            let reason = &decision.reason;
            Some(format!("[{:.2} s] {reason} -> {}", decision.at_s, parts.join("; ")))
        }
        RunEvent::File(file) => Some(format!("[{:.2} s] {}", file.at_s, describe_file(file))),
        _ => None,
    }
}

/// `small: 9 files x 1 stream`.
pub(crate) fn allocation(allocation: &AllocationReport) -> String {
    let AllocationReport { cluster, parallelism, concurrency, .. } = allocation;
    format!("{cluster}: {} x {}", count(*concurrency, "file"), count(*parallelism, "stream"))
}

fn describe_file(file: &FileReport) -> String {
    if let Some(error) = &file.error {
        return format!("{}: {}", file.name, error.message);
    }
    if file.already_there {
        return format!("{}: already there", file.name);
    }
    let mut line = format!("{}: {} in {:.2} s", file.name, Bytes(file.bytes), file.seconds);
    if file.resumed_from > 0 {
        // Writing to a String can't fail.
        let _ = write!(line, ", {} were there", Bytes(file.resumed_from));
    }
    if let Some(protocol) = &file.protocol {
        let _ = write!(line, ", {protocol}");
    }
    if file.connections > 1 {
        let _ = write!(line, ", {} connections", file.connections);
    }
    line
}

/// What a run did, in one line.
fn summary(summary: &Summary) -> String {
    let Summary { files, files_done, seconds, .. } = *summary;
    let mut line = if files_done == files {
        count(files, "file")
    } else {
        format!("{files_done} of {}", count(files, "file"))
    };
    let (bytes, rate) = (Bytes(summary.bytes), BitRate::from_bps(summary.throughput_bps));
    let _ = write!(line, ", {bytes} in {}: {rate}", span(seconds));
    if let (Some(joules), Some(source)) = (summary.energy_j, &summary.energy_source) {
        let _ = write!(line, ", {} ({source})", Joules::new(joules));
    }
    let _ = write!(line, ", {}", count(summary.connections, "connection"));
    if summary.retries > 0 {
        let _ = write!(line, ", {}", count_of(summary.retries, "retry", "retries"));
    }
    line
}

/// The table of failures. What merely was interrupted is none.
fn failures(files: &[FileReport], total: u64) -> String {
    let failed: Vec<(&str, &str)> = files
        .iter()
        .filter_map(|file| Some((file.name.as_str(), file.error.as_ref()?)))
        .filter(|(_, error)| error.kind != CANCELLED)
        .map(|(name, error)| (name, error.message.as_str()))
        .collect();
    if failed.is_empty() {
        return String::new();
    }
    let shown = &failed[..failed.len().min(SHOWN_FAILURES)];
    let width = shown.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = format!("{} of {} failed:\n", failed.len(), count(total, "file"));
    for (name, message) in shown {
        let _ = writeln!(text, "  {name:width$}  {message}");
    }
    if failed.len() > shown.len() {
        let more = failed.len() - shown.len();
        let _ = writeln!(text, "  and {more} more: --json and --report FILE.json name them all");
    }
    text
}

/// What a dry run found.
pub(crate) fn plan(plan: &Plan) -> String {
    let mut text = format!("{}, {}", count(plan.files, "file"), Bytes(plan.bytes));
    if plan.files_of_unknown_size > 0 {
        let _ = write!(text, " ({} of unknown size)", plan.files_of_unknown_size);
    }
    let link = &plan.link;
    let _ = writeln!(
        text,
        "\nlink      {} x {:.1} ms = {}, {} a stream",
        BitRate::from_bps(link.bandwidth_bps),
        link.rtt_s * 1e3,
        Bytes(link.bdp_bytes),
        Bytes(link.stream_window_bytes),
    );
    for cluster in &plan.clusters {
        let mean = Bytes(cluster.mean_size_bytes);
        let files = count(cluster.files, "file");
        let bytes = Bytes(cluster.bytes);
        let _ = writeln!(text, "cluster   {}: {files}, {bytes}, {mean} each", cluster.cluster);
    }
    for parameters in &plan.parameters {
        let _ = writeln!(text, "gets      {}", allocation(parameters));
    }
    let _ = writeln!(text, "because   {}", plan.reason);
    let _ = writeln!(text, "joules    {}", plan.energy_source);
    text
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: impl Into<u64>, thing: &str) -> String {
    count_of(number, thing, &format!("{thing}s"))
}

fn count_of(number: impl Into<u64>, one: &str, many: &str) -> String {
    match number.into() {
        1 => format!("1 {one}"),
        number => format!("{number} {many}"),
    }
}

/// A span of time: `4.21 s` below a minute, else `2m 5s`.
fn span(seconds: f64) -> String {
    if seconds < 60.0 { format!("{seconds:.2} s") } else { whole_seconds(seconds) }
}

/// A span of time in whole seconds: `5s`, `1h 2m 5s`.
pub(crate) fn whole_seconds(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds.round()).unwrap_or(Duration::MAX);
    humantime::format_duration(whole).to_string()
}

#[cfg(test)]
mod tests;
