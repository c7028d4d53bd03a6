//! A matrix of links, sets and clients, measured on real packets: nginx in one namespace, a client
//! in the other.

pub mod clients;
mod floor;
pub mod results;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod server;
pub mod validation;
mod workspace;

pub use floor::floor;
#[cfg(target_os = "linux")]
pub use run::{Failure, GuardReport, Runner, find_pelton};
pub use workspace::{PreparedSet, Workspace};
