//! The native half of the classes of `io.pelton`.
