//! The origin as a client sees it.

#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{self, HeaderMap};
use http::{Method, Request, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pelton_algos::units::BitRate;
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginBehaviour, OriginConfig, Storm};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

const SIZE: u64 = 300_000;

struct Answer {
    status: StatusCode,
    version: Version,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

fn file() -> VirtualFile {
    VirtualFile::new("/d/a b.bin", SIZE, 5)
}

fn start(behaviour: OriginBehaviour) -> Origin {
    Origin::start(OriginConfig { files: vec![file()], behaviour, ..OriginConfig::default() })
        .unwrap()
}

/// One request on its own connection.
async fn ask(origin: &Origin, method: Method, path: &str, fields: &[(&str, &str)]) -> Answer {
    let io = TokioIo::new(TcpStream::connect(origin.address()).await.unwrap());
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    let driver = tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let response = sender.send_request(request.body(Empty::<&[u8]>::new()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    drop(sender);
    driver.await.unwrap().unwrap();
    Answer { status: parts.status, version: parts.version, headers: parts.headers, body }
}

async fn get(origin: &Origin, fields: &[(&str, &str)]) -> Answer {
    ask(origin, Method::GET, "/d/a%20b.bin", fields).await
}

#[tokio::test]
async fn a_whole_file() {
    let origin = start(OriginBehaviour::default());
    let answer = get(&origin, &[]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, file().bytes(0..SIZE));
    assert_eq!(answer.header(header::CONTENT_LENGTH), Some("300000"));
    assert_eq!(answer.header(header::ACCEPT_RANGES), Some("bytes"));
    assert_eq!(answer.header(header::ETAG), Some(file().etag().as_str()));
    assert!(answer.header(header::LAST_MODIFIED).unwrap().ends_with("2024 00:00:05 GMT"));
    assert_eq!(origin.hits("/d/a b.bin"), 1);
    assert_eq!(origin.bytes_sent(), SIZE);
    assert_eq!((origin.requests(), origin.connections()), (1, 1));
}

#[tokio::test]
async fn a_range() {
    let origin = start(OriginBehaviour::default());
    let answer = get(&origin, &[("range", "bytes=100000-199999")]).await;
    assert_eq!(answer.status, 206);
    assert_eq!(answer.body, file().bytes(100_000..200_000));
    assert_eq!(answer.header(header::CONTENT_RANGE), Some("bytes 100000-199999/300000"));
    assert_eq!(answer.header(header::CONTENT_LENGTH), Some("100000"));
    let answer = get(&origin, &[("range", "bytes=-1")]).await;
    assert_eq!(answer.body, file().bytes(SIZE - 1..SIZE));
    let answer = get(&origin, &[("range", "bytes=300000-")]).await;
    assert_eq!(answer.status, 416);
    assert_eq!(answer.header(header::CONTENT_RANGE), Some("bytes */300000"));
    let ranges: Vec<_> = origin.log().into_iter().map(|entry| entry.range.unwrap()).collect();
    assert_eq!(ranges, ["bytes=100000-199999", "bytes=-1", "bytes=300000-"]);
}

#[tokio::test]
async fn a_range_of_a_changed_file_is_the_whole_file() {
    let origin = start(OriginBehaviour::default());
    let etag = file().etag();
    let fields = [("range", "bytes=5-"), ("if-range", etag.as_str())];
    assert_eq!(get(&origin, &fields).await.status, 206);
    origin.put(VirtualFile::new("/d/a b.bin", SIZE, 6));
    let answer = get(&origin, &fields).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, VirtualFile::new("x", SIZE, 6).bytes(0..SIZE));
}

#[tokio::test]
async fn head_has_the_fields_and_no_body() {
    let origin = start(OriginBehaviour::default());
    let answer = ask(&origin, Method::HEAD, "/d/a%20b.bin", &[("range", "bytes=1-2")]).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0));
    assert_eq!(answer.header(header::CONTENT_LENGTH), Some("300000"));
    assert_eq!(origin.bytes_sent(), 0);
}

#[tokio::test]
async fn listings_and_what_is_not_there() {
    let origin = start(OriginBehaviour::default());
    let root = ask(&origin, Method::GET, "/", &[]).await;
    assert!(String::from_utf8(root.body).unwrap().contains("<a href=\"d/\">d/</a>"));
    let directory = ask(&origin, Method::GET, "/d/", &[]).await;
    assert_eq!(directory.header(header::CONTENT_TYPE), Some("text/html"));
    assert!(
        String::from_utf8(directory.body).unwrap().contains("<a href=\"a%20b.bin\">a b.bin</a>")
    );
    assert_eq!(ask(&origin, Method::GET, "/d/b", &[]).await.status, 404);
    assert_eq!(ask(&origin, Method::GET, "/e/", &[]).await.status, 404);
    assert_eq!(ask(&origin, Method::POST, "/d/a%20b.bin", &[]).await.status, 405);
}

