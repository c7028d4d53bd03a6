//! The grid of links, sets and servers over which policies are compared with the oracle.

use std::fmt;
use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes};
use pelton_core::connection::Protocol;

use super::{FileList, OriginConfig};
use crate::cells::{Cells, CellsError};
use crate::model::{Capacity, Change, DirectionSpec, LinkSpec, Loss, RateSchedule, ScheduleError};

/// The sets of the grid, by their names in `cells.toml`.
const SETS: [&str; 5] = ["tiny", "small", "mixed", "huge", "skewed"];
const RATES_MBPS: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];
const RTTS_MILLIS: [u64; 4] = [1, 30, 150, 600];
const LOSSES_PERCENT: [f64; 3] = [0.0, 0.5, 2.0];
/// Links that change are neither the slowest nor the fastest.
const CHANGING_RATES_MBPS: [f64; 2] = [10.0, 100.0];
const CHANGING_RTTS_MILLIS: [u64; 2] = [30, 150];
/// Every so many cells are a [part](Grid::every) that takes less than 45 s; no divisor of any dimension,
/// so that all are met.
pub const QUICK_STRIDE: usize = 23;
const ORIGINS: [OriginConfig; 2] =
    [OriginConfig::plain(Protocol::Http11, true), OriginConfig::plain(Protocol::Http2, true)];

/// How a link changes when a third of the time has passed that it would need for the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// It does not.
    Steady,
    /// To a quarter of the rate and twice the delay.
    Worse,
    /// From a quarter of the rate and twice the delay to the whole rate.
    Better,
}

/// One link, set and server.
#[derive(Debug, Clone)]
pub struct GridCell {
    /// Rate downwards and upwards, before changes.
    pub rate: BitRate,
    /// Round-trip time of the idle link, before changes.
    pub rtt: Duration,
    /// Share of packets lost downwards, in percent.
    pub loss_percent: f64,
    /// How the link changes.
    pub drift: Drift,
    /// The set's name.
    pub set: &'static str,
    /// The server.
    pub origin: OriginConfig,
}

impl fmt::Display for GridCell {
    /// `10 Mbit/s x 30 ms, 0.5 % lost, mixed, h1-tls`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mbit/s x {} ms", self.rate.mbps(), self.rtt.as_millis())?;
        if self.loss_percent > 0.0 {
            write!(f, ", {} % lost", self.loss_percent)?;
        }
        match self.drift {
            Drift::Steady => {}
            Drift::Worse => f.write_str(", gets worse")?,
            Drift::Better => f.write_str(", gets better")?,
        }
        write!(f, ", {}, {}", self.set, self.origin.name())
    }
}

impl GridCell {
    /// Its link, for a set of `bytes`.
    ///
    /// # Errors
    /// None for cells of a [`Grid`]; a rate of zero for others.
    pub fn link(&self, bytes: Bytes) -> Result<LinkSpec, ScheduleError> {
        let worse = (self.rate * 0.25, self.rtt * 2);
        let (first, then) = match self.drift {
            Drift::Steady => ((self.rate, self.rtt), None),
            Drift::Worse => ((self.rate, self.rtt), Some(worse)),
            Drift::Better => (worse, Some((self.rate, self.rtt))),
        };
        let at = (bytes / first.0) / 3 + first.1 * 2;
        let mut changes = Vec::new();
        let mut delays = vec![(Duration::ZERO, first.1 / 2)];
        if let Some((rate, rtt)) = then {
            changes.push(Change::Step { at, rate });
            delays.push((at, rtt / 2));
        }
        let direction = DirectionSpec {
            capacity: Capacity::Rate(RateSchedule::new(first.0, &changes)?),
            delays,
            jitter: Duration::ZERO,
            loss: Loss::default(),
            queue: (self.rate * self.rtt).max(Bytes::kib(64)),
        };
        let loss = Loss { random: self.loss_percent / 100.0, bursts: None };
        Ok(LinkSpec { down: DirectionSpec { loss, ..direction.clone() }, up: direction })
    }
}

/// Cells with the files of their sets.
#[derive(Debug)]
pub struct Grid {
    /// The cells.
    pub cells: Vec<GridCell>,
    files: Vec<(&'static str, FileList)>,
}

impl Grid {
    /// All of it: 560 cells.
    ///
    /// # Errors
    /// A set that `cells.toml` no longer has.
    pub fn full(seed: u64) -> Result<Self, CellsError> {
        let built_in = Cells::built_in()?;
        let mut files = Vec::new();
        for set in SETS {
            for (_, found) in built_in.sets(set)? {
                let made = found.files(seed, BitRate::ZERO);
                // A path of `cells.toml` that no URL can have would be no file of the set.
                files.extend(FileList::new(&made).ok().map(|list| (set, list)));
            }
        }
        let mut cells = Vec::new();
        for origin in ORIGINS {
            for set in SETS {
                cells.extend(steady(set, origin));
                cells.extend(changing(set, origin));
            }
        }
        Ok(Self { cells, files })
    }

    /// Every `stride`th cell of it, from the one with the number `first` on.
    #[must_use]
    pub fn every(mut self, stride: usize, first: usize) -> Self {
        self.cells = self.cells.into_iter().skip(first).step_by(stride.max(1)).collect();
        self
    }

    /// The files of a cell.
    pub fn files(&self, cell: &GridCell) -> Option<&FileList> {
        self.files.iter().find(|(name, _)| *name == cell.set).map(|(_, files)| files)
    }
}

fn steady(set: &'static str, origin: OriginConfig) -> impl Iterator<Item = GridCell> {
    RATES_MBPS.into_iter().flat_map(move |mbps| {
        RTTS_MILLIS.into_iter().flat_map(move |millis| {
            LOSSES_PERCENT.into_iter().map(move |loss_percent| GridCell {
                rate: BitRate::from_mbps(mbps),
                rtt: Duration::from_millis(millis),
                loss_percent,
                drift: Drift::Steady,
                set,
                origin,
            })
        })
    })
}

fn changing(set: &'static str, origin: OriginConfig) -> impl Iterator<Item = GridCell> {
    CHANGING_RATES_MBPS.into_iter().flat_map(move |mbps| {
        CHANGING_RTTS_MILLIS.into_iter().flat_map(move |millis| {
            [Drift::Worse, Drift::Better].into_iter().map(move |drift| GridCell {
                rate: BitRate::from_mbps(mbps),
                rtt: Duration::from_millis(millis),
                loss_percent: 0.0,
                drift,
                set,
                origin,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_part_meets_every_value() {
        let grid = Grid::full(1).unwrap().every(QUICK_STRIDE, 0);
        let cells = &grid.cells;
        for mbps in RATES_MBPS {
            assert!(cells.iter().any(|c| c.rate == BitRate::from_mbps(mbps)), "{mbps}");
        }
        for millis in RTTS_MILLIS {
            assert!(cells.iter().any(|c| c.rtt == Duration::from_millis(millis)), "{millis}");
        }
        for loss in LOSSES_PERCENT {
            assert!(cells.iter().any(|c| (c.loss_percent - loss).abs() < 1e-9), "{loss}");
        }
        for set in SETS {
            assert!(cells.iter().any(|c| c.set == set), "{set}");
        }
        for drift in [Drift::Steady, Drift::Worse, Drift::Better] {
            assert!(cells.iter().any(|c| c.drift == drift), "{drift:?}");
        }
        for origin in ORIGINS {
            assert!(cells.iter().any(|c| c.origin == origin), "{}", origin.name());
        }
        assert_eq!(Grid::full(1).unwrap().cells.len(), 560);
    }
}
