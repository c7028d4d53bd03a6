//! One file for each command: its arguments and `run`.

pub(crate) mod cells;
#[cfg(target_os = "linux")]
pub(crate) mod check;
pub(crate) mod energy;
mod grid_part;
#[cfg(target_os = "linux")]
pub(crate) mod guard;
#[cfg(target_os = "linux")]
mod lab_args;
#[cfg(target_os = "linux")]
mod matrix;
pub(crate) mod regret;
pub(crate) mod report;
pub(crate) mod reproduce;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod sweep;
mod table;
#[cfg(target_os = "linux")]
pub(crate) mod validate;
