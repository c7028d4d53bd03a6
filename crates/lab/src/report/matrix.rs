//! The page of a matrix.

use crate::bench::LEAST_FLOOR_S;
use crate::bench::results::{CellResult, DecisionLog, Results, RunResult, median};
use crate::drawing::{self, Axis, Bar, Curve, Dot, Panel};

use super::page::{Figure, Grid, Page};

pub(super) const TITLE: &str = "pelton and its peers on emulated links";

/// The page that shows `results`; `file` is where they lie, for the commands.
pub fn matrix_page(results: &Results, file: &str) -> String {
    let mut page = Page::new(TITLE);
    introduce(&mut page, results);
    page.links(results.groups().map(|cells| (id(cells), name(cells))));
    page.heading("overview", "Overview");
    overview(&mut page, results);
    if let Some(figure) = behind_the_best(results, file) {
        page.figure(&figure);
    }
    for cells in results.groups() {
        page.heading(&id(cells), &name(cells));
        cell(&mut page, results, cells, file);
    }
    page.heading("clients", "Clients");
    clients(&mut page, results);
    page.finish()
}

fn introduce(page: &mut Page, results: &Results) {
    let [setting, values, lateness] = introduction(results);
    page.paragraph(&setting);
    page.paragraph(&values);
    page.preformatted(&results.command.join(" "));
    page.paragraph(&lateness);
}

/// How and on what it was measured, what the values are, and how late the emulator was.
pub(super) fn introduction(results: &Results) -> [String; 3] {
    let Results { date, machine, server, congestion_control, seed, repeats, jobs, lab, .. } =
        results;
    let setting = format!(
        "Real packets over links that pelton-lab {lab} emulates: {server} in one network namespace, the \
         client in another. {repeats} interleaved repeats, seeds from {seed}, at most {jobs} runs side \
         by side; TCP follows {congestion_control}; {machine}; begun {date}. Every file was compared by \
         SHA-256 after every run."
    );
    let values = "Joules are modelled, not measured: the radio's model over the packets of each run, tail \
         included, 1 W for each CPU second of the client, 0.15 W for being awake. Values are medians; \
         intervals hold the true median with 95 %, below six runs they are least and greatest. The \
         floor is what no client can beat: body and header bytes over the link's payload rate after its \
         loss, and two round trips, three with TLS."
        .to_owned();
    let late = results.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.late_share);
    let late = 100.0 * late.fold(0.0, f64::max);
    let lateness = format!(
        "The emulator was more than a millisecond late with at most {late:.2} % of a run's packets."
    );
    [setting, values, lateness]
}

pub(super) fn name(cells: &[CellResult]) -> String {
    cells.first().map(|cell| format!("{} over {}", cell.set, cell.link)).unwrap_or_default()
}

fn id(cells: &[CellResult]) -> String {
    cells.first().map(|cell| format!("{}-{}", cell.link, cell.set)).unwrap_or_default()
}

/// Each client once, in the order of the matrix.
fn names(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for cell in &results.cells {
        if !names.contains(&cell.client.as_str()) {
            names.push(&cell.client);
        }
    }
    names
}

fn overview(page: &mut Page, results: &Results) {
    for (caption, table) in overviews(results) {
        page.paragraph(caption);
        page.table(&table);
    }
}

