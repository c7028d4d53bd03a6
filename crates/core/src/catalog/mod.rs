//! Where file lists come from.

mod names;
mod spec;

pub use names::{collapse, relative_name};
pub use spec::{Digest, DigestAlgorithm, FileSpec};
