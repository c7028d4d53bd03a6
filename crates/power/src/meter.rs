//! The seat that every power meter takes.

use std::fmt;
use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Bytes, Joules};

/// Whether joules were read from hardware or predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// Read from a sensor.
    Measured,
    /// Predicted from traffic and CPU time.
    Modelled,
}

/// Where joules come from, as shown beside every number: `measured: rapl`, `modelled: wifi+cpu`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Measured or modelled.
    pub kind: SourceKind,
    /// The meter's or model's name.
    pub name: String,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SourceKind::Measured => "measured",
            SourceKind::Modelled => "modelled",
        };
        write!(f, "{kind}: {}", self.name)
    }
}

/// What part of the machine a meter covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The network interface.
    Radio,
    /// The processor cores.
    Cpu,
    /// The processor package.
    Package,
    /// The whole device.
    Device,
}

/// Traffic of the run so far, cumulative, as seen above the network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes received from the network.
    pub received: Bytes,
    /// Bytes sent to the network.
    pub sent: Bytes,
    /// Connections whose opening has begun since the start: the radio wakes for the first packet of them.
    pub connections_begun: u64,
    /// Connections opened since the start.
    pub connections_opened: u64,
    /// Connections open now.
    pub connections_open: u32,
    /// The part of this whose segments the system has counted.
    pub counted: Counted,
}

/// Traffic whose TCP segments were counted (`TCP_INFO` on Linux), cumulative. What is not counted
/// is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Bytes received in these segments.
    pub received: Bytes,
    /// Bytes sent in these segments.
    pub sent: Bytes,
    /// Segments received, bare acknowledgements among them.
    pub segments_received: u64,
    /// Segments sent, bare acknowledgements among them.
    pub segments_sent: u64,
    /// Connections whose opening is among them.
    pub connections: u64,
}

/// Energy by what used it, where the source knows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parts {
    /// The radio: promotion, activity, tail.
    pub radio: Joules,
    /// CPU time of this process.
    pub cpu: Joules,
    /// What the device draws merely for being awake.
    pub base: Joules,
}

/// Cumulative energy since the meter was started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When the reading was true.
    pub at: Timestamp,
    /// Joules since the start. Never decreases from one reading to the next.
    pub total: Joules,
    /// The parts of `total`, where the source knows them.
    pub parts: Option<Parts>,
}

/// How fine a meter is. What it reads over less than an interval, or below a step, says little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// The time between two fresh readings; zero for a model, which is always fresh.
    pub interval: Duration,
    /// The least difference that shows.
    pub step: Joules,
}

impl Resolution {
    /// Of a reading that is fresh and exact at any time.
    pub const EXACT: Self = Self { interval: Duration::ZERO, step: Joules::ZERO };

    /// A meter that has told nothing new for longer has stopped: some intervals, and what whoever reads it may be late by.
    pub fn longest_silence(&self) -> Duration {
        self.interval.saturating_mul(3).saturating_add(Duration::from_millis(500))
    }
}

/// Why a meter gave no reading.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// There is no such sensor.
    #[error("no {meter}: {reason}")]
    Absent {
        /// The meter's name.
        meter: String,
        /// Where it was looked for.
        reason: String,
    },
    /// The sensor gives nothing now, or not to this user.
    #[error("{meter} can't be read: {reason}")]
    Unreadable {
        /// The meter's name.
        meter: String,
        /// Why, and what would help.
        reason: String,
    },
}

impl MeterError {
    pub(crate) fn absent(meter: &str, reason: impl Into<String>) -> Self {
        Self::Absent { meter: meter.to_owned(), reason: reason.into() }
    }

    pub(crate) fn unreadable(meter: &str, reason: impl Into<String>) -> Self {
        Self::Unreadable { meter: meter.to_owned(), reason: reason.into() }
    }
}

/// Cumulative energy of a run. Implement it for an own meter.
///
/// The driver calls [`read`](Self::read) a few times a second and [`finish`](Self::finish) once,
/// after the last byte.
pub trait PowerMeter: Send {
    /// Where the joules come from.
    fn source(&self) -> Source;

    /// What the joules cover.
    fn scope(&self) -> Scope;

    /// How often readings change and by how little. Default: as if always fresh.
    fn resolution(&self) -> Resolution {
        Resolution::EXACT
    }

    /// Energy from the first reading until `now`. `traffic` is cumulative and serves models; a
    /// meter that reads hardware ignores it.
    ///
    /// # Errors
    /// The sensor gave nothing this time. The run goes on with the reading before.
    fn read(&mut self, now: Timestamp, traffic: &Traffic) -> Result<Reading, MeterError>;

    /// How long since the first reading the sensor was gone, so that what was drawn meanwhile is in no reading. Default: never,
    /// as what is missed is told, or bridged, by the next one.
    fn left_out(&self) -> Duration {
        Duration::ZERO
    }

    /// The last reading of a run. A model adds the tail energy here: what the radio will draw
    /// after the last byte until it sleeps belongs to the transfer.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    fn finish(&mut self, now: Timestamp, traffic: &Traffic) -> Result<Reading, MeterError> {
        self.read(now, traffic)
    }
}
