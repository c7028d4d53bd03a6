//! Results as a table.

use std::collections::HashMap;
use std::fmt::Write;

use pelton_algos::units::Bytes;
use pelton_lab::bench;
use pelton_lab::bench::results::{CellResult, Estimate, Results, RunResult, Stats, median};

use super::table::table;

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
            "J",
            "CPU s",
            "peak MB",
            "conns",
            "down MB",
            "down pkts",
            "up pkts",
            "dropped",
            "resent",
        ],
        3,
    );
    let mut failures = String::new();
    for cells in results.groups() {
        if table.row_count() > 0 {
            table.add_row([""]);
        }
        for row in cells.iter().filter_map(row) {
            table.add_row(row);
        }
    }
    for cell in &results.cells {
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
        "{}\n\n{}, {}, {}; seed {}; joules are modelled, under the radio of each link; at worst {late:.2} % of a run's packets were more than 1 ms late\n{failures}",
        table.trim_fmt(),
        results.server,
        results.congestion_control,
        results.machine,
        results.seed,
    )
}

/// The medians of a client; none without a run.
fn row(cell: &CellResult) -> Option<Vec<String>> {
    let Stats { seconds: Estimate { median: time, low, high }, joules, cpu_s } = cell.stats?;
    let of = |what: fn(&RunResult) -> f64| median(&cell.values(what));
    let long = cell.floor_s >= bench::LEAST_FLOOR_S;
    Some(vec![
        cell.link.clone(),
        cell.set.clone(),
        cell.client.clone(),
        format!("{time:.2}"),
        format!("{low:.2}-{high:.2}"),
        format!("{:.2}", cell.floor_s),
        if long { format!("{:.2}", time / cell.floor_s) } else { String::new() },
        if long { String::new() } else { format!("{:.0}", cell.files as f64 / time) },
        format!("{:.1}", cell.throughput_bps() / 1e6),
        format!("{:.1}", joules.median),
        format!("{:.2}", cpu_s.median),
        format!("{:.0}", of(|run| Bytes(run.peak_rss).as_f64() / 1e6)),
        format!("{:.0}", of(|run| run.connections as f64)),
        format!("{:.1}", of(|run| run.down.bytes as f64 / 1e6)),
        format!("{:.0}", of(|run| run.down.packets as f64)),
        format!("{:.0}", of(|run| run.up.packets as f64)),
        format!("{:.0}", of(|run| (run.down.lost + run.down.overflowed) as f64)),
        format!("{:.0}", of(|run| run.down.retransmitted as f64)),
    ])
}
