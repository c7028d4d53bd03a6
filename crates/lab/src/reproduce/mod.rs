//! The papers' figures, made again.
//!
//! papers/000: energy figures, computed from their described traffic and pelton's radio models.
//! papers/001 Figs 2 to 4: sweeps of concurrency and parallelism, and the schedulers against other
//! programs, over links that stand for the paper's.

mod claims;
mod page;
mod papers_000;
mod points;
mod sweep;

pub use claims::{COMPARED_SETS, Claim, comparison, sweeps_combined, sweeps_single};
pub use page::{comparison_page, sweep_page};
pub use papers_000::{Row, papers_000, timers};
pub use points::{PLACES, Place, Point, SETS};
pub use sweep::{CONCURRENCY, PARALLELISM, combined, pairs_of, simulate, single};
