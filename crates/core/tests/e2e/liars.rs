//! Servers that break promises: what can be mended is mended, what can't is said, and wrong bytes
//! never come under a final name.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pelton_core::engine::EngineConfig;
use pelton_core::{Client, ErrorKind, Report};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{RawRequest, Reply, Scripted};
use tempfile::TempDir;

use crate::support::{
    builder, client, engine, file, four_by_four, names, one_stream, run, tree, try_run,
};

const SIZE: u64 = 1_000_000;

fn content() -> VirtualFile {
    VirtualFile::new("/f", SIZE, 1)
}

fn bytes() -> Vec<u8> {
    content().bytes(0..SIZE)
}

/// Four range streams a file.
fn splitting() -> Client {
    builder().policy(four_by_four()).build().unwrap()
}

/// First and last byte that a request asks for.
fn range(request: &RawRequest) -> Option<(u64, u64)> {
    let (first, last) = request.field("range")?.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().unwrap(), last.parse().unwrap()))
}

/// The head of a 200 that promises ranges.
fn whole(version: &VirtualFile) -> Reply {
    Reply::status("200 OK")
        .field("Content-Length", version.size)
        .field("Accept-Ranges", "bytes")
        .field("ETag", version.etag())
}

/// A 206 as it should be, without its body.
fn part(version: &VirtualFile, first: u64, last: u64) -> Reply {
    Reply::status("206 Partial Content")
        .field("Content-Length", last - first + 1)
        .field("Content-Range", format!("bytes {first}-{last}/{}", version.size))
        .field("ETag", version.etag())
}

/// An honest answer.
fn honest(version: &VirtualFile, request: &RawRequest) -> Reply {
    match range(request) {
        None => whole(version).body(version.bytes(0..version.size)),
        Some((first, last)) => part(version, first, last).body(version.bytes(first..last + 1)),
    }
}

fn serve(script: impl Fn(&RawRequest) -> Reply + Send + Sync + 'static) -> Scripted {
    Scripted::start(script).unwrap()
}

fn get(client: &Client, server: &Scripted) -> (Report, TempDir) {
    let out = tempfile::tempdir().unwrap();
    let report = run(client.download([server.url("/f")]).into_dir(out.path()));
    (report, out)
}

fn assert_arrives(client: &Client, server: &Scripted, expected: &[u8]) -> Report {
    let (report, out) = get(client, server);
    assert!(report.is_complete(), "{:?}", file(&report, "f").error);
    assert_eq!(names(out.path()), ["f".to_owned()].into());
    assert!(tree(out.path())["f"] == expected, "other bytes");
    report
}

/// Asserts that it fails, and that nothing has the final name. Returns the message.
fn assert_fails(client: &Client, server: &Scripted, kind: ErrorKind) -> String {
    let (report, out) = get(client, server);
    let error = file(&report, "f").error.clone().expect("it fails");
    assert_eq!(error.kind, kind.name(), "{}", error.message);
    assert_eq!(report.summary.exit_code, kind.exit_code());
    assert!(error.message.contains(&server.url("/f")), "{}", error.message);
    assert!(!error.message.contains('\n'), "{}", error.message);
    assert!(!names(out.path()).contains("f"));
    error.message
}

#[test]
fn fewer_bytes_than_promised() {
    let server =
        serve(|_| Reply::status("200 OK").field("Content-Length", 100).body("abc").close());
    let message = assert_fails(&client(), &server, ErrorKind::ShortBody);
    assert!(message.contains("after 3 attempts"), "{message}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn more_bytes_than_promised() {
    let server = serve(|_| Reply::status("200 OK").field("Content-Length", 3).body("abcdef"));
    assert_arrives(&client(), &server, b"abc");
}

#[test]
fn answers_that_come_twice() {
    let body = |target: &str| target.repeat(5_000);
    let server = serve(move |request| {
        let body = body(request.target());
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        Reply::raw(answer.repeat(2))
    });
    let out = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..60).map(|number| server.url(&format!("/file-{number}"))).collect();
    let report = run(client().download(urls).into_dir(out.path()));
    assert!(report.is_complete(), "{}", report.summary.files_failed);
    for (name, bytes) in tree(out.path()) {
        assert!(bytes == body(&format!("/{name}")).into_bytes(), "{name} has the bytes of another");
    }
}

