//! Pictures as SVG: the power of a radio over time, and the charts of reports.
//!
//! Charts take their colours from CSS variables (`--ink`, `--grid`, `--series-0` to `--series-7`), so
//! that a page can have them dark or light; alone they are drawn for white paper.

mod axis;
mod chart;
mod labels;
mod power;

pub use axis::Axis;
pub use chart::{Bar, Curve, Dot, Panel, bars, curves, scatter};
pub use power::power_over_time;

/// How many colours there are.
pub const COLOURS: usize = 8;

/// `svg` as a file of its own: on white, with its colours in place of the variables of a page, which not
/// every program that shows pictures knows.
pub fn on_paper(svg: &str) -> String {
    let mut parts = svg.split("var(");
    let mut alone =
        parts.next().unwrap_or_default().replacen("<svg ", "<svg style=\"background:#fff\" ", 1);
    for part in parts {
        let (variable, rest) = part.split_once(')').unwrap_or((part, ""));
        alone.push_str(variable.split_once(',').map_or("inherit", |(_, colour)| colour));
        alone.push_str(rest);
    }
    alone
}

/// Text as SVG and HTML take it.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_its_own_needs_no_page() {
        let svg =
            "<svg x=\"1\">\n<path style=\"fill:none;stroke:var(--series-0,#0072b2);a:b\"/></svg>";
        assert_eq!(
            on_paper(svg),
            "<svg style=\"background:#fff\" x=\"1\">\n<path style=\"fill:none;stroke:#0072b2;a:b\"/></svg>"
        );
        assert_eq!(escaped("a<b"), "a&lt;b");
    }
}
