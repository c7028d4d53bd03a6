//! Servers that abuse HTTP/2: frames that break the protocol or the stream.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use super::trickle::{copy, listen, relay};
use crate::content::VirtualFile;

/// Bytes of the file.
pub const SIZE: u64 = 6_000_000;
/// More than this and the abuse.
const GIVEN: u64 = 100_000;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The file that is asked for.
pub fn content() -> VirtualFile {
    VirtualFile::new("/f", SIZE, 1)
}

/// RFC 9113, section 4.1.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A head of 200 with literal fields (RFC 7541, section 6.2.2).
fn head(stream: u32, flags: u8, length: u64) -> Vec<u8> {
    let mut block = vec![0x88];
    let (length, etag) = (length.to_string(), content().etag());
    for (name, value) in
        [("content-length", length.as_str()), ("accept-ranges", "bytes"), ("etag", etag.as_str())]
    {
        block.push(0);
        block.push(name.len() as u8);
        block.extend(name.as_bytes());
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    frame(HEADERS, flags, stream, &block)
}

/// The content, made before anything waits for it.
static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| content().bytes(0..SIZE));

fn data(stream: u32, range: std::ops::Range<u64>) -> Vec<u8> {
    let bytes = &BYTES[range.start as usize..range.end as usize];
    bytes.chunks(16_000).flat_map(|chunk| frame(DATA, 0, stream, chunk)).collect()
}

/// The head and the first bytes of the file, then these frames.
fn begun(stream: u32, then: Vec<u8>) -> Vec<u8> {
    [head(stream, END_HEADERS, SIZE), data(stream, 0..GIVEN), then].concat()
}

/// What a server sends instead of answering the request of this stream.
pub type Abuse = fn(u32) -> Vec<u8>;

/// The one of [`ABUSES`] that says that a server is asked for too much.
pub const REFUSAL: &str = "a refused stream";

/// By name. What comes of a server that never does better is a body that ends early, or a refusal.
pub const ABUSES: [(&str, Abuse); 20] = [
    ("a reset in the body", |id| begun(id, frame(RST_STREAM, 0, id, &[0, 0, 0, 2]))),
    (REFUSAL, |id| frame(RST_STREAM, 0, id, &[0, 0, 0, 7])),
    ("a reset without error", |id| begun(id, frame(RST_STREAM, 0, id, &[0, 0, 0, 0]))),
    ("go away in the body", |id| begun(id, frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11]))),
    ("go away before the head", |_| frame(GOAWAY, 0, 0, &[0; 8])),
    ("a body beyond the window", |id| {
        [head(id, END_HEADERS, SIZE), data(id, 0..SIZE).repeat(2)].concat()
    }),
    ("a window that overflows", |id| {
        begun(id, frame(WINDOW_UPDATE, 0, id, &[0x7f, 0xff, 0xff, 0xff]).repeat(2))
    }),
    ("a window that overflows for all", |id| {
        begun(id, frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]).repeat(2))
    }),
    ("a window that grows by nothing", |id| begun(id, frame(WINDOW_UPDATE, 0, id, &[0; 4]))),
    ("a window of impossible size", |_| frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])),
    ("a frame of impossible size", |id| begun(id, frame(DATA, 0, id, &vec![0; 400_000]))),
    ("bytes of a stream that nobody opened", |id| begun(id, frame(DATA, 0, id + 40, b"x"))),
    ("a head of no stream", |_| head(0, END_HEADERS, SIZE)),
    ("an endless head", |id| {
        let more = frame(CONTINUATION, 0, id, &[0; 16_000]).repeat(200);
        [head(id, 0, SIZE), more].concat()
    }),
    // 103, as a literal of `:status` (RFC 7541, section 6.2.2).
    ("interim responses", |id| frame(HEADERS, END_HEADERS, id, b"\x08\x03103").repeat(5_000)),
    ("pings", |id| begun(id, frame(PING, 0, 0, &[7; 8]).repeat(5_000))),
    ("settings", |id| begun(id, frame(SETTINGS, 0, 0, &[]).repeat(5_000))),
    ("empty frames", |id| begun(id, frame(DATA, 0, id, &[]).repeat(50_000))),
    ("an end before the end", |id| begun(id, frame(DATA, END_STREAM, id, &[]))),
    ("more than the length", |id| [head(id, END_HEADERS, 1_000), data(id, 0..GIVEN)].concat()),
];

/// Where the first `abused` connections are answered with `abuse` and stay open, and the others lead
/// to `origin`.
///
/// # Errors
/// No port could be had.
pub fn abusing(origin: SocketAddr, abused: usize, abuse: Abuse) -> io::Result<SocketAddr> {
    LazyLock::force(&BYTES);
    let always = abused == usize::MAX;
    listen(move |number, stream| {
        if number < abused {
            serve_abuse(stream, abuse, always)
        } else {
            relay(stream, origin, copy)
        }
    })
}

/// Leads to `origin`, but for the first connection: its first body begins well and then trickles, ten bytes
/// a frame and ten frames a second, and no other request is answered over it.
///
/// # Errors
/// No port could be had.
pub fn trickling(origin: SocketAddr) -> io::Result<SocketAddr> {
    LazyLock::force(&BYTES);
    listen(
        move |number, stream| {
            if number == 0 { serve_trickle(stream) } else { relay(stream, origin, copy) }
        },
    )
}

fn serve_trickle(mut stream: TcpStream) -> io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    let id = loop {
        match read_frame(&mut stream)? {
            (HEADERS, _, id) => break id,
            (SETTINGS, 0, _) => stream.write_all(&frame(SETTINGS, 1, 0, &[]))?,
            _ => {}
        }
    };
    stream.write_all(&begun(id, Vec::new()))?;
    for at in (GIVEN..SIZE).step_by(10) {
        stream.write_all(&data(id, at..at + 10))?;
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Its kind, its flags and its stream.
fn read_frame(stream: &mut TcpStream) -> io::Result<(u8, u8, u32)> {
    let mut header = [0; 9];
    stream.read_exact(&mut header)?;
    let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
    stream.read_exact(&mut vec![0; length as usize])?;
    let id = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
    Ok((header[3], header[4], id))
}

/// Answers the first request, or all, and closes with the second.
fn serve_abuse(mut stream: TcpStream, abuse: Abuse, always: bool) -> io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    let mut was_abused = false;
    loop {
        match read_frame(&mut stream)? {
            (HEADERS, ..) if was_abused && !always => return Ok(()),
            (HEADERS, _, id) => {
                was_abused = true;
                stream.write_all(&abuse(id))?;
            }
            (SETTINGS, 0, _) => stream.write_all(&frame(SETTINGS, 1, 0, &[]))?,
            _ => {}
        }
    }
}
