//! A limit on memory binds the number of connections and what servers may send unasked.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use pelton_algos::memory::{connections, pages};
use pelton_algos::policy::{Fixed, FixedConfig};
use pelton_algos::units::Bytes;
use pelton_core::connection::{HttpConfig, ProtocolChoice, TlsOptions};
use pelton_core::engine::EngineConfig;
use pelton_core::{Client, ErrorKind};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::scripted::{Reply, Scripted};
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig};

use crate::support::{assert_holds, builder, by_last_part, engine, run, try_run};

fn within(limit: Bytes) -> EngineConfig {
    let mut config = engine();
    config.limits.max_memory = limit;
    config
}

/// Eight files at once. Their streams are never cut: a server sees late that a connection is gone.
fn client(limit: Bytes, protocol: ProtocolChoice) -> Client {
    let eight = Fixed::new(FixedConfig { concurrency: 8, parallelism: 1, pipelining: 1 });
    let tls = TlsOptions { insecure: true, ..TlsOptions::default() };
    let http = HttpConfig { protocol, tls, ..HttpConfig::default() };
    let mut engine = within(limit);
    // Lanes that find no file at the end would split one.
    engine.limits.max_streams_per_file = Some(1);
    builder().engine(engine).policy(eight).http(http).build().unwrap()
}

fn files(of: u64) -> Vec<VirtualFile> {
    (0..8).map(|i| VirtualFile::new(format!("/{of}-{i}"), 300_000 + i, 8 * of + i)).collect()
}

#[test]
fn connections_are_as_many_as_have_room() {
    for (tls, limit, most) in [(false, Bytes::mib(1), 2), (true, Bytes(1_500_000), 3)] {
        assert_eq!(connections(limit), most);
        let config = OriginConfig { files: files(1), tls, ..OriginConfig::default() };
        let origin = Origin::start(config).unwrap();
        let out = tempfile::tempdir().unwrap();
        let urls = files(1).iter().map(|file| origin.url(&file.path)).collect::<Vec<_>>();
        let report = run(client(limit, ProtocolChoice::Http1).download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        assert_eq!(origin.peak_connections(), u64::from(most), "eight were asked for");
        assert_holds(out.path(), &files(1), by_last_part);
    }
}

#[test]
fn origins_take_turns_where_there_is_room_for_fewer() {
    for protocol in [ProtocolChoice::Http1, ProtocolChoice::Http2PriorKnowledge] {
        let origins: Vec<Origin> = (0..5)
            .map(|of| {
                let config = OriginConfig { files: files(of), ..OriginConfig::default() };
                Origin::start(config).unwrap()
            })
            .collect();
        // One more, which sends everybody on.
        let redirect_to = Some(origins[0].url("/0-0"));
        let behaviour = OriginBehaviour { redirect_to, ..OriginBehaviour::default() };
        let detour = Origin::start(OriginConfig { behaviour, ..OriginConfig::default() }).unwrap();
        let mut urls = vec![detour.url("/0-0")];
        for (of, origin) in (0..).zip(&origins) {
            let own = files(of).into_iter().filter(|file| file.path != "/0-0");
            urls.extend(own.map(|file| origin.url(&file.path)));
        }
        let out = tempfile::tempdir().unwrap();
        let report = run(client(Bytes::mib(1), protocol).download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{protocol:?}: {:?}", report.files);
        assert_eq!(report.summary.retries, 0, "{protocol:?}");
        let all: Vec<VirtualFile> = (0..5).flat_map(files).collect();
        assert_holds(out.path(), &all, by_last_part);
    }
}

/// What the client promised to take on connections that are open, and the most of it at any time.
#[derive(Debug, Default)]
struct Promised {
    now: u64,
    most: u64,
    connections: u64,
}

/// Leads to `origin` and reads along what the client promises.
fn overheard(origin: SocketAddr) -> (SocketAddr, Arc<Mutex<Promised>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let promised = Arc::new(Mutex::new(Promised::default()));
    let all = Arc::clone(&promised);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let promised = Arc::clone(&all);
            std::thread::spawn(move || relay(stream?, TcpStream::connect(origin)?, &promised));
        }
    });
    (address, promised)
}

