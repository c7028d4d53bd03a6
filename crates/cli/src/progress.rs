//! What is drawn on a terminal while a run goes on.

use std::fmt::Write as _;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use pelton_algos::units::{BitRate, Bytes, Joules};
use pelton_core::RunEvent;
use pelton_core::events::{ActiveFile, Progress};

use crate::output::{count, whole_seconds};

/// Files in transfer that are drawn.
const SHOWN_FILES: usize = 4;
/// What stands before the text of a line of the whole run, and of a file.
const TOTAL: &str = "{bar:32.cyan/dim} {msg}";
const TOTAL_BAR: usize = 33;
const FILE: &str = "  {bar:16.dim} {msg}";
const FILE_BAR: usize = 19;
const BAR_CHARS: &str = "━╸─";

/// The lines at the bottom of the terminal: the whole run, what it costs, the present decision,
/// and a few files.
pub(crate) struct Display {
    lines: MultiProgress,
    /// An empty line. The terminal shows a Ctrl-C as `^C` on a line of its own, so that the first
    /// line here is not found again when all are taken off.
    _margin: ProgressBar,
    total: ProgressBar,
    cost: ProgressBar,
    decision: ProgressBar,
    files: Vec<ProgressBar>,
    energy_source: String,
}

impl Display {
    /// A display with nothing to show yet.
    pub(crate) fn new() -> Self {
        let lines = MultiProgress::new();
        let line = |template| lines.add(ProgressBar::new(1).with_style(style(template)));
        let margin = line(" ");
        margin.tick();
        let total = line(TOTAL);
        let cost = line("{msg}");
        let decision = line("{msg:.dim}");
        total.set_message("looking at what there is");
        Self {
            lines,
            _margin: margin,
            total,
            cost,
            decision,
            files: Vec::new(),
            energy_source: String::new(),
        }
    }

    /// Shows what `event` tells.
    pub(crate) fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Plan(plan) => {
                // The source alone: why it is this one stands in the plan.
                let source = plan.energy_source.split(", because").next();
                source.unwrap_or_default().clone_into(&mut self.energy_source);
            }
            RunEvent::Decision(decision) => self.decision.set_message(fitting(&decision.reason, 0)),
            RunEvent::Progress(progress) => self.progress(progress),
            _ => {}
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.total.set_length(progress.bytes_expected.max(1));
        self.total.set_position(progress.bytes);
        self.total.set_message(fitting(&total_line(progress), TOTAL_BAR));
        self.cost.set_message(fitting(&cost_line(progress, &self.energy_source), 0));
        let shown = progress.active.len().min(SHOWN_FILES);
        for superfluous in self.files.drain(shown.min(self.files.len())..) {
            self.lines.remove(&superfluous);
        }
        while self.files.len() < shown {
            let line = ProgressBar::new(1).with_style(style(FILE));
            self.files.push(self.lines.add(line));
        }
        for (line, file) in self.files.iter().zip(&progress.active) {
            line.set_length(file.size.unwrap_or(0).max(1));
            line.set_position(if file.size.is_some() { file.bytes } else { 0 });
            line.set_message(fitting(&file_line(file), FILE_BAR));
        }
    }

    /// Lets `write` write to the terminal as if nothing were drawn.
    pub(crate) fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.lines.suspend(write)
    }

    /// A handle to the lines, for those who write beside them from elsewhere.
    pub(crate) fn lines(&self) -> MultiProgress {
        self.lines.clone()
    }

    /// Takes everything off the terminal.
    pub(crate) fn clear(self) {
        // A terminal that is gone shows nothing anyway.
        let _ = self.lines.clear();
    }
}

/// `text` as far as it fits on the terminal beside `taken` characters.
fn fitting(text: &str, taken: usize) -> String {
    let (_, width) = console::Term::stderr().size();
    let room = usize::from(width).saturating_sub(taken + 1);
    console::truncate_str(text, room, "…").into_owned()
}

/// The style of a line.
pub(crate) fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this program; the default shows the same numbers.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars(BAR_CHARS)
}

fn total_line(progress: &Progress) -> String {
    let expected = progress.bytes_expected.max(progress.bytes);
    let percent = 100 * u128::from(progress.bytes) / u128::from(expected.max(1));
    let rate = BitRate::from_bps(progress.throughput_bps);
    let left = match progress.remaining_s {
        Some(seconds) if seconds >= 1.0 => format!(", {} left", whole_seconds(seconds)),
        _ => String::new(),
    };
    format!("{percent:3}%  {} of {}  {rate}{left}", Bytes(progress.bytes), Bytes(expected))
}

fn cost_line(progress: &Progress, energy_source: &str) -> String {
    let files = count(progress.files, "file");
    let mut line = format!("{} of {files}", progress.files_done);
    // Writing to a String can't fail.
    if progress.files_failed > 0 {
        let _ = write!(line, ", {} failed", progress.files_failed);
    }
    let _ = write!(line, ", {}", count(progress.connections, "connection"));
    if let Some(joules) = progress.energy_j {
        let _ = write!(line, ", {} ({energy_source})", Joules::new(joules));
    }
    line
}

fn file_line(file: &ActiveFile) -> String {
    let there = Bytes(file.bytes);
    match file.size {
        Some(size) => format!("{}  {there} of {}", file.name, Bytes(size)),
        None => format!("{}  {there}", file.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> Progress {
        Progress {
            at_s: 2.0,
            files: 221,
            files_done: 38,
            files_failed: 0,
            bytes: 10_000_000,
            bytes_expected: 40_000_000,
            throughput_bps: 45e6,
            energy_j: Some(4.2),
            connections: 1,
            clusters: Vec::new(),
            active: Vec::new(),
            remaining_s: Some(5.4),
        }
    }

    #[test]
    fn the_total_line_says_how_far_how_fast_and_how_long() {
        assert_eq!(total_line(&progress()), " 25%  10.0 MB of 40.0 MB  45.0 Mbit/s, 5s left");
        let nothing = Progress { bytes: 0, bytes_expected: 0, remaining_s: None, ..progress() };
        assert_eq!(total_line(&nothing), "  0%  0 B of 0 B  45.0 Mbit/s");
    }

    #[test]
    fn joules_carry_their_source() {
        let line = cost_line(&progress(), "modelled: wifi+cpu");
        assert_eq!(line, "38 of 221 files, 1 connection, 4.20 J (modelled: wifi+cpu)");
        let unmetered = Progress { energy_j: None, files_failed: 2, ..progress() };
        assert_eq!(cost_line(&unmetered, "none"), "38 of 221 files, 2 failed, 1 connection");
    }

    #[test]
    fn lines_appear_and_go_with_their_files() {
        let file = |name: &str| ActiveFile { name: name.to_owned(), bytes: 1, size: Some(2) };
        let mut display = Display::new();
        let names = ["a", "b", "c", "d", "e", "f"];
        let active = names.map(file).to_vec();
        display.event(&RunEvent::Progress(Progress { active, ..progress() }));
        assert_eq!(display.files.len(), SHOWN_FILES);
        display.event(&RunEvent::Progress(Progress { active: vec![file("z")], ..progress() }));
        assert_eq!(display.files.len(), 1);
        assert_eq!(display.files[0].message(), "z  1 B of 2 B");
    }
}
