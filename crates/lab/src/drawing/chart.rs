//! Charts: points in a plane, bars with intervals, curves over a common axis.

use std::fmt::Write as _;

use super::axis::{Axis, short};
use super::labels::{LINE, spread, width};
use super::{COLOURS, escaped};

/// The part of a chart that holds the data, in pixels.
const PLOT_WIDTH: f64 = 520.0;
const PLOT_HEIGHT: f64 = 240.0;
const LEFT: f64 = 62.0;
/// Above the plot stands what its vertical axis shows.
const TOP: f64 = 28.0;
/// Below it ticks, and what the horizontal axis shows.
const BOTTOM: f64 = 44.0;
/// From the plot to the labels beside it.
const GAP: f64 = 26.0;
const ROW: f64 = 20.0;

/// A point with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// Its name.
    pub name: String,
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Which of the colours.
    pub colour: usize,
    /// Only its outline is drawn.
    pub is_hollow: bool,
}

/// A value with its interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The interval's ends.
    pub interval: (f64, f64),
    /// Which of the colours.
    pub colour: usize,
}

/// Values over an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
    /// Which of the colours.
    pub colour: usize,
    /// A value holds until the next point.
    pub is_stepped: bool,
}

/// Curves with a vertical axis of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The vertical axis.
    pub axis: Axis,
    /// What is drawn.
    pub curves: Vec<Curve>,
}

/// A rectangle of a picture in which data are drawn.
#[derive(Debug, Clone, Copy)]
struct Plot<'a> {
    x: &'a Axis,
    y: &'a Axis,
    top: f64,
    height: f64,
}

impl Plot<'_> {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * PLOT_WIDTH
    }

    fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.y.share(value)) * self.height
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Axes, ticks, grid and titles.
    fn frame(&self, svg: &mut String) {
        for tick in self.y.ticks() {
            let y = self.y(tick);
            line(svg, (LEFT, y), (LEFT + PLOT_WIDTH, y), "grid");
            text(svg, (LEFT - 6.0, y + 4.0), "end", &short(tick));
        }
        text(svg, (LEFT - 6.0, self.top - 12.0), "start", &self.y.title);
        x_axis(svg, self.x, (self.top, self.bottom()));
    }

    /// Labels at the right, each with a line to where it belongs.
    fn label(&self, svg: &mut String, labels: &[(String, f64, f64, usize)]) {
        let wanted: Vec<f64> = labels.iter().map(|label| label.2).collect();
        let places = spread(&wanted, self.top, self.bottom());
        for ((name, x, y, colour), place) in labels.iter().zip(places) {
            let edge = LEFT + PLOT_WIDTH + GAP;
            line(svg, (*x, *y), (edge - 4.0, place), "lead");
            let _ = writeln!(
                svg,
                "<text x=\"{edge:.1}\" y=\"{:.1}\" style=\"fill:{}\">{}</text>",
                place + 4.0,
                colour_of(*colour),
                escaped(name),
            );
        }
    }
}

/// Points in a plane, their names beside it.
pub fn scatter(title: &str, x: &Axis, y: &Axis, dots: &[Dot]) -> String {
    let height = PLOT_HEIGHT.max(LINE * dots.len() as f64);
    let plot = Plot { x, y, top: TOP, height };
    let names = dots.iter().map(|dot| dot.name.as_str());
    let mut svg = begin(title, LEFT + PLOT_WIDTH + widest(names), TOP + height + BOTTOM);
    plot.frame(&mut svg);
    let labels: Vec<_> = dots
        .iter()
        .map(|dot| (dot.name.clone(), plot.x(dot.x), plot.y(dot.y), dot.colour))
        .collect();
    plot.label(&mut svg, &labels);
    for dot in dots {
        let colour = colour_of(dot.colour);
        let fill = if dot.is_hollow { "var(--paper,#fff)" } else { &colour };
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\" style=\"fill:{fill};stroke:{colour};stroke-width:1.5\">\
             <title>{}: {}, {}</title></circle>",
            plot.x(dot.x),
            plot.y(dot.y),
            escaped(&dot.name),
            short(dot.x),
            short(dot.y),
        );
    }
    end(svg)
}