fn relay(client: TcpStream, origin: TcpStream, promised: &Mutex<Promised>) -> io::Result<()> {
    let (mut from_client, mut to_origin) = (client.try_clone()?, origin.try_clone()?);
    let window = pass_promises(&mut from_client, &mut to_origin)?;
    {
        let mut promised = promised.lock().unwrap();
        promised.now += window;
        promised.most = promised.most.max(promised.now);
        promised.connections += 1;
    }
    let back = std::thread::spawn(move || {
        let (mut origin, mut client) = (origin, client);
        let _ = io::copy(&mut origin, &mut client);
        let _ = client.shutdown(Shutdown::Both);
    });
    let _ = io::copy(&mut from_client, &mut to_origin);
    promised.lock().unwrap().now -= window;
    let _ = to_origin.shutdown(Shutdown::Both);
    let _ = back.join();
    Ok(())
}

/// Passes on what comes before the first request; the window and the frame that it allows (RFC 9113,
/// sections 6.5.2 and 6.9.2).
fn pass_promises(from_client: &mut TcpStream, to_origin: &mut TcpStream) -> io::Result<u64> {
    let mut preface = [0; 24];
    from_client.read_exact(&mut preface)?;
    to_origin.write_all(&preface)?;
    let (mut window, mut frame) = (65_535, 16_384);
    loop {
        let mut header = [0; 9];
        from_client.read_exact(&mut header)?;
        let mut payload = vec![0; usize::from(header[1]) << 8 | usize::from(header[2])];
        from_client.read_exact(&mut payload)?;
        to_origin.write_all(&header)?;
        to_origin.write_all(&payload)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        match header[3] {
            1 => return Ok(window + frame),
            4 => {
                let settings = payload.chunks_exact(6);
                for setting in settings.filter(|setting| setting[..2] == [0, 5]) {
                    frame = number(&setting[2..]);
                }
            }
            8 if header[5..] == [0; 4] => window += number(&payload),
            _ => {}
        }
    }
}

#[test]
fn windows_and_frames_that_are_promised_stay_within_the_limit() {
    for (limit, least) in [(Bytes::mib(1), 1), (Bytes::mib(4), 4), (Bytes::mib(64), 4)] {
        let config = OriginConfig { files: files(1), ..OriginConfig::default() };
        let origin = Origin::start(config).unwrap();
        let (address, promised) = overheard(origin.address());
        let out = tempfile::tempdir().unwrap();
        let url = |file: &VirtualFile| format!("http://{address}{}", file.path);
        let urls = files(1).iter().map(url).collect::<Vec<_>>();
        let client = client(limit, ProtocolChoice::Http2PriorKnowledge);
        let report = run(client.download(urls).into_dir(out.path()));
        assert!(report.is_complete(), "{:?}", report.files);
        assert_holds(out.path(), &files(1), by_last_part);
        let promised = promised.lock().unwrap();
        assert!(promised.connections >= least, "{limit}: {promised:?}");
        assert!(promised.most + pages(limit).0 <= limit.0, "{limit}: {promised:?}");
    }
}

#[test]
fn a_page_that_has_no_room_says_so() {
    let server = Scripted::start(|_| {
        let links = "<a href=\"file\">file</a>\n".repeat(20_000);
        let body = format!("<html><title>Index of /d/</title><pre>{links}</pre></html>");
        Reply::status("200 OK")
            .field("Content-Type", "text/html")
            .field("Content-Length", body.len())
            .body(body)
    })
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let client = builder().engine(within(Bytes::mib(1))).build().unwrap();
    let download = client.download([server.url("/d/")]).into_dir(out.path());
    let error = try_run(download).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Listing);
    assert!(error.message().contains("`memory-limit`"), "{}", error.message());
}
