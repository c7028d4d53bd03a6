//! Downloads many files over HTTP at the throughput, the energy, or the balance of the two that you
//! ask for, and needs no hand-tuned numbers.
//!
//! ```no_run
//! # async fn quick_start() -> pelton::Result<()> {
//! let report = pelton::Client::builder()
//!     .policy(pelton::policy::Eht::default())
//!     .build()?
//!     .download(["https://example.org/data/"])
//!     .into_dir("out")
//!     .await?;
//! println!("{} files in {:.1} s", report.summary.files_done, report.summary.seconds);
//! # Ok(())
//! # }
//! ```
//!
//! A URL that ends in `/` is a directory listing and means its files. [`Download::start`] gives a
//! [`Job`] instead, which tells what happens as [`RunEvent`]s, and can be paused, bounded anew and
//! cancelled.
//!
//! | policy | asks for |
//! |---|---|
//! | [`policy::LowE`] | the least energy |
//! | [`policy::Hat`] | the most throughput |
//! | [`policy::Eht`] (default) | the most throughput per joule |
//! | [`policy::Fixed`] | exactly the numbers that you give |
//!
//! An own policy implements [`policy::Policy`], an own meter [`power::PowerMeter`].
//!
//! This crate holds nothing itself: [`algos`] decides, [`power`] knows what it costs, and
//! [`mod@core`] does it.

pub use pelton_algos as algos;
pub use pelton_algos::policy;
pub use pelton_core as core;
pub use pelton_core::catalog::{Digest, DigestAlgorithm, FileSpec, WalkOptions};
pub use pelton_core::connection::{HttpConfig, Protocol};
pub use pelton_core::engine::{EngineConfig, UserLimits};
pub use pelton_core::events;
pub use pelton_core::sink::Allocation;
pub use pelton_core::{
    Canceller, Client, ClientBuilder, Download, Error, ErrorKind, Events, Input, Job, Report,
    Result, RunEvent,
};
pub use pelton_power as power;
/// The types of URLs and headers in public fields.
pub use {http, url};

/// Compiles the Rust of the guide.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct Guide;
