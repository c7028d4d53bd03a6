//! The CPU time of a simulated client, so that the real meter can read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pelton_power::{CpuClock, ModelledConfig};

/// CPU time for each packet that arrives or leaves: interrupt, routing and the socket. Assumed;
/// about what a phone's core needs at a million packets in two seconds.
const PER_PACKET: Duration = Duration::from_micros(2);

/// The CPU clock of a simulated client. Bytes and connections cost what
/// [`ModelledConfig`] says of forecasts, and each packet [`PER_PACKET`].
#[derive(Debug, Clone, Default)]
pub(super) struct SimulatedCpu {
    nanos: Arc<AtomicU64>,
}

impl SimulatedCpu {
    /// The client has done so much since it began.
    pub(super) fn set(&self, config: &ModelledConfig, work: Work) {
        let mib = work.bytes as f64 / f64::from(1 << 20);
        let time = config.cpu_per_mib.mul_f64(mib)
            + config.cpu_per_connection.mul_f64(work.connections as f64)
            + PER_PACKET.mul_f64(work.packets as f64);
        self.nanos.store(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl CpuClock for SimulatedCpu {
    fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

/// What costs CPU time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    pub(super) bytes: u64,
    pub(super) connections: u64,
    pub(super) packets: u64,
}
