//! Origins that are honest but particular: credentials, redirects, overload, limits.

use std::net::{Ipv4Addr, TcpListener};

use http::HeaderValue;
use http::header::{AUTHORIZATION, COOKIE};
use pelton_core::catalog::FileSpec;
use pelton_core::connection::{HttpConfig, TlsOptions};
use pelton_core::engine::EngineConfig;
use pelton_core::{ErrorKind, RunEvent};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig, Storm};
use pelton_lab::sets;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;

use crate::support::{
    assert_holds, builder, by_last_part, by_path, client, file, four_by_four, names, policies,
    recursively, run, run_with_events,
};

fn large() -> VirtualFile {
    VirtualFile::new("/large", 2_000_000, 5)
}

fn start(behaviour: OriginBehaviour) -> Origin {
    let files = vec![large()];
    Origin::start(OriginConfig { files, behaviour, ..OriginConfig::default() }).unwrap()
}

fn login() -> (String, String) {
    ("me".to_owned(), "hunter2".to_owned())
}

#[test]
fn the_user_of_a_url_counts_for_its_ranges() {
    let origin = start(OriginBehaviour { basic_auth: Some(login()), ..OriginBehaviour::default() });
    let out = tempfile::tempdir().unwrap();
    let client = builder().policy(four_by_four()).build().unwrap();
    let url = origin.url("/large").replace("//", "//me:hunter2@");
    let report = run(client.download([url]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert!(origin.log().iter().any(|entry| entry.range.is_some()), "ranges were used");
    assert_holds(out.path(), &[large()], by_last_part);
}

#[test]
fn secrets_do_not_follow_a_redirect() {
    let elsewhere = Scripted::start(|request| {
        let file = large();
        let range = request.field("range").and_then(|field| {
            let (first, last) = field.strip_prefix("bytes=")?.split_once('-')?;
            Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
        });
        match range {
            None => Reply::status("200 OK")
                .field("Content-Length", file.size)
                .field("Accept-Ranges", "bytes")
                .field("ETag", file.etag())
                .field("Last-Modified", httpdate::fmt_http_date(file.modified()))
                .body(file.bytes(0..600_000))
                .close(),
            Some((first, last)) => Reply::status("206 Partial Content")
                .field("Content-Length", last + 1 - first)
                .field("Content-Range", format!("bytes {first}-{last}/{}", file.size))
                .field("ETag", file.etag())
                .field("Last-Modified", httpdate::fmt_http_date(file.modified()))
                .body(file.bytes(first..last + 1)),
        }
    })
    .unwrap();
    let target = Some(elsewhere.url("/large"));
    let origin = start(OriginBehaviour { redirect_to: target, ..OriginBehaviour::default() });
    let secret = HeaderValue::from_static("Bearer hunter2");
    let http = HttpConfig {
        user: Some(login()),
        headers: vec![(COOKIE, HeaderValue::from_static("session=hunter2"))],
        ..HttpConfig::default()
    };
    let client = builder().policy(four_by_four()).http(http).build().unwrap();
    let mut spec = FileSpec::from_url(origin.url("/large").parse().unwrap()).unwrap();
    let secret = secret.to_str().unwrap().to_owned();
    spec.headers = vec![(AUTHORIZATION.to_string(), secret)];
    let out = tempfile::tempdir().unwrap();
    let report = run(client.download([spec]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert_holds(out.path(), &[large()], by_last_part);
    let seen = elsewhere.requests();
    assert!(seen.len() > 1, "ranges were used");
    for request in seen {
        assert_eq!(request.field("authorization"), None, "{}", request.head);
        assert_eq!(request.field("cookie"), None, "{}", request.head);
    }
}

#[test]
fn wrong_and_right_credentials() {
    let origin = start(OriginBehaviour { basic_auth: Some(login()), ..OriginBehaviour::default() });
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([origin.url("/large")]).into_dir(out.path()));
    assert_eq!(report.summary.exit_code, ErrorKind::Auth.exit_code());
    let http = HttpConfig { user: Some(login()), ..HttpConfig::default() };
    let client = builder().http(http).build().unwrap();
    let report = run(client.download([origin.url("/large")]).into_dir(out.path()));
    assert!(report.is_complete());
    assert_holds(out.path(), &[large()], by_last_part);
}

#[test]
fn a_redirect_is_followed_once_for_all_ranges() {
    let target = start(OriginBehaviour::default());
    let redirect_to = Some(target.url("/large"));
    let origin = Origin::start(OriginConfig {
        behaviour: OriginBehaviour { redirect_to, ..OriginBehaviour::default() },
        ..OriginConfig::default()
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let client = builder().policy(four_by_four()).build().unwrap();
    let report = run(client.download([origin.url("/latest")]).into_dir(out.path()));
    assert!(report.is_complete());
    assert_eq!(names(out.path()), ["latest".to_owned()].into(), "named as asked for");
    assert_eq!(origin.requests(), 1);
    assert_eq!(file(&report, "latest").bytes, large().size);
}

#[test]
fn busy_origins_are_asked_again() {
    for (status, retry_after) in [(503, Some(1)), (429, Some(0)), (503, None), (500, None)] {
        let storm = Some(Storm { status, requests: 2, retry_after });
        let origin = start(OriginBehaviour { storm, ..OriginBehaviour::default() });
        let out = tempfile::tempdir().unwrap();
        let report = run(client().download([origin.url("/large")]).into_dir(out.path()));
        assert!(report.is_complete(), "{status}: {:?}", report.files);
        assert_eq!(report.summary.retries, 2);
        assert_holds(out.path(), &[large()], by_last_part);
    }
}

#[test]
fn a_storm_over_many_files_passes() {
    for (name, builder) in policies() {
        let storm = Some(Storm { status: 503, requests: 20, retry_after: None });
        let files = sets::demo_mixed(3);
        let origin = Origin::start(OriginConfig {
            files: files.clone(),
            behaviour: OriginBehaviour { storm, ..OriginBehaviour::default() },
            ..OriginConfig::default()
        })
        .unwrap();
        let urls: Vec<String> = files.iter().map(|file| origin.url(&file.path)).collect();
        let out = tempfile::tempdir().unwrap();
        let report = run(builder.build().unwrap().download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{name}: {:?}", report.summary);
        assert_holds(out.path(), &files, by_last_part);
    }
}

#[test]
fn an_origin_that_bears_few_connections() {
    for (name, builder) in policies() {
        let files = sets::demo_mixed(4);
        let origin = Origin::start(OriginConfig {
            files: files.clone(),
            max_connections: Some(2),
            ..OriginConfig::default()
        })
        .unwrap();
        let out = tempfile::tempdir().unwrap();
        let client = builder.build().unwrap();
        let download = client.download([origin.url("/")]).walk(recursively());
        let report = run(download.into_dir(out.path()));
        assert!(report.is_complete(), "{name}: {:?}", report.summary);
        assert!(origin.peak_connections() <= 2);
        assert_holds(out.path(), &files, by_path);
    }
}

#[test]
fn ranges_ignored_lengths_and_validators_hidden() {
    for (name, builder) in policies() {
        let client = builder.build().unwrap();
        for behaviour in [
            OriginBehaviour { ignore_ranges: true, ..OriginBehaviour::default() },
            OriginBehaviour { hide_length: true, ..OriginBehaviour::default() },
            OriginBehaviour {
                ignore_ranges: true,
                hide_length: true,
                hide_validators: true,
                ..OriginBehaviour::default()
            },
        ] {
            let origin = start(behaviour.clone());
            let out = tempfile::tempdir().unwrap();
            let report = run(client.download([origin.url("/large")]).into_dir(out.path()));
            assert!(report.is_complete(), "{name} {behaviour:?}");
            let stored = std::fs::read(out.path().join("large")).unwrap();
            assert!(stored == large().bytes(0..large().size), "{name} {behaviour:?}");
        }
    }
}

#[test]
fn what_tells_no_version_is_split_only_where_it_is_assumed_to_stay() {
    for assume_unchanged in [false, true] {
        let origin = start(OriginBehaviour { hide_validators: true, ..OriginBehaviour::default() });
        let config = EngineConfig { assume_unchanged, ..crate::support::engine() };
        let out = tempfile::tempdir().unwrap();
        let client = builder().engine(config).policy(four_by_four()).build().unwrap();
        let download = client.download([origin.url("/large")]).into_dir(out.path());
        let (report, events) = run_with_events(download);
        assert!(report.is_complete());
        let stored = std::fs::read(out.path().join("large")).unwrap();
        assert!(stored == large().bytes(0..large().size), "{assume_unchanged}");
        let ranges = origin.log().iter().filter(|asked| asked.range.is_some()).count();
        assert_eq!(ranges > 1, assume_unchanged, "{ranges}");
        let is_told = |event: &&RunEvent| match event {
            RunEvent::Warning(warning) => warning.reason.contains("tells no version"),
            _ => false,
        };
        let told = events.iter().filter(is_told).count();
        assert_eq!(told, usize::from(!assume_unchanged));
    }
}

#[test]
fn no_connection_beyond_the_ceiling() {
    let origin = start(OriginBehaviour::default());
    let mut config = crate::support::engine();
    config.limits.max_connections_per_origin = 1;
    let out = tempfile::tempdir().unwrap();
    let client = builder().engine(config).policy(four_by_four()).build().unwrap();
    let report = run(client.download([origin.url("/large")]).into_dir(out.path()));
    assert!(report.is_complete());
    assert_eq!(origin.peak_connections(), 1);
    assert_holds(out.path(), &[large()], by_last_part);
}

/// A TLS server that shows a certificate for `name` with these years of validity, and never gets
/// beyond the handshake with those who refuse it.
fn certified(name: &str, from: i32, until: i32) -> (u16, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let config = std::sync::Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut tls = rustls::ServerConnection::new(config.clone()).unwrap();
            let _ = tls.complete_io(&mut stream.unwrap());
        }
    });
    (port, certificate.pem())
}

#[test]
fn certificates_that_are_not_accepted() {
    let good = start(OriginBehaviour::default());
    for (name, from, until, trusted, expected) in [
        ("127.0.0.1", 2000, 2001, true, "expired"),
        ("127.0.0.1", 4000, 4001, true, "not valid yet"),
        ("other.test", 2000, 4000, true, "another name"),
        ("127.0.0.1", 2000, 4000, false, "unknown authority"),
    ] {
        let (port, pem) = certified(name, from, until);
        let out = tempfile::tempdir().unwrap();
        let authority = out.path().join("ca.pem");
        std::fs::write(&authority, pem).unwrap();
        let extra_ca = trusted.then_some(authority);
        let tls = TlsOptions { extra_ca, ..TlsOptions::default() };
        let http = HttpConfig { tls, ..HttpConfig::default() };
        let client = builder().http(http).build().unwrap();
        let urls = [good.url("/large"), format!("https://127.0.0.1:{port}/f")];
        let target = out.path().join("files");
        let report = run(client.download(urls).into_dir(&target));
        let error = file(&report, "f").error.clone().unwrap();
        assert_eq!(error.kind, "tls", "{}", error.message);
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(error.message.contains(&format!("https://127.0.0.1:{port}")), "{}", error.message);
        assert!(!error.message.contains('\n'), "{}", error.message);
        assert_eq!(report.summary.exit_code, ErrorKind::Tls.exit_code());
        assert_eq!(report.summary.retries, 0);
        assert_holds(&target, &[large()], by_last_part);
    }
}

#[test]
fn tls_where_none_is_spoken() {
    let origin = start(OriginBehaviour::default());
    let out = tempfile::tempdir().unwrap();
    let url = origin.url("/large").replace("http://", "https://");
    let report = run(client().download([url]).into_dir(out.path()));
    let error = file(&report, "large").error.clone().unwrap();
    assert_eq!(error.kind, "tls", "{}", error.message);
    assert!(error.message.contains("was http:// meant"), "{}", error.message);
}
