//! Whole runs whose times can be reckoned by hand.

use std::time::Duration;

use pelton_algos::policy::{Eht, Fixed, FixedConfig, Hat, LowE, Policy};
use pelton_algos::units::BitRate;
use pelton_core::connection::Protocol;

use super::*;
use crate::sets;

const H1: OriginConfig = OriginConfig::plain(Protocol::Http11, false);

fn link(mbps: f64, rtt_millis: u64) -> LinkSpec {
    LinkSpec::plain(BitRate::from_mbps(mbps), Duration::from_millis(rtt_millis)).unwrap()
}

fn fixed(concurrency: u32, parallelism: u32) -> Box<dyn Policy> {
    Box::new(Fixed::new(FixedConfig { concurrency, parallelism, pipelining: 1 }))
}

fn files(sizes: &[u64]) -> FileList {
    let files: Vec<_> = sizes
        .iter()
        .enumerate()
        .map(|(i, size)| VirtualFile::new(format!("/file-{i}.bin"), *size, 0))
        .collect();
    FileList::new(&files).unwrap()
}

#[test]
fn scratch() {
    for (mbps, rtt) in [(50.0, 100), (1000.0, 10), (10.0, 30), (1000.0, 100), (1.0, 600)] {
        for p in [1, 4, 16] {
            let files = files(&[100_000_000]);
            let link = link(mbps, rtt);
            let t = std::time::Instant::now();
            let e = Scenario::new(&link, H1, &files, 1).run(fixed(1, p));
            eprintln!(
                "{mbps} {rtt} p{p}: {:.2} s of {:.2}, {} conns, {} lost of {}, {:?} wall {:?} dec {}",
                e.seconds,
                8e8 / mbps / 1e6,
                e.connections,
                e.lost_segments,
                e.segments,
                e.energy,
                t.elapsed(),
                e.decisions.len()
            );
        }
    }
    for (mbps, rtt) in [(50.0, 100), (1000.0, 10), (10.0, 30), (1000.0, 100), (1.0, 600)] {
        let files = FileList::new(&sets::worked_example(1)).unwrap();
        let link = link(mbps, rtt);
        for policy in [
            fixed(1, 1),
            fixed(16, 1),
            fixed(64, 1),
            Box::<LowE>::default(),
            Box::new(Hat),
            Box::new(Eht::default()),
        ] {
            let name = format!("{policy:?}");
            let name = &name[..name.len().min(30)];
            let t = std::time::Instant::now();
            let e = Scenario::new(&link, H1, &files, 1).run(policy);
            eprintln!(
                "{mbps} {rtt} {name}: {:.2} s of {:.2}, {} conns, {} lost of {}, {:?} wall {:?} dec {}",
                e.seconds,
                40.4 * 8.0 / mbps,
                e.connections,
                e.lost_segments,
                e.segments,
                e.energy,
                t.elapsed(),
                e.decisions.len()
            );
        }
    }
}
