//! Meters that read hardware, one file each.
//!
//! None of them ever yields energy that is negative, falls or jumps: a counter that steps back, a
//! sensor that reads nonsense and a sample from the past are dropped, and the next good one goes on.
//! What can be true is said in `sum`, for all of them; batteries and rapl have tighter limits.

mod android;
mod battery;
mod callback;
mod hwmon;
mod rapl;
mod replay;
mod scpi;
mod sum;
pub(crate) mod sysfs;

pub use android::{BatteryManager, Rails};
pub use battery::Battery;
pub use callback::{Callback, Sample};
pub use hwmon::Hwmon;
pub use rapl::Rapl;
pub use replay::{Replay, ReplayError};
pub use scpi::Scpi;

#[cfg(test)]
pub(crate) mod tests;
