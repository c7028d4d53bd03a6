//! What limits on the rate mean for the plan: few connections, and slow streams that are nobody's fault.

use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes};

use super::{Engine, OriginId};

/// What one connection has of a limited rate at least: more connections than that would each bring
/// a packet now and then.
const LEAST_OF_LIMIT: BitRate = BitRate::from_kbps(64);
/// What is so near to its limit has nothing to gain from more lanes.
const AT_LIMIT: f64 = 0.8;
/// Streams that share a limit unevenly are not stalled.
const UNEVEN: f64 = 0.25;

/// Connections that a limit on the rate leaves work for.
pub(super) fn connections_within(rate: Option<BitRate>) -> u32 {
    rate.map_or(u32::MAX, |rate| ((rate / LEAST_OF_LIMIT) as u32).max(1))
}

impl Engine {
    /// The limit that all runs of the client share is another one, or has begun or ceased to hold this run.
    pub(super) fn on_client_rate(&mut self, rate: Option<BitRate>, holds: bool) {
        self.redecide |= self.client_rate != rate;
        self.client_rate = rate;
        self.is_held = holds;
    }

    /// What all origins together may bring.
    pub(super) fn max_rate(&self) -> Option<BitRate> {
        let limits = self.config.limits;
        let per_origin =
            limits.max_rate_per_origin.map(|rate| rate * f64::from(self.origins_in_use()));
        let rates = [limits.max_rate, per_origin, self.client_rate];
        rates.into_iter().flatten().min_by(|a, b| a.bps().total_cmp(&b.bps()))
    }

    /// Whether a limit on the rate is what holds the run.
    pub(super) fn is_at_limit(&self) -> bool {
        self.is_held || self.max_rate().is_some_and(|rate| self.goodput >= rate * AT_LIMIT)
    }

    /// Whether its limit is what holds `origin`, of which so much `came` in `time`.
    pub(super) fn is_origin_at_limit(&self, came: Bytes, time: Duration) -> bool {
        let limit = self.config.limits.max_rate_per_origin;
        limit.is_some_and(|rate| time > Duration::ZERO && came / time >= rate * AT_LIMIT)
    }

    /// Bytes that a stream of `origin` has to bring within the stall time-out.
    pub(super) fn enough(&self, origin: OriginId) -> u64 {
        let limits = self.config.limits;
        let of_each = |rate: Option<BitRate>, streams: usize| {
            rate.map_or(f64::MAX, |rate| rate.bps() * UNEVEN / streams.max(1) as f64)
        };
        let of_run = of_each(limits.max_rate, self.streams.len());
        let here = self.origins[origin.0 as usize].streams as usize;
        let of_origin = of_each(limits.max_rate_per_origin, here);
        // How many streams of other runs share the client's limit is not known.
        let of_client = if self.is_held { 0.0 } else { f64::MAX };
        let least = self.config.min_rate.bps().min(of_run).min(of_origin).min(of_client);
        (BitRate::from_bps(least) * self.config.stall_timeout).0.max(1)
    }

    /// What came of each origin since this was asked last, and in what time.
    pub(super) fn take_came(&mut self, now: Timestamp) -> (Vec<Bytes>, Duration) {
        let time = now.saturating_since(std::mem::replace(&mut self.came_since, now));
        let taken = |state: &mut super::OriginState| Bytes(std::mem::take(&mut state.came));
        (self.origins.iter_mut().map(taken).collect(), time)
    }

    /// Origins that have files to bring.
    fn origins_in_use(&self) -> u32 {
        let in_use = |index: &usize| self.files_of(*index) > 0 || self.origins[*index].streams > 0;
        (0..self.origins.len()).filter(in_use).count().max(1) as u32
    }
}
