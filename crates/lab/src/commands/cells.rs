//! `pelton-lab cells`: the names that a matrix is made of.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use pelton_algos::units::Bytes;
use pelton_lab::cells::Cells;

use super::table::table;

/// Show the links and sets of files that there are, with their numbers.
#[derive(Debug, Args)]
pub(crate) struct CellsArgs {
    #[command(flatten)]
    source: CellsSource,
}

/// Where links and sets come from.
#[derive(Debug, Args)]
pub(crate) struct CellsSource {
    /// Add the links and sets of FILE, which is written like crates/lab/cells.toml.
    #[arg(long, value_name = "FILE")]
    cells: Option<PathBuf>,
}

impl CellsSource {
    /// The built-in cells and those of the file.
    pub(crate) fn load(&self) -> Result<Cells> {
        let mut cells = Cells::built_in().context("cells.toml")?;
        if let Some(file) = &self.cells {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("can't read {}", file.display()))?;
            let dir = file.parent().unwrap_or(Path::new("."));
            cells.add(&text, dir).with_context(|| file.display().to_string())?;
        }
        Ok(cells)
    }
}

pub(crate) fn run(args: &CellsArgs) -> Result<ExitCode> {
    let cells = args.source.load()?;
    let mut links =
        table(&["link", "about", "down Mbit/s", "up Mbit/s", "RTT ms", "loss %", "queue kB"], 2);
    for (name, link) in &cells.links {
        let (down, up) = (&link.spec.down, &link.spec.up);
        links.add_row([
            name.clone(),
            link.about.clone(),
            format!("{:.4}", down.peak_rate().mbps())
                .trim_end_matches(['0'])
                .trim_end_matches('.')
                .to_owned(),
            format!("{:.4}", up.peak_rate().mbps())
                .trim_end_matches(['0'])
                .trim_end_matches('.')
                .to_owned(),
            format!("{}", link.spec.rtt().as_millis()),
            format!("{:.1}", 100.0 * down.loss.share()),
            format!("{}", down.queue.0 / 1000),
        ]);
    }
    outln!("{links}\n");
    let mut sets = table(&["set", "about", "files", "bytes"], 2);
    for (name, set) in &cells.sets {
        // `long` has no size without a link.
        let example = cells.link("20x60")?.spec.down.peak_rate();
        let files = set.files(1, example);
        let bytes: Bytes = files.iter().map(|file| Bytes(file.size)).sum();
        sets.add_row([name.clone(), set.about.clone(), files.len().to_string(), bytes.to_string()]);
    }
    outln!("{sets}\n\nThe size of `long` is that on 20x60. `pages` means all of page-*.");
    Ok(ExitCode::SUCCESS)
}
