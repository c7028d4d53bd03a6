//! The schedulers side by side: one set of files over one shaped link.
//!
//! `cargo run --release -p pelton-lab --example schedulers -- SET LINK [known|bare] [RADIO]`
//!
//! `known` gives the client the sizes, the link's bandwidth and RTT, as the worked example of
//! docs/schedulers.md does; `bare` gives it URLs alone. With `TRACE` in the environment every
//! decision and the streams over time are shown, with `SEQUENTIAL` one connection is run, too.

use std::error::Error;
use std::sync::Arc;

use pelton_algos::policy::{Eht, Fixed, Hat, LowE, Policy};
use pelton_core::catalog::FileSpec;
use pelton_core::connection::TcpConnector;
use pelton_core::engine::EngineConfig;
use pelton_core::events::Progress;
use pelton_core::{Client, Report, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::link::Link;
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::shaper::ShapedConnector;
use pelton_power::{Modelled, ModelledConfig, NetworkEnergyModel, Radio};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let set = args.next().unwrap_or_else(|| "worked_example".to_owned());
    let link = args.next().unwrap_or_else(|| "demo".to_owned());
    let known = args.next().is_none_or(|word| word == "known");
    let radio: Radio = args.next().unwrap_or_else(|| "wifi".to_owned()).parse()?;
    let files = pelton_lab::sets::by_name(&set, 1).ok_or("no such set")?;
    let presets = Link::presets();
    let (_, link) = presets.into_iter().find(|(name, _)| *name == link).ok_or("no such link")?;

    println!("{set} over {} x {} ms", link.rate, link.rtt.as_millis());
    println!(
        "policy  seconds  Mbit/s  joules  rate^2/power  rate/joules  connections  requests  retries  MB received"
    );
    if std::env::var_os("SEQUENTIAL").is_some() {
        run(&files, link, known, radio, Fixed::default())?;
    }
    run(&files, link, known, radio, LowE::default())?;
    run(&files, link, known, radio, Hat)?;
    run(&files, link, known, radio, Eht::default())?;
    Ok(())
}

fn run(
    files: &[VirtualFile],
    link: Link,
    known: bool,
    radio: Radio,
    policy: impl Policy + Clone + Sync + 'static,
) -> Result<(), Box<dyn Error>> {
    let origin = Origin::start(OriginConfig { files: files.to_vec(), ..OriginConfig::default() })?;
    let mut engine = EngineConfig::default();
    if known {
        engine.link.bandwidth_hint = Some(link.rate);
        engine.link.rtt_hint = Some(link.rtt);
    }
    let power = ModelledConfig { radio: radio.profile(), ..ModelledConfig::default() };
    let client = Client::builder()
        .policy(policy)
        .meter(Modelled::new(power.clone()))
        .energy_model(NetworkEnergyModel::new(power))
        .connector(Arc::new(ShapedConnector::new(link, TcpConnector::default())))
        .engine(engine)
        .build()?;
    let mut specs = Vec::new();
    for file in files {
        let mut spec = FileSpec::from_url(origin.url(&file.path).parse()?)?;
        spec.size = known.then_some(file.size);
        specs.push(spec);
    }
    let dir = std::env::temp_dir().join(format!("pelton-schedulers-{}", std::process::id()));
    let mut job = client.download(specs).into_dir(&dir).start()?;
    let mut events = job.events();
    let mut trace = Vec::new();
    while let Some(event) = events.blocking_next() {
        match event {
            RunEvent::Decision(made) => {
                trace.push(format!("  {:6.2} s  {}", made.at_s, made.reason));
            }
            RunEvent::Progress(now) => trace.push(describe(&now)),
            _ => {}
        }
    }
    let report = job.blocking_report()?;
    std::fs::remove_dir_all(&dir)?;
    print(&report);
    if std::env::var_os("TRACE").is_some() {
        println!("{}", trace.join("\n"));
    }
    Ok(())
}

/// Rate, bytes, and files x streams of each cluster.
fn describe(now: &Progress) -> String {
    let clusters = now.clusters.iter();
    let used: Vec<_> = clusters
        .map(|c| format!("{} {}x{}", c.cluster, c.active_files, c.active_streams))
        .collect();
    format!(
        "  {:6.2} s  {:5.1} Mbit/s  {:6.1} MB  {}",
        now.at_s,
        now.throughput_bps / 1e6,
        now.bytes as f64 / 1e6,
        used.join(", "),
    )
}

fn print(report: &Report) {
    let s = &report.summary;
    let joules = s.energy_j.unwrap_or_default();
    let bits = s.bytes as f64 * 8.0;
    println!(
        "{:6} {:8.2} {:7.1} {:7.2} {:13.3e} {:12.3e} {:12} {:9} {:8} {:12.1}{}",
        s.policy,
        s.seconds,
        s.throughput_bps / 1e6,
        joules,
        bits * bits / (s.seconds * joules),
        s.throughput_per_joule.unwrap_or_default(),
        s.connections,
        s.requests,
        s.retries,
        s.bytes as f64 / 1e6,
        if s.exit_code == 0 { "" } else { "  FAILED" },
    );
}