/// One row for each value: its name, a mark with its interval, the number.
pub fn bars(title: &str, axis: &Axis, bars: &[Bar]) -> String {
    let left = 16.0 + bars.iter().map(|bar| width(&bar.name)).fold(0.0, f64::max);
    let height = ROW * bars.len() as f64;
    let x = |value: f64| left + axis.share(value) * PLOT_WIDTH;
    let mut svg = begin(title, left + PLOT_WIDTH + 70.0, 8.0 + height + BOTTOM);
    // The plot begins where the longest name ends.
    let _ = writeln!(svg, "<g transform=\"translate({:.1} 0)\">", left - LEFT);
    x_axis(&mut svg, axis, (8.0, 8.0 + height));
    svg.push_str("</g>\n");
    for (index, bar) in bars.iter().enumerate() {
        let y = 8.0 + ROW * (index as f64 + 0.5);
        let (colour, (low, high)) = (colour_of(bar.colour), bar.interval);
        text(&mut svg, (left - 8.0, y + 4.0), "end", &bar.name);
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {y:.1}H{:.1}\" style=\"stroke:{colour};stroke-width:2\"/>\
             <circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4.5\" style=\"fill:{colour}\"/>",
            x(low),
            x(high),
            x(bar.value),
        );
        text(&mut svg, (left + PLOT_WIDTH + 10.0, y + 4.0), "start", &short(bar.value));
    }
    end(svg)
}

/// Panels below each other over one axis, the names of curves beside them.
pub fn curves(title: &str, x: &Axis, panels: &[Panel]) -> String {
    let names = panels.iter().flat_map(|panel| &panel.curves).map(|curve| curve.name.as_str());
    let mut top = 0.0;
    let heights: Vec<f64> = panels
        .iter()
        .map(|panel| (PLOT_HEIGHT * 0.7).max(LINE * panel.curves.len() as f64))
        .collect();
    let total: f64 = heights.iter().map(|height| TOP + height + BOTTOM).sum();
    let mut svg = begin(title, LEFT + PLOT_WIDTH + widest(names), total);
    for (panel, height) in panels.iter().zip(heights) {
        let plot = Plot { x, y: &panel.axis, top: top + TOP, height };
        plot.frame(&mut svg);
        let ends = panel.curves.iter().filter_map(|curve| Some((curve, curve.points.last()?)));
        let labels: Vec<_> = ends
            .map(|(curve, (at, value))| {
                (curve.name.clone(), plot.x(*at), plot.y(*value), curve.colour)
            })
            .collect();
        plot.label(&mut svg, &labels);
        for curve in &panel.curves {
            draw(&mut svg, &plot, curve);
        }
        top += TOP + height + BOTTOM;
    }
    end(svg)
}

fn draw(svg: &mut String, plot: &Plot<'_>, curve: &Curve) {
    let mut path = String::new();
    for (index, (at, value)) in curve.points.iter().enumerate() {
        let (x, y) = (plot.x(*at), plot.y(*value));
        let _ = match index {
            0 => write!(path, "M{x:.1} {y:.1}"),
            _ if curve.is_stepped => write!(path, "H{x:.1}V{y:.1}"),
            _ => write!(path, "L{x:.1} {y:.1}"),
        };
    }
    let colour = colour_of(curve.colour);
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" style=\"fill:none;stroke:{colour};stroke-width:2\"><title>{}</title></path>",
        escaped(&curve.name)
    );
    if curve.is_stepped {
        return;
    }
    for (at, value) in &curve.points {
        let (x, y) = (plot.x(*at), plot.y(*value));
        let _ =
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" style=\"fill:{colour}\"/>");
    }
}

fn begin(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         role=\"img\" font-family=\"system-ui,sans-serif\" font-size=\"12\">\n<title>{}</title>\n",
        escaped(title)
    )
}

fn end(mut svg: String) -> String {
    svg.push_str("</svg>\n");
    svg
}

