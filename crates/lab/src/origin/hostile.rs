//! Servers that abuse HTTP/1.1: heads that never end, floods, silence, contradictions.

use std::io;
use std::time::Duration;

use pelton_core::ErrorKind;

use super::scripted::{RawRequest, Reply, Scripted};
use crate::content::VirtualFile;

/// Bytes of each file.
pub const SIZE: u64 = 400_000;

/// What a server does instead of answering.
pub type Abuse = fn(&RawRequest) -> Reply;

/// The file at `/f`, which the abuse is about.
pub fn content() -> VirtualFile {
    VirtualFile::new("/f", SIZE, 1)
}

/// The file at `/other`, which is none the worse for it.
pub fn other() -> VirtualFile {
    VirtualFile::new("/other", SIZE, 2)
}

/// A server whose first `abused` answers to requests for `/f` are `abuse`.
///
/// # Errors
/// No port or thread could be had.
pub fn serve(abuse: Abuse, abused: usize) -> io::Result<Scripted> {
    Scripted::start(move |request| match request.target() {
        "/other" => honest(&other(), request),
        _ if request.number < abused => abuse(request),
        _ => honest(&content(), request),
    })
}

/// What a server answers that serves `file` as it should.
pub fn honest(file: &VirtualFile, request: &RawRequest) -> Reply {
    let range = request.field("range").and_then(|field| {
        let (first, last) = field.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
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

fn start_of_body() -> Reply {
    Reply::status("200 OK")
        .field("Content-Length", SIZE)
        .field("Accept-Ranges", "bytes")
        .field("ETag", content().etag())
        .body(content().bytes(0..100_000))
}

/// Each with the error that comes of a server which never does better.
pub const ABUSES: [(&str, Abuse, ErrorKind); 16] = [
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
