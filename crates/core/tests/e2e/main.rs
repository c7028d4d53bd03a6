//! Downloads through the public API, from real servers and from servers that lie.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test panics when it fails")]

mod events;
mod failures;
mod files;
mod hostile;
mod http2;
mod integrity;
mod liars;
mod limits;
mod locks;
mod matrix;
mod memory;
mod mirrors;
mod misuse;
mod origins;
mod own;
mod parts;
mod pipelining;
mod privacy;
mod redirects;
mod resume;
mod support;
mod tail;
