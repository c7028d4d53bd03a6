//! Results as a table.

use std::collections::HashMap;
use std::fmt::Write;

use pelton_algos::units::Bytes;
use pelton_lab::bench::results::{CellResult, Results, RunResult, interval, median};

use super::table::table;

/// A ratio to a floor below this many seconds would compare rounding errors and program starts.
const LEAST_FLOOR: f64 = 1.0;

/// A table for people, and below it what failed.
pub(crate) fn show(results: &Results) -> String {
    let mut table = table(
        &[
            "link",
            "set",
            "client",
            "seconds",
            "95 %",
            "floor",
            "x floor",
            "files/s",
            "Mbit/s",
            "CPU s",
            "peak MB",
            "conns",
            "down MB",
            "down pkts",
            "up pkts",
            "dropped",
        ],
        3,
    );
    let mut failures = String::new();
    let mut last = ("", "");
    for cell in &results.cells {
        let here = (cell.link.as_str(), cell.set.as_str());
        if last != here && table.row_count() > 0 {
            table.add_row([""]);
        }
        last = here;
        if !cell.runs.is_empty() {
            table.add_row(row(cell));
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for why in &cell.failures {
            *counts.entry(why).or_default() += 1;
        }
        for (why, count) in counts {
            let CellResult { link, set, client, .. } = cell;
            // Writing to a string does not fail.
            let _ = writeln!(failures, "{link}, {set}, {client}: failed {count} x: {why}");
        }
    }
    let late = results.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.late_share);
    let late = 100.0 * late.fold(0.0, f64::max);
    format!(
        "{}\n\n{}, {}, {}; seed {}; at worst {late:.2} % of a run's packets were more than 1 ms late\n{failures}",
        table.trim_fmt(),
        results.server,
        results.congestion_control,
        results.machine,
        results.seed,
    )
}

fn row(cell: &CellResult) -> Vec<String> {
    let seconds = cell.seconds();
    let time = median(&seconds);
    let (low, high) = interval(&seconds);
    let of = |what: fn(&RunResult) -> f64| median(&cell.runs.iter().map(what).collect::<Vec<_>>());
    let long = cell.floor_s >= LEAST_FLOOR;
    vec![
        cell.link.clone(),
        cell.set.clone(),
        cell.client.clone(),
        format!("{time:.2}"),
        format!("{low:.2}-{high:.2}"),
        format!("{:.2}", cell.floor_s),
        if long { format!("{:.2}", time / cell.floor_s) } else { String::new() },
        if long { String::new() } else { format!("{:.0}", cell.files as f64 / time) },
        format!("{:.1}", cell.bytes as f64 * 8e-6 / time),
        format!("{:.2}", of(|run| run.cpu_s)),
        format!("{:.0}", of(|run| Bytes(run.peak_rss).as_f64() / 1e6)),
        format!("{:.0}", of(|run| run.connections as f64)),
        format!("{:.1}", of(|run| run.down.bytes as f64 / 1e6)),
        format!("{:.0}", of(|run| run.down.packets as f64)),
        format!("{:.0}", of(|run| run.up.packets as f64)),
        format!("{:.0}", of(|run| (run.down.lost + run.down.overflowed) as f64)),
    ]
}
