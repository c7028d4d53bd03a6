//! Downloads through the public API, from real servers and from servers that lie.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test panics when it fails")]

mod failures;
mod liars;
mod matrix;
mod origins;
mod support;
