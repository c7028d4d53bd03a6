//! What it cost: power meters that read hardware, and radio models that predict joules.
//!
//! A **meter** reads hardware; a **model** predicts from traffic and CPU time. Both implement
//! [`PowerMeter`], and every reading carries its [`Source`], so that the two are never mixed
//! without a label.

mod meter;

pub use meter::{MeterError, Parts, PowerMeter, Reading, Scope, Source, SourceKind, Traffic};
