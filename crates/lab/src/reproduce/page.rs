//! The figures of papers/001 as a page.

use super::claims::{COMPARED_SETS, Claim};
use super::points::{PLACES, Point, SETS, find};
use super::sweep::{CONCURRENCY, PARALLELISM, way};
use crate::drawing::{self, Axis, Curve, Dot, Panel};
use crate::report::{Figure, Grid, Page};

/// Figs 2 and 3: throughput and joules per 100 MB over concurrency, a curve for each parallelism, and
/// throughput against energy.
pub fn sweep_page(title: &str, points: &[Point], claims: &[Claim], command: &str) -> String {
    let mut page = begin(title, claims);
    for place in PLACES {
        for (kind, set) in SETS {
            let here: Vec<Point> = points
                .iter()
                .filter(|point| (point.link.as_str(), point.set.as_str()) == (place.link, set))
                .cloned()
                .collect();
            if here.is_empty() {
                continue;
            }
            let name = format!("{kind} over {}", place.name);
            page.heading(&format!("{}-{set}", place.link), &name);
            page.paragraph(&format!("Set {set}, link {}; joules are modelled.", place.link));
            for (caption, svg) in [
                (
                    "Over concurrency, a curve for each parallelism p.",
                    over_concurrency(&name, &here),
                ),
                ("Throughput against energy: right and low is good.", trade_off(&name, &here)),
            ] {
                let (caption, data) = (caption.to_owned(), table(&here));
                page.figure(&Figure { caption, svg, data, command: command.to_owned() });
            }
        }
    }
    page.finish()
}

/// Fig 4: throughput, energy and throughput/energy of the programs.
pub fn comparison_page(title: &str, points: &[Point], claims: &[Claim], command: &str) -> String {
    let mut page = begin(title, claims);
    for place in PLACES {
        for set in COMPARED_SETS {
            let here: Vec<Point> = points
                .iter()
                .filter(|point| (point.link.as_str(), point.set.as_str()) == (place.link, set))
                .cloned()
                .collect();
            if here.is_empty() {
                continue;
            }
            let name = format!("{set} over {}", place.name);
            page.heading(&format!("{}-{set}", place.link), &name);
            for (caption, svg) in [
                ("Throughput against energy: right and low is good.", trade_off(&name, &here)),
                ("Throughput/energy (equation 1): right is good.", efficiencies(&name, &here)),
            ] {
                let (caption, data) = (caption.to_owned(), table(&here));
                page.figure(&Figure { caption, svg, data, command: command.to_owned() });
            }
        }
    }
    page.finish()
}

fn begin(title: &str, claims: &[Claim]) -> Page {
    let mut page = Page::new(title);
    page.heading("claims", "What the paper says, and what is found here");
    let mut grid = Grid { is_prose: true, ..Grid::new(&["paper", "place", "here"]) };
    for claim in claims {
        for (place, found) in &claim.ours {
            grid.rows.push(vec![claim.paper.to_owned(), place.clone(), found.clone()]);
        }
    }
    page.table(&grid);
    page
}

/// Of `fixed:PP,P,CC` the numbers that were swept; else the name itself.
fn label(way: &str) -> String {
    let numbers = way.strip_prefix("fixed:").map(|numbers| numbers.split(',').collect::<Vec<_>>());
    match numbers.as_deref() {
        Some([_, p, cc]) => format!("cc {cc}, p {p}"),
        _ => way.to_owned(),
    }
}

/// The numbers behind the charts.
fn table(points: &[Point]) -> Grid {
    let mut grid = Grid::new(&[
        "client",
        "s",
        "95 %",
        "Mbit/s",
        "J (modelled)",
        "95 %",
        "J per 100 MB",
        "kbit/s/J",
    ]);
    for point in points {
        let (seconds, joules) = (point.seconds, point.joules);
        grid.rows.push(vec![
            label(&point.way),
            format!("{:.2}", seconds.median),
            format!("{:.2}-{:.2}", seconds.low, seconds.high),
            format!("{:.2}", point.mbps()),
            format!("{:.2}", joules.median),
            format!("{:.2}-{:.2}", joules.low, joules.high),
            format!("{:.1}", point.per_100_mb()),
            format!("{:.1}", point.efficiency.median / 1e3),
        ]);
    }
    grid
}

