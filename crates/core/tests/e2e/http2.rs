//! Servers that abuse HTTP/2: the first connections end in frames that break the protocol or the
//! stream, the later ones lead to an honest origin. The file comes all the same.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pelton_core::connection::{HttpConfig, ProtocolChoice};
use pelton_core::engine::EngineConfig;
use pelton_core::{Client, ErrorKind};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginConfig};

use crate::support::{builder, engine, file, run, tree};

const SIZE: u64 = 6_000_000;
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

fn content() -> VirtualFile {
    VirtualFile::new("/f", SIZE, 1)
}

/// RFC 9113, section 4.1.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
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

fn data(stream: u32, range: std::ops::Range<u64>) -> Vec<u8> {
    let bytes = content().bytes(range);
    bytes.chunks(16_000).flat_map(|chunk| frame(DATA, 0, stream, chunk)).collect()
}

/// The head and the first bytes of the file, then these frames.
fn begun(stream: u32, then: Vec<u8>) -> Vec<u8> {
    [head(stream, END_HEADERS, SIZE), data(stream, 0..GIVEN), then].concat()
}

type Abuse = fn(u32) -> Vec<u8>;

const ABUSES: [(&str, Abuse); 19] = [
    ("a reset in the body", |id| begun(id, frame(RST_STREAM, 0, id, &[0, 0, 0, 2]))),
    ("a refused stream", |id| frame(RST_STREAM, 0, id, &[0, 0, 0, 7])),
    ("a reset without error", |id| begun(id, frame(RST_STREAM, 0, id, &[0, 0, 0, 0]))),
    ("go away in the body", |id| begun(id, frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11]))),
    ("go away before the head", |_| frame(GOAWAY, 0, 0, &[0; 8])),
    ("a body beyond the window", |id| {
        [head(id, END_HEADERS, SIZE), data(id, 0..SIZE), data(id, 0..SIZE)].concat()
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
    ("pings", |id| begun(id, frame(PING, 0, 0, &[7; 8]).repeat(5_000))),
    ("settings", |id| begun(id, frame(SETTINGS, 0, 0, &[]).repeat(5_000))),
    ("empty frames", |id| begun(id, frame(DATA, 0, id, &[]).repeat(50_000))),
    ("an end before the end", |id| begun(id, frame(DATA, END_STREAM, id, &[]))),
    ("more than the length", |id| [head(id, END_HEADERS, 1_000), data(id, 0..GIVEN)].concat()),
];

/// Where the first `abused` connections are answered with `abuse` and stay open, and the others lead
/// to `origin`.
fn abusing(origin: SocketAddr, abused: usize, abuse: Abuse) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let is_abused = accepted.fetch_add(1, Ordering::Relaxed) < abused;
            // A client that leaves in the middle is no failure.
            std::thread::spawn(move || {
                let always = abused == usize::MAX;
                if is_abused { serve_abuse(stream, abuse, always) } else { relay(stream, origin) }
            });
        }
    });
    address
}

/// Answers the first request, or all, and closes with the second.
fn serve_abuse(mut stream: TcpStream, abuse: Abuse, always: bool) -> io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    let mut was_abused = false;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        stream.read_exact(&mut vec![0; length as usize])?;
        match header[3] {
            HEADERS if was_abused && !always => return Ok(()),
            HEADERS => {
                was_abused = true;
                let id = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
                stream.write_all(&abuse(id))?;
            }
            SETTINGS if header[4] == 0 => stream.write_all(&frame(SETTINGS, 1, 0, &[]))?,
            _ => {}
        }
    }
}

fn relay(stream: TcpStream, origin: SocketAddr) -> io::Result<()> {
    let there = TcpStream::connect(origin)?;
    let (mut from_client, mut to_origin) = (stream.try_clone()?, there.try_clone()?);
    std::thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_origin);
        let _ = to_origin.shutdown(Shutdown::Write);
    });
    let (mut from_origin, mut to_client) = (there, stream);
    io::copy(&mut from_origin, &mut to_client)?;
    to_client.shutdown(Shutdown::Both)
}

fn client() -> Client {
    let http =
        HttpConfig { protocol: ProtocolChoice::Http2PriorKnowledge, ..HttpConfig::default() };
    let config = EngineConfig { stall_timeout: Duration::from_millis(400), ..engine() };
    builder().http(http).engine(config).build().unwrap()
}

#[test]
fn what_is_abused_for_a_while_comes_all_the_same() {
    for (name, abuse) in ABUSES {
        let config = OriginConfig { files: vec![content()], ..OriginConfig::default() };
        let origin = Origin::start(config).unwrap();
        let address = abusing(origin.address(), 1, abuse);
        let out = tempfile::tempdir().unwrap();
        let report = run(client().download([format!("http://{address}/f")]).into_dir(out.path()));
        assert!(report.is_complete(), "{name}: {:?}", report.files);
        assert!(tree(out.path())["f"] == content().bytes(0..SIZE), "{name}: other bytes");
        assert_eq!(file(&report, "f").protocol.as_deref(), Some("HTTP/2"), "{name}");
    }
}

#[test]
fn what_is_always_abused_fails_by_its_name() {
    for (name, abuse) in ABUSES {
        // Whatever comes of a file is gone on with.
        let origin = Origin::start(OriginConfig::default()).unwrap();
        let address = abusing(origin.address(), usize::MAX, abuse);
        let out = tempfile::tempdir().unwrap();
        let url = format!("http://{address}/f");
        let report = run(client().download([url.clone()]).into_dir(out.path()));
        if report.is_complete() {
            // All of what was promised came before the abuse.
            let size = file(&report, "f").bytes;
            assert!(size == 1_000 && name == "more than the length" || size == SIZE, "{name}");
            assert!(tree(out.path())["f"] == content().bytes(0..size), "{name}");
            continue;
        }
        let error = file(&report, "f").error.clone().expect(name);
        assert_eq!(error.code, ErrorKind::ShortBody.exit_code(), "{name}: {}", error.message);
        assert!(error.message.contains(&url) && !error.message.contains('\n'), "{}", error.message);
        assert!(!out.path().join("f").exists(), "{name}");
    }
}
