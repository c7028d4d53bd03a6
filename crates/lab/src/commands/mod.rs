//! The sub-commands, one a file.

pub(crate) mod energy;
pub(crate) mod regret;
pub(crate) mod reproduce;
pub(crate) mod simulate;

/// What a command fails with: one line for people.
pub(crate) type Failure = Box<dyn std::error::Error>;