/// Tables of all cells, with what they show.
pub(super) fn overviews(results: &Results) -> [(&'static str, Grid); 2] {
    let time = |cell: &CellResult| cell.stats.map(|stats| stats.seconds.median);
    let times = table(results, time, |cell, seconds| {
        if cell.floor_s >= LEAST_FLOOR_S {
            format!("{:.2}", seconds / cell.floor_s)
        } else {
            format!("{:.0} f/s", cell.files as f64 / seconds)
        }
    });
    let joules = |cell: &CellResult| cell.stats.map(|stats| stats.joules.median);
    let joules = table(results, joules, |_, joules| format!("{joules:.1}"));
    [
        (
            "Time over the floor; where the floor is below a second, files a second (f/s). The best of \
             each row is marked.",
            times,
        ),
        ("Joules, modelled, under the radio of the link:", joules),
    ]
}

/// A row for each link and set, a column for each client; the least value of a row is the best.
fn table(
    results: &Results,
    value: impl Fn(&CellResult) -> Option<f64>,
    show: impl Fn(&CellResult, f64) -> String,
) -> Grid {
    let clients = names(results);
    let mut grid = Grid { is_turned: true, ..Grid::new(&["set over link"]) };
    grid.header.extend(clients.iter().map(|&client| client.to_owned()));
    for cells in results.groups() {
        let best = cells.iter().filter_map(&value).fold(f64::INFINITY, f64::min);
        let mut row = vec![name(cells)];
        row.extend(clients.iter().map(|client| {
            let Some(cell) = cells.iter().find(|cell| cell.client == *client) else {
                return String::new();
            };
            match value(cell) {
                Some(value) if value <= best => Grid::best(&show(cell, value)),
                Some(value) => show(cell, value),
                None if cell.failures.is_empty() => String::new(),
                None => Grid::bad("failed"),
            }
        }));
        grid.rows.push(row);
    }
    grid
}

/// Each client's time over that of the fastest one: the geometric mean over the cells, and its range.
pub(super) fn behind_the_best(results: &Results, file: &str) -> Option<Figure> {
    let mut bars = Vec::new();
    let mut data = Grid::new(&["client", "cells", "geometric mean", "least", "greatest"]);
    for client in names(results) {
        let ratios: Vec<f64> = results
            .groups()
            .filter_map(|cells| {
                let time = |cell: &CellResult| cell.stats.map(|stats| stats.seconds.median);
                let best = cells.iter().filter_map(time).reduce(f64::min)?;
                Some(time(cells.iter().find(|cell| cell.client == client)?)? / best)
            })
            .collect();
        let (Some(low), Some(high)) =
            (ratios.iter().copied().reduce(f64::min), ratios.iter().copied().reduce(f64::max))
        else {
            continue;
        };
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        let mean = mean.exp();
        let count = ratios.len().to_string();
        let mut row = vec![client.to_owned(), count.clone()];
        row.extend([mean, low, high].map(|value| format!("{value:.2}")));
        data.rows.push(row);
        let name = format!("{client} ({count})");
        bars.push(Bar { name, value: mean, interval: (low, high), colour: colour(client) });
    }
    let values: Vec<f64> = bars.iter().flat_map(|bar| [bar.interval.0, bar.interval.1]).collect();
    (!bars.is_empty()).then(|| Figure {
        caption: "Time over that of the fastest client of the cell: geometric mean over the cells \
                  (their number in brackets), and the range."
            .to_owned(),
        svg: drawing::bars(
            "Time over the fastest client",
            &Axis::log("times the fastest client's time", values),
            &bars,
        ),
        data,
        command: format!("{}\npelton-lab report {file} -o page.html", results.command.join(" ")),
    })
}

fn cell(page: &mut Page, results: &Results, cells: &[CellResult], file: &str) {
    let Some(first) = cells.first() else { return };
    page.paragraph(&outline(first));
    let clients: Vec<&str> = cells.iter().map(|cell| cell.client.as_str()).collect();
    let command = format!(
        "pelton-lab run --links {} --sets {} --clients {} --repeats {} --seed {} --out {file}\n\
         pelton-lab report {file} -o page.html",
        first.link,
        first.set,
        clients.join(","),
        results.repeats,
        results.seed,
    );
    let data = measurements(cells);
    for (caption, svg) in [
        ("Throughput against energy: right and low is good. Hollow: HTTP/2.", trade_off(cells)),
        ("Time and its interval: left is good.", times(cells)),
    ] {
        let (caption, data, command) = (caption.to_owned(), data.clone(), command.clone());
        page.figure(&Figure { caption, svg, data, command });
    }
    if let Some(figure) = decisions(cells, &command) {
        page.figure(&figure);
    }
    for failure in failures(cells) {
        page.paragraph(&failure);
    }
}

pub(super) fn outline(cell: &CellResult) -> String {
    let CellResult { files, bytes, floor_s, radio, .. } = cell;
    let megabytes = *bytes as f64 / 1e6;
    format!(
        "{files} files, {megabytes:.1} MB; floor {floor_s:.2} s for the first client; radio {radio}."
    )
}

pub(super) fn failures(cells: &[CellResult]) -> impl Iterator<Item = String> {
    cells.iter().filter_map(|cell| {
        let first = cell.failures.first()?;
        Some(format!("{} failed {} x: {first}", cell.client, cell.failures.len()))
    })
}

/// Everything that was measured in a cell.
pub(super) fn measurements(cells: &[CellResult]) -> Grid {
    let mut grid = Grid::new(&[
        "client",
        "runs",
        "s",
        "95 %",
        "x floor",
        "Mbit/s",
        "J wifi",
        "J lte",
        "CPU s",
        "peak MB",
        "connections",
        "down MB",
        "down packets",
        "up packets",
        "dropped",
        "sent again",
    ]);
    for cell in cells {
        let Some(stats) = cell.stats else { continue };
        let of = |what: fn(&RunResult) -> f64| format!("{:.0}", median(&cell.values(what)));
        let seconds = stats.seconds;
        grid.rows.push(vec![
            cell.client.clone(),
            cell.runs.len().to_string(),
            format!("{:.3}", seconds.median),
            format!("{:.3}-{:.3}", seconds.low, seconds.high),
            format!("{:.3}", seconds.median / cell.floor_s),
            format!("{:.2}", cell.throughput_bps() / 1e6),
            format!("{:.2}", median(&cell.joules("wifi"))),
            format!("{:.2}", median(&cell.joules("lte"))),
            format!("{:.3}", stats.cpu_s.median),
            of(|run| run.peak_rss as f64 / 1e6),
            of(|run| run.connections as f64),
            format!("{:.2}", median(&cell.values(|run| run.down.bytes as f64 / 1e6))),
            of(|run| run.down.packets as f64),
            of(|run| run.up.packets as f64),
            of(|run| (run.down.lost + run.down.overflowed) as f64),
            of(|run| run.down.retransmitted as f64),
        ]);
    }
    grid
}

fn trade_off(cells: &[CellResult]) -> String {
    let dots: Vec<Dot> = cells
        .iter()
        .filter_map(|cell| {
            Some(Dot {
                name: cell.client.clone(),
                x: cell.throughput_bps() / 1e6,
                y: cell.stats?.joules.median,
                colour: colour(&cell.client),
                is_hollow: cell.client.ends_with("-h2"),
            })
        })
        .collect();
    let radio = cells.first().map(|cell| cell.radio.as_str()).unwrap_or_default();
    let (x, y): (Vec<f64>, Vec<f64>) = dots.iter().map(|dot| (dot.x, dot.y)).unzip();
    let (x, y) =
        (Axis::around("Mbit/s", &x), Axis::around(&format!("joules, modelled ({radio})"), &y));
    drawing::scatter(&format!("{}: throughput against energy", name(cells)), &x, &y, &dots)
}

fn times(cells: &[CellResult]) -> String {
    let over_floor = cells.iter().all(|cell| cell.floor_s >= LEAST_FLOOR_S);
    let bars: Vec<Bar> = cells
        .iter()
        .filter_map(|cell| {
            let seconds = cell.stats?.seconds;
            let unit = if over_floor { cell.floor_s } else { 1.0 };
            Some(Bar {
                name: cell.client.clone(),
                value: seconds.median / unit,
                interval: (seconds.low / unit, seconds.high / unit),
                colour: colour(&cell.client),
            })
        })
        .collect();
    let values: Vec<f64> = bars.iter().flat_map(|bar| [bar.value, bar.interval.1]).collect();
    let title = if over_floor { "time over the floor" } else { "seconds" };
    drawing::bars(&format!("{}: {title}", name(cells)), &Axis::fitting(title, &values), &bars)
}

/// What pelton's clients asked for in their first runs.
fn decisions(cells: &[CellResult], command: &str) -> Option<Figure> {
    let mut data = Grid::new(&["client, seconds", "streams", "Mbit/s", "why"]);
    let (mut streams, mut goodput) = (Vec::new(), Vec::new());
    for cell in cells {
        let Some(run) = cell.runs.first().filter(|run| !run.decisions.is_empty()) else { continue };
        let colour = streams.len();
        let curve = |value: fn(&DecisionLog) -> f64| {
            let points = run.decisions.iter().map(|decision| (decision.at_s, value(decision)));
            let mut points: Vec<_> = points.collect();
            let last = points.last().map(|(_, value)| (run.seconds, *value));
            points.extend(last);
            Curve { name: cell.client.clone(), points, colour, is_stepped: true }
        };
        streams.push(curve(|decision| f64::from(decision.streams())));
        goodput.push(curve(|decision| decision.throughput_bps / 1e6));
        data.rows.extend(run.decisions.iter().map(|decision| {
            vec![
                format!("{} {:.3}", cell.client, decision.at_s),
                decision.streams().to_string(),
                format!("{:.2}", decision.throughput_bps / 1e6),
                decision.reason.clone(),
            ]
        }));
    }
    let points = || streams.iter().chain(&goodput).flat_map(|curve: &Curve| &curve.points);
    let x = Axis::linear("seconds", points().map(|(at, _)| *at));
    let axis = |title: &str, curves: &[Curve]| {
        Axis::linear(title, curves.iter().flat_map(|c| &c.points).map(|(_, value)| *value))
    };
    (!streams.is_empty()).then(|| {
        let panels = [
            Panel { axis: axis("range streams asked for", &streams), curves: streams.clone() },
            Panel { axis: axis("goodput, Mbit/s", &goodput), curves: goodput.clone() },
        ];
        Figure {
            caption: "Decisions over time, in the first run of each of pelton's clients."
                .to_owned(),
            svg: drawing::curves(&format!("{}: decisions", name(cells)), &x, &panels),
            data,
            command: command.to_owned(),
        }
    })
}

fn clients(page: &mut Page, results: &Results) {
    let (versions, commands) = versions_and_commands(results);
    page.table(&versions);
    page.paragraph(COMMANDS);
    page.preformatted(&commands);
}

pub(super) const COMMANDS: &str =
    "Command lines, as of the first cell; WORK is the directory of the run:";

pub(super) fn versions_and_commands(results: &Results) -> (Grid, String) {
    let mut grid = Grid::new(&["client", "version"]);
    for (client, version) in &results.clients {
        grid.rows.push(vec![client.clone(), version.clone()]);
    }
    for (client, why) in &results.skipped {
        grid.rows.push(vec![client.clone(), Grid::bad(&format!("left out: {why}"))]);
    }
    let mut lines = Vec::new();
    for client in names(results) {
        let cell = results.cells.iter().find(|cell| cell.client == client && !cell.runs.is_empty());
        if let Some(cell) = cell {
            lines.push(format!("{client}: {}", cell.command.join(" ")));
        }
    }
    (grid, lines.join("\n"))
}

/// Clients of a family have the same colour.
fn colour(client: &str) -> usize {
    const FAMILIES: [&str; 7] = ["pelton", "curl", "wget", "aria2", "axel", "lftp", "reqwest"];
    FAMILIES.iter().position(|family| client.starts_with(family)).unwrap_or(FAMILIES.len())
}

#[cfg(test)]
mod tests {
    use super::super::markdown::matrix_markdown;
    use super::*;
    use crate::bench::results::Allocation;
    use crate::bench::results::tests;

    fn results() -> Results {
        let mut cells = vec![
            tests::cell("lte", "small", "pelton-eht", &[(1.5, 20.0), (1.7, 22.0)]),
            tests::cell("lte", "small", "curl", &[(3.0, 25.0), (3.2, 26.0)]),
            tests::cell("3g", "tiny", "curl", &[(4.0, 5.0)]),
            tests::cell("3g", "tiny", "wget", &[]),
        ];
        cells[2].floor_s = 0.5;
        cells[3].failures.push("exit 4: <refused>".to_owned());
        let allocations = vec![Allocation {
            cluster: "small".to_owned(),
            pipelining: 1,
            parallelism: 2,
            concurrency: 8,
            spare_streams: 1,
        }];
        cells[0].runs[0].decisions.push(DecisionLog {
            at_s: 0.2,
            allocations,
            throughput_bps: 4e6,
            reason: "BDP 100 kB".to_owned(),
        });
        tests::results(cells)
    }

    #[test]
    fn the_page_has_every_cell_with_charts_data_and_commands() {
        let html = matrix_page(&results(), "r.json");
        // Behind the best, two charts for each of two cells, and one with decisions.
        assert_eq!(html.matches("<figure>").count(), 6);
        assert_eq!(html.matches("<details>").count(), 6);
        assert!(html.contains("id=\"lte-small\"") && html.contains("href=\"#3g-tiny\""));
        // Times over a floor of 1 s; the best is marked, what has no run is said to have failed.
        assert!(html.contains("<td class=\"best\">1.60</td><td>3.10</td>"), "{html}");
        // 10 files in 4 s over a floor of half a second.
        assert!(html.contains("f/s</td><td class=\"bad\">failed</td>"), "{html}");
        assert!(html.contains("<td>17</td><td>4.00</td><td>BDP 100 kB</td>"), "{html}");
        let command = "pelton-lab run --links lte --sets small --clients pelton-eht,curl --repeats 2 --seed 1";
        assert!(html.contains(command));
        assert!(html.contains("wget failed 1 x: exit 4: &lt;refused&gt;"));
        for outside in ["src=", "@import", "<script", "<link", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_text_has_every_table() {
        let text = matrix_markdown(&results(), "r.json");
        assert!(text.contains("\n| small over lte | **1.60** | 3.10 |  |\n"), "{text}");
        assert!(text.contains("\n## tiny over 3g\n") && text.contains("failed"), "{text}");
        assert!(text.contains("\n| pelton-eht | 2 | 1.600 | 1.500-1.700 |"), "{text}");
        assert!(text.contains("wget failed 1 x: exit 4: &lt;refused&gt;"), "{text}");
        assert!(!text.contains("<svg"), "{text}");
    }

    #[test]
    fn nothing_measured_is_a_page_too() {
        let html = matrix_page(&tests::results(Vec::new()), "r.json");
        assert!(html.ends_with("</html>\n") && !html.contains("<figure>"));
        let text = matrix_markdown(&tests::results(Vec::new()), "r.json");
        assert!(text.starts_with("# pelton and its peers") && text.ends_with("```\n"), "{text}");
    }
}
