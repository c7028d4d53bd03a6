//! A matrix of links, sets and clients, measured on real packets: nginx in one namespace, a client
//! in the other.

#[cfg(target_os = "linux")]
pub mod campaign;
pub mod clients;
pub mod energy;
mod floor;
pub mod plan;
pub mod results;
#[cfg(target_os = "linux")]
mod run;
pub mod schedule;
#[cfg(target_os = "linux")]
mod server;
pub mod validation;
mod workspace;

pub use floor::{LEAST_FLOOR_S, floor};
#[cfg(target_os = "linux")]
pub use run::{Failure, GuardReport, Order, Runner, find_programs};
pub use workspace::{PreparedSet, Workspace};
