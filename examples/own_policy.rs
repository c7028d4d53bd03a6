//! A policy of one's own: the formulas' parameters, within eight connections. It runs beside HAT on
//! a simulated link of 50 Mbit/s and 200 ms.

use std::error::Error;
use std::sync::Arc;

use pelton::algos::params::{self, Allocation};
use pelton::algos::time::Timestamp;
use pelton::core::connection::{Proxies, TcpConnector};
use pelton::policy::{Decision, Hat, Observation, Policy};
use pelton::{Client, HttpConfig, WalkOptions};
use pelton_lab::link::Link;
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::sets;
use pelton_lab::shaper::ShapedConnector;

const CONNECTIONS: u32 = 8;

#[derive(Debug, Clone)]
struct Gentle;

impl Policy for Gentle {
    fn name(&self) -> &'static str {
        "gentle"
    }

    fn decide(&mut self, _now: Timestamp, seen: &Observation<'_>) -> Decision {
        let parameters = |c| params::wanted(c, &seen.link, &seen.limits, CONNECTIONS);
        let mut allocations: Vec<_> = seen
            .clusters
            .iter()
            .map(|c| Allocation { classes: c.classes, parameters: parameters(c) })
            .collect();
        let wanted_connections = params::connections(&allocations);
        let budget = CONNECTIONS.min(seen.limits.max_connections);
        let small_first: Vec<usize> = (0..allocations.len()).collect();
        let room = |c| params::usable_parallelism(c, &seen.link, &seen.limits);
        let usable: Vec<u32> = seen.clusters.iter().map(room).collect();
        params::fit_to_budget(&mut allocations, &usable, budget, &small_first);
        let reason = format!("gentle: {budget} of {wanted_connections} connections");
        let mut decision = Decision::new(allocations, reason);
        decision.wanted_connections = wanted_connections;
        decision.max_channels = budget;
        decision
    }

    fn allows_growth(&self) -> bool {
        false
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let files = sets::demo_mixed(1);
    let origin = Origin::start(OriginConfig { files, ..OriginConfig::default() })?;
    run(&origin, Gentle)?;
    run(&origin, Hat)
}

fn run(
    origin: &Origin,
    policy: impl Policy + Clone + Sync + 'static,
) -> Result<(), Box<dyn Error>> {
    let out = tempfile::tempdir()?;
    let report = Client::builder()
        .policy(policy)
        .connector(Arc::new(ShapedConnector::new(Link::demo(), TcpConnector::default())))
        .http(HttpConfig { proxies: Proxies::Direct, ..HttpConfig::default() })
        .build()?
        .download([origin.url("/")])
        .walk(WalkOptions { recursive: true, ..WalkOptions::default() })
        .into_dir(out.path())
        .start()?
        .blocking_report()?;
    let done = &report.summary;
    println!("{}: {:.1} s, {} connections opened", done.policy, done.seconds, done.connections);
    if let (Some(first), Some(last)) = (report.decisions.first(), report.decisions.last()) {
        println!("  {:.1} s: {}", first.at_s, first.reason);
        println!("  {:.1} s: {}", last.at_s, last.reason);
    }
    Ok(())
}
