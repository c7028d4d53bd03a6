//! Origins of which one connection crawls.

use std::time::Duration;

use pelton_algos::policy::{Fixed, FixedConfig};
use pelton_core::connection::{HttpConfig, ProtocolChoice};
use pelton_core::engine::EngineConfig;
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{RawRequest, Reply, Scripted};
use pelton_lab::origin::{Origin, OriginConfig, trickle};

use crate::support::{builder, engine, run};

const SIZE: u64 = 2_000_000;
/// A connection that crawls does so for longer than any test waits.
const PIECES: usize = 10_000;

fn content() -> VirtualFile {
    VirtualFile::new("/f", SIZE, 1)
}

/// The bytes that a request asks for, and the head of their response.
fn head(request: &RawRequest) -> (u64, u64, Reply) {
    let range = request.field("range").and_then(|field| {
        let (first, last) = field.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()? + 1))
    });
    let (start, end) = range.unwrap_or((0, SIZE));
    let reply = match range {
        None => Reply::status("200 OK").field("Accept-Ranges", "bytes"),
        Some(_) => Reply::status("206 Partial Content")
            .field("Content-Range", format!("bytes {start}-{}/{SIZE}", end - 1)),
    };
    let reply = reply.field("Content-Length", end - start).field("ETag", content().etag());
    (start, end, reply)
}

fn honest(request: &RawRequest) -> Reply {
    let (start, end, reply) = head(request);
    reply.body(content().bytes(start..end))
}

/// A few bytes, then `piece` of them each tenth of a second.
fn crawling(request: &RawRequest, piece: u64) -> Reply {
    let (start, _, reply) = head(request);
    let first = start + 5_000;
    let reply = reply.body(content().bytes(start..first));
    (0..PIECES as u64).fold(reply, |reply, i| {
        let at = first + i * piece;
        reply.pause(Duration::from_millis(100)).body(content().bytes(at..at + piece))
    })
}

/// Downloads `url` over `streams` streams; what its report says of retries.
fn retries(url: String, streams: u32, config: &EngineConfig, protocol: ProtocolChoice) -> u64 {
    let out = tempfile::tempdir().unwrap();
    let policy = Fixed::new(FixedConfig { concurrency: 1, parallelism: streams, pipelining: 1 });
    let http = HttpConfig { protocol, ..HttpConfig::default() };
    let client = builder().engine(*config).policy(policy).http(http).build().unwrap();
    let report = run(client.download([url]).into_dir(out.path()));
    assert!(report.is_complete(), "{:?}", report.files);
    assert!(std::fs::read(out.path().join("f")).unwrap() == content().bytes(0..SIZE));
    report.summary.retries
}

#[test]
fn a_stream_that_crawls_is_replaced() {
    // Without that its 500 kB would take an hour; the stall time-out is never met.
    let server = Scripted::start(|request| match request.number {
        2 => crawling(request, 10),
        _ => honest(request),
    })
    .unwrap();
    assert_eq!(
        retries(server.url("/f"), 4, &engine(), ProtocolChoice::Http1),
        0,
        "nothing has failed"
    );
    let asked = server.requests();
    let start = |request: &RawRequest| head(request).0;
    let crawled = start(&asked[2]);
    let taken_over = asked.iter().skip(3).any(|request| start(request) > crawled + 4_000);
    assert!(taken_over, "{asked:?}");
}

#[test]
fn a_trickle_is_a_stall() {
    let server = Scripted::start(|request| match request.number {
        0 => crawling(request, 1),
        _ => honest(request),
    })
    .unwrap();
    // 10 B/s of 125 B/s.
    let config = EngineConfig { stall_timeout: Duration::from_secs(1), ..engine() };
    assert_eq!(retries(server.url("/f"), 1, &config, ProtocolChoice::Http1), 1);
    let asked: Vec<(u64, u64)> = server
        .requests()
        .iter()
        .skip(1)
        .map(|request| (head(request).0, head(request).1))
        .collect();
    assert!(asked[0].0 >= 5_000, "what had arrived was kept: {asked:?}");
    assert!(asked.windows(2).all(|pair| pair[0].1 == pair[1].0), "nothing twice: {asked:?}");
    assert_eq!(asked.last().map(|last| last.1), Some(SIZE));
}

#[test]
fn a_range_whose_length_is_not_that_of_its_body_is_not_waited_for() {
    // Seven bytes that never come behind each part, or seven that are missing.
    for odd in [7, -7] {
        let server = Scripted::start(move |request| {
            let (start, end, _) = head(request);
            let is_part = request.field("range").is_some();
            let length = (end - start).saturating_add_signed(if is_part { odd } else { 0 });
            let reply = if is_part {
                Reply::status("206 Partial Content")
                    .field("Content-Range", format!("bytes {start}-{}/{SIZE}", end - 1))
            } else {
                Reply::status("200 OK").field("Accept-Ranges", "bytes")
            };
            let body = content().bytes(start..end.min(start + length));
            let reply = reply.field("Content-Length", length).field("ETag", content().etag());
            reply.body(body).pause(Duration::from_secs(if is_part { 60 } else { 0 }))
        })
        .unwrap();
        let config = EngineConfig { stall_timeout: Duration::from_secs(30), ..engine() };
        retries(server.url("/f"), 2, &config, ProtocolChoice::Http1);
        assert!(server.requests().iter().any(|request| request.field("range").is_none()));
    }
}

const PROTOCOLS: [ProtocolChoice; 2] = [ProtocolChoice::Http1, ProtocolChoice::Http2PriorKnowledge];

/// An origin, and a URL of it whose connection of number `slow` trickles.
fn trickling(slow: usize) -> (Origin, String) {
    let config = OriginConfig { files: vec![content()], ..OriginConfig::default() };
    let origin = Origin::start(config).unwrap();
    let address = trickle::start(origin.address(), slow).unwrap();
    (origin, format!("http://{address}/f"))
}

#[test]
fn a_body_that_trickles_beside_others_goes_on_over_another_connection() {
    // Over HTTP/2 a frame shows when all of it is there: to its reader this connection is silent, and what is
    // left of its range is asked for anew.
    for protocol in PROTOCOLS {
        let (origin, url) = trickling(2);
        let config = EngineConfig { stall_timeout: Duration::from_secs(30), ..engine() };
        assert_eq!(retries(url, 4, &config, protocol), 0, "{protocol:?}");
        assert!(origin.connections() >= 4, "{protocol:?}: {}", origin.connections());
    }
}

#[test]
fn a_body_that_trickles_alone_goes_on_over_another_connection() {
    // Of a server that may have one, and over HTTP/2 could send the next body over the same.
    for protocol in PROTOCOLS {
        let (origin, url) = trickling(0);
        let mut config = EngineConfig { stall_timeout: Duration::from_secs(1), ..engine() };
        config.limits.max_connections_per_origin = 1;
        assert_eq!(retries(url, 1, &config, protocol), 1, "{protocol:?}");
        assert_eq!(origin.connections(), 2, "{protocol:?}");
    }
}
