//! Cancels a download half-way, and goes on with another one into the same directory.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use pelton::core::connection::{Proxies, TcpConnector};
use pelton::{Client, HttpConfig, Report, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::link::Link;
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::shaper::ShapedConnector;

const SIZE: u64 = 10_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let files = vec![VirtualFile::new("/film.bin", SIZE, 1)];
    let origin = Origin::start(OriginConfig { files, ..OriginConfig::default() })?;
    let out = tempfile::tempdir()?;

    let first = run(&origin, out.path(), SIZE / 2)?;
    println!("cancelled: exit code {}", first.summary.exit_code);
    show(out.path())?;

    let second = run(&origin, out.path(), u64::MAX)?;
    let file = second.files.first().ok_or("no file")?;
    println!("again: {} bytes were there, {} came", file.resumed_from, second.summary.bytes);
    show(out.path())
}

/// Downloads until `most` bytes have come.
fn run(origin: &Origin, out: &Path, most: u64) -> Result<Report, Box<dyn Error>> {
    let mut job = Client::builder()
        .connector(Arc::new(ShapedConnector::new(Link::demo(), TcpConnector::default())))
        .http(HttpConfig { proxies: Proxies::Direct, ..HttpConfig::default() })
        .build()?
        .download([origin.url("/film.bin")])
        .into_dir(out)
        .start()?;
    let mut events = job.events();
    while let Some(event) = events.blocking_next() {
        if let RunEvent::Progress(now) = event
            && now.bytes >= most
        {
            job.cancel();
        }
    }
    Ok(job.blocking_report()?)
}

fn show(directory: &Path) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        println!("  {} {} bytes", entry.file_name().display(), entry.metadata()?.len());
    }
    Ok(())
}
