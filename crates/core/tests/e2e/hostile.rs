//! Servers that abuse HTTP/1.1: heads that never end, floods, silence, contradictions. Each is tried
//! twice: one that does so for a while, and the file comes all the same; and one that always does, and
//! the failure has its name and exit code. Another file of the run is none the worse.

use std::time::Duration;

use pelton_core::engine::EngineConfig;
use pelton_core::{Client, ErrorKind};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{RawRequest, Reply, Scripted};

use crate::support::{builder, engine, file, names, run, tree};

const SIZE: u64 = 400_000;

fn content() -> VirtualFile {
    VirtualFile::new("/f", SIZE, 1)
}

fn other() -> VirtualFile {
    VirtualFile::new("/other", SIZE, 2)
}

fn honest(file: &VirtualFile, request: &RawRequest) -> Reply {
    let range = request.field("range").map(|field| {
        let (first, last) = field.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        (first.parse::<u64>().unwrap(), last.parse::<u64>().unwrap())
    });
    let (first, last) = range.unwrap_or((0, file.size - 1));
    let reply = match range {
        None => Reply::status("200 OK").field("Accept-Ranges", "bytes"),
        Some(_) => Reply::status("206 Partial Content")
            .field("Content-Range", format!("bytes {first}-{last}/{}", file.size)),
    };
    reply
        .field("Content-Length", last + 1 - first)
        .field("ETag", file.etag())
        .body(file.bytes(first..last + 1))
}

/// Retries at once, and has little patience.
fn client() -> Client {
    let config = EngineConfig { stall_timeout: Duration::from_millis(300), ..engine() };
    builder().engine(config).build().unwrap()
}

type Abuse = fn(&RawRequest) -> Reply;

fn start_of_body() -> Reply {
    Reply::status("200 OK")
        .field("Content-Length", SIZE)
        .field("Accept-Ranges", "bytes")
        .field("ETag", content().etag())
        .body(content().bytes(0..100_000))
}

const ABUSES: [(&str, Abuse, ErrorKind); 16] = [
    ("an endless field", |_| head_of(&format!("X: {}", "x".repeat(200_000))), ErrorKind::Protocol),
    ("endless fields", |_| head_of(&"X: y\r\n".repeat(20_000)), ErrorKind::Protocol),
    (
        "interim responses without end",
        |_| Reply::raw("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5_000)).close(),
        ErrorKind::Protocol,
    ),
    ("a head that never comes", |_| Reply::raw("HTTP/1.1 200").hang(), ErrorKind::Timeout),
    ("a head byte by byte", |_| trickled_head(), ErrorKind::Timeout),
    ("silence", |_| Reply::raw("").hang(), ErrorKind::Timeout),
    ("a reset before the head", |_| Reply::raw("").reset(), ErrorKind::Reset),
    ("a body that stalls", |_| start_of_body().hang(), ErrorKind::Timeout),
    ("a body that is reset", |_| start_of_body().reset(), ErrorKind::Reset),
    ("a body that ends early", |_| start_of_body().close(), ErrorKind::ShortBody),
    (
        "two lengths",
        |_| Reply::status("200 OK").field("Content-Length", 5).field("Content-Length", 6).hang(),
        ErrorKind::Protocol,
    ),
    (
        "a length that is none",
        |_| Reply::status("200 OK").field("Content-Length", "-5").hang(),
        ErrorKind::Protocol,
    ),
    ("an endless chunk size", |_| chunked(&"f".repeat(100_000)), ErrorKind::Protocol),
    ("a chunk that is none", |_| chunked("5\r\nabcdefg\r\n"), ErrorKind::Protocol),
    (
        "another protocol",
        |_| Reply::raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n").hang(),
        ErrorKind::Protocol,
    ),
    ("500", |_| Reply::status("500 No").field("Content-Length", 0), ErrorKind::ServerError),
];

fn head_of(fields: &str) -> Reply {
    Reply::raw(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).hang()
}

fn chunked(body: &str) -> Reply {
    Reply::status("200 OK").field("Transfer-Encoding", "chunked").body(body).hang()
}

fn trickled_head() -> Reply {
    "HTTP/1.1 200 OK\r\n"
        .bytes()
        .cycle()
        .take(200)
        .fold(Reply::raw(""), |reply, byte| reply.pause(Duration::from_millis(40)).body([byte]))
}

#[test]
fn what_is_abused_for_a_while_comes_all_the_same() {
    for (name, abuse, _) in ABUSES {
        let server = Scripted::start(move |request| match request.target() {
            "/other" => honest(&other(), request),
            _ if request.number < 2 => abuse(request),
            _ => honest(&content(), request),
        })
        .unwrap();
        let out = tempfile::tempdir().unwrap();
        let urls = [server.url("/f"), server.url("/other")];
        let report = run(client().download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{name}: {:?}", report.files);
        let found = tree(out.path());
        assert!(found["f"] == content().bytes(0..SIZE), "{name}: other bytes");
        assert!(found["other"] == other().bytes(0..SIZE), "{name}: other bytes");
        assert_eq!(file(&report, "other").restarts, 0, "{name}");
    }
}

#[test]
fn what_is_always_abused_fails_by_its_name_and_alone() {
    for (name, abuse, kind) in ABUSES {
        // A body that breaks off is gone on with from where it broke.
        if name.starts_with("a body") {
            continue;
        }
        let server = Scripted::start(move |request| match request.target() {
            "/other" => honest(&other(), request),
            _ => abuse(request),
        })
        .unwrap();
        let out = tempfile::tempdir().unwrap();
        let urls = [server.url("/f"), server.url("/other")];
        let report = run(client().download(urls).into_dir(out.path()));
        let error = file(&report, "f").error.clone().expect(name);
        assert_eq!(error.kind, kind.name(), "{name}: {}", error.message);
        assert_eq!(report.summary.exit_code, kind.exit_code(), "{name}");
        assert!(error.message.contains(&server.url("/f")), "{name}: {}", error.message);
        assert!(!error.message.contains('\n') && error.message.len() < 500, "{}", error.message);
        assert_eq!(names(out.path()), ["other".to_owned()].into(), "{name}");
    }
}

#[test]
fn machines_that_do_not_agree_on_the_version_give_the_file_in_one_body() {
    // Each request is answered with another tag, as by servers that make tags of their inodes.
    let server = Scripted::start(|request| {
        let version = VirtualFile::new("/f", SIZE, request.number as u64);
        match request.field("range") {
            None if request.number < 3 => Reply::status("200 OK")
                .field("Content-Length", SIZE)
                .field("Accept-Ranges", "bytes")
                .field("ETag", version.etag())
                .body(version.bytes(0..300_000))
                .close(),
            _ => honest(&version, request),
        }
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([server.url("/f")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    let requests = server.requests();
    let last = requests.iter().rfind(|request| request.field("range").is_none()).unwrap();
    let version = VirtualFile::new("/f", SIZE, last.number as u64);
    assert!(tree(out.path())["f"] == version.bytes(0..SIZE), "one version and no other");
    assert_eq!(file(&report, "f").restarts, 2);
}

#[test]
fn a_few_interim_responses_are_passed_over() {
    let server = Scripted::start(|_| {
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(20);
        Reply::raw(format!("{interim}HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"))
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let report = run(client().download([server.url("/f")]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert!(tree(out.path())["f"] == b"abc");
}
