//! What can't be had: each failure has its kind and exit code, one line that names the URL or the
//! file, and leaves the other files alone.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use pelton_core::catalog::{Digest, FileSpec, Globs, WalkOptions};
use pelton_core::connection::HttpConfig;
use pelton_core::engine::EngineConfig;
use pelton_core::{Client, Error, ErrorKind, Input, Report};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig, Storm};

use crate::support::{
    builder, client, engine, file, names, one_stream, recursively, run, tree, try_run,
};

/// An origin with `/good`, and `/bad` that behaves as told.
fn origin(bad: OriginBehaviour) -> Origin {
    Origin::start(OriginConfig {
        files: vec![good(), VirtualFile::new("/bad", 300_000, 2)],
        behaviour_by_path: vec![("/bad".to_owned(), bad)],
        ..OriginConfig::default()
    })
    .unwrap()
}

fn good() -> VirtualFile {
    VirtualFile::new("/good", 200_000, 1)
}

/// `path` answers each request with `status`.
fn always(status: u16) -> OriginBehaviour {
    let storm = Storm { status, requests: u64::MAX, retry_after: None };
    OriginBehaviour { storm: Some(storm), ..OriginBehaviour::default() }
}

/// Downloads `good` of `origin` and `bad`; asserts that the one is there, that the other failed
/// with `kind`, and that nothing else is there. Returns the message.
fn assert_fails(
    client: &Client,
    origin: &Origin,
    bad: impl Into<Input>,
    kind: ErrorKind,
) -> String {
    let out = tempfile::tempdir().unwrap();
    let inputs = [Input::from(origin.url("/good")), bad.into()];
    let report = run(client.download(inputs).into_dir(out.path()));
    let message = assert_failed(&report, "bad", kind);
    assert!(file(&report, "good").ok);
    assert_eq!(report.summary.files_done, 1);
    assert_eq!(report.summary.files_failed, 1);
    let there = tree(out.path());
    assert_eq!(there.keys().collect::<Vec<_>>(), ["good"], "{message}");
    assert!(there["good"] == good().bytes(0..good().size));
    message
}

/// Asserts that `name` failed with `kind`, and that the run says so. Returns the message.
fn assert_failed(report: &Report, name: &str, kind: ErrorKind) -> String {
    let failed = file(report, name);
    assert!(!failed.ok);
    assert_eq!(failed.digest, None);
    let error = failed.error.as_ref().unwrap();
    assert_eq!(error.kind, kind.name(), "{}", error.message);
    assert_eq!(error.code, kind.exit_code());
    assert_eq!(error.retryable, kind.is_retryable());
    assert_eq!(report.summary.exit_code, kind.exit_code());
    assert!(!report.is_complete());
    assert_one_line(&error.message);
    error.message.clone()
}

fn assert_one_line(message: &str) {
    assert!(!message.is_empty() && !message.contains(['\n', '\r']), "{message:?}");
}

/// A run that is refused as a whole, before the first byte.
fn assert_refused(inputs: impl IntoIterator<Item = Input>, kind: ErrorKind) -> Error {
    let out = tempfile::tempdir().unwrap();
    let error = try_run(client().download(inputs).into_dir(out.path())).unwrap_err();
    assert_eq!(error.kind(), kind, "{}", error.message());
    assert_one_line(&error.message());
    assert!(names(out.path()).is_empty());
    error
}

#[test]
fn statuses() {
    for (status, kind) in [
        (401, ErrorKind::Auth),
        (403, ErrorKind::Auth),
        (404, ErrorKind::NotFound),
        (410, ErrorKind::NotFound),
        (416, ErrorKind::HttpStatus),
        (418, ErrorKind::HttpStatus),
        (429, ErrorKind::Overloaded),
        (500, ErrorKind::ServerError),
        (503, ErrorKind::Overloaded),
    ] {
        let origin = origin(always(status));
        let url = origin.url("/bad");
        let message = assert_fails(&client(), &origin, url.as_str(), kind);
        assert!(message.starts_with(&format!("{url}: HTTP {status}")), "{message}");
        let expected = match kind {
            ErrorKind::Overloaded => 12,
            _ if kind.is_retryable() => 3,
            // It may be the range that is refused, or one request too many beside others.
            _ if status == 403 => 4,
            _ if matches!(status, 416 | 418) => 2,
            _ => 1,
        };
        assert_eq!(origin.hits("/bad"), expected, "{status}");
    }
}

