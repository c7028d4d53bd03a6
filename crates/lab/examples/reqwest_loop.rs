//! What people write who need many files and take reqwest: a loop, or so many requests at a time. The
//! lab measures it as one of its clients.
//!
//! `reqwest_loop [-j N] [--http1.1 | --http2] [--cacert FILE] -i LIST -d DIRECTORY`

use std::error::Error;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Certificate, Client};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

const USAGE: &str =
    "usage: reqwest_loop [-j N] [--http1.1 | --http2] [--cacert FILE] -i LIST -d DIRECTORY";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // reqwest comes without one here, so that nothing more than what pelton uses is built.
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| "there is a TLS provider already")?;
    let (mut at_once, mut list, mut dir) = (1, None, None);
    let mut client = Client::builder();
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match flag.as_str() {
            "--version" => {
                println!("reqwest_loop {}, reqwest 0.13", env!("CARGO_PKG_VERSION"));
                return Ok(());
            }
            "-j" => at_once = value()?.parse()?,
            "-i" => list = Some(PathBuf::from(value()?)),
            "-d" => dir = Some(PathBuf::from(value()?)),
            "--cacert" => {
                let pem = std::fs::read(value()?)?;
                client = client.tls_certs_only([Certificate::from_pem(&pem)?]);
            }
            "--http1.1" => client = client.http1_only(),
            // Over TLS it is what ALPN chooses.
            "--http2" => {}
            _ => return Err(USAGE.into()),
        }
    }
    let (client, dir) = (client.build()?, dir.ok_or(USAGE)?);
    let urls = std::fs::read_to_string(list.ok_or(USAGE)?)?;
    stream::iter(urls.lines())
        .map(|url| fetch(&client, url, &dir))
        .buffer_unordered(at_once)
        .try_collect()
        .await
}

async fn fetch(client: &Client, url: &str, dir: &Path) -> Result<(), Box<dyn Error>> {
    let mut response = client.get(url).send().await?.error_for_status()?;
    let mut file = File::create(dir.join(url.rsplit('/').next().unwrap_or(url))).await?;
    while let Some(chunk) = response.chunk().await? {
        file.write_all(&chunk).await?;
    }
    Ok(file.flush().await?)
}
