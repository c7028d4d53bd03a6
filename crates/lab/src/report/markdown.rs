//! The tables of a matrix as Markdown, for where no browser is: without charts and decisions.

use std::fmt::Write as _;

use crate::bench::results::Results;

use super::Grid;
use super::matrix::{self, behind_the_best, measurements, versions_and_commands};

/// The tables that show `results`; `file` is where they lie, for the commands.
pub fn matrix_markdown(results: &Results, file: &str) -> String {
    let [setting, values, lateness] = matrix::introduction(results).map(|text| escaped(&text));
    let command = results.command.join(" ");
    let mut text = format!(
        "# {}\n\n{setting}\n\n{values}\n\n```text\n{command}\n```\n\n{lateness}\n\n",
        matrix::TITLE
    );
    for (caption, grid) in matrix::overviews(results) {
        let _ = write!(text, "{caption}\n\n{}\n", table(&grid));
    }
    if let Some(figure) = behind_the_best(results, file) {
        let _ = write!(text, "{}\n\n{}\n", figure.caption, table(&figure.data));
    }
    for cells in results.groups() {
        let Some(first) = cells.first() else { continue };
        let _ = write!(text, "## {}\n\n{}\n\n", matrix::name(cells), matrix::outline(first));
        let _ = writeln!(text, "{}", table(&measurements(cells)));
        for failure in matrix::failures(cells) {
            let _ = writeln!(text, "{}\n", escaped(&failure));
        }
    }
    let (versions, commands) = versions_and_commands(results);
    let _ = write!(
        text,
        "## Clients\n\n{}\n{}\n\n```text\n{commands}\n```\n",
        table(&versions),
        matrix::COMMANDS
    );
    text
}

fn table(grid: &Grid) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(grid.header.iter().map(|name| escaped(name)).collect());
    text.push_str(&"| --- ".repeat(grid.header.len()));
    text.push_str("|\n");
    for row in &grid.rows {
        text.push_str(&line(row.iter().map(|cell| marked(cell)).collect()));
    }
    text
}

fn marked(cell: &str) -> String {
    match Grid::mark(cell) {
        (Some(_), text) => format!("**{}**", escaped(text)),
        (None, text) => escaped(text),
    }
}

/// Nothing in `text` is a tag or ends a cell of a table.
fn escaped(text: &str) -> String {
    crate::drawing::escaped(text).replace('|', "\\|")
}
