//! Downloads the same list once for each line that it reads, and answers with bytes, seconds and CPU
//! seconds: the Rust side of `bindings/java/bench`.
//!
//! `throughput DIRECTORY URL...`

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use pelton::core::connection::Proxies;
use pelton::policy::{Fixed, FixedConfig};
use pelton::{Client, HttpConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("a directory is missing")?);
    let urls: Vec<String> = arguments.collect();
    let http = HttpConfig { proxies: Proxies::Direct, ..HttpConfig::default() };
    // What an adaptive policy tries differs from run to run, and would hide what is compared here.
    let four = FixedConfig { concurrency: 4, ..FixedConfig::default() };
    let client = Client::builder().policy(Fixed::new(four)).http(http).no_meter().build()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let mut job = client.download(urls.clone()).into_dir(&directory).start()?;
        let mut events = job.events();
        while events.blocking_next().is_some() {}
        let done = job.blocking_report()?.summary;
        if done.exit_code != 0 {
            return Err(format!("the download failed with {}", done.exit_code).into());
        }
        println!("{} {} {}", done.bytes, done.seconds, done.cpu_s);
        std::io::stdout().flush()?;
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}
