//! Every policy from every server: the same files, and nothing beside them.

use std::path::PathBuf;

use pelton_core::connection::{HttpConfig, Protocol, ProtocolChoice, TlsOptions};
use pelton_core::{ClientBuilder, Report};
use pelton_lab::content::VirtualFile;
use pelton_lab::sets;

use crate::support::servers::{Nginx, Python};
use crate::support::{
    assert_holds, builder, by_last_part, by_path, policies, recursively, run, run_with_events,
};

#[test]
fn nginx_over_http1() {
    let files = mixed();
    let Some(nginx) = Nginx::start(&files) else { return };
    assert_every_policy(&nginx.http1(), "HTTP/1.1", &files, HttpConfig::default);
    assert!(nginx.access_log().lines().any(|line| line.contains(" 206 ")), "ranges were used");
}

#[test]
fn nginx_over_http2_in_cleartext() {
    let files = mixed();
    let Some(nginx) = Nginx::start(&files) else { return };
    let protocol = ProtocolChoice::Http2PriorKnowledge;
    let http = || HttpConfig { protocol, ..HttpConfig::default() };
    assert_every_policy(&nginx.http2(), "HTTP/2", &files, http);
}

#[test]
fn nginx_over_tls_picks_http2() {
    let files = mixed();
    let Some(nginx) = Nginx::start(&files) else { return };
    let http = || trusting(nginx.certificate(), ProtocolChoice::Auto);
    assert_every_policy(&nginx.tls(), "HTTP/2", &files, http);
}

#[test]
fn nginx_over_tls_and_http1() {
    let files = mixed();
    let Some(nginx) = Nginx::start(&files) else { return };
    let http = || trusting(nginx.certificate(), ProtocolChoice::Http1);
    assert_every_policy(&nginx.tls(), "HTTP/1.1", &files, http);
}

#[test]
fn nginx_that_ends_each_connection_after_few_requests() {
    let files: Vec<_> =
        (0..400).map(|index| VirtualFile::new(format!("/{index}"), 2_000, index)).collect();
    let Some(nginx) = Nginx::start_with(&files, "keepalive_requests 2;") else { return };
    let http = trusting(nginx.certificate(), ProtocolChoice::Auto);
    let client = builder().http(http).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let urls = (0..400).map(|index| format!("{}{index}", nginx.tls()));
    let report = run(client.download(urls).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.summary);
    assert_eq!(report.summary.retries, 0, "they were asked for over another one");
    assert_holds(out.path(), &files, by_path);
    let log = nginx.access_log();
    assert!(log.lines().count() < 420, "{} requests", log.lines().count());
}

#[test]
fn python_without_ranges() {
    let files = mixed();
    let Some(python) = Python::start(&files) else { return };
    assert_every_policy(&python.url(), "HTTP/1.1", &files, HttpConfig::default);
}

/// Small, medium and large files, names that have to be escaped, and an empty file.
fn mixed() -> Vec<VirtualFile> {
    let mut files = sets::demo_mixed(1);
    files.push(VirtualFile::new("/odd names/50% of ä & b + c#1?.bin", 70_000, 2));
    files.push(VirtualFile::new("/odd names/deeper/empty", 0, 3));
    files
}

fn trusting(certificate: PathBuf, protocol: ProtocolChoice) -> HttpConfig {
    let tls = TlsOptions { extra_ca: Some(certificate), ..TlsOptions::default() };
    HttpConfig { tls, protocol, ..HttpConfig::default() }
}

fn assert_every_policy(
    base: &str,
    protocol: &str,
    files: &[VirtualFile],
    http: impl Fn() -> HttpConfig,
) {
    for (policy, builder) in policies() {
        eprintln!("{policy} from {base}");
        from_listing(builder.http(http()), policy, base, protocol, files);
    }
    for (policy, builder) in policies() {
        eprintln!("{policy} from a list of URLs");
        from_urls(builder.http(http()), base, protocol, files);
    }
}

fn from_listing(
    builder: ClientBuilder,
    policy: &str,
    base: &str,
    protocol: &str,
    files: &[VirtualFile],
) {
    let client = builder.build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let download = client.download([base]).walk(recursively()).into_dir(out.path());
    let (report, _) = run_with_events(download);
    assert_good(&report, protocol, files);
    assert_eq!(report.summary.policy.to_lowercase(), policy.to_lowercase());
    assert_holds(out.path(), files, by_path);
}

fn from_urls(builder: ClientBuilder, base: &str, protocol: &str, files: &[VirtualFile]) {
    let client = builder.build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let urls = files.iter().map(|file| {
        let mut url = url::Url::parse(base).unwrap();
        url.path_segments_mut().unwrap().clear().extend(file.path.trim_matches('/').split('/'));
        url
    });
    let report = run(client.download(urls).into_dir(out.path()));
    assert_good(&report, protocol, files);
    assert_holds(out.path(), files, by_last_part);
}

fn assert_good(report: &Report, protocol: &str, files: &[VirtualFile]) {
    for file in &report.files {
        assert!(file.ok, "{}: {:?}", file.url, file.error);
        assert_eq!(file.protocol.map(Protocol::name), Some(protocol), "{}", file.url);
    }
    let summary = &report.summary;
    assert!(report.is_complete());
    assert_eq!(report.files.len(), files.len());
    assert_eq!(summary.files_done, files.len() as u64);
    assert_eq!(summary.files_failed, 0);
    assert_eq!(summary.bytes, files.iter().map(|file| file.size).sum::<u64>());
    assert_eq!(summary.retries, 0);
}
