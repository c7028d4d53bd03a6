//! Redirects whose targets do not last.

use std::collections::HashMap;
use std::sync::Mutex;

use pelton_core::ErrorKind;
use pelton_core::engine::EngineConfig;
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{RawRequest, Reply, Scripted};

use crate::support::{builder, client, one_stream, run};

const SIZE: u64 = 3_000_000;

fn answer(request: &RawRequest) -> Reply {
    some(request, SIZE)
}

/// Ends its connection after at most so many bytes.
fn some(request: &RawRequest, most: u64) -> Reply {
    let file = VirtualFile::new("/file", SIZE, 1);
    let range = request.field("range").and_then(|range| {
        let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()? + 1))
    });
    let (start, end) = range.map_or((0, SIZE), |(start, end)| (start, end.min(SIZE)));
    let reply = match range {
        None => Reply::status("200 OK").field("Accept-Ranges", "bytes"),
        Some(_) => Reply::status("206 Partial Content")
            .field("Content-Range", format!("bytes {start}-{}/{SIZE}", end - 1)),
    };
    let reply = reply.field("Content-Length", end - start).field("ETag", file.etag());
    if end - start > most {
        return reply.body(file.bytes(start..start + most)).close();
    }
    reply.body(file.bytes(start..end))
}

/// Redirects each request for `/file` to a URL of its own, which is good for so many requests and answered with
/// `status` from then on.
fn signing(lasts_for: usize, status: &'static str) -> Scripted {
    signing_some(lasts_for, status, SIZE)
}

/// The same, which ends its connections after so many bytes.
fn signing_some(lasts_for: usize, status: &'static str, most: u64) -> Scripted {
    let used = Mutex::new(Vec::<usize>::new());
    Scripted::start(move |request| {
        let mut used = used.lock().unwrap();
        let Some(signature) = request.target().strip_prefix("/signed/") else {
            used.push(0);
            return Reply::status("302 Found")
                .field("Location", format!("/signed/{}", used.len() - 1))
                .field("Content-Length", 0);
        };
        let count = &mut used[signature.parse::<usize>().unwrap()];
        *count += 1;
        if *count > lasts_for {
            return Reply::status(status).field("Content-Length", 2).body("no");
        }
        some(request, most)
    })
    .unwrap()
}

#[test]
fn a_redirect_that_has_expired_is_followed_anew() {
    for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found", "410 Gone"] {
        for lasts_for in [1, 3] {
            for client in [one_stream(), client()] {
                let server = signing(lasts_for, status);
                let out = tempfile::tempdir().unwrap();
                let report = run(client.download([server.url("/file")]).into_dir(out.path()));
                assert!(report.is_complete(), "{status} {lasts_for} {:?}", report.files);
                let there = std::fs::read(out.path().join("file")).unwrap();
                assert!(there == VirtualFile::new("/file", SIZE, 1).bytes(0..SIZE));
            }
        }
    }
}

#[test]
fn what_has_come_before_a_redirect_expired_is_kept() {
    let server = signing(1, "403 Forbidden");
    let out = tempfile::tempdir().unwrap();
    let report = run(one_stream().download([server.url("/file")]).into_dir(out.path()));
    assert!(report.is_complete());
    let starts = server.requests().into_iter().filter(|request| {
        request.target().starts_with("/signed")
            && request.field("range").is_none_or(|range| range.starts_with("bytes=0-"))
    });
    assert_eq!(starts.count(), 1, "the first bytes are asked for once");
}