#[tokio::test]
async fn no_ranges_no_length_no_validators() {
    let origin = start(OriginBehaviour {
        ignore_ranges: true,
        hide_length: true,
        hide_validators: true,
        ..OriginBehaviour::default()
    });
    let answer = get(&origin, &[("range", "bytes=1-2")]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, file().bytes(0..SIZE));
    for name in [header::CONTENT_LENGTH, header::ACCEPT_RANGES, header::ETAG, header::LAST_MODIFIED]
    {
        assert_eq!(answer.header(name), None);
    }
    assert_eq!(answer.header(header::TRANSFER_ENCODING), Some("chunked"));
}

#[tokio::test]
async fn a_storm_passes() {
    let storm = Storm { status: 503, requests: 2, retry_after: Some(7) };
    let origin = start(OriginBehaviour { storm: Some(storm), ..OriginBehaviour::default() });
    for _ in 0..2 {
        let answer = get(&origin, &[]).await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header(header::RETRY_AFTER), Some("7"));
    }
    assert_eq!(get(&origin, &[]).await.status, 200);
}

#[tokio::test]
async fn one_path_may_behave_otherwise() {
    let redirect = OriginBehaviour { redirect_to: Some("/d/".into()), ..Default::default() };
    let auth = Some(("me".to_owned(), "secret".to_owned()));
    let origin = Origin::start(OriginConfig {
        files: vec![file()],
        behaviour: OriginBehaviour { basic_auth: auth, ..OriginBehaviour::default() },
        behaviour_by_path: vec![("/old".to_owned(), redirect)],
        ..OriginConfig::default()
    })
    .unwrap();
    let answer = ask(&origin, Method::GET, "/old", &[]).await;
    assert_eq!((answer.status, answer.header(header::LOCATION)), (StatusCode::FOUND, Some("/d/")));
    let answer = get(&origin, &[]).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header(header::WWW_AUTHENTICATE), Some("Basic realm=\"lab\""));
    assert_eq!(get(&origin, &[("authorization", "Basic bWU6c2VjcmV0")]).await.status, 200);
    assert_eq!(get(&origin, &[("authorization", "Basic bWU6d3Jvbmc=")]).await.status, 401);
}

#[tokio::test]
async fn latency_and_a_capped_rate_take_their_time() {
    let origin = start(OriginBehaviour {
        latency: Duration::from_millis(50),
        rate_per_connection: Some(BitRate::from_mbps(12.0)),
        ..OriginBehaviour::default()
    });
    let begin = Instant::now();
    assert_eq!(get(&origin, &[]).await.body.len() as u64, SIZE);
    // 300 kB at 12 Mbit/s are 200 ms.
    assert!(begin.elapsed() >= Duration::from_millis(250), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn one_connection_too_many_is_reset() {
    let origin = Origin::start(OriginConfig {
        files: vec![file()],
        max_connections: Some(1),
        ..OriginConfig::default()
    })
    .unwrap();
    let _first = TcpStream::connect(origin.address()).await.unwrap();
    let mut second = TcpStream::connect(origin.address()).await.unwrap();
    let error = second.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!((origin.connections(), origin.refused_connections()), (1, 1));
}

#[tokio::test]
async fn http2_by_prior_knowledge() {
    let origin = start(OriginBehaviour::default());
    let io = TokioIo::new(TcpStream::connect(origin.address()).await.unwrap());
    let answer = ask_http2(io, &origin.url("/d/a b.bin")).await;
    assert_eq!((answer.status, answer.version), (StatusCode::OK, Version::HTTP_2));
    assert_eq!(answer.body, file().bytes(0..SIZE));
    assert_eq!(origin.log()[0].version, Version::HTTP_2);
}

#[tokio::test]
async fn tls_with_alpn() {
    for (http2, chosen) in [(true, b"h2".as_slice()), (false, b"http/1.1")] {
        let origin = Origin::start(OriginConfig {
            files: vec![file()],
            tls: true,
            http2,
            ..OriginConfig::default()
        })
        .unwrap();
        let stream = tls_connect(&origin).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(chosen));
        if http2 {
            let answer = ask_http2(TokioIo::new(stream), &origin.url("/d/a b.bin")).await;
            assert_eq!(answer.body, file().bytes(0..SIZE));
        }
    }
}

#[tokio::test]
async fn dropping_it_closes_its_connections() {
    let origin = start(OriginBehaviour::default());
    let mut stream = TcpStream::connect(origin.address()).await.unwrap();
    drop(origin);
    assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
}

async fn ask_http2<T>(io: TokioIo<T>, url: &str) -> Answer
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(url).body(Empty::<&[u8]>::new()).unwrap();
    let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Answer { status: parts.status, version: parts.version, headers: parts.headers, body }
}

async fn tls_connect(origin: &Origin) -> tokio_rustls::client::TlsStream<TcpStream> {
    let pem = origin.certificate_pem().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(origin.address()).await.unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config))
        .connect(ServerName::try_from("127.0.0.1").unwrap(), stream)
        .await
        .unwrap()
}
