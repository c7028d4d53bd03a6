//! The one model of a link that the packet emulator, the simulator and the reports share: what a
//! packet of so many bytes, offered at such a moment, will meet.
//!
//! Pure and seeded: no clock, no I/O; the same packets and the same seed give the same fates. Each
//! direction is a drop-tail queue in front of a server, then loss, then delay:
//!
//! ```text
//! offer -> queue (bytes) -> rate, changes of it, or a trace -> loss -> delay + jitter -> delivered
//! ```
//!
//! Loss comes after the server, as on the air: a lost packet has used the link. A link therefore
//! carries its rate times one minus its loss.

mod direction;
mod loss;
mod rate;
mod spec;
mod trace;

pub use direction::{Cause, Direction, Verdict};
pub use loss::{GilbertElliott, Loss};
pub use rate::{Change, RateSchedule, ScheduleError};
pub use spec::{Capacity, DirectionSpec, LinkSpec};
pub use trace::{OPPORTUNITY, Trace, TraceError};

/// Both directions of a link.
#[derive(Debug, Clone)]
pub struct LinkModel {
    /// From the server to the client.
    pub down: Direction,
    /// From the client to the server.
    pub up: Direction,
}

impl LinkModel {
    /// An idle link. Another seed gives other losses and another jitter.
    pub fn new(spec: &LinkSpec, seed: u64) -> Self {
        Self {
            down: Direction::new(&spec.down, seed),
            // Any other number serves: the directions must not lose the same packets.
            up: Direction::new(&spec.up, !seed),
        }
    }
}
