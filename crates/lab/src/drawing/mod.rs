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

/// Text as SVG and HTML take it.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
