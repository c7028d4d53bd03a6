//! What a run is about to do.

use pelton_algos::cluster::Cluster;
use pelton_algos::policy::Decision;

use crate::engine::{ClusterUse, Engine};
use crate::events::{AllocationReport, ClusterReport, LinkReport, Plan, SCHEMA};

/// What would be done, as the engine sees it now.
pub(crate) fn plan(engine: &Engine, decision: &Decision, energy_source: &str) -> Plan {
    let totals = engine.totals();
    let link = engine.link();
    Plan {
        schema: SCHEMA,
        policy: engine.policy_name().to_owned(),
        files: totals.files,
        files_of_unknown_size: engine.files_of_unknown_size(),
        bytes: totals.expected.0,
        link: LinkReport {
            rtt_s: link.rtt.as_secs_f64(),
            bandwidth_bps: link.bandwidth.bps(),
            bdp_bytes: link.bdp().0,
            stream_window_bytes: link.stream_window.0,
        },
        clusters: engine.clusters().iter().map(cluster_report).collect(),
        parameters: allocations(decision, engine),
        wanted_connections: decision.wanted_connections,
        reason: decision.reason.clone(),
        energy_source: energy_source.to_owned(),
    }
}

fn cluster_report(cluster: &Cluster) -> ClusterReport {
    ClusterReport {
        cluster: cluster.classes.to_string(),
        files: cluster.files,
        bytes: cluster.bytes.0,
        mean_size_bytes: cluster.mean_size.0,
    }
}

pub(super) fn allocations(decision: &Decision, engine: &Engine) -> Vec<AllocationReport> {
    let usage = engine.usage();
    let used = |classes| usage.iter().find(|u: &&ClusterUse| u.classes == classes);
    let spare = decision.spare_streams(&engine.clusters(), &engine.limits());
    let allocations = decision.allocations.iter().zip(spare);
    allocations
        .map(|(allocation, spare_streams)| AllocationReport {
            cluster: allocation.classes.to_string(),
            pipelining: allocation.parameters.pipelining,
            parallelism: allocation.parameters.parallelism,
            concurrency: allocation.parameters.concurrency,
            spare_streams,
            active_files: used(allocation.classes).map_or(0, |u| u.files),
            active_streams: used(allocation.classes).map_or(0, |u| u.streams),
        })
        .collect()
}
