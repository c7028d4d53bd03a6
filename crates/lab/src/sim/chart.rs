//! A run as text and as a picture.

use std::fmt::Write as _;
use std::time::Duration;

use pelton_algos::units::BitRate;

use super::{Ending, Sample};

/// Rows of the table over time.
const ROWS: usize = 20;
/// Points of a line in the picture.
const POINTS: usize = 300;
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
const GAP: f64 = 60.0;

/// One step of a run: from one sample to a later one.
#[derive(Debug, Clone, Copy)]
struct Step<'a> {
    end: &'a Sample,
    rate: BitRate,
}

/// The run in at most `count` steps.
fn steps(ending: &Ending, count: usize) -> Vec<Step<'_>> {
    let stride = ending.samples.len().div_ceil(count).max(1);
    let mut before = None;
    let mut steps = Vec::new();
    for (index, end) in ending.samples.iter().enumerate() {
        let is_last = index + 1 == ending.samples.len();
        if (index + 1) % stride != 0 && !is_last {
            continue;
        }
        let (bytes, at) = before.map_or((0, Duration::ZERO), |sample: &Sample| {
            (sample.delivered.0, sample.at.since_start())
        });
        let time = end.at.since_start().saturating_sub(at);
        let moved = pelton_algos::units::Bytes(end.delivered.0.saturating_sub(bytes));
        steps.push(Step { end, rate: moved / time });
        before = Some(end);
    }
    steps
}

/// The result, the decisions and the run over time.
pub fn text(ending: &Ending) -> String {
    let mut text = String::new();
    let rate = BitRate::from_bps(ending.bytes.as_f64() * 8.0 / ending.seconds.max(1e-9));
    let state = if ending.is_complete { "complete" } else { "NOT COMPLETE" };
    let _ = writeln!(
        text,
        "{state}: {} in {:.3} s, {rate}; {} (modelled), {:.3e} bit/s/J",
        ending.bytes,
        ending.seconds,
        ending.energy,
        ending.throughput_per_joule()
    );
    let _ = writeln!(
        text,
        "{} connections, {} requests, {} made again; {} of {} data segments lost; {} read beyond the files",
        ending.connections,
        ending.requests,
        ending.retries,
        ending.lost_segments,
        ending.segments,
        ending.received.saturating_sub(ending.bytes),
    );
    let _ = writeln!(text, "\ndecisions");
    for (at, decision) in &ending.decisions {
        let _ = writeln!(text, "{:>9.3} s  {}", at.since_start().as_secs_f64(), decision.reason);
    }
    let _ = writeln!(text, "\n{:>11}  {:>12}  {:>5}  files/streams", "until", "goodput", "conn.");
    for Step { end, rate } in steps(ending, ROWS) {
        let clusters: Vec<_> = end
            .clusters
            .iter()
            .map(|cluster| format!("{} {}/{}", cluster.classes, cluster.files, cluster.streams))
            .collect();
        let _ = writeln!(
            text,
            "{:>9.3} s  {:>12}  {:>5}  {}",
            end.at.since_start().as_secs_f64(),
            rate.to_string(),
            end.connections,
            clusters.join(", "),
        );
    }
    text
}

/// The run as a picture: goodput above, connections and streams below, decisions as grey lines.
pub fn svg(title: &str, ending: &Ending) -> String {
    let steps = steps(ending, POINTS);
    let seconds = ending.seconds.max(1e-9);
    let x = |at: f64| LEFT + at / seconds * (WIDTH - LEFT - 20.0);
    let height = TOP + 2.0 * (HEIGHT + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
        escaped(title)
    );
    for (at, decision) in &ending.decisions {
        let at = x(at.since_start().as_secs_f64());
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{:.1}\" stroke=\"#ddd\"><title>{}</title></line>",
            TOP + 2.0 * HEIGHT + GAP,
            escaped(&decision.reason)
        );
    }
    let curve = |value: &dyn Fn(&Step<'_>) -> f64| -> Vec<(f64, f64)> {
        steps.iter().map(|s| (x(s.end.at.since_start().as_secs_f64()), value(s))).collect()
    };
    let streams = |s: &Step<'_>| s.end.clusters.iter().map(|c| f64::from(c.streams)).sum::<f64>();
    panel(&mut svg, TOP, "Mbit/s", seconds, &[("#06c", "goodput", curve(&|s| s.rate.mbps()))]);
    panel(
        &mut svg,
        TOP + HEIGHT + GAP,
        "count",
        seconds,
        &[
            ("#c60", "connections", curve(&|s| f64::from(s.end.connections))),
            ("#393", "streams", curve(&streams)),
        ],
    );
    svg.push_str("</svg>\n");
    svg
}

type Curve<'a> = (&'a str, &'a str, Vec<(f64, f64)>);

fn panel(svg: &mut String, top: f64, unit: &str, seconds: f64, curves: &[Curve<'_>]) {
    let bottom = top + HEIGHT;
    let most = curves.iter().flat_map(|(.., points)| points).map(|(_, y)| *y).fold(1e-9, f64::max);
    let _ = writeln!(
        svg,
        "<path d=\"M{LEFT} {top}V{bottom}H{:.1}\" fill=\"none\" stroke=\"black\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{most:.3}</text>\n\
         <text x=\"{:.1}\" y=\"{bottom:.1}\" text-anchor=\"end\">0 {unit}</text>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{seconds:.3} s</text>",
        WIDTH - 20.0,
        LEFT - 5.0,
        top + 10.0,
        LEFT - 5.0,
        WIDTH - 20.0,
        bottom + 16.0,
    );
    for (index, (colour, name, points)) in curves.iter().enumerate() {
        let line: Vec<_> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{:.1}", bottom - y / most * HEIGHT))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
            line.join(" "),
            LEFT + 10.0 + 110.0 * index as f64,
            top - 4.0,
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
