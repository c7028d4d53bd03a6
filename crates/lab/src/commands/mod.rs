//! One file for each command: its arguments and `run`.

pub(crate) mod cells;
#[cfg(target_os = "linux")]
pub(crate) mod check;
mod table;