fn over_concurrency(name: &str, points: &[Point]) -> String {
    let Some(first) = points.first() else { return String::new() };
    let curves = |value: fn(&Point) -> f64| -> Vec<Curve> {
        let of = |(colour, &p): (usize, &u32)| {
            let at = |&cc: &u32| {
                let point = find(points, &first.link, &first.set, &way(cc, p))?;
                Some((f64::from(cc), value(point)))
            };
            let points = CONCURRENCY.iter().filter_map(at).collect();
            Curve { name: format!("p {p}"), points, colour, is_stepped: false }
        };
        PARALLELISM.iter().enumerate().map(of).filter(|curve| !curve.points.is_empty()).collect()
    };
    let panel = |title: &str, value: fn(&Point) -> f64| {
        let axis = Axis::linear(title, points.iter().map(value));
        Panel { axis, curves: curves(value) }
    };
    let x = Axis::steps("concurrency", &CONCURRENCY.map(f64::from));
    let panels = [panel("Mbit/s", Point::mbps), panel("J per 100 MB, modelled", Point::per_100_mb)];
    drawing::curves(name, &x, &panels)
}

fn trade_off(name: &str, points: &[Point]) -> String {
    let dot = |(index, point): (usize, &Point)| Dot {
        name: label(&point.way),
        x: point.mbps(),
        y: point.per_100_mb(),
        colour: index,
        is_hollow: false,
    };
    let dots: Vec<Dot> = points.iter().enumerate().map(dot).collect();
    let (x, y): (Vec<f64>, Vec<f64>) = dots.iter().map(|dot| (dot.x, dot.y)).unzip();
    let (x, y) = (Axis::around("Mbit/s", &x), Axis::around("J per 100 MB, modelled", &y));
    drawing::scatter(name, &x, &y, &dots)
}

fn efficiencies(name: &str, points: &[Point]) -> String {
    let bars: Vec<_> = points
        .iter()
        .enumerate()
        .map(|(colour, point)| {
            let efficiency = point.efficiency;
            let interval = (efficiency.low / 1e3, efficiency.high / 1e3);
            let value = efficiency.median / 1e3;
            drawing::Bar { name: label(&point.way), value, interval, colour }
        })
        .collect();
    let values: Vec<f64> = bars.iter().map(|bar| bar.interval.1).collect();
    drawing::bars(name, &Axis::fitting("kbit/s a joule", &values), &bars)
}

#[cfg(test)]
mod tests {
    use pelton_algos::units::Bytes;

    use super::*;

    #[test]
    fn each_kind_in_each_place_has_its_charts() {
        let mut points = Vec::new();
        for place in PLACES {
            for set in ["small", "large", "mixed"] {
                for way in ["fixed:1,1,1", "fixed:1,1,2"] {
                    points.push(Point::new([place.link, set, way], Bytes(1_000), &[(1.0, 2.0)]));
                }
            }
        }
        let claim = Claim { paper: "up & away", ours: vec![("LTE".to_owned(), "2 x".to_owned())] };
        let html =
            sweep_page("Fig 2", &points, std::slice::from_ref(&claim), "pelton-lab reproduce fig2");
        assert_eq!(html.matches("<figure>").count(), 2 * 2 * 2);
        assert!(html.contains("<td>up &amp; away</td><td>LTE</td><td>2 x</td>"), "{html}");
        assert!(html.contains("<td>cc 2, p 1</td>"), "{html}");
        let html = comparison_page("Fig 4", &points, &[claim], "pelton-lab reproduce fig4");
        assert_eq!(html.matches("<figure>").count(), 2 * 2 * 2);
        assert_eq!(html.matches("pelton-lab reproduce fig4").count(), 8);
    }
}
