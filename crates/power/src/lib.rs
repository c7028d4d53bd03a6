//! What it cost: power meters that read hardware, and radio models that predict joules.
//!
//! A **meter** reads hardware; a **model** predicts from traffic and CPU time. Both implement
//! [`PowerMeter`], and every reading carries its [`Source`], so that the two are never mixed
//! without a label.
//!
//! [`auto()`] picks the best meter of a machine and says why; a caller with a sensor of its own
//! implements [`PowerMeter`], or hands a function to [`Callback`].
//!
//! | module | holds |
//! |---|---|
//! | `meter` | the seat: [`PowerMeter`], [`Reading`] and what they carry |
//! | [`meters`] | what reads hardware: rapl, battery, hwmon, scpi; replay; the callback's seat |
//! | [`radio`] | the radio state machine and its profiles; pure |
//! | [`device`] | own profiles: a TOML file, Android's `power_profile.xml` |
//! | `interface` | what an interface of the system moved: [`Interface`] |
//! | `sockets` | when TCP connections of the system last moved something: [`tcp_quiet`] |
//! | `modelled` | [`Modelled`], the meter, and [`NetworkEnergyModel`], its forecast |
//! | [`trace`] | packets, and a radio run over them; pure |
//! | [`track`] | connection tracking: when the next packets come; pure |
//! | [`sleep`] | what a card that sleeps between packets draws; pure |
//! | `wire` | headers, acknowledgements and handshakes; pure |
//! | `auto` | [`auto()`]: which meter a run gets, and why |

mod auto;
pub mod device;
mod interface;
mod meter;
pub mod meters;
mod modelled;
pub mod radio;
pub mod sleep;
#[cfg(target_os = "linux")]
mod sockets;
pub mod trace;
pub mod track;
mod wire;

pub use auto::{Choice, Sysfs, auto, auto_in};
pub use interface::Interface;
pub use meter::{
    Counted, MeterError, Parts, PowerMeter, Reading, Resolution, Scope, Source, SourceKind, Traffic,
};
pub use meters::Callback;
pub use modelled::{
    CpuClock, MachineCpu, Modelled, ModelledConfig, NetworkEnergyModel, ProcessCpu,
};
pub use radio::Radio;
#[cfg(target_os = "linux")]
pub use sockets::tcp_quiet;
