//! One file for each command: its arguments and `run`.

pub(crate) mod cells;
#[cfg(target_os = "linux")]
pub(crate) mod check;
#[cfg(target_os = "linux")]
pub(crate) mod guard;
#[cfg(target_os = "linux")]
mod matrix;
#[cfg(target_os = "linux")]
pub(crate) mod run;
mod table;
