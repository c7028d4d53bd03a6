//! Follows a download over a simulated link of 50 Mbit/s and 200 ms, and lowers its ceilings on the
//! way.

use std::error::Error;
use std::sync::Arc;

use pelton::core::connection::{Proxies, TcpConnector};
use pelton::{Client, HttpConfig, RunEvent, UserLimits};
use pelton_lab::content::VirtualFile;
use pelton_lab::link::Link;
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::shaper::ShapedConnector;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let files = (1..=4).map(|n| VirtualFile::new(format!("/{n}.bin"), 2_000_000, n)).collect();
    let origin = Origin::start(OriginConfig { files, ..OriginConfig::default() })?;
    let out = tempfile::tempdir()?;
    let mut job = Client::builder()
        .connector(Arc::new(ShapedConnector::new(Link::demo(), TcpConnector::default())))
        .http(HttpConfig { proxies: Proxies::Direct, ..HttpConfig::default() })
        .build()?
        .download([origin.url("/")])
        .into_dir(out.path())
        .start()?;

    let mut slowed = false;
    let mut events = job.events();
    while let Some(event) = events.next().await {
        match event {
            RunEvent::Plan(plan) => println!("{} files, {} bytes", plan.files, plan.bytes),
            RunEvent::Decision(made) => println!("{:4.1} s  {}", made.at_s, made.reason),
            RunEvent::File(file) => println!("{:4.1} s  {} ok: {}", file.at_s, file.name, file.ok),
            RunEvent::Progress(now) => {
                let (mb, mbps) = (now.bytes as f64 / 1e6, now.throughput_bps / 1e6);
                println!("{:4.1} s  {mb:.1} MB, {mbps:.1} Mbit/s", now.at_s);
                if now.bytes > 4_000_000 && !slowed {
                    slowed = true;
                    job.set_limits(UserLimits { max_connections: 4, ..UserLimits::default() });
                }
            }
            _ => {}
        }
    }

    let done = job.report().await?.summary;
    let joules = done.energy_j.unwrap_or_default();
    println!("{:.1} s, {joules:.1} J ({})", done.seconds, done.energy_source.unwrap_or_default());
    Ok(())
}
