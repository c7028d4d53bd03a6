//! One file for each command: its arguments and `run`.

pub(crate) mod cells;
#[cfg(target_os = "linux")]
pub(crate) mod check;
#[cfg(target_os = "linux")]
pub(crate) mod guard;
#[cfg(target_os = "linux")]
mod matrix;
pub(crate) mod regret;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod simulate;
mod table;
