//! The shaper, in virtual time over pipes in memory, and once in real time over TCP.

#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes};
use pelton_core::Result;
use pelton_core::connection::{Connected, Connector, Io};
use pelton_lab::content::{BLOCK, VirtualFile};
use pelton_lab::link::Link;
use pelton_lab::origin::{Origin, OriginConfig};
use pelton_lab::sets;
use pelton_lab::shaper::ShapedConnector;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::Instant;

/// A stream that knows nothing of its RTT.
struct Plain<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> Io for Plain<S> {}

impl<S: AsyncRead + Unpin> AsyncRead for Plain<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Plain<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Every connection leads to a server in memory that answers a request of eight bytes, a number
/// n, with the first n bytes of [`content`]; a request of 0 makes it close.
struct InMemory;

impl Connector for InMemory {
    fn connect<'a>(
        &'a self,
        _: &'a str,
        _: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>> {
        let (near, far) = duplex(256 * 1024);
        tokio::spawn(serve(far));
        Box::pin(async { Ok(Connected { io: Box::new(Plain(near)), rtt: None }) })
    }
}

async fn serve(mut stream: DuplexStream) -> io::Result<()> {
    loop {
        let size = stream.read_u64().await?;
        if size == 0 {
            return Ok(());
        }
        let file = content(size);
        let mut offset = 0;
        while offset < size {
            let chunk = file.chunk(offset, BLOCK);
            stream.write_all(&chunk).await?;
            offset += chunk.len() as u64;
        }
    }
}

/// Plain TCP to the loopback.
struct Tcp;

impl Connector for Tcp {
    fn connect<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await.unwrap();
            Ok(Connected { io: Box::new(Plain(stream)), rtt: None })
        })
    }
}

fn content(size: u64) -> VirtualFile {
    VirtualFile::new("/", size, 1)
}

async fn open(link: &ShapedConnector<InMemory>) -> Box<dyn Io> {
    link.connect("server", 80).await.unwrap().io
}

fn demo() -> ShapedConnector<InMemory> {
    ShapedConnector::new(Link::demo(), InMemory)
}

/// Timers are as fine as this.
const TICK: Duration = Duration::from_millis(1);

