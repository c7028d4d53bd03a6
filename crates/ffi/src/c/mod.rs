//! The C ABI, which `include/pelton.h` declares. What the documentation says of a function is part of
//! that header.
//!
//! Every function runs inside [`error::guarded`] or [`error::shielded`]: a panic ends there.

mod client;
mod code;
#[cfg(unix)]
mod descriptors;
mod dispatcher;
mod error;
mod event;
mod job;
mod meter;
mod options;
mod outcome;
#[cfg(unix)]
mod pipe;
mod pointer;
mod queue;
mod request;
mod signal;
#[cfg(unix)]
mod sigpipe;
mod told;
mod version;
