//! How long decisions take: `cargo bench -p pelton-algos`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use pelton_algos::cluster::{Cluster, ClusterConfig, SizeClass};
use pelton_algos::energy::ConstantPower;
use pelton_algos::link::{LinkConfig, LinkEstimate, LinkEstimator};
use pelton_algos::params::Limits;
use pelton_algos::policy::{Eht, Hat, LowE, Observation, Policy};
use pelton_algos::ranges::{Candidate, FileRanges, StreamId};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Bytes, Joules};

fn link() -> LinkEstimate {
    LinkEstimate {
        rtt: Duration::from_millis(200),
        bandwidth: BitRate::from_mbps(50.0),
        stream_window: Bytes::kib(64),
    }
}

fn decisions(c: &mut Criterion) {
    let clusters = [
        Cluster::new(SizeClass::Small, 200, Bytes(2_400_000)),
        Cluster::new(SizeClass::Medium, 20, Bytes(14_000_000)),
        Cluster::new(SizeClass::Large, 1, Bytes(24_000_000)),
    ];
    let model = ConstantPower::default();
    let observation = Observation {
        link: link(),
        clusters: &clusters,
        limits: Limits::default(),
        is_measured: true,
        is_told: false,
        sizes_are_known: true,
        delivered: Bytes::ZERO,
        handshake: Bytes::ZERO,
        just_came: Bytes::ZERO,
        energy: Some(Joules::ZERO),
        energy_model: &model,
    };
    let policies: [(&str, Box<dyn Policy>); 3] = [
        ("lowe", Box::new(LowE::default())),
        ("hat", Box::new(Hat)),
        ("eht", Box::new(Eht::default())),
    ];
    for (name, mut policy) in policies {
        c.bench_function(&format!("decide/{name}"), |b| {
            b.iter(|| policy.decide(Timestamp::START, black_box(&observation)));
        });
    }
}

fn classify_a_million(c: &mut Criterion) {
    let boundaries = ClusterConfig::default().boundaries(&link());
    c.bench_function("classify/1000000 files", |b| {
        b.iter(|| {
            let large = (0..1_000_000_u64)
                .map(|i| boundaries.classify(Bytes(black_box(i * 37))))
                .filter(|class| *class == SizeClass::Large);
            black_box(large.count())
        });
    });
}

fn ranges(c: &mut Criterion) {
    let by_size =
        |of: Candidate| (of.remaining >= 2 << 20).then(|| Duration::from_secs(of.remaining));
    c.bench_function("ranges/64 streams to the end", |b| {
        b.iter(|| {
            let mut ranges = FileRanges::new(Some(1 << 30));
            let mut next = 0;
            while !ranges.is_complete() {
                while ranges.streams() < 64
                    && ranges.assign(StreamId(next), 64, Bytes::mib(1).0, by_size).is_some()
                {
                    next += 1;
                }
                let ids: Vec<_> = ranges.stream_ids().collect();
                for id in ids {
                    ranges.advance(id, 1 << 20);
                    if ranges.is_finished(id) {
                        ranges.release(id);
                    }
                }
            }
            black_box(next)
        });
    });
}

fn estimator(c: &mut Criterion) {
    c.bench_function("link/an event of data", |b| {
        let mut link = LinkEstimator::new(LinkConfig::default());
        let mut micros = 0;
        b.iter(|| {
            micros += 50;
            let now = Timestamp::new(Duration::from_micros(micros));
            black_box(link.on_delivered(now, Bytes::kib(64), 8))
        });
    });
}

criterion_group!(benches, decisions, classify_a_million, ranges, estimator);
criterion_main!(benches);
