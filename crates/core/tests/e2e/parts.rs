//! Long files that are asked for in parts from their first byte on, over HTTP/1.1.

use std::time::Duration;

use http::StatusCode;
use pelton_core::connection::{HttpConfig, ProtocolChoice, TlsOptions};
use pelton_core::{Client, Report};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{RawRequest, Reply, Scripted};
use pelton_lab::origin::{Origin, OriginConfig};

use crate::support::{builder, client, one_stream, run};

const SIZE: u64 = 700_000;
const PATHS: [&str; 4] = ["/0", "/1", "/2", "/3"];

fn content(path: &str) -> VirtualFile {
    VirtualFile::new(path, SIZE, 1)
}

fn range(request: &RawRequest) -> Option<(u64, u64)> {
    let (first, last) = request.field("range")?.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse::<u64>().ok()? + 1))
}

fn ordinary(request: &RawRequest) -> Reply {
    ordinary_of(request.target(), request)
}

fn ordinary_of(path: &str, request: &RawRequest) -> Reply {
    let file = content(path);
    let (start, end) = range(request).map_or((0, SIZE), |(start, end)| (start, end.min(SIZE)));
    let reply = match range(request) {
        None => Reply::status("200 OK").field("Accept-Ranges", "bytes"),
        Some(_) => Reply::status("206 Partial Content")
            .field("Content-Range", format!("bytes {start}-{}/{SIZE}", end - 1)),
    };
    let reply = reply.field("Content-Length", end - start).field("ETag", file.etag());
    if request.head.starts_with("HEAD") { reply } else { reply.body(file.bytes(start..end)) }
}

/// Fetches the four files one after the other. Returns the ranges that were asked of the second, or `None`
/// for all of it.
fn asked_of_second(
    serve: impl Fn(&RawRequest) -> Reply + Send + Sync + 'static,
) -> Vec<Option<(u64, u64)>> {
    let asked = asked(serve).into_iter().filter(|(path, _)| path == "/1");
    asked.map(|(_, range)| range).collect()
}

/// Fetches the four files one after the other. Returns what was asked for.
fn asked(
    serve: impl Fn(&RawRequest) -> Reply + Send + Sync + 'static,
) -> Vec<(String, Option<(u64, u64)>)> {
    let (report, requests) = fetch(&one_stream(), serve);
    assert_eq!(report.summary.retries, 0);
    let gets = requests.iter().filter(|request| request.head.starts_with("GET"));
    gets.map(|request| (request.target().to_owned(), range(request))).collect()
}

