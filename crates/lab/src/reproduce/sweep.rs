//! Sweeps of concurrency and parallelism: papers/001 Figs 2 and 3.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Result, bail};
use pelton_algos::policy::{Fixed, FixedConfig};
use pelton_core::connection::Protocol;
use pelton_power::ModelledConfig;

use super::points::{PLACES, Point, SETS};
use crate::cells::{Cells, NamedLink};
use crate::sim::{FileList, OriginConfig, Scenario};

/// Files at once.
pub const CONCURRENCY: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Range streams of one file.
pub const PARALLELISM: [u32; 4] = [1, 2, 4, 8];

/// Fig 2: one number is swept while the other is 1; (concurrency, parallelism).
pub fn single() -> Vec<(u32, u32)> {
    let parallelism = PARALLELISM[1..].iter().map(|&p| (1, p));
    CONCURRENCY.map(|cc| (cc, 1)).into_iter().chain(parallelism).collect()
}

/// Fig 3: both are.
pub fn combined() -> Vec<(u32, u32)> {
    CONCURRENCY.into_iter().flat_map(|cc| PARALLELISM.map(|p| (cc, p))).collect()
}

/// How `pelton-lab run` names pelton with these numbers.
pub fn pairs_of(pairs: &[(u32, u32)]) -> Vec<String> {
    pairs.iter().map(|&(cc, p)| way(cc, p)).collect()
}

pub(super) fn way(cc: u32, p: u32) -> String {
    format!("fixed:1,{p},{cc}")
}

/// One combination to simulate.
struct Case<'a> {
    link_name: &'static str,
    link: &'a NamedLink,
    set: &'static str,
    files: &'a FileList,
    pair: (u32, u32),
}

/// Runs `pairs` in the simulator, each with so many seeds, in every place and with every set; over
/// HTTP/1.1 in the clear.
///
/// # Errors
/// A transfer that did not end.
pub fn simulate(
    cells: &Cells,
    pairs: &[(u32, u32)],
    (repeats, seed): (u32, u64),
) -> Result<Vec<Point>> {
    let mut files = Vec::new();
    for place in PLACES {
        let link = cells.link(place.link)?;
        for (_, set) in SETS {
            for (_, found) in cells.sets(set)? {
                let list = FileList::new(&found.files(seed, link.spec.down.peak_rate()))?;
                files.push((place.link, link, set, list));
            }
        }
    }
    let cases: Vec<Case<'_>> = files
        .iter()
        .flat_map(|(link_name, link, set, files)| {
            pairs.iter().map(|&pair| Case { link_name, link, set, files, pair })
        })
        .collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((index, case)) = take(&cases, &next) {
                    let point = case.run((repeats, seed));
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, point));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, point)| point).collect()
}

fn take<'a, T>(cases: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    cases.get(index).map(|case| (index, case))
}

impl Case<'_> {
    fn run(&self, (repeats, seed): (u32, u64)) -> Result<Point> {
        let (concurrency, parallelism) = self.pair;
        let numbers = FixedConfig { concurrency, parallelism, pipelining: 1 };
        let origin = OriginConfig::plain(Protocol::Http11, false);
        let mut runs = Vec::new();
        for repeat in 0..u64::from(repeats) {
            let mut scenario = Scenario::new(&self.link.spec, origin, self.files, seed + repeat);
            let radio = self.link.radio.profile();
            scenario.power = ModelledConfig { radio, ..ModelledConfig::default() };
            let limits = &mut scenario.engine.limits;
            limits.max_connections_per_origin = concurrency * parallelism;
            limits.max_connections = concurrency * parallelism;
            let ending = scenario.run(Box::new(Fixed::new(numbers)));
            if !ending.is_complete {
                bail!(
                    "{} over {}, cc {concurrency}, p {parallelism}: it did not end",
                    self.set,
                    self.link_name
                );
            }
            runs.push((ending.seconds, ending.energy.get()));
        }
        let way = way(concurrency, parallelism);
        Ok(Point::new([self.link_name, self.set, &way], self.files.bytes(), &runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_gain_by_concurrency_and_not_by_ranges() {
        let cells = Cells::built_in().unwrap();
        let points = simulate(&cells, &[(1, 1), (8, 1), (1, 8)], (1, 1)).unwrap();
        assert_eq!(points.len(), 3 * 6);
        let seconds = |set: &str, way: &str| {
            super::super::points::find(&points, "wifi-far", set, way).unwrap().seconds.median
        };
        // 400 round trips of 200 ms, or 50.
        let html = seconds("small", "fixed:1,1,1") / seconds("small", "fixed:1,1,8");
        assert!(html > 5.0, "{html}");
        let ranges = seconds("small", "fixed:1,1,1") / seconds("small", "fixed:1,8,1");
        assert!((0.95..1.05).contains(&ranges), "{ranges}");
        assert_eq!(simulate(&cells, &[(8, 1)], (1, 1)).unwrap()[0], points[1]);
    }

    #[test]
    fn the_sweeps_are_those_of_the_paper() {
        assert_eq!((single().len(), combined().len()), (9, 24));
        assert_eq!(pairs_of(&[(8, 2)]), ["fixed:1,2,8"]);
    }
}
