//! What papers/001 measured, in its places, and the sets that stand for its own.

use pelton_algos::units::Bytes;

use crate::bench::results::{CellResult, Estimate};

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// As the paper calls it.
    pub name: &'static str,
    /// The link of cells.toml that stands for it; its radio is charged.
    pub link: &'static str,
}

/// The paper fetched from Sydney in Buffalo over Wi-Fi and LTE; it names no rates. These have round
/// trips of 200 and 360 ms.
pub const PLACES: [Place; 2] =
    [Place { name: "Wi-Fi", link: "wifi-far" }, Place { name: "LTE", link: "lte-far" }];

/// What the paper fetched and the sets of cells.toml that stand for it: its Table I is lost.
pub const SETS: [(&str, &str); 3] = [("HTML", "small"), ("image", "medium"), ("video", "large")];

/// The same transfer made several times.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The link.
    pub link: String,
    /// The set.
    pub set: String,
    /// Who, or with which numbers: `wget`, `fixed:1,2,8`.
    pub way: String,
    /// Bytes of the files.
    pub bytes: Bytes,
    /// Seconds.
    pub seconds: Estimate,
    /// Joules; modelled.
    pub joules: Estimate,
    /// Throughput over energy, bit/s a joule: equation 1 of the paper, over each whole transfer.
    pub efficiency: Estimate,
}

impl Point {
    /// From the seconds and joules of each transfer of `bytes`.
    pub fn new([link, set, way]: [&str; 3], bytes: Bytes, runs: &[(f64, f64)]) -> Self {
        let bits = bytes.as_f64() * 8.0;
        let of = |value: &dyn Fn(f64, f64) -> f64| {
            let values: Vec<f64> = runs.iter().map(|&(s, joules)| value(s, joules)).collect();
            Estimate::of(&values)
        };
        Self {
            link: link.to_owned(),
            set: set.to_owned(),
            way: way.to_owned(),
            bytes,
            seconds: of(&|seconds, _| seconds),
            joules: of(&|_, joules| joules),
            efficiency: of(&|seconds, joules| bits / seconds.max(1e-9) / joules.max(1e-9)),
        }
    }

    /// From a cell that was measured on real packets; none without a run.
    pub fn of_cell(cell: &CellResult) -> Option<Self> {
        let joules = cell.joules(&cell.radio);
        let seconds = cell.values(|run| run.seconds);
        let runs: Vec<_> = seconds.into_iter().zip(joules).collect();
        let names = [cell.link.as_str(), &cell.set, &cell.client];
        (!runs.is_empty()).then(|| Self::new(names, Bytes(cell.bytes), &runs))
    }

    /// Throughput, from the median time.
    pub fn mbps(&self) -> f64 {
        self.bytes.as_f64() * 8e-6 / self.seconds.median.max(1e-9)
    }

    /// Joules for each 100 MB, the unit of the paper's Fig 3.
    pub fn per_100_mb(&self) -> f64 {
        self.joules.median * 100e6 / self.bytes.as_f64().max(1.0)
    }
}

/// The point of a link, a set and a way.
pub(super) fn find<'a>(points: &'a [Point], link: &str, set: &str, way: &str) -> Option<&'a Point> {
    points.iter().find(|point| [point.link.as_str(), &point.set, &point.way] == [link, set, way])
}
