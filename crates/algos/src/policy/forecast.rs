//! How long a plan would take and what it would cost: the same answer for every policy.

use std::time::Duration;

use super::Observation;
use crate::cluster::Cluster;
use crate::energy::Forecast;
use crate::params;
use crate::units::{Bytes, Joules};

/// The head of a response over HTTP/1.1, as common servers write it.
const HEAD: Bytes = Bytes(280);

/// What is left, as `channels` that open `connections` would bring it.
pub(super) fn forecast(observation: &Observation<'_>, channels: u32, connections: u32) -> Forecast {
    let bytes = observation.remaining();
    let duration = duration(observation, channels);
    Forecast {
        bytes,
        rate: bytes / duration,
        duration,
        connections,
        handshake: observation.handshake,
        requests: observation.clusters.iter().map(|cluster| cluster.files).sum(),
        burst: burst(observation, connections),
        just_came: observation.just_came,
    }
}

/// Seconds and joules of a forecast.
pub(super) fn cost(observation: &Observation<'_>, forecast: &Forecast) -> (Duration, Joules) {
    (forecast.duration, observation.energy_model.predict(forecast))
}

/// `9.1 s and 5.40 J`, with what the model remarks.
pub(super) fn describe(observation: &Observation<'_>, forecast: &Forecast) -> String {
    let (duration, joules) = cost(observation, forecast);
    let remark = observation.energy_model.remark(forecast);
    let remark = remark.map(|remark| format!(" ({remark})")).unwrap_or_default();
    format!("{:.1} s and {joules}{remark}", duration.as_secs_f64())
}

/// How long the transfer would take with `channels`: as long as the link needs for the bytes, or the
/// channels for the files, or one of them for its longest file. A channel moves a file at its
/// streams' windows, needs at least a round trip for it, and waits for the last of them to come.
fn duration(observation: &Observation<'_>, channels: u32) -> Duration {
    let Observation { link, limits, clusters, .. } = observation;
    let rtt = link.rtt.as_secs_f64();
    let alone = |cluster: &Cluster| {
        let streams = params::usable_parallelism(cluster, link, limits);
        let a_trip = link.stream_window.scale(f64::from(streams)).max(Bytes(1));
        let trips = (cluster.mean_size.as_f64() / a_trip.as_f64()).max(1.0);
        trips * rtt + (cluster.mean_size.min(a_trip) / link.bandwidth).as_secs_f64()
    };
    let longest = clusters.iter().map(alone).fold(0.0, f64::max);
    let all: f64 = clusters.iter().map(|c| c.files as f64 * alone(c)).sum();
    let by_link = (observation.remaining() / link.bandwidth).as_secs_f64();
    let lanes = channels.min(limits.max_files).max(1);
    let seconds = by_link.max(all / f64::from(lanes)).max(longest);
    // Two round trips pass before the first byte: the handshake and the request.
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4) + link.rtt * 2
}

/// A response or a window on each connection at once, and certificates while they open.
fn burst(observation: &Observation<'_>, connections: u32) -> Bytes {
    let largest = observation.clusters.iter().map(|cluster| cluster.mean_size).max();
    let response = (largest.unwrap_or_default() + HEAD).min(observation.link.stream_window + HEAD);
    response.max(observation.handshake).scale(f64::from(connections.max(1)))
}