#[test]
fn a_redirect_that_lasts_for_some_requests_is_followed_once_for_those() {
    let server = signing_some(6, "403 Forbidden", SIZE / 60);
    let out = tempfile::tempdir().unwrap();
    let report = run(one_stream().download([server.url("/file")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    let (signed, led): (Vec<_>, Vec<_>) =
        server.requests().into_iter().partition(|it| it.target().starts_with("/signed"));
    assert!(signed.len() >= 60 && led.len() <= 12, "{} of {}", led.len(), signed.len());
}

/// Sets a cookie by a redirect of each file to itself, and wants it back.
#[test]
fn a_cookie_that_a_redirect_sets_opens_the_way() {
    let server = Scripted::start(|request| {
        if request.field("cookie") == Some("pass=1") {
            return answer(request);
        }
        let itself = request.target().to_owned();
        Reply::status("302 Found")
            .field("Set-Cookie", "pass=1; Path=/")
            .field("Location", itself)
            .field("Content-Length", 0)
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let urls = (0..20).map(|number| server.url(&format!("/file?{number}")));
    let report = run(client().download(urls).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    let report = run(client().download([server.url("/file")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    let file = VirtualFile::new("/file", SIZE, 1);
    assert!(std::fs::read(out.path().join("file")).unwrap() == file.bytes(0..SIZE), "other bytes");
}

/// Answers `requests` with the file and whatever comes later with `status`.
fn dying(requests: usize, status: &'static str) -> Scripted {
    Scripted::start(move |request| match request.number {
        number if number < requests => answer(request),
        _ => Reply::status(status).field("Content-Length", 0),
    })
    .unwrap()
}

#[test]
fn of_several_mirrors_behind_a_redirect_one_may_die() {
    for status in
        ["500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable", "404 Not Found"]
    {
        // What was never there is missing.
        for answers in if status.starts_with('4') { 1..4 } else { 0..2 } {
            let (bad, good) = (dying(answers, status), dying(usize::MAX, status));
            let mirrors = [bad.url("/file"), good.url("/file")];
            let front = Scripted::start(move |request| {
                Reply::status("302 Found")
                    .field("Location", &mirrors[request.number % 2])
                    .field("Content-Length", 0)
            })
            .unwrap();
            let out = tempfile::tempdir().unwrap();
            // Who has just answered and is overloaded is waited for, and not for milliseconds.
            let is_overloaded = status.starts_with("503");
            let client =
                if is_overloaded { builder().engine(EngineConfig::default()) } else { builder() };
            let client = client.build().unwrap();
            let report = run(client.download([front.url("/file")]).into_dir(out.path()));
            assert!(report.is_complete(), "{status} {answers} {:?}", report.files);
        }
    }
}

#[test]
fn what_one_mirror_lacks_another_one_has() {
    let lacking = Scripted::start(|request| match request.target() {
        "/file?0" | "/file?5" => answer(request),
        _ => Reply::status("404 Not Found").field("Content-Length", 0),
    });
    let (lacking, good) = (lacking.unwrap(), dying(usize::MAX, "404 Not Found"));
    let mirrors = [lacking.url(""), good.url("")];
    let asked = Mutex::new(HashMap::<String, usize>::new());
    let front = Scripted::start(move |request| {
        let mut asked = asked.lock().unwrap();
        let others = asked.len();
        let turn = asked.entry(request.target().to_owned()).or_insert(others);
        *turn += 1;
        let location = format!("{}{}", mirrors[*turn % 2], request.target());
        Reply::status("302 Found").field("Location", location).field("Content-Length", 0)
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..10).map(|number| front.url(&format!("/file?{number}"))).collect();
    let report = run(client().download(&urls).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
}

#[test]
fn what_is_missing_behind_a_redirect_is_not_asked_for_again_and_again() {
    let store = Scripted::start(|_| Reply::status("404 Not Found").field("Content-Length", 0));
    let store = store.unwrap();
    let url = store.url("");
    let front = Scripted::start(move |request| {
        let location = format!("{url}{}", request.target());
        Reply::status("302 Found").field("Location", location).field("Content-Length", 0)
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..100).map(|number| front.url(&format!("/file?{number}"))).collect();
    let report = run(one_stream().download(&urls).into_dir(out.path()));
    assert_eq!(report.summary.exit_code, ErrorKind::NotFound.exit_code());
    let asked = front.requests().len();
    assert!(asked <= 116, "{asked} requests for 100 files");
}
