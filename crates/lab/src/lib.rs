//! The testbed of pelton: an origin to download from and a shaped link to reach it over.
//!
//! | module | holds |
//! |---|---|
//! | [`link`] | a shared downlink and TCP windows, in virtual time |
//! | [`shaper`] | the same in real time, around any connector |
//! | [`origin`] | an HTTP server on the loopback, with knobs for everything servers get wrong |
//! | [`content`] | the files it serves: deterministic bytes that cost nothing to make |
//! | [`sets`] | named sets of them |

pub mod content;
pub mod link;
pub mod origin;
pub mod sets;
pub mod shaper;