/// Fetches the four files, which have to come.
fn fetch(
    client: &Client,
    serve: impl Fn(&RawRequest) -> Reply + Send + Sync + 'static,
) -> (Report, Vec<RawRequest>) {
    let server = Scripted::start(serve).unwrap();
    let out = tempfile::tempdir().unwrap();
    let urls = PATHS.map(|path| server.url(path));
    let report = run(client.download(urls).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    for path in PATHS {
        let there = std::fs::read(out.path().join(&path[1..])).unwrap();
        let is_empty = path == "/1" && there.is_empty();
        assert!(is_empty || there == content(path).bytes(0..SIZE), "{path}");
    }
    (report, server.requests())
}

#[test]
fn further_parts_are_followed_to_where_they_are() {
    fn serve(request: &RawRequest) -> Reply {
        let path = request.target();
        match path.strip_prefix("/moved") {
            Some(path) => ordinary_of(path, request),
            None if range(request).is_some_and(|(start, _)| start > 0) => {
                Reply::status("302 Found")
                    .field("Location", format!("/moved{path}"))
                    .field("Content-Length", 0)
            }
            None => ordinary_of(path, request),
        }
    }
    for client in [one_stream(), client()] {
        fetch(&client, serve);
    }
}

#[test]
fn what_is_refused_in_parts_comes_in_one_piece() {
    for status in ["403 Forbidden", "412 Precondition Failed", "500 Internal Server Error"] {
        for from in [0, 1] {
            for client in [one_stream(), client()] {
                fetch(&client, move |request| match range(request) {
                    Some((start, _)) if start >= from => {
                        Reply::status(status).field("Content-Length", 2).body("no")
                    }
                    _ => ordinary(request),
                });
            }
        }
    }
}

#[test]
fn a_further_part_that_is_not_found_is_no_missing_file() {
    for client in [one_stream(), client()] {
        fetch(&client, |request| match range(request) {
            Some((start, _)) if start > 0 => {
                Reply::status("404 Not Found").field("Content-Length", 2).body("no")
            }
            _ => ordinary(request),
        });
    }
}

#[test]
fn each_part_is_a_request() {
    let (report, requests) = fetch(&one_stream(), ordinary);
    assert_eq!(report.summary.requests as usize, requests.len());
}

#[test]
fn a_long_file_of_a_host_that_gives_ranges_comes_in_parts() {
    let asked = asked_of_second(ordinary);
    assert_eq!(asked.first(), Some(&Some((0, 256 * 1024))), "{asked:?}");
    let ends = asked.iter().flatten().map(|(_, end)| *end);
    let starts = asked.iter().flatten().map(|(start, _)| *start);
    assert!(asked.iter().all(Option::is_some) && starts.skip(1).eq(ends.take(asked.len() - 1)));
}

#[test]
fn over_tls_the_protocol_of_the_connection_tells_whether_a_part_is_asked_for() {
    let first_range = |protocol| {
        let config =
            OriginConfig { files: vec![content("/0")], tls: true, ..OriginConfig::default() };
        let origin = Origin::start(config).unwrap();
        let tls = TlsOptions { insecure: true, ..TlsOptions::default() };
        let http = HttpConfig { protocol, tls, ..HttpConfig::default() };
        let out = tempfile::tempdir().unwrap();
        let client = builder().http(http).build().unwrap();
        let report = run(client.download([origin.url("/0")]).into_dir(out.path()));
        assert!(report.is_complete() && report.summary.retries == 0, "{:?}", report.files);
        assert!(std::fs::read(out.path().join("0")).unwrap() == content("/0").bytes(0..SIZE));
        origin.log()[0].range.clone()
    };
    assert_eq!(first_range(ProtocolChoice::Http1).as_deref(), Some("bytes=0-262143"));
    assert_eq!(first_range(ProtocolChoice::Auto), None);
}

#[test]
fn what_cannot_be_joined_of_parts_comes_in_one_piece() {
    let second = |request: &RawRequest| request.target() == "/1" && range(request).is_some();
    let no_etag = move |request: &RawRequest| match range(request).filter(|_| second(request)) {
        Some((start, end)) => Reply::status("206 Partial Content")
            .field("Content-Range", format!("bytes {start}-{}/{SIZE}", end - 1))
            .field("Content-Length", end - start)
            .body(content("/1").bytes(start..end)),
        None => ordinary(request),
    };
    let no_total = move |request: &RawRequest| match range(request).filter(|_| second(request)) {
        Some((start, end)) => Reply::status("206 Partial Content")
            .field("Content-Range", format!("bytes {start}-{}/*", end - 1))
            .field("ETag", content("/1").etag())
            .field("Content-Length", end - start)
            .body(content("/1").bytes(start..end)),
        None => ordinary(request),
    };
    let refused = move |request: &RawRequest| {
        if second(request) {
            Reply::status("403 Forbidden").field("Content-Length", 2).body("no")
        } else {
            ordinary(request)
        }
    };
    for asked in [asked_of_second(no_etag), asked_of_second(no_total), asked_of_second(refused)] {
        assert_eq!(asked, [Some((0, 256 * 1024)), None]);
    }
}

#[test]
fn who_refuses_first_parts_is_asked_for_two_of_them() {
    let asked = asked(|request| match range(request) {
        Some(_) => Reply::status("403 Forbidden").field("Content-Length", 0),
        None => ordinary(request),
    });
    let of_ranges = asked.iter().filter(|(_, range)| range.is_some()).count();
    assert_eq!((of_ranges, asked.len()), (2, 6), "{asked:?}");
}

#[test]
fn a_whole_file_for_its_first_part_is_taken() {
    let asked = asked_of_second(|request| match request.target() {
        "/1" => Reply::status("200 OK")
            .field("Content-Length", SIZE)
            .field("ETag", content("/1").etag())
            .body(content("/1").bytes(0..SIZE)),
        _ => ordinary(request),
    });
    assert_eq!(asked, [Some((0, 256 * 1024))]);
}

#[test]
fn an_empty_file_has_no_first_part() {
    let asked = asked_of_second(|request| match (request.target(), range(request)) {
        ("/1", Some(_)) => Reply::status("416 Range Not Satisfiable")
            .field("Content-Range", "bytes */0")
            .field("Content-Length", 0),
        ("/1", None) => Reply::status("200 OK").field("Content-Length", 0),
        _ => ordinary(request),
    });
    assert_eq!(asked, [Some((0, 256 * 1024)), None]);
}

#[test]
fn a_part_that_is_refused_leaves_its_connection_to_others() {
    let files = [("/0", SIZE), ("/1", 0), ("/2", SIZE), ("/3", 0)];
    let files: Vec<_> = files.map(|(path, size)| VirtualFile::new(path, size, 1)).into();
    let origin = Origin::start(OriginConfig { files, ..OriginConfig::default() }).unwrap();
    let out = tempfile::tempdir().unwrap();
    let urls = PATHS.map(|path| origin.url(path));
    assert!(run(one_stream().download(urls).into_dir(out.path())).is_complete());
    assert_eq!(
        origin
            .log()
            .iter()
            .filter(|entry| entry.status == StatusCode::RANGE_NOT_SATISFIABLE)
            .count(),
        2
    );
    assert_eq!(origin.connections(), 1);
}

#[test]
fn parts_of_two_versions_are_not_joined() {
    let asked = asked_of_second(|request| match (request.target(), range(request)) {
        ("/1", Some((0, end))) => Reply::status("206 Partial Content")
            .field("Content-Range", format!("bytes 0-{}/{SIZE}", end - 1))
            .field("Content-Length", end)
            .field("ETag", "\"old\"")
            .body(vec![0; end as usize]),
        _ => ordinary(request),
    });
    assert_eq!(asked.first(), Some(&Some((0, 256 * 1024))));
    assert_eq!(asked.last(), Some(&None), "{asked:?}");
}

#[test]
fn what_a_short_answer_leaves_out_before_the_rest_is_not_left_out() {
    // A server that thinks about the first part, and brings less of it than it was asked for.
    let piece = |path: &str, start: u64, end: u64| {
        let file = content(path);
        let (length, last, etag) = (end - start, end - 1, file.etag());
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{last}/{SIZE}\r\n\
             Content-Length: {length}\r\nETag: {etag}\r\n\r\n"
        );
        [head.into_bytes(), file.bytes(start..end)].concat()
    };
    let serve = move |request: &RawRequest| match (request.target(), rest(request), range(request))
    {
        ("/0", Some(start), _) => Reply::raw(piece("/0", start, SIZE)),
        ("/0", None, Some((0, _))) => {
            Reply::raw(Vec::new()).pause(Duration::from_millis(300)).body(piece("/0", 0, 100_000))
        }
        _ => ordinary(request),
    };
    let (_, requests) = fetch(&one_stream(), serve);
    assert!(requests.iter().any(|request| rest(request).is_some()), "asked for beside it");
}

/// Where the range begins that a request wants to the end of the file.
fn rest(request: &RawRequest) -> Option<u64> {
    request.field("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}
