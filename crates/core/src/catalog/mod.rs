//! Where file lists come from.

mod spec;

pub use spec::{Digest, DigestAlgorithm, FileSpec};
