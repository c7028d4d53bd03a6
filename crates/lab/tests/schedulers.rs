//! The three schedulers on the worked example of docs/schedulers.md, over the demo's link: what
//! they decide and what they then do differ as computed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::thread;

use pelton_algos::policy::{Eht, Hat, LowE, Policy};
use pelton_core::catalog::FileSpec;
use pelton_core::connection::TcpConnector;
use pelton_core::engine::EngineConfig;
use pelton_core::events::AllocationReport;
use pelton_core::{Client, Report, RunEvent};
use pelton_lab::link::Link;
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::sets::worked_example;
use pelton_lab::shaper::ShapedConnector;

/// A run's report, and the clusters' use at each progress event.
fn run(policy: impl Policy + Clone + Sync + 'static) -> (Report, Vec<Vec<AllocationReport>>) {
    let files = worked_example(1);
    let origin =
        Origin::start(OriginConfig { files: files.clone(), ..OriginConfig::default() }).unwrap();
    let link = Link::demo();
    let mut engine = EngineConfig::default();
    engine.link.bandwidth_hint = Some(link.rate);
    engine.link.rtt_hint = Some(link.rtt);
    let client = Client::builder()
        .policy(policy)
        .connector(Arc::new(ShapedConnector::new(link, TcpConnector::default())))
        .engine(engine)
        .build()
        .unwrap();
    let specs = files.iter().map(|file| {
        let mut spec = FileSpec::from_url(origin.url(&file.path).parse().unwrap()).unwrap();
        spec.size = Some(file.size);
        spec
    });
    let dir = tempfile::tempdir().unwrap();
    let mut job = client.download(specs).into_dir(dir.path()).start().unwrap();
    let mut events = job.events();
    let mut uses = Vec::new();
    while let Some(event) = events.blocking_next() {
        if let RunEvent::Progress(progress) = event {
            uses.push(progress.clusters);
        }
    }
    (job.blocking_report().unwrap(), uses)
}

fn lanes(report: &Report) -> Vec<(String, u32)> {
    let plan = report.plan.as_ref().unwrap();
    plan.parameters.iter().map(|p| (p.cluster.clone(), p.concurrency)).collect()
}

fn most_files(uses: &[Vec<AllocationReport>], cluster: &str) -> u32 {
    let of_cluster = uses.iter().flatten().filter(|u| u.cluster == cluster);
    // The first second: the link is known, so lanes do not grow before it was measured to be full.
    of_cluster.take(4).map(|u| u.active_files).max().unwrap()
}

fn named(lanes: [u32; 3]) -> Vec<(String, u32)> {
    ["small", "medium", "large"].map(str::to_owned).into_iter().zip(lanes).collect()
}

#[test]
fn the_three_schedulers_differ_as_computed() {
    let runs = [
        thread::spawn(|| run(LowE::default())),
        thread::spawn(|| run(Hat)),
        thread::spawn(|| run(Eht::default())),
    ];
    let [lowe, hat, eht] = runs.map(|run| run.join().unwrap());
    for (report, _) in [&lowe, &hat, &eht] {
        assert_eq!(report.summary.exit_code, 0);
        assert_eq!(report.summary.files_done, 221);
    }
    assert_eq!(lanes(&lowe.0), named([9, 2, 1]));
    assert_eq!(lowe.0.plan.as_ref().unwrap().wanted_connections, 51);
    assert_eq!(lanes(&hat.0), named([5, 10, 1]));
    assert_eq!(hat.0.plan.as_ref().unwrap().wanted_connections, 80);
    let reason = &eht.0.plan.as_ref().unwrap().reason;
    assert!(reason.contains("weights 0.612, 0.357, 0.031"), "{reason}");
    assert_ne!(lanes(&eht.0), lanes(&lowe.0));
    assert_ne!(lanes(&eht.0), lanes(&hat.0));

    // What was decided is what was done.
    assert_eq!(most_files(&lowe.1, "small"), 9);
    assert_eq!(most_files(&hat.1, "small"), 5);
    assert_eq!(most_files(&hat.1, "medium"), 10);
    let eht_small = lanes(&eht.0)[0].1;
    assert_eq!(most_files(&eht.1, "small"), eht_small);
}
