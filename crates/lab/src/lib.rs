//! The testbed of pelton: an origin to download from and a shaped link to reach it over.
//!
//! | module | holds |
//! |---|---|
//! | [`origin`] | an HTTP server on the loopback, with knobs for everything servers get wrong |
//! | [`content`] | the files it serves: deterministic bytes that cost nothing to make |

pub mod content;
pub mod origin;
