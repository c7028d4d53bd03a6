//! What the oracle has found, kept in a file: it takes nine tenths of the time of a measurement.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use pelton_algos::policy::FixedConfig;

use super::grid::GridCell;
use super::oracle::{Costs, Oracle};

/// The oracle's findings, by cell and seed.
#[derive(Debug, Default)]
pub struct Oracles(Mutex<BTreeMap<String, Oracle>>);

impl Oracles {
    /// What [`text`](Self::text) has made.
    ///
    /// # Errors
    /// The number of the first line that is none of it.
    pub fn parse(text: &str) -> Result<Self, usize> {
        let mut found: BTreeMap<String, Oracle> = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let (key, config, costs) = entry(line).ok_or(index + 1)?;
            found.entry(key.to_owned()).or_default().tried.push((config, costs));
        }
        Ok(Self(Mutex::new(found)))
    }

    /// All of it: on each line the seed and the cell, the numbers, and what they cost by each goal,
    /// between tabulators.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let Ok(found) = self.0.lock() else { return text };
        for (key, oracle) in &*found {
            for (FixedConfig { pipelining, parallelism, concurrency }, costs) in &oracle.tried {
                let [time, energy, efficiency] = costs.0;
                let _ = writeln!(
                    text,
                    "{key}\t{pipelining}\t{parallelism}\t{concurrency}\t{time}\t{energy}\t{efficiency}"
                );
            }
        }
        text
    }

    /// The oracle of `cell`: as it was found before, else by `find`.
    pub(super) fn of(&self, cell: &GridCell, seed: u64, find: impl FnOnce() -> Oracle) -> Oracle {
        let key = format!("{seed}\t{cell}");
        let known = self.0.lock().ok().and_then(|found| found.get(&key).cloned());
        known.unwrap_or_else(|| {
            let oracle = find();
            if let Ok(mut found) = self.0.lock() {
                found.insert(key, oracle.clone());
            }
            oracle
        })
    }
}

fn entry(line: &str) -> Option<(&str, FixedConfig, Costs)> {
    let mut numbers = line.rsplitn(7, '\t');
    let mut cost = || numbers.next()?.parse::<f64>().ok();
    let (efficiency, energy, time) = (cost()?, cost()?, cost()?);
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let (concurrency, parallelism, pipelining) = (number()?, number()?, number()?);
    let config = FixedConfig { pipelining, parallelism, concurrency };
    Some((numbers.next()?, config, Costs([time, energy, efficiency])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::grid::Grid;
    use crate::sim::oracle::Goal;

    #[test]
    fn what_was_found_is_not_looked_for_again() {
        let cell = &Grid::full(1).unwrap().cells[0];
        let numbers = FixedConfig { pipelining: 8, parallelism: 1, concurrency: 24 };
        let costs = Costs([1.5, 1e-3, f64::INFINITY]);
        let found = Oracles::default();
        found.of(cell, 7, || Oracle { tried: vec![(numbers, costs)] });
        let again = Oracles::parse(&found.text()).unwrap();
        let oracle = again.of(cell, 7, || unreachable!("it is known"));
        assert_eq!(oracle.best(Goal::Energy), (numbers, 1e-3));
        assert_eq!(oracle.tried, [(numbers, costs)]);
        let mut searched = false;
        again.of(cell, 8, || {
            searched = true;
            Oracle::default()
        });
        assert!(searched, "with another seed it is another one");
        assert_eq!(Oracles::parse("1\ta\t1\t2\t3\t4\t5\t6\nnonsense").unwrap_err(), 2);
    }
}
