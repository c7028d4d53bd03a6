//! What a run says: text for people on standard error, JSON on standard output.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Arg, Command, CommandFactory};
use pelton_algos::units::{BitRate, Bytes, Joules};
use pelton_core::events::{
    AllocationReport, FileReport, FileRestart, Plan, Summary, Waiting, Warning,
};
use pelton_core::{Error, ErrorKind, Report, Result, RunEvent};
use serde::Serialize;

use crate::args::{Cli, TextArgs};
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
    ended: Option<End>,
}

/// Why nothing more is written to standard output.
enum End {
    /// Nobody reads it any more.
    ReaderGone,
    Failed(Error),
}

impl Output {
    /// Progress of what `moves` is drawn, on a terminal.
    pub(crate) fn new(text: &TextArgs, moves: bool) -> Self {
        let draws = moves && !text.quiet && !text.no_progress && io::stderr().is_terminal();
        Self {
            json: text.json,
            quiet: text.quiet,
            verbose: text.verbose > 0,
            display: draws.then(Display::new),
            ended: None,
        }
    }

    /// Where progress is drawn, so that others can write beside it.
    pub(crate) fn display(&self) -> Option<&Display> {
        self.display.as_ref()
    }

    /// Takes note of `event`. Whether the run shall go on: not for a reader that is gone.
    pub(crate) fn event(&mut self, event: &RunEvent) -> bool {
        if self.json && self.ended.is_none() {
            self.ended = match json_line(event) {
                Ok(true) => None,
                Ok(false) => Some(End::ReaderGone),
                Err(error) => Some(End::Failed(error)),
            };
        }
        if let RunEvent::Waiting(Waiting { reason, .. })
        | RunEvent::Warning(Warning { reason, .. }) = event
        {
            tracing::warn!("{reason}");
            self.say(reason);
        }
        if let Some(line) = describe(event) {
            tracing::info!("{line}");
            if self.verbose || matches!(event, RunEvent::Restart(_)) {
                self.say(&line);
            }
        }
        if let Some(display) = &mut self.display {
            display.event(event);
        }
        self.ended.is_none()
    }

    /// Nobody reads the file that was passed on.
    pub(crate) fn reader_is_gone(&mut self) {
        self.ended = Some(End::ReaderGone);
    }

    /// What a dry run found.
    pub(crate) fn planned(&self, report: &Report) -> Result<()> {
        tell(&failures(&report.files, report.summary.files));
        if self.json {
            let failed = report.files.iter().cloned().map(RunEvent::File);
            let plan = report.plan.clone().map(RunEvent::Plan);
            let summary = RunEvent::Summary(report.summary.clone());
            return failed.chain(plan).chain([summary]).try_for_each(|it| json_line(&it).map(drop));
        }
        match &report.plan {
            Some(found) => print(plan(found).as_bytes()).map(drop),
            None => Ok(()),
        }
    }

    /// A line for people.
    pub(crate) fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        match &self.display {
            Some(display) => display.beside(|| tell(line)),
            None => tell(line),
        }
    }

    /// The last words: failures, and what the run did.
    ///
    /// # Errors
    /// The JSON could not be written.
    pub(crate) fn finish(mut self, report: &Report) -> Result<()> {
        if let Some(display) = self.display.take() {
            display.clear();
        }
        match self.ended.take() {
            None => {}
            // Who leaves in the middle wants to hear nothing more.
            Some(End::ReaderGone) => return Ok(()),
            Some(End::Failed(error)) => return Err(error),
        }
        // Failures are said even if nothing else is.
        tell(&failures(&report.files, report.summary.files));
        let already_there = report.files.iter().filter(|file| file.already_there).count();
        self.say(&summary(&report.summary, already_there));
        let code = report.summary.exit_code;
        let resumable = report.files.iter().any(|f| f.error.as_ref().is_some_and(|e| e.retryable));
        if code == exit::INTERRUPTED {
            self.say("interrupted: run the same command again to go on");
        } else if resumable {
            self.say("run the same command again to go on");
        }
        Ok(())
    }
}

