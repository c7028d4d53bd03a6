//! The transfer engine of pelton.

pub mod catalog;
pub mod connection;
mod error;

pub use error::{Error, ErrorKind, Result};