#[test]
fn a_body_that_breaks_off_is_continued_where_it_broke() {
    let server = serve(|request| match request.number {
        0 => whole(&content()).body(content().bytes(0..600_000)).close(),
        _ => honest(&content(), request),
    });
    let report = assert_arrives(&one_stream(), &server, &bytes());
    assert_eq!(report.summary.retries, 1);
    assert!(server.requests().iter().skip(1).all(|request| range(request).is_some()));
    assert_eq!(report.summary.bytes, SIZE, "no byte twice");
}

#[test]
fn a_whole_file_that_can_not_have_its_name_is_only_renamed_by_a_rerun() {
    let out = tempfile::tempdir().unwrap();
    let in_the_way = out.path().join("f");
    let obstacle = in_the_way.clone();
    let server = serve(move |request| {
        if request.number == 0 {
            return whole(&content()).body(content().bytes(0..600_000)).close();
        }
        // The part is open by now.
        let _ = fs::create_dir(&obstacle);
        honest(&content(), request)
    });
    let get = || run(one_stream().download([server.url("/f")]).into_dir(out.path()));
    let report = get();
    assert_eq!(report.summary.exit_code, ErrorKind::FileIo.exit_code(), "{:?}", report.files);
    fs::remove_dir(&in_the_way).unwrap();
    let asked = server.requests().len();
    let report = get();
    assert!(report.is_complete(), "{:?}", report.files);
    assert_eq!(report.files[0].resumed_from, SIZE);
    assert_eq!(server.requests().len(), asked, "nothing is fetched again");
    assert!(fs::read(&in_the_way).unwrap() == bytes());
}

#[test]
fn a_reset_in_the_middle_of_each_stream() {
    let broken = AtomicUsize::new(0);
    let server = serve(move |request| match range(request) {
        None => whole(&content()).body(content().bytes(0..200_000)).reset(),
        Some((first, last)) if broken.fetch_add(1, Ordering::Relaxed) < 4 && last - first > 10 => {
            part(&content(), first, last).body(content().bytes(first..first + 10)).close()
        }
        Some(_) => honest(&content(), request),
    });
    assert_arrives(&splitting(), &server, &bytes());
}

/// What a server answers to a range, of which the whole can be had all the same.
type Refusal = fn(u64, u64) -> Reply;

const REFUSALS: [(&str, Refusal); 9] = [
    ("another range", |first, last| {
        part(&content(), first + 1, last).body(content().bytes(first + 1..last + 1))
    }),
    ("no Content-Range", |first, last| {
        Reply::status("206 Partial Content")
            .field("Content-Length", last - first + 1)
            .body(content().bytes(first..last + 1))
    }),
    ("several parts", |_, _| {
        Reply::status("206 Partial Content")
            .field("Content-Type", "multipart/byteranges; boundary=x")
            .field("Content-Length", 5)
            .body("--x--")
    }),
    ("another unit", |first, last| {
        Reply::status("206 Partial Content")
            .field("Content-Length", last - first + 1)
            .field("Content-Range", format!("lines {first}-{last}/{SIZE}"))
            .field("ETag", content().etag())
            .body(content().bytes(first..last + 1))
    }),
    ("gzip", |first, last| {
        part(&content(), first, last)
            .field("Content-Encoding", "gzip")
            .body(content().bytes(first..last + 1))
    }),
    ("no validator", |first, last| {
        Reply::status("206 Partial Content")
            .field("Content-Length", last - first + 1)
            .field("Content-Range", format!("bytes {first}-{last}/{SIZE}"))
            .body(content().bytes(first..last + 1))
    }),
    ("403", |_, _| Reply::status("403 Forbidden").field("Content-Length", 0)),
    ("416", |_, _| Reply::status("416 Range Not Satisfiable").field("Content-Length", 0)),
    ("501", |_, _| Reply::status("501 Not Implemented").field("Content-Length", 0)),
];

