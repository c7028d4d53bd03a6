//! The transfer engine of pelton.

pub mod catalog;
pub mod connection;
pub mod digest;
mod error;

pub use error::{Error, ErrorKind, Result};