/// The horizontal axis of a plot from `top` to `bottom`.
fn x_axis(svg: &mut String, axis: &Axis, (top, bottom): (f64, f64)) {
    for tick in axis.ticks() {
        let x = LEFT + axis.share(tick) * PLOT_WIDTH;
        line(svg, (x, top), (x, bottom), "grid");
        text(svg, (x, bottom + 16.0), "middle", &short(tick));
    }
    line(svg, (LEFT, bottom), (LEFT + PLOT_WIDTH, bottom), "axis");
    text(svg, (LEFT + PLOT_WIDTH, bottom + 34.0), "end", &axis.title);
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), kind: &str) {
    let style = match kind {
        "grid" => "stroke:var(--grid,#e4e4e4)",
        "lead" => "stroke:var(--lead,#b8b8b8);stroke-width:.7",
        _ => "stroke:var(--ink,#222)",
    };
    // Writing to a String can't fail, here and elsewhere.
    let _ = writeln!(
        svg,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" style=\"{style}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" style=\"fill:var(--ink,#222)\">{}</text>",
        escaped(text)
    );
}

/// The room that names beside a plot need.
fn widest<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    GAP + 10.0 + names.map(width).fold(0.0, f64::max)
}

/// Of Okabe and Ito's palette, which people with any colour vision can tell apart.
fn colour_of(index: usize) -> String {
    const PALETTE: [&str; COLOURS] =
        ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6b00", "#666666"];
    let index = index % COLOURS;
    format!("var(--series-{index},{})", PALETTE[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(name: &str, x: f64, y: f64) -> Dot {
        Dot { name: name.to_owned(), x, y, colour: 0, is_hollow: false }
    }

    /// Texts with their places: (x, y, text).
    fn texts(svg: &str) -> Vec<(f64, f64, String)> {
        let number = |line: &str, key: &str| -> f64 {
            let rest = line.split_once(&format!("{key}=\"")).unwrap().1;
            rest.split('"').next().unwrap().parse().unwrap()
        };
        svg.lines()
            .filter(|line| line.starts_with("<text"))
            .map(|line| {
                let shown = line.split_once('>').unwrap().1.trim_end_matches("</text>");
                (number(line, "x"), number(line, "y"), shown.to_owned())
            })
            .collect()
    }

    #[test]
    fn points_have_names_that_do_not_meet() {
        let dots: Vec<Dot> = (0..30).map(|n| dot(&format!("client <{n}>"), 5.0, 5.0)).collect();
        let (x, y) = (Axis::linear("Mbit/s", [9.0]), Axis::linear("J", [9.0]));
        let svg = scatter("all at one place", &x, &y, &dots);
        let names: Vec<_> =
            texts(&svg).into_iter().filter(|(.., text)| text.starts_with("client &lt;")).collect();
        assert_eq!(names.len(), 30);
        for (index, (_, y, name)) in names.iter().enumerate() {
            for (_, other, other_name) in &names[index + 1..] {
                assert!((y - other).abs() >= LINE - 0.2, "{name} and {other_name}");
            }
        }
        assert_eq!(svg.matches("<circle").count(), 30);
        assert!(svg.contains("Mbit/s") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_step_holds_until_the_next_point() {
        let curve = |is_stepped| Curve {
            name: "eht".to_owned(),
            points: vec![(0.0, 1.0), (5.0, 2.0)],
            colour: 0,
            is_stepped,
        };
        let draw = |is_stepped| {
            let axis = Axis::linear("streams", [2.0]);
            let panel = Panel { axis, curves: vec![curve(is_stepped)] };
            curves("decisions", &Axis::linear("s", [5.0]), &[panel])
        };
        assert!(draw(true).contains('H') && !draw(true).contains("<circle"));
        assert_eq!(draw(false).matches("<circle").count(), 2);
    }

    #[test]
    fn rows_show_their_values() {
        let bar = Bar { name: "curl".to_owned(), value: 1.25, interval: (1.1, 1.5), colour: 1 };
        let svg = bars("x floor", &Axis::linear("times the floor", [1.5]), &[bar]);
        let shown: Vec<String> = texts(&svg).into_iter().map(|(.., text)| text).collect();
        assert!(shown.contains(&"curl".to_owned()) && shown.contains(&"1.25".to_owned()), "{svg}");
    }
}
