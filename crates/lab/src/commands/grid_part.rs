//! Which cells of the grid are measured, and what is known of them.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use pelton_lab::sim::grid::{Grid, QUICK_STRIDE};
use pelton_lab::sim::oracles::Oracles;
use pelton_lab::sim::regret::{Adaptive, Measurement, Regret, Variant};
use pelton_power::ModelledConfig;

/// A part of the grid.
#[derive(Debug, Args)]
pub(crate) struct GridPart {
    /// Every 23rd cell of the grid instead of all of it.
    #[arg(long)]
    quick: bool,
    /// Every Nth cell.
    #[arg(long, value_name = "N", conflicts_with = "quick")]
    every: Option<usize>,
    /// The number of the first cell: parts with different ones have no cell in common.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: usize,
    /// Decides which packets are lost; the same seed gives the same output.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Take from this file what the oracle has found, and keep there what it finds. Delete it when the
    /// engine or the simulator has changed.
    #[arg(long, value_name = "FILE")]
    oracle: Option<PathBuf>,
}

impl GridPart {
    /// Says what is measured, and measures it: the regrets of each variant.
    pub(crate) fn measure(
        &self,
        policies: &[Adaptive],
        variants: &[Variant],
    ) -> Result<Vec<Vec<Regret>>> {
        let every = if self.quick { QUICK_STRIDE } else { self.every.unwrap_or(1) };
        let grid = Grid::full(self.seed)?.every(every, self.from);
        let radio = ModelledConfig::default().radio.map_or("none".into(), |radio| radio.name);
        let cells = grid.cells.len();
        outln!("{cells} cells, seed {}; joules are modelled, of the radio {radio}", self.seed);
        let oracles = self.oracles()?;
        let oracles = &oracles;
        let measurement = Measurement { grid: &grid, seed: self.seed, policies, variants, oracles };
        let regrets = measurement.run();
        if let Some(file) = &self.oracle {
            fs::write(file, oracles.text())
                .with_context(|| format!("can't write {}", file.display()))?;
        }
        Ok(regrets)
    }

    fn oracles(&self) -> Result<Oracles> {
        let Some(file) = &self.oracle else { return Ok(Oracles::default()) };
        match fs::read_to_string(file) {
            Ok(text) => Oracles::parse(&text)
                .map_err(|line| anyhow!("{}, line {line}: no oracle's finding", file.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Oracles::default()),
            Err(error) => Err(error).with_context(|| format!("can't read {}", file.display())),
        }
    }
}
