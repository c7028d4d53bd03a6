//! The command as people run it.
#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod common;
mod crash;
#[cfg(unix)]
mod guide;
mod hostile;
mod meter;
mod offline;
mod transfer;
