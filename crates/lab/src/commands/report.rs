//! `pelton-lab report`: results as a page.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use pelton_lab::bench::results::Results;
use pelton_lab::report::{matrix_markdown, matrix_page};

/// Show results of `run` as one HTML page, tables and charts, each with its data and its command; or
/// their tables as Markdown.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// What `pelton-lab run --out` or `--resume` wrote.
    #[arg(value_name = "RESULTS")]
    results: PathBuf,
    /// Where the page goes; Markdown if its name ends in `.md`.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let named = || args.results.display().to_string();
    let results = Results::load(&args.results).with_context(named)?;
    let file = args.results.file_name().unwrap_or_default().to_string_lossy();
    let is_markdown = args.out.extension().is_some_and(|extension| extension == "md");
    let page =
        if is_markdown { matrix_markdown(&results, &file) } else { matrix_page(&results, &file) };
    fs::write(&args.out, page).with_context(|| format!("can't write {}", args.out.display()))?;
    Ok(ExitCode::SUCCESS)
}
