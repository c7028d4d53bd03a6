//! The transfer engine of pelton: from a list of URLs to verified files.
//!
//! **The engine decides, the driver does.** [`engine`] is synchronous and touches nothing;
//! everything that touches sockets, files and meters is a thin layer around it.
//!
//! | module | holds |
//! |---|---|
//! | [`catalog`] | where file lists come from |
//! | [`engine`] | what to transfer next: files, ranges, retries, budgets |
//! | [`connection`] | own connector, TLS, HTTP/1.1 and HTTP/2 connection sets |
//! | [`sink`] | where bytes go |
//! | [`events`] | what a run tells |
//! | [`Client`], [`Job`] | what an application holds |

pub mod catalog;
mod client;
pub mod connection;
pub mod digest;
mod driver;
pub mod engine;
mod error;
pub mod events;
mod fetch;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod job;
mod journal;
mod metering;
mod occupied;
mod origins;
mod panics;
mod report;
pub mod sink;
mod source;

pub use client::{Catalog, Client, ClientBuilder, Download, Input};
pub use error::{Error, ErrorKind, Result};
pub use events::RunEvent;
pub use job::{Canceller, Events, Job};
pub use report::Report;
