//! Downloads the URLs of its arguments into `out`; without any, a directory that it serves itself.
//!
//! `cargo run --example quick_start -- https://example.org/data/`
//!
//! Proxies of the environment are obeyed: where `http_proxy` is set, set `no_proxy=127.0.0.1` for
//! the run without arguments.

use std::error::Error;

use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::sets;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let files = sets::demo_mixed(1);
    let origin = Origin::start(OriginConfig { files, ..OriginConfig::default() })?;
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls.push(origin.url("/html/"));
    }

    let report = pelton::Client::builder()
        .policy(pelton::policy::Eht::default())
        .build()?
        .download(urls)
        .into_dir("out")
        .await?;
    println!("{} files in {:.1} s", report.summary.files_done, report.summary.seconds);

    for file in report.files.iter().filter(|file| !file.ok) {
        let why = file.error.as_ref().map_or("", |error| &error.message);
        eprintln!("{}: {why}", file.name);
    }
    std::process::exit(report.summary.exit_code.into());
}