#[test]
fn whatever_is_said_to_a_range_the_whole_is_taken_where_it_can_be_had() {
    for (name, refusal) in REFUSALS {
        for (client, breaks) in [(client(), true), (splitting(), true), (splitting(), false)] {
            let wholes = AtomicUsize::new(0);
            let server = serve(move |request| match range(request) {
                None if breaks && wholes.fetch_add(1, Ordering::Relaxed) == 0 => {
                    whole(&content()).body(content().bytes(0..600_000)).close()
                }
                None => whole(&content()).body(bytes()),
                Some((first, last)) => refusal(first, last),
            });
            let report = assert_arrives(&client, &server, &bytes());
            // A first stream that is still under way goes on to the end of the file.
            let restarts = file(&report, "f").restarts;
            assert!(restarts == 1 || !breaks && restarts == 0, "{name}: {restarts}");
            let whole = server.requests().iter().filter(|request| range(request).is_none()).count();
            assert_eq!(whole, 1 + restarts as usize, "{name}");
        }
    }
}

#[test]
fn a_machine_among_others_that_gives_no_ranges_costs_no_byte() {
    let refused = AtomicUsize::new(0);
    let server = serve(move |request| match range(request) {
        None if request.number == 0 => whole(&content()).body(content().bytes(0..300_000)).close(),
        None => whole(&content()).body(bytes()),
        Some((first, last)) if last - first > 1_000 => {
            // Half of what was asked for, so that more is asked for.
            let last = first + (last - first) / 2;
            part(&content(), first, last).body(content().bytes(first..last + 1))
        }
        Some(_) if refused.fetch_add(1, Ordering::Relaxed) < 2 => whole(&content()).body(bytes()),
        Some(_) => honest(&content(), request),
    });
    let report = assert_arrives(&one_stream(), &server, &bytes());
    assert_eq!(file(&report, "f").restarts, 0);
    assert_eq!(report.summary.bytes, SIZE, "no byte twice");
}

#[test]
fn a_url_that_expires_leaves_its_part_for_a_rerun() {
    let server = serve(move |request| match request.number {
        0 => whole(&content()).body(content().bytes(0..600_000)).close(),
        1..3 => Reply::status("403 Forbidden").field("Content-Length", 0),
        _ => honest(&content(), request),
    });
    let out = tempfile::tempdir().unwrap();
    let download = || one_stream().download([server.url("/f")]).into_dir(out.path());
    let first = run(download());
    assert_eq!(first.summary.exit_code, ErrorKind::Auth.exit_code());
    let second = run(download());
    assert!(second.is_complete());
    assert_eq!(file(&second, "f").resumed_from, 600_000);
    assert!(tree(out.path())["f"] == bytes());
}