/// A line, or several, on standard error. If nobody reads there, there is nobody to tell.
pub(crate) fn tell(text: &str) {
    let text = text.trim_end_matches('\n');
    if !text.is_empty() {
        let _ = writeln!(io::stderr(), "{}", with_flags(text));
    }
}

/// `text` with the flags of the command for the options that the library names in backquotes.
pub(crate) fn with_flags(text: &str) -> Cow<'_, str> {
    if !text.contains('`') {
        return Cow::Borrowed(text);
    }
    let command = Cli::command();
    let commands = command.get_subcommands();
    let flags = commands.flat_map(Command::get_arguments).filter_map(Arg::get_long);
    flags.fold(Cow::Borrowed(text), |text, flag| match format!("`{flag}`") {
        option if text.contains(&option) => Cow::Owned(text.replace(&option, &format!("--{flag}"))),
        _ => text,
    })
}

/// One line of JSON on standard output. Whether anyone still reads there.
pub(crate) fn json_line(value: &impl Serialize) -> Result<bool> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| exit::io("standard output", io::Error::other(error)))?;
    line.push(b'\n');
    print(&line)
}

/// Passes a file on to standard output, and takes note when nobody reads it any more.
pub(crate) struct Passing {
    reader_gone: Arc<AtomicBool>,
}

impl Passing {
    pub(crate) fn new(reader_gone: &Arc<AtomicBool>) -> Self {
        Self { reader_gone: Arc::clone(reader_gone) }
    }

    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            if error.kind() == io::ErrorKind::BrokenPipe {
                self.reader_gone.store(true, Ordering::Relaxed);
            }
        })
    }
}

impl Write for Passing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.noted(io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.noted(io::stdout().flush())
    }
}

/// Text on standard output. Whether anyone still reads there: a reader that has seen enough is no
/// failure.
pub(crate) fn print(text: &[u8]) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(exit::io("standard output", error)),
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
        RunEvent::Restart(FileRestart { at_s, name, bytes_lost, reason, .. }) => {
            let lost = Bytes(*bytes_lost);
            Some(format!("[{at_s:.2} s] {name}: starts anew, without {lost} of before: {reason}"))
        }
        _ => None,
    }
}

/// `small: 9 files x 1 stream`.
pub(crate) fn allocation(allocation: &AllocationReport) -> String {
    let AllocationReport { cluster, parallelism, concurrency, spare_streams, .. } = allocation;
    let files = count(*concurrency, "file");
    match (concurrency, spare_streams) {
        // All of them are this file's.
        (1, spare) => format!("{cluster}: {files} x {}", count(parallelism + spare, "stream")),
        (_, 0) => format!("{cluster}: {files} x {}", count(*parallelism, "stream")),
        (_, spare) => {
            format!("{cluster}: {files} x {} + {spare}", count(*parallelism, "stream"))
        }
    }
}

fn describe_file(file: &FileReport) -> String {
    if let Some(error) = &file.error {
        return format!("{}: {}", shown_name(file), error.message);
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

/// What a run did, in one line. Of its files so many were `already_there`.
fn summary(summary: &Summary, already_there: usize) -> String {
    let Summary { files, files_done, seconds, .. } = *summary;
    let mut line = if files_done == files {
        count(files, "file")
    } else {
        format!("{files_done} of {}", count(files, "file"))
    };
    if already_there > 0 {
        // Writing to a String can't fail.
        let _ = write!(line, ", {already_there} already there");
    }
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
pub(crate) fn failures(files: &[FileReport], total: u64) -> String {
    let failed: Vec<(&str, &str)> = files
        .iter()
        .filter_map(|file| Some((shown_name(file), file.error.as_ref()?)))
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

/// A listing has no name, and what can't be had from one has that of its URL.
fn shown_name(file: &FileReport) -> &str {
    match file.url.rsplit('/').next() {
        _ if !file.name.is_empty() => &file.name,
        None | Some("") => "(listing)",
        Some(last) => last,
    }
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