#[test]
fn an_unknown_host() {
    let url = "http://no-such-host.invalid/bad";
    let message = assert_fails(&client(), &origin(always(404)), url, ErrorKind::Resolve);
    assert!(message.contains("no-such-host.invalid"), "{message}");
}

#[test]
fn a_refused_connection() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/bad", nobody.local_addr().unwrap());
    let host = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let message = assert_fails(&client(), &origin(always(404)), url, ErrorKind::Connect);
    assert!(message.contains(&host), "{message}");
}

#[test]
fn a_password_is_never_shown() {
    for behaviour in [
        always(404),
        OriginBehaviour {
            basic_auth: Some(("other".to_owned(), "x".to_owned())),
            ..OriginBehaviour::default()
        },
        OriginBehaviour { redirect_to: Some("/bad".to_owned()), ..OriginBehaviour::default() },
    ] {
        let origin = origin(behaviour);
        let url = origin.url("/bad").replace("//", "//user:hunter2@");
        let out = tempfile::tempdir().unwrap();
        let report = run(client().download([url]).into_dir(out.path()));
        assert!(!report.is_complete());
        let told = serde_json::to_string(&report).unwrap();
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn redirects_in_a_circle() {
    let circle =
        OriginBehaviour { redirect_to: Some("/bad".to_owned()), ..OriginBehaviour::default() };
    let origin = origin(circle);
    let message = assert_fails(&client(), &origin, origin.url("/bad"), ErrorKind::Redirect);
    assert!(message.contains(&origin.url("/bad")) && message.contains("circle"), "{message}");
}

#[test]
fn a_redirect_that_gives_up_tls() {
    let plain = origin(always(404));
    let redirect_to = Some(plain.url("/good"));
    let secure = Origin::start(OriginConfig {
        behaviour: OriginBehaviour { redirect_to, ..OriginBehaviour::default() },
        tls: true,
        ..OriginConfig::default()
    })
    .unwrap();
    let mut http = HttpConfig::default();
    http.tls.insecure = true;
    let client = builder().http(http).build().unwrap();
    let message = assert_fails(&client, &plain, secure.url("/bad"), ErrorKind::Redirect);
    assert!(message.contains(&secure.url("/bad")), "{message}");
    assert!(message.contains("`allow-downgrade`"), "{message}");
    let mut http = HttpConfig { allow_downgrade: true, ..HttpConfig::default() };
    http.tls.insecure = true;
    let client = builder().http(http).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(client.download([secure.url("/bad")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
}

#[test]
fn a_page_that_is_no_listing() {
    let page = Scripted::start(|_| {
        let body = "<html><title>Welcome</title><a href=\"x\">x</a></html>";
        Reply::status("200 OK")
            .field("Content-Type", "text/html")
            .field("Content-Length", body.len())
            .body(body)
    })
    .unwrap();
    let error = assert_refused([page.url("/d/").into()], ErrorKind::Listing);
    assert!(error.message().contains(&page.url("/d/")));

    let missing = origin(always(404));
    let error = assert_refused([missing.url("/none/").into()], ErrorKind::NotFound);
    assert!(error.message().contains(&missing.url("/none/")));
}

#[test]
fn names_that_collide() {
    let origin = origin(always(404));
    let (one, other) = (origin.url("/a/same"), origin.url("/b/same"));
    let named = [&one, &other]
        .map(|url| FileSpec::with_name(url.parse().unwrap(), "same".to_owned()).unwrap().into());
    let error = assert_refused(named, ErrorKind::Usage);
    assert!(error.message().contains(&one) && error.message().contains(&other));
    assert_eq!(origin.requests(), 0, "before the first byte");
}

#[test]
fn what_is_no_url() {
    let error = assert_refused(["example.org/x".into()], ErrorKind::Usage);
    assert!(error.message().contains("example.org/x"));
    let error = assert_refused(["ftp://example.org/x".into()], ErrorKind::Usage);
    assert!(error.message().contains("ftp://example.org/x"));
}

#[test]
fn a_url_given_twice_is_fetched_once() {
    let origin = origin(OriginBehaviour::default());
    let out = tempfile::tempdir().unwrap();
    let url = origin.url("/good");
    let report = run(one_stream().download([url.clone(), url]).into_dir(out.path()));
    assert!(report.is_complete());
    assert_eq!(report.files.len(), 1);
    assert_eq!(origin.bytes_sent(), good().size);
}

#[test]
fn a_directory_that_cannot_be_made() {
    let origin = origin(OriginBehaviour::default());
    let out = tempfile::tempdir().unwrap();
    let in_the_way = out.path().join("file");
    fs::write(&in_the_way, "x").unwrap();
    let target = in_the_way.join("below");
    let report = run(client().download([origin.url("/good")]).into_dir(&target));
    let message = assert_failed(&report, "good", ErrorKind::FileIo);
    assert!(message.contains(target.to_str().unwrap()), "{message}");
    assert_eq!(fs::read(&in_the_way).unwrap(), b"x");
}

#[test]
fn a_directory_in_the_place_of_a_file() {
    let origin = origin(OriginBehaviour::default());
    let out = tempfile::tempdir().unwrap();
    fs::create_dir(out.path().join("bad")).unwrap();
    let urls = [origin.url("/good"), origin.url("/bad")];
    let report = run(client().download(urls).into_dir(out.path()));
    let message = assert_failed(&report, "bad", ErrorKind::Exists);
    assert!(message.contains(out.path().join("bad").to_str().unwrap()), "{message}");
    assert!(file(&report, "good").ok);
}

#[test]
fn different_failures_are_one_code_together() {
    let origin = origin(always(403));
    let out = tempfile::tempdir().unwrap();
    let urls = [origin.url("/good"), origin.url("/bad"), origin.url("/none")];
    let report = run(client().download(urls).into_dir(out.path()));
    assert_eq!(report.summary.exit_code, 7);
    assert_eq!(file(&report, "bad").error.as_ref().unwrap().code, 24);
    assert_eq!(file(&report, "none").error.as_ref().unwrap().code, 3);
    assert_eq!(names(out.path()), ["good".to_owned()].into());
}

#[test]
fn a_digest_that_does_not_match() {
    let origin = origin(OriginBehaviour::default());
    let mut spec = FileSpec::from_url(origin.url("/bad").parse().unwrap()).unwrap();
    spec.digest = Some(Digest::parse(&format!("sha-256={}", "0".repeat(64))).unwrap());
    let message = assert_fails(&one_stream(), &origin, spec, ErrorKind::Checksum);
    assert!(message.contains(&origin.url("/bad")), "{message}");
    assert_eq!(origin.bytes_sent(), 200_000 + 2 * 300_000, "it is fetched once more");
}

#[test]
fn a_size_that_the_server_contradicts() {
    let origin = origin(OriginBehaviour::default());
    let mut spec = FileSpec::from_url(origin.url("/bad").parse().unwrap()).unwrap();
    spec.size = Some(299_999);
    let message = assert_fails(&client(), &origin, spec, ErrorKind::Checksum);
    assert!(message.contains("299999") && message.contains("300000"), "{message}");
}

#[test]
fn a_server_that_hangs_after_its_head() {
    let origin = origin(OriginBehaviour::default());
    let silent = Scripted::start(|_| {
        Reply::status("200 OK").field("Content-Length", 1000).body("abc").hang()
    })
    .unwrap();
    let config = EngineConfig { stall_timeout: Duration::from_millis(100), ..engine() };
    let client = builder().engine(config).build().unwrap();
    let url = silent.url("/bad");
    let message = assert_fails(&client, &origin, url.as_str(), ErrorKind::Timeout);
    assert!(message.contains(&url), "{message}");
}

#[test]
fn a_subdirectory_whose_listing_fails_is_reported_alone() {
    let files = ["/top", "/bad/x", "/ok/y", "/ok/deep/z"];
    let files = files.map(|path| VirtualFile::new(path, 20_000, 7)).to_vec();
    for (behaviour, kind, code) in
        [(always(403), ErrorKind::Auth, 24), (always(500), ErrorKind::ServerError, 22)]
    {
        let origin = Origin::start(OriginConfig {
            files: files.clone(),
            behaviour_by_path: vec![("/bad/".to_owned(), behaviour)],
            ..OriginConfig::default()
        })
        .unwrap();
        let out = tempfile::tempdir().unwrap();
        let download = client().download([origin.url("/")]).walk(recursively());
        let report = run(download.into_dir(out.path()));
        let expected = ["ok/deep/z", "ok/y", "top"].map(str::to_owned);
        assert_eq!(names(out.path()), expected.into(), "the others are there");
        let failed = assert_failed(&report, "", kind);
        assert!(failed.starts_with(&origin.url("/bad/")), "{failed}");
        assert_eq!(report.summary.exit_code, code);
        assert_eq!(report.summary.files_done, 3);
    }
}

#[test]
fn listings_with_nothing_to_fetch_say_so() {
    let origin = Origin::start(OriginConfig {
        files: vec![VirtualFile::new("/a/x.txt", 10, 1), VirtualFile::new("/b/y", 10, 1)],
        ..OriginConfig::default()
    })
    .unwrap();
    let refused = |walk: WalkOptions, urls: &[&str]| {
        let urls: Vec<_> = urls.iter().map(|path| origin.url(path)).collect();
        let out = tempfile::tempdir().unwrap();
        let error = try_run(client().download(urls).walk(walk).into_dir(out.path())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        error.message()
    };
    let csv = || WalkOptions { include: Globs::parse(["*.csv"]).unwrap(), ..recursively() };
    let message = refused(csv(), &["/a/", "/b/"]);
    assert_eq!(
        message,
        format!("{}: nothing matches: all of its files are left out", origin.url("/a/"))
    );
    let message = refused(WalkOptions::default(), &["/"]);
    assert!(message.contains("only directories: `recursive`"), "{message}");
    let out = tempfile::tempdir().unwrap();
    let txt = WalkOptions { include: Globs::parse(["*.txt"]).unwrap(), ..recursively() };
    let urls = [origin.url("/a/"), origin.url("/b/")];
    let report = run(client().download(urls).walk(txt).into_dir(out.path()));
    assert!(report.is_complete(), "one of the listings has a match");
}

#[test]
fn a_server_that_asks_for_too_long_a_wait_is_left_alone() {
    // A day by the answer's own clock, which is years behind; and more seconds than a number holds.
    for (date, wait) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", "Mon, 07 Nov 1994 08:49:37 GMT"),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "99999999999999999999"),
    ] {
        let server = Scripted::start(move |_| {
            let reply = Reply::status("503 Service Unavailable").field("Content-Length", 0);
            reply.field("Date", date).field("Retry-After", wait)
        })
        .unwrap();
        let out = tempfile::tempdir().unwrap();
        let report = run(client().download([server.url("/f")]).into_dir(out.path()));
        assert_eq!(report.summary.exit_code, ErrorKind::Overloaded.exit_code());
        let message = &file(&report, "f").error.as_ref().unwrap().message;
        assert!(message.contains("the server asks for too long a wait"), "{message}");
        assert_eq!(server.requests().len(), 1, "{wait}");
    }
}
