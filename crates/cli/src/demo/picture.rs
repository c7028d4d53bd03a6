//! The demo's table and its picture.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use pelton_core::events::Summary;

use super::Outcome;

/// Length of the longest bar.
const WIDTH: usize = 40;

/// Nothing but a line below the header.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// The table, and a bar chart of time and of efficiency.
pub(super) fn draw(outcomes: &[Outcome]) -> String {
    let mut text = format!("{}\n", table(outcomes));
    bars(&mut text, "seconds (shorter is better)", outcomes, |summary| Some(summary.seconds));
    bars(&mut text, "MB per joule, modelled (longer is better)", outcomes, megabytes_per_joule);
    text.push_str("\nEvery file of every run has the digest that the origin says.\n");
    text
}

fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header([
        "",
        "seconds",
        "Mbit/s",
        "joules\n(modelled)",
        "MB\nper joule",
        "throughput/energy\n(Mbit/s per J)",
        "connections",
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for Outcome { name, summary, .. } in outcomes {
        let per_joule = summary.throughput_per_joule.map(|ratio| ratio / 1e6);
        table.add_row([
            (*name).to_owned(),
            format!("{:.2}", summary.seconds),
            format!("{:.1}", summary.throughput_bps / 1e6),
            number(summary.energy_j),
            number(megabytes_per_joule(summary)),
            number(per_joule),
            summary.connections.to_string(),
        ]);
    }
    table
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

fn megabytes_per_joule(summary: &Summary) -> Option<f64> {
    summary
        .energy_j
        .filter(|joules| *joules > 0.0)
        .map(|joules| summary.bytes as f64 / 1e6 / joules)
}

fn bars(
    text: &mut String,
    title: &str,
    outcomes: &[Outcome],
    value: impl Fn(&Summary) -> Option<f64>,
) {
    let longest = outcomes.iter().filter_map(|o| value(&o.summary)).fold(0.0, f64::max);
    // Writing to a String can't fail.
    let _ = writeln!(text, "\n{title}");
    for outcome in outcomes {
        let Some(value) = value(&outcome.summary) else { continue };
        let _ = writeln!(text, "  {:10} {} {value:.2}", outcome.name, bar(value, longest));
    }
}

/// A bar of `value`, in eighths of a character, where `longest` has the full width.
fn bar(value: f64, longest: f64) -> String {
    let eighths = (value / longest * 8.0 * WIDTH as f64).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{rest}", "█".repeat(eighths / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(8.0, 8.0), "█".repeat(WIDTH));
        assert_eq!(bar(1.0, 8.0), "█████");
        assert_eq!(bar(0.025, 8.0), "▏");
        assert_eq!(bar(0.0, 0.0), "");
    }
}
