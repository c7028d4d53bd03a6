//! The TLS stream against rustls's server, byte by byte.

use std::io;

use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::{TlsAcceptor, server};

use super::super::tls::{cause, client_config};
use super::super::tls_stream::TlsStream;
use super::*;

fn server_config(versions: &[&'static SupportedProtocolVersion]) -> Arc<ServerConfig> {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        );
    Arc::new(config.unwrap())
}

/// Both sides of a connection over a stream that holds `room` bytes a direction.
async fn connected(
    versions: &[&'static SupportedProtocolVersion],
    room: usize,
) -> (TlsStream<DuplexStream>, server::TlsStream<DuplexStream>) {
    let options = TlsOptions { insecure: true, ..TlsOptions::default() };
    let config = client_config(&options, ProtocolChoice::Auto).unwrap();
    let (near, far) = duplex(room);
    let name = ServerName::try_from("a.test").unwrap();
    let client = TlsStream::connect(config, name, near);
    let server = TlsAcceptor::from(server_config(versions)).accept(far);
    let (client, server) = tokio::join!(client, server);
    (client.unwrap(), server.unwrap())
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 / 7) as u8).collect()
}

/// Writes all of `sent` at one side and reads as much at the other, `at_once` bytes at most at a time.
async fn pass(
    from: &mut (impl AsyncWrite + Unpin),
    to: &mut (impl AsyncRead + Unpin),
    sent: &[u8],
    at_once: usize,
) {
    let write = async {
        from.write_all(sent).await.unwrap();
        from.flush().await.unwrap();
    };
    let read = async {
        let mut all = Vec::new();
        let mut buffer = vec![0; at_once];
        while all.len() < sent.len() {
            let length = to.read(&mut buffer).await.unwrap();
            assert!(length > 0, "an end after {} bytes", all.len());
            all.extend_from_slice(&buffer[..length]);
        }
        all
    };
    let ((), all) = tokio::join!(write, read);
    assert!(all == sent);
}

#[test]
fn bytes_pass_both_ways_however_they_are_cut() {
    run(async {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            // Less than a record, some, and more than is read at once.
            for room in [1000, 50_000, 1_000_000] {
                let (mut client, mut server) = connected(&[version], room).await;
                for at_once in [7, 5000, 16 * 1024, 300_000] {
                    let sent = bytes(40 * at_once.min(20_000) + 3);
                    pass(&mut server, &mut client, &sent, at_once).await;
                    pass(&mut client, &mut server, &sent, at_once).await;
                }
            }
        }
    });
}

#[test]
fn an_end_is_one_only_if_the_server_says_so() {
    run(async {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            for says_so in [true, false] {
                let (mut client, mut server) = connected(&[version], 100_000).await;
                server.write_all(b"abc").await.unwrap();
                server.flush().await.unwrap();
                if says_so {
                    server.shutdown().await.unwrap();
                }
                drop(server);
                let mut all = Vec::new();
                let end = client.read_to_end(&mut all).await.map_err(|error| error.kind());
                assert_eq!(all, b"abc");
                let expected = if says_so { Ok(3) } else { Err(io::ErrorKind::UnexpectedEof) };
                assert_eq!(end, expected);
            }
        }
    });
}

#[test]
fn a_server_hears_that_nothing_more_comes() {
    run(async {
        let (mut client, mut server) = connected(&[&rustls::version::TLS13], 100_000).await;
        client.write_all(b"abc").await.unwrap();
        client.shutdown().await.unwrap();
        drop(client);
        let mut all = Vec::new();
        server.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"abc");
    });
}

/// RFC 8446, section 4.6.3: the server's new key is followed, and ours is changed too as it asks.
#[test]
fn keys_change_on_the_way() {
    run(async {
        let (mut client, mut server) = connected(&[&rustls::version::TLS13], 100_000).await;
        let sent = bytes(40_000);
        for _ in 0..3 {
            pass(&mut server, &mut client, &sent, 5000).await;
            server.get_mut().1.refresh_traffic_keys().unwrap();
            pass(&mut server, &mut client, &sent, 50_000).await;
            pass(&mut client, &mut server, &sent, 5000).await;
        }
    });
}

#[test]
fn a_forged_record_ends_the_connection_and_the_server_is_told() {
    run(async {
        let (mut client, mut server) = connected(&[&rustls::version::TLS13], 100_000).await;
        pass(&mut server, &mut client, b"abc", 10).await;
        let forged = [[0x17, 3, 3, 0, 40].as_slice(), &[0; 40]].concat();
        server.get_mut().0.write_all(&forged).await.unwrap();
        for _ in 0..2 {
            let error = client.read(&mut [0; 10]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(cause(&error), Some(&rustls::Error::DecryptError));
        }
        assert!(client.write_all(b"x").await.is_err());
        let told = server.read(&mut [0; 10]).await.unwrap_err();
        assert!(told.to_string().contains("BadRecordMac"), "{told}");
    });
}
