//! What it cost: power meters that read hardware, and radio models that predict joules.
//!
//! A **meter** reads hardware; a **model** predicts from traffic and CPU time. Both implement
//! [`PowerMeter`], and every reading carries its [`Source`], so that the two are never mixed
//! without a label.
//!
//! This version reads no hardware itself: [`auto()`] gives the [`Modelled`] meter, and a caller with
//! a sensor of its own implements [`PowerMeter`].
//!
//! | module | holds |
//! |---|---|
//! | `meter` | the seat: [`PowerMeter`], [`Reading`] and what they carry |
//! | [`radio`] | the radio state machine and its profiles; pure |
//! | `modelled` | [`Modelled`], the meter, and [`NetworkEnergyModel`], its forecast |
//! | `wire` | headers, acknowledgements and handshakes; pure |
//! | `auto` | [`auto()`]: which meter a run gets, and why |

mod auto;
mod meter;
mod modelled;
pub mod radio;
mod wire;

pub use auto::{Choice, auto};
pub use meter::{MeterError, Parts, PowerMeter, Reading, Scope, Source, SourceKind, Traffic};
pub use modelled::{CpuClock, Modelled, ModelledConfig, NetworkEnergyModel, ProcessCpu};
pub use radio::Radio;