#[track_caller]
fn assert_took(begin: Instant, millis: u64) {
    let (took, expected) = (begin.elapsed(), Duration::from_millis(millis));
    assert!(expected <= took && took <= expected + 2 * TICK, "{took:?} is not {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_and_a_request_take_a_round_trip_each() {
    let link = demo();
    let begin = Instant::now();
    let Connected { mut io, rtt } = link.connect("server", 80).await.unwrap();
    assert_took(begin, 200);
    assert_eq!((rtt, io.min_rtt()), (Some(link.link().rtt), Some(link.link().rtt)));
    io.write_u64(100).await.unwrap();
    assert_took(begin, 200);
    let mut answer = [0; 100];
    io.read_exact(&mut answer).await.unwrap();
    assert_took(begin, 400);
    assert_eq!(answer[..], content(100).bytes(0..100));
}

#[tokio::test(start_paused = true)]
async fn slow_start_costs_round_trips() {
    let link = demo();
    let mut io = open(&link).await;
    let begin = Instant::now();
    // 14 600, then 29 200, then the rest.
    io.write_u64(60_000).await.unwrap();
    let mut answer = vec![0; 60_000];
    io.read_exact(&mut answer).await.unwrap();
    // Three round trips, and 16 200 bytes at 50 Mbit/s.
    assert_took(begin, 602);
    assert_eq!(answer, content(60_000).bytes(0..60_000));
    // An open window stays open, and the next answer needs one.
    let begin = Instant::now();
    io.write_u64(60_000).await.unwrap();
    io.read_exact(&mut answer).await.unwrap();
    assert_took(begin, 209);
}

#[tokio::test(start_paused = true)]
async fn requests_follow_one_another_without_a_round_trip_between() {
    let link = demo();
    let mut io = open(&link).await;
    let begin = Instant::now();
    for _ in 0..10 {
        io.write_u64(1000).await.unwrap();
    }
    let mut answers = vec![0; 10_000];
    io.read_exact(&mut answers).await.unwrap();
    assert_took(begin, 201);
    assert_eq!(answers, content(1000).bytes(0..1000).repeat(10));
}

/// Reads what comes and returns the bytes that came between the two moments.
async fn count(io: &mut (impl AsyncRead + Unpin), from: Instant, to: Instant) -> u64 {
    let mut buf = vec![0; 64 * 1024];
    let mut count = 0;
    loop {
        let len = io.read(&mut buf).await.unwrap() as u64;
        let now = Instant::now();
        if len == 0 || now > to {
            return count;
        }
        count += if now > from { len } else { 0 };
    }
}

/// The rate that `streams` endless streams reach together, after a warm-up.
async fn saturate(link: Link, streams: usize) -> BitRate {
    let time = Duration::from_secs(5);
    let from = Instant::now() + link.rtt * 10 + Duration::from_millis(500);
    let link = Rc::new(ShapedConnector::new(link, InMemory));
    let local = LocalSet::new();
    let tasks: Vec<_> = (0..streams)
        .map(|_| {
            let link = Rc::clone(&link);
            local.spawn_local(async move {
                let mut io = open(&link).await;
                io.write_u64(u64::MAX).await.unwrap();
                count(&mut io, from, from + time).await
            })
        })
        .collect();
    local
        .run_until(async {
            let mut total = Bytes::ZERO;
            for task in tasks {
                total += Bytes(task.await.unwrap());
            }
            total / time
        })
        .await
}

#[track_caller]
fn assert_close(rate: BitRate, expected: BitRate, tolerance: f64) {
    let ratio = rate.bps() / expected.bps();
    assert!((ratio - 1.0).abs() <= tolerance, "{rate} is not {expected}");
}

#[tokio::test(start_paused = true)]
async fn one_stream_reaches_its_window_per_round_trip() {
    assert_close(saturate(Link::demo(), 1).await, Link::demo().stream_rate(), 0.005);
    // Timers are as coarse as this round trip.
    let lan = Link { stream_window: Bytes::kib(64), ..Link::lan() };
    assert_close(saturate(lan, 1).await, lan.stream_rate(), 0.02);
}

#[tokio::test(start_paused = true)]
async fn many_streams_reach_the_link_and_no_more() {
    for streams in [8, 20, 64] {
        let window_bound = Link::demo().stream_rate() * streams as f64;
        let expected =
            if window_bound < Link::demo().rate { window_bound } else { Link::demo().rate };
        assert_close(saturate(Link::demo(), streams).await, expected, 0.01);
    }
    assert_close(saturate(Link::lte(), 3).await, Link::lte().rate, 0.01);
}

#[tokio::test(start_paused = true)]
async fn bytes_arrive_in_order_and_complete() {
    const SIZE: u64 = 3_000_000;
    let link = demo();
    let mut io = open(&link).await;
    io.write_u64(SIZE).await.unwrap();
    io.write_u64(0).await.unwrap();
    let mut answer = Vec::new();
    io.read_to_end(&mut answer).await.unwrap();
    assert!(answer == content(SIZE).bytes(0..SIZE));
    assert_eq!(io.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_away_closes_the_window() {
    let link = demo();
    let mut io = open(&link).await;
    io.write_u64(u64::MAX).await.unwrap();
    let now = Instant::now();
    // Warm up, go away, come back.
    count(&mut io, now, now + Duration::from_secs(3)).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let back = Instant::now();
    let waiting = count(&mut io, back - TICK, back + 50 * TICK).await;
    assert!((60_000..=131_072).contains(&waiting), "{waiting}");
    let from = back + Duration::from_secs(1);
    let bytes = count(&mut io, from, from + Duration::from_secs(5)).await;
    assert_close(Bytes(bytes) / Duration::from_secs(5), link.link().stream_rate(), 0.02);
}

#[tokio::test(start_paused = true)]
async fn a_small_answer_overtakes_a_window_bound_stream() {
    let link = Rc::new(demo());
    LocalSet::new()
        .run_until(async {
            let other = Rc::clone(&link);
            tokio::task::spawn_local(async move {
                let mut io = open(&other).await;
                io.write_u64(u64::MAX).await.unwrap();
                tokio::io::copy(&mut io, &mut tokio::io::sink()).await
            });
            let mut io = open(&link).await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            let begin = Instant::now();
            io.write_u64(100).await.unwrap();
            io.read_exact(&mut [0; 100]).await.unwrap();
            // At most one window of the other is before it: 65 536 bytes are 10.5 ms.
            assert!(begin.elapsed() < Duration::from_millis(213), "{:?}", begin.elapsed());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_comes_half_a_round_trip_later() {
    let link = demo();
    let mut io = open(&link).await;
    let begin = Instant::now();
    io.write_u64(0).await.unwrap();
    assert_eq!(io.read(&mut [0]).await.unwrap(), 0);
    assert_took(begin, 200);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_what_was_written() {
    let link = demo();
    let mut io = open(&link).await;
    let begin = Instant::now();
    io.write_u64(5).await.unwrap();
    io.shutdown().await.unwrap();
    assert_took(begin, 100);
    let mut answer = Vec::new();
    io.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, content(5).bytes(0..5));
}

/// How long `lanes` connections, each fetching one file after the other, take for the demo's set.
async fn fetch_demo(lanes: usize) -> Duration {
    let files = sets::demo_mixed(1);
    // Largest first, as any scheduler that knows the sizes would.
    let mut sizes: Vec<u64> = files.iter().map(|file| file.size).collect();
    sizes.sort_unstable();
    let sizes = Rc::new(RefCell::new(sizes));
    let link = Rc::new(demo());
    let begin = Instant::now();
    let local = LocalSet::new();
    for _ in 0..lanes {
        let (link, sizes) = (Rc::clone(&link), Rc::clone(&sizes));
        local.spawn_local(async move {
            let mut io = open(&link).await;
            loop {
                let Some(size) = sizes.borrow_mut().pop() else {
                    return;
                };
                io.write_u64(size).await.unwrap();
                let mut answer = vec![0; size as usize];
                io.read_exact(&mut answer).await.unwrap();
            }
        });
    }
    local.await;
    begin.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_demo_shows_what_its_documentation_says() {
    let sequential = fetch_demo(1).await.as_secs_f64();
    assert!((18.0..20.0).contains(&sequential), "{sequential}");
    // Without range streams the video is one stream's work: 31 windows.
    let lanes = fetch_demo(20).await.as_secs_f64();
    assert!((6.5..7.5).contains(&lanes), "{lanes}");
}

/// Over real sockets, whose buffers hold far more than a window.
#[tokio::test]
async fn real_time_over_tcp() {
    const STREAMS: u64 = 16;
    let file = VirtualFile::new("/f", 500_000, 2);
    let origin =
        Origin::start(OriginConfig { files: vec![file.clone()], ..OriginConfig::default() })
            .unwrap();
    // 8 MB at 64 Mbit/s are one second.
    let link = Link {
        rate: BitRate::from_mbps(64.0),
        rtt: Duration::from_millis(20),
        ..Link::broadband()
    };
    let link = Rc::new(ShapedConnector::new(link, Tcp));
    let local = LocalSet::new();
    let begin = Instant::now();
    let port = origin.address().port();
    let tasks: Vec<_> = (0..STREAMS)
        .map(|_| {
            let link = Rc::clone(&link);
            local.spawn_local(async move {
                let mut io = link.connect("127.0.0.1", port).await.unwrap().io;
                let request = b"GET /f HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n";
                io.write_all(request).await.unwrap();
                let mut answer = Vec::new();
                io.read_to_end(&mut answer).await.unwrap();
                answer
            })
        })
        .collect();
    local
        .run_until(async {
            for task in tasks {
                assert!(task.await.unwrap().ends_with(&file.bytes(0..file.size)));
            }
        })
        .await;
    let took = begin.elapsed();
    // The upper bound leaves room for a busy machine; virtual time tells how exact it is.
    assert!((1.0..3.0).contains(&took.as_secs_f64()), "{took:?}");
}