#[test]
fn versions_that_nothing_tells_apart_are_not_joined() {
    // Weak validators: each stream could bring another version.
    let wholes = AtomicUsize::new(0);
    let server = serve(move |request| {
        let version = VirtualFile::new("/f", SIZE, request.number as u64);
        let is_first = range(request).is_none() && wholes.fetch_add(1, Ordering::Relaxed) == 0;
        let reply = match range(request) {
            None => Reply::status("200 OK").field("Content-Length", SIZE),
            Some((first, last)) => Reply::status("206 Partial Content")
                .field("Content-Length", last - first + 1)
                .field("Content-Range", format!("bytes {first}-{last}/{SIZE}")),
        };
        let (first, last) = range(request).unwrap_or((0, SIZE - 1));
        let stop = if is_first { 600_000 } else { last + 1 };
        let reply = reply
            .field("Accept-Ranges", "bytes")
            .field("ETag", "W/\"same\"")
            .field("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
            .field("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
            .body(version.bytes(first..stop));
        if is_first { reply.close() } else { reply }
    });
    // The first part, the whole that breaks off, and the whole.
    let third = VirtualFile::new("/f", SIZE, 2);
    let report = assert_arrives(&splitting(), &server, &third.bytes(0..SIZE));
    assert_eq!(file(&report, "f").restarts, 1);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_part_that_is_shorter_than_asked_for() {
    // RFC 9110, section 15.3.7: a server may send less than it was asked for.
    let server = serve(|request| match range(request) {
        None => honest(&content(), request),
        Some((first, last)) => {
            let last = last.min(first + 49_999);
            part(&content(), first, last).body(content().bytes(first..last + 1))
        }
    });
    assert_arrives(&splitting(), &server, &bytes());
}

#[test]
fn a_part_where_the_whole_was_asked_for() {
    for first_part in [100, SIZE] {
        let server = serve(move |request| match range(request) {
            None => part(&content(), 0, first_part - 1).body(content().bytes(0..first_part)),
            Some(_) => honest(&content(), request),
        });
        assert_arrives(&client(), &server, &bytes());
    }
    let middle = serve(|_| part(&content(), 100, 199).body(content().bytes(100..200)));
    assert_fails(&client(), &middle, ErrorKind::Protocol);
    // Always the same one, whatever is asked for, or a version that nothing tells.
    let same = serve(|_| part(&content(), 0, 99).body(content().bytes(0..100)));
    let unversioned = serve(|_| {
        Reply::status("206 Partial Content")
            .field("Content-Length", 100)
            .field("Content-Range", format!("bytes 0-99/{SIZE}"))
            .body(content().bytes(0..100))
    });
    for server in [same, unversioned] {
        let message = assert_fails(&client(), &server, ErrorKind::ShortBody);
        assert!(message.contains("sent a part and was asked for the whole"), "{message}");
        let requests = server.requests().len();
        assert!(requests <= 40, "{requests} requests");
    }
}

#[test]
fn a_part_with_the_status_of_the_whole() {
    let server = serve(|request| match range(request) {
        Some((first, last)) => Reply::status("200 OK")
            .field("Content-Length", last - first + 1)
            .field("Content-Range", format!("bytes {first}-{last}/{SIZE}"))
            .field("ETag", content().etag())
            .body(content().bytes(first..last + 1)),
        None => honest(&content(), request),
    });
    assert_arrives(&client(), &server, &bytes());
    assert_arrives(&splitting(), &server, &bytes());
}

#[test]
fn bodies_without_a_length() {
    for size in [0, 5, 70_000] {
        let chunked = serve(move |_| {
            let mut body = Vec::new();
            for chunk in content().bytes(0..size).chunks(10_000) {
                body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\n");
            Reply::status("200 OK").field("Transfer-Encoding", "chunked").body(body)
        });
        assert_arrives(&splitting(), &chunked, &content().bytes(0..size));
        let until_closed =
            serve(move |_| Reply::status("200 OK").body(content().bytes(0..size)).close());
        assert_arrives(&splitting(), &until_closed, &content().bytes(0..size));
    }
}

#[test]
fn a_range_whose_last_chunk_never_comes_is_complete_with_its_last_byte() {
    let server = serve(|request| match range(request) {
        Some((first, last)) => {
            let last = last.min(SIZE - 1);
            let bytes = content().bytes(first..last + 1);
            let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat();
            Reply::status("206 Partial Content")
                .field("Transfer-Encoding", "chunked")
                .field("Content-Range", format!("bytes {first}-{last}/{SIZE}"))
                .field("ETag", content().etag())
                .body(chunk)
        }
        None => honest(&content(), request),
    });
    let hour = Duration::from_secs(3_600);
    let config = EngineConfig { stall_timeout: hour, ..EngineConfig::default() };
    for client in [builder(), builder().policy(four_by_four())] {
        assert_arrives(&client.engine(config).build().unwrap(), &server, &bytes());
    }
}

#[test]
fn who_is_misdirected_asks_over_another_connection() {
    let server = serve(|request| match request.number {
        0 => Reply::status("421 Misdirected Request").field("Content-Length", 0),
        _ => honest(&content(), request),
    });
    assert_arrives(&client(), &server, &bytes());
    let always = serve(|_| Reply::status("421 Misdirected Request").field("Content-Length", 0));
    let message = assert_fails(&client(), &always, ErrorKind::ServerError);
    assert!(message.contains("does not serve this name"), "{message}");
}

#[test]
fn a_chunked_body_that_breaks_off_starts_anew() {
    let server = serve(|request| {
        let reply = Reply::status("200 OK").field("Transfer-Encoding", "chunked");
        match request.number {
            0 => reply.body("5\r\nabcde\r\n3\r\nf").close(),
            _ => reply.body("5\r\nABCDE\r\n3\r\nFGH\r\n0\r\n\r\n"),
        }
    });
    assert_arrives(&client(), &server, b"ABCDEFGH");
}

#[test]
fn a_file_that_changes_between_two_requests() {
    let old = VirtualFile::new("/f", SIZE, 1);
    for new in [VirtualFile::new("/f", SIZE, 2), VirtualFile::new("/f", SIZE / 2, 3)] {
        let (old, changed) = (old.clone(), new.clone());
        let server = serve(move |request| match request.number {
            0 => whole(&old).body(old.bytes(0..600_000)).close(),
            _ => match range(request) {
                Some((first, _)) if first >= changed.size => {
                    Reply::status("416 Range Not Satisfiable").field("Content-Length", 0)
                }
                _ => honest(&changed, request),
            },
        });
        let report = assert_arrives(&client(), &server, &new.bytes(0..new.size));
        assert_eq!(file(&report, "f").restarts, 1);
    }
}

#[test]
fn a_file_that_never_stays_the_same() {
    let server = serve(|request| {
        let version = VirtualFile::new("/f", SIZE, request.number as u64);
        match range(request) {
            None => whole(&version).body(version.bytes(0..300_000)).close(),
            Some(_) => honest(&version, request),
        }
    });
    // In the end without ranges, and no body comes to its end.
    let message = assert_fails(&client(), &server, ErrorKind::ShortBody);
    assert!(message.contains("after 3 attempts"), "{message}");
}

/// What a network answers that wants a sign-in first: without any version.
fn sign_in() -> Reply {
    let page = b"<html>Sign in</html>";
    Reply::status("200 OK")
        .field("Content-Type", "text/html")
        .field("Content-Length", page.len())
        .body(page.to_vec())
}

#[test]
fn a_page_in_place_of_ranges_passes() {
    let server = serve(|request| match request.number {
        2..6 => sign_in(),
        _ => honest(&content(), request),
    });
    let report = assert_arrives(&splitting(), &server, &bytes());
    assert_eq!(file(&report, "f").restarts, 0, "nothing is thrown away for a page");
}

#[test]
fn a_page_that_stays_takes_nothing_away() {
    let signed_in = Arc::new(AtomicBool::new(false));
    let lets_in = Arc::clone(&signed_in);
    let server = serve(move |request| {
        let lets_in = request.number < 2 || lets_in.load(Ordering::Relaxed);
        if lets_in { honest(&content(), request) } else { sign_in() }
    });
    let out = tempfile::tempdir().unwrap();
    let get = || run(splitting().download([server.url("/f")]).into_dir(out.path()));
    let refused = get();
    let error = file(&refused, "f").error.clone().expect("no page is the file");
    assert!(error.message.contains("text/html") && error.message.contains("sign-in"), "{error:?}");
    assert_eq!(names(out.path()), ["f.part".to_owned(), "f.part.state".to_owned()].into());
    signed_in.store(true, Ordering::Relaxed);
    let report = get();
    assert!(report.is_complete() && file(&report, "f").resumed_from > 0);
    assert!(tree(out.path())["f"] == bytes(), "other bytes");
}

#[test]
fn a_page_that_tells_a_version_is_no_file_of_another_kind() {
    let get = |name: &'static str| {
        let server = serve(|request| match request.number {
            2..6 => sign_in().field("ETag", "\"page\""),
            _ => honest(&content(), request),
        });
        let out = tempfile::tempdir().unwrap();
        let report = run(splitting().download([server.url(name)]).into_dir(out.path()));
        assert!(report.is_complete() && tree(out.path())[&name[1..]] == bytes(), "{name}");
        file(&report, &name[1..]).restarts
    };
    assert_eq!(get("/f.iso"), 0);
    assert!(get("/f.html") > 0, "it may have become a shorter one");
}

#[test]
fn a_page_is_no_file_of_which_a_part_has_come() {
    for (version, real) in [(true, 1), (true, 3), (false, 1)] {
        let server = serve(move |request| match request.number {
            number if number >= real => sign_in(),
            _ if version => honest(&content(), request),
            // A first part of a file that tells no version.
            _ => Reply::status("206 Partial Content")
                .field("Content-Range", format!("bytes 0-99999/{SIZE}"))
                .field("Content-Length", 100_000)
                .body(content().bytes(0..100_000)),
        });
        let out = tempfile::tempdir().unwrap();
        let report = run(splitting().download([server.url("/f.iso")]).into_dir(out.path()));
        let error = file(&report, "f.iso").error.clone().expect("no page is the file");
        assert!(error.message.contains("sign-in"), "{error:?}");
        assert!(!out.path().join("f.iso").exists(), "a page took its place");
        assert_eq!(out.path().join("f.iso.part").exists(), version, "what has come is kept");
    }
}

#[test]
fn what_is_no_http() {
    let server = serve(|_| Reply::raw("SSH-2.0-OpenSSH_9.9\r\n").close());
    assert_fails(&client(), &server, ErrorKind::Protocol);
    let server = serve(|_| Reply::raw("").close());
    assert_fails(&client(), &server, ErrorKind::ShortBody);
}

#[test]
fn a_listing_that_comes_on_the_second_attempt() {
    let server = serve(|request| match (request.target(), request.number) {
        ("/d/", 0) => Reply::status("200 OK").field("Content-Length", 100).body("<html>").close(),
        ("/d/", 1) => Reply::status("503 Service Unavailable")
            .field("Retry-After", 0)
            .field("Content-Length", 0),
        ("/d/", _) => {
            let body = "<title>Index of /d/</title><a href=\"f\">f</a>";
            Reply::status("200 OK").field("Content-Length", body.len()).body(body)
        }
        _ => honest(&content(), request),
    });
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([server.url("/d/")]).into_dir(out.path()));
    assert!(report.is_complete());
    assert!(tree(out.path())["f"] == bytes());
}

#[test]
fn a_listing_that_never_comes() {
    let server = serve(|_| Reply::status("200 OK").body("<html>").hang());
    let config = EngineConfig { stall_timeout: Duration::from_millis(50), ..engine() };
    let client = builder().engine(config).build().unwrap();
    let out = tempfile::tempdir().unwrap();
    let error = try_run(client.download([server.url("/d/")]).into_dir(out.path())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains(&server.url("/d/")), "{}", error.message());
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn hostile_names_in_a_listing_stay_below_the_directory() {
    let hrefs = [
        "../outside",
        "../../outside",
        "/outside",
        "//127.0.0.1:1/outside",
        "http://127.0.0.1:1/outside",
        "%2e%2e/outside",
        "%2e%2e%2foutside",
        "..%2f..%2foutside",
        "..%5coutside",
        "%2foutside",
        "..",
        ".",
        "./good",
        "a%00b",
        "a%0ab",
        "a%0d%0ab",
        "javascript:alert(1)",
        "file:///etc/passwd",
    ];
    let server = serve(move |request| {
        let links = hrefs.map(|href| format!("<a href=\"{href}\">x</a>")).join("\n");
        let body = match request.target() {
            "/d/" => format!("<html><title>Index of /d/</title><pre>{links}</pre></html>"),
            _ => "ok".to_owned(),
        };
        Reply::status("200 OK")
            .field("Content-Type", "text/html")
            .field("Content-Length", body.len())
            .body(body)
    });
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("a/b/c");
    let report = run(client().download([server.url("/d/")]).into_dir(&out));
    assert!(report.is_complete(), "{:?}", report.files);
    assert_eq!(
        names(&out),
        names(home.path()).iter().map(|n| n.replacen("a/b/c/", "", 1)).collect()
    );
    assert!(names(home.path()).iter().all(|name| name.starts_with("a/b/c/")));
    assert!(names(&out).contains("good"));
    assert!(names(&out).iter().all(|name| !name.contains(char::is_control)));
}
