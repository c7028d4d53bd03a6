//! The simulator beside real packets: the same client, link and set in both.

use serde::{Deserialize, Serialize};

use super::results::median;

/// What is built in; its comments say what it holds.
const BUILT_IN: &str = include_str!("../../validation.toml");

/// The cells that are compared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationCells {
    /// Those that the simulator was made with.
    pub fitted: Vec<ValidationCell>,
    /// Those that were not looked at while it was made.
    pub held_out: Vec<ValidationCell>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationCell {
    /// A link of `cells.toml`.
    pub link: String,
    /// A set of `cells.toml`.
    pub set: String,
    /// A client of `pelton-lab run`.
    pub client: String,
}

/// What both gave in one cell.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Where.
    pub cell: ValidationCell,
    /// Whether the cell was held out.
    pub held_out: bool,
    /// Seconds of each simulated run.
    pub simulated: Vec<f64>,
    /// Seconds of each run on real packets.
    pub measured: Vec<f64>,
}

impl ValidationCells {
    /// The cells of `validation.toml`.
    ///
    /// # Errors
    /// None: the file is tested.
    pub fn built_in() -> Result<Self, Box<toml::de::Error>> {
        Ok(toml::from_str(BUILT_IN)?)
    }
}

impl Comparison {
    /// Simulated / measured - 1, of medians.
    pub fn error(&self) -> f64 {
        median(&self.simulated) / median(&self.measured) - 1.0
    }
}

/// The median of the sizes of the errors of `comparisons`.
pub fn median_error<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> f64 {
    median(&comparisons.map(|comparison| comparison.error().abs()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clients::Client;
    use crate::cells::Cells;
    use crate::sim::stand_in::StandIn;

    #[test]
    fn every_cell_can_be_run_and_simulated() {
        let cells = Cells::built_in().unwrap();
        let ValidationCells { fitted, held_out } = ValidationCells::built_in().unwrap();
        assert!(fitted.len() >= 12 && held_out.len() >= 4);
        assert!(held_out.iter().all(|cell| !fitted.contains(cell)));
        for cell in fitted.into_iter().chain(held_out) {
            cells.link(&cell.link).unwrap();
            cells.sets(&cell.set).unwrap();
            let clients = Client::parse_list(&cell.client).unwrap();
            assert!(StandIn::of(&clients[0]).is_some(), "{}", cell.client);
        }
    }

    #[test]
    fn errors_are_of_medians_and_have_no_sign_in_the_summary() {
        let cell = || ValidationCell { link: "l".into(), set: "s".into(), client: "c".into() };
        let of = |simulated: &[f64], measured: &[f64]| Comparison {
            cell: cell(),
            held_out: false,
            simulated: simulated.to_vec(),
            measured: measured.to_vec(),
        };
        let comparisons =
            [of(&[1.0, 1.2, 9.0], &[1.0]), of(&[0.9], &[1.0, 1.0]), of(&[3.0], &[2.0])];
        assert!((comparisons[0].error() - 0.2).abs() < 1e-9);
        assert!((comparisons[1].error() + 0.1).abs() < 1e-9);
        assert!((median_error(comparisons.iter()) - 0.2).abs() < 1e-9);
    }
}
