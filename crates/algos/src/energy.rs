//! What a policy may ask about joules. pelton-power implements it; nothing here reads a meter.

use std::time::Duration;

use crate::units::{BitRate, Bytes, Joules, Watts};

/// A transfer that has not happened yet, as a policy imagines it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Forecast {
    /// Body bytes that would move.
    pub bytes: Bytes,
    /// The mean goodput while they move.
    pub rate: BitRate,
    /// How long the transfer would take, its start included.
    pub duration: Duration,
    /// Connections that would be opened.
    pub connections: u32,
    /// What opening one of them brings besides TCP's own segments: TLS and its certificates.
    pub handshake: Bytes,
    /// Requests that would be made.
    pub requests: u64,
    /// What arrives at once at most, over all connections: as much may wait for a slow radio.
    pub burst: Bytes,
    /// What has just come, as listings do: a radio that is awake for it needs no promotion.
    pub just_came: Bytes,
}

/// Predicts what a transfer costs. Joules from here are modelled, never measured.
pub trait EnergyModel {
    /// Energy of the whole transfer: the radio's promotion, activity and tail, and the CPU and
    /// base power while it lasts.
    fn predict(&self, forecast: &Forecast) -> Joules;

    /// What people should know of that prediction: what the radio does, how much its tail takes.
    fn remark(&self, forecast: &Forecast) -> Option<String> {
        let _ = forecast;
        None
    }
}

/// A device that draws the same power whatever it does: the model for a run without a better one.
/// Under it the least energy is the least time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConstantPower(pub Watts);

impl Default for ConstantPower {
    /// 1 W: with the power constant, only ratios matter, and one watt leaves them readable.
    fn default() -> Self {
        Self(Watts::new(1.0))
    }
}

impl EnergyModel for ConstantPower {
    fn predict(&self, forecast: &Forecast) -> Joules {
        self.0 * forecast.duration
    }
}
