//! The papers' figures, made again.
//!
//! papers/000: energy figures, computed from their described traffic and pelton's radio models.
//! papers/001 Figs 2 to 4: sweeps of concurrency and parallelism, and the schedulers against other
//! programs, over links that stand for the paper's.
//! papers/003: sleep policies over recorded downloads, and Table I.
//! papers/004 Table 5: visits over HTTP/1.1 and HTTP/2.

mod claims;
mod page;
mod papers_000;
mod papers_003;
mod papers_004;
mod points;
mod row;
mod sweep;

pub use claims::{COMPARED_SETS, Claim, comparison, sweeps_combined, sweeps_single};
pub use page::{comparison_page, sweep_page};
pub use papers_000::{Saved, papers_000, timers};
pub use papers_003::{FILE, LINKS, Recording, SOCKET_BUFFER, papers_003};
pub use papers_004::papers_004;
pub use points::{PLACES, Place, Point, SETS};
pub use row::Row;
pub use sweep::{CONCURRENCY, PARALLELISM, combined, pairs_of, simulate, single};
