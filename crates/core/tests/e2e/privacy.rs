//! Names that lead elsewhere, and secrets that must not be seen.

use std::fs;

use http::{HeaderName, HeaderValue};
use pelton_core::ErrorKind;
use pelton_core::connection::HttpConfig;
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginConfig};

use crate::support::{builder, client, file, names, recursively, run, run_with_events, tree};

fn listing(links: &[String]) -> Reply {
    let links = links.iter().map(|link| format!("<a href=\"{link}\">x</a>"));
    let links = links.collect::<Vec<_>>().join("\n");
    let body = format!("<html><title>Index of /d/</title><pre>{links}</pre></html>");
    Reply::status("200 OK")
        .field("Content-Type", "text/html")
        .field("Content-Length", body.len())
        .body(body)
}

#[test]
fn names_of_a_listing_that_clash_or_can_not_be_stored_fail_alone() {
    let links = ["a", "%61", "b", "b.part", &"x".repeat(300), "c", "README", "readme"];
    let links = links.map(str::to_owned);
    let server = Scripted::start(move |request| match request.target() {
        "/d/" => listing(&links),
        _ => Reply::status("200 OK").field("Content-Length", 2).body("ok"),
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([server.url("/d/")]).into_dir(out.path()));
    let expected = ["README", "a", "b", "c", "readme"].map(str::to_owned);
    assert_eq!(names(out.path()), expected.into());
    assert_eq!(report.summary.exit_code, ErrorKind::Usage.exit_code());
    let failed: Vec<&str> = report.files.iter().filter(|f| !f.ok).map(|f| f.url.as_str()).collect();
    assert_eq!(failed.len(), 3, "{failed:?}");
    for reason in ["longer than 255 bytes", "would both write", "until it is complete"] {
        let said = |f: &&pelton_core::events::FileReport| {
            f.error.as_ref().is_some_and(|error| error.message.contains(reason))
        };
        assert!(report.files.iter().any(|f| said(&f)), "{reason}");
    }
}

#[cfg(unix)]
#[test]
fn links_in_the_directory_are_not_followed_out_of_it() {
    use std::os::unix::fs::symlink;
    let files = ["/out/f", "/in/f", "/plain", "/linked"];
    let files = files.map(|path| VirtualFile::new(path, 50_000, 3)).to_vec();
    let origin = Origin::start(OriginConfig { files, ..OriginConfig::default() }).unwrap();
    let home = tempfile::tempdir().unwrap();
    let (outside, target) = (home.path().join("outside"), home.path().join("target"));
    fs::create_dir_all(target.join("real")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("victim"), "untouched").unwrap();
    symlink(&outside, target.join("out")).unwrap();
    symlink("real", target.join("in")).unwrap();
    symlink(outside.join("victim"), target.join("linked")).unwrap();
    symlink(outside.join("victim"), target.join("plain.part")).unwrap();
    let config = pelton_core::engine::EngineConfig { overwrite: true, ..crate::support::engine() };
    let client = builder().engine(config).build().unwrap();
    let download = client.download([origin.url("/")]).walk(recursively());
    let report = run(download.into_dir(&target));
    let error = file(&report, "out/f").error.clone().unwrap();
    assert_eq!(error.kind, ErrorKind::FileIo.name(), "{}", error.message);
    assert!(error.message.contains("leads out of"), "{}", error.message);
    assert!(!file(&report, "plain").ok, "its part would be elsewhere");
    assert!(file(&report, "in/f").ok && file(&report, "linked").ok);
    assert_eq!(names(&outside), ["victim".to_owned()].into());
    assert_eq!(fs::read(outside.join("victim")).unwrap(), b"untouched");
    assert!(!fs::symlink_metadata(target.join("linked")).unwrap().is_symlink(), "replaced");
}

#[test]
fn headers_of_ones_own_stay_with_their_origin() {
    let elsewhere =
        Scripted::start(|_| Reply::status("200 OK").field("Content-Length", 2).body("ok")).unwrap();
    let location = elsewhere.url("/f");
    let server = Scripted::start(move |_| {
        Reply::status("302 Found").field("Location", &location).field("Content-Length", 0)
    })
    .unwrap();
    let own =
        |name: &'static str| (HeaderName::from_static(name), HeaderValue::from_static("hunter2"));
    let headers = vec![own("x-api-key"), own("private-token"), own("accept-language")];
    let client = builder().http(HttpConfig { headers, ..HttpConfig::default() }).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(client.download([server.url("/f")]).into_dir(out.path()));
    assert!(report.is_complete());
    let (asked, led) = (server.requests().remove(0), elsewhere.requests().remove(0));
    for name in ["x-api-key", "private-token"] {
        assert_eq!(asked.field(name), Some("hunter2"));
        assert_eq!(led.field(name), None);
    }
    assert_eq!(led.field("accept-language"), Some("hunter2"));
}

#[test]
fn secrets_in_urls_are_in_no_event_report_error_or_journal() {
    let size = 1_000_000;
    let content = VirtualFile::new("/f", size, 1);
    let server = Scripted::start(move |request| match request.number {
        0 => Reply::status("200 OK")
            .field("Content-Length", size)
            .field("Accept-Ranges", "bytes")
            .field("ETag", "\"1\"")
            .body(content.bytes(0..700_000))
            .close(),
        _ => Reply::status("403 Forbidden").field("Content-Length", 0),
    })
    .unwrap();
    let url = server.url("/f").replace("http://", "http://me:hunter2@");
    let url = format!("{url}?part=1&X-Amz-Signature=hunter2&access_token=hunter2#hunter2");
    let out = tempfile::tempdir().unwrap();
    let (report, events) = run_with_events(client().download([url]).into_dir(out.path()));
    assert_eq!(report.summary.exit_code, ErrorKind::Auth.exit_code());
    let told = serde_json::to_string(&report).unwrap() + &serde_json::to_string(&events).unwrap();
    assert!(told.contains("part=1") && told.contains("X-Amz-Signature=***"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
    let kept = tree(out.path());
    assert!(kept.contains_key("f.part.state"), "{:?}", kept.keys());
    let journal = String::from_utf8_lossy(&kept["f.part.state"]);
    assert!(journal.contains("part=1") && !journal.contains("hunter2"), "{journal}");
}
