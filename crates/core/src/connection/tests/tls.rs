//! TLS with a certificate that nobody knows.

use std::fs;

use http::{Request, Version};
use hyper::body::Incoming;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::server::{Server, text};
use super::*;
use crate::ErrorKind;

pub(super) struct Secure {
    pub(super) server: Server,
    directory: tempfile::TempDir,
}

impl Secure {
    pub(super) async fn new(alpn: &[&str]) -> Self {
        Self::start(alpn, 4096, false).await
    }

    /// A server whose self-signed certificate is an authority's, as `openssl req -x509` makes it.
    async fn authority(valid: i32) -> Self {
        let mut parameters = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.not_after = rcgen::date_time_ymd(valid, 1, 1);
        Self::with(&[], parameters, false).await
    }

    /// A server whose certificate is valid until the year `valid` and which may want one of its clients.
    async fn start(alpn: &[&str], valid: i32, wants_certificate: bool) -> Self {
        let mut parameters = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap();
        parameters.not_after = rcgen::date_time_ymd(valid, 1, 1);
        Self::with(alpn, parameters, wants_certificate).await
    }

    async fn with(
        alpn: &[&str],
        parameters: rcgen::CertificateParams,
        wants_certificate: bool,
    ) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("ca.pem"), certificate.pem()).unwrap();
        fs::write(directory.path().join("key.pem"), key.serialize_pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let clients = if wants_certificate {
            clients.build().unwrap()
        } else {
            WebPkiClientVerifier::no_client_auth()
        };
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let handler = |request: Request<Incoming>| {
            let mut response = text(request.uri().path());
            let wants_http1 = matches!(request.uri().path(), "/old" | "/new-old");
            if wants_http1 && request.version() == Version::HTTP_2 {
                response.extensions_mut().insert(h2::Reason::HTTP_1_1_REQUIRED);
            }
            if request.uri().path().starts_with("/new") && request.version() == Version::HTTP_11 {
                *response.status_mut() = http::StatusCode::UPGRADE_REQUIRED;
            }
            Box::pin(async move { response }) as _
        };
        let server = Server::start(Some(Arc::new(config)), handler).await;
        Self { server, directory }
    }

    fn client(&self, config: HttpConfig) -> Client {
        let elsewhere = format!("::127.0.0.1:{}", self.server.address.port());
        let connect_to = vec![elsewhere.parse().unwrap()];
        Client::with(config, TcpConnector { connect_to, ..TcpConnector::default() })
    }

    pub(super) fn trusting(&self, protocol: ProtocolChoice) -> Client {
        let extra_ca = Some(self.directory.path().join("ca.pem"));
        let tls = TlsOptions { extra_ca, ..TlsOptions::default() };
        self.client(HttpConfig { tls, protocol, ..HttpConfig::default() })
    }
}

#[test]
fn alpn_picks_the_protocol() {
    run(async {
        let both = Secure::new(&["h2", "http/1.1"]).await;
        let old = Secure::new(&["http/1.1"]).await;
        let none = Secure::new(&[]).await;
        for (secure, choice, expected) in [
            (&both, ProtocolChoice::Auto, Protocol::Http2),
            (&both, ProtocolChoice::Http2, Protocol::Http2),
            (&both, ProtocolChoice::Http1, Protocol::Http11),
            (&old, ProtocolChoice::Auto, Protocol::Http11),
            (&none, ProtocolChoice::Auto, Protocol::Http11),
            (&none, ProtocolChoice::Http2PriorKnowledge, Protocol::Http2),
        ] {
            let client = secure.trusting(choice);
            let mut response = client.get("https://a.test/x").await.unwrap();
            assert_eq!(response.protocol, expected, "{choice:?}");
            assert_eq!(read(&mut response).await.unwrap(), "/x");
        }
        assert_eq!(both.server.seen.borrow()[0].version, Version::HTTP_2);
        assert_eq!(both.server.seen.borrow()[0].path, "https://a.test/x");
        for secure in [&old, &none] {
            let client = secure.trusting(ProtocolChoice::Http2);
            let error = client.get("https://a.test/x").await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Tls, "{}", error.message());
        }
    });
}

/// The protocols of 60 answers, 20 at a time, from a server whose connections of HTTP/2 go away after so many.
async fn protocols_of_answers(secure: &Secure, answers: usize, path: &str) -> Vec<Protocol> {
    secure.server.answers.set(Some((answers, h2::Reason::NO_ERROR)));
    let client = secure.trusting(ProtocolChoice::Auto);
    client.http.set_limit(&origin("https://a.test/"), 4);
    let mut protocols = Vec::new();
    for _ in 0..3 {
        let all = (0..20).map(|index| {
            let client = &client;
            async move {
                let path = format!("{path}{index}");
                let mut response = client.get(&format!("https://a.test{path}")).await.unwrap();
                assert_eq!(response.status, 200);
                assert_eq!(read(&mut response).await.unwrap(), path);
                response.protocol
            }
        });
        protocols.extend(futures_util::future::join_all(all).await);
    }
    protocols
}

#[test]
fn connections_that_end_after_few_answers_are_not_shared() {
    run(async {
        let both = Secure::new(&["h2", "http/1.1"]).await;
        let protocols = protocols_of_answers(&both, 2, "/").await;
        assert!(protocols.starts_with(&[Protocol::Http2]));
        assert!(protocols.ends_with(&[Protocol::Http11; 20]), "{protocols:?}");
        let protocols = protocols_of_answers(&both, 12, "/").await;
        assert!(protocols.iter().all(|protocol| *protocol == Protocol::Http2), "{protocols:?}");
        let protocols = protocols_of_answers(&both, 0, "/").await;
        assert_eq!(protocols, [Protocol::Http11; 60]);
        let no_other = Secure::new(&["h2"]).await;
        for (secure, path) in [(&no_other, "/"), (&both, "/new")] {
            let protocols = protocols_of_answers(secure, 2, path).await;
            assert_eq!(protocols, [Protocol::Http2; 60], "{path}");
        }
    });
}

#[test]
fn who_is_asked_for_too_much_is_not_asked_again_at_once() {
    run(async {
        let secure = Secure::new(&["h2", "http/1.1"]).await;
        secure.server.answers.set(Some((2, h2::Reason::ENHANCE_YOUR_CALM)));
        let client = secure.trusting(ProtocolChoice::Auto);
        client.http.set_limit(&origin("https://a.test/"), 1);
        let all = (0..20).map(|_| client.get("https://a.test/x"));
        let all = futures_util::future::join_all(all).await;
        let refused = all.iter().filter_map(|answer| answer.as_ref().err());
        assert!(refused.clone().all(|error| error.kind() == ErrorKind::Overloaded));
        assert_eq!((refused.count(), secure.server.accepted.get()), (16, 2));
    });
}

#[test]
fn a_server_that_wants_http1_is_asked_over_it_from_then_on() {
    run(async {
        let secure = Secure::new(&["h2", "http/1.1"]).await;
        let client = secure.trusting(ProtocolChoice::Auto);
        for (path, expected) in [
            ("/new", Protocol::Http2),
            ("/old", Protocol::Http11),
            ("/old", Protocol::Http11),
            ("/new", Protocol::Http11),
        ] {
            let mut response = client.get(&format!("https://a.test{path}")).await.unwrap();
            assert_eq!(response.protocol, expected, "{path}");
            assert_eq!(read(&mut response).await.unwrap(), path);
        }
        assert_eq!(secure.server.accepted.get(), 2);
        assert_eq!(secure.server.seen.borrow().len(), 5, "one of them was asked for twice");
    });
}

#[test]
fn a_server_that_wants_http1_and_does_not_take_it_is_asked_over_http2_again() {
    run(async {
        let secure = Secure::new(&["h2", "http/1.1"]).await;
        let client = secure.trusting(ProtocolChoice::Auto);
        let get = async |path: &str| client.get(&format!("https://a.test{path}")).await;
        assert_eq!(get("/new").await.unwrap().protocol, Protocol::Http2);
        assert!(get("/new-old").await.is_err(), "neither will do");
        assert_eq!(get("/new").await.unwrap().protocol, Protocol::Http2);
        assert!(get("/old").await.is_err(), "it has had its chance");
    });
}

#[test]
fn what_wants_http1_names_the_option_that_forbids_it() {
    run(async {
        let secure = Secure::new(&["h2", "http/1.1"]).await;
        for (choice, advice) in [
            (ProtocolChoice::Http2, "leave out `http2`:"),
            (ProtocolChoice::Http2PriorKnowledge, "leave out `http2-prior-knowledge`:"),
        ] {
            let client = secure.trusting(choice);
            let error = client.get("https://a.test/old").await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Protocol);
            assert!(error.message().contains(advice), "{}", error.message());
        }
    });
}

#[test]
fn a_certificate_must_be_known_and_for_the_name() {
    run(async {
        let secure = Secure::new(&[]).await;
        let error =
            secure.client(HttpConfig::default()).get("https://a.test/").await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.message().contains("`cacert`"), "{}", error.message());

        let trusting = secure.trusting(ProtocolChoice::Auto);
        let error = trusting.get("https://b.test/").await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.message().contains("for another name"), "{}", error.message());

        let tls = TlsOptions { insecure: true, ..TlsOptions::default() };
        let insecure = secure.client(HttpConfig { tls, ..HttpConfig::default() });
        assert_eq!(insecure.text("https://b.test/y").await, "/y");
    });
}

#[test]
fn a_trusted_certificate_may_be_an_authority_and_the_servers_own() {
    run(async {
        let secure = Secure::authority(4096).await;
        let trusting = secure.trusting(ProtocolChoice::Auto);
        assert_eq!(trusting.text("https://a.test/x").await, "/x");
        let message = async |client: Client, url: &str| {
            let error = client.get(url).await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Tls);
            error.message()
        };
        let other_name = message(secure.trusting(ProtocolChoice::Auto), "https://b.test/").await;
        assert!(other_name.contains("for another name"), "{other_name}");
        // One that was not named is not trusted, whatever else is.
        let other = Secure::authority(4096).await;
        fs::copy(other.directory.path().join("ca.pem"), secure.directory.path().join("ca.pem"))
            .unwrap();
        message(secure.trusting(ProtocolChoice::Auto), "https://a.test/").await;
        let old = Secure::authority(2020).await;
        let expired = message(old.trusting(ProtocolChoice::Auto), "https://a.test/").await;
        assert!(expired.contains("has expired"), "{expired}");
    });
}

#[test]
fn an_expired_certificate_is_called_that() {
    run(async {
        let secure = Secure::start(&[], 2020, false).await;
        let trusting = secure.trusting(ProtocolChoice::Auto);
        let error = trusting.get("https://a.test/").await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.message().contains("has expired"), "{}", error.message());
    });
}

#[test]
fn a_client_certificate_is_shown_to_who_wants_one() {
    run(async {
        let secure = Secure::start(&[], 4096, true).await;
        let file = |name: &str| secure.directory.path().join(name);
        let mut tls = TlsOptions { insecure: true, ..TlsOptions::default() };
        let anonymous = secure.client(HttpConfig { tls: tls.clone(), ..HttpConfig::default() });
        let error = anonymous.get("https://a.test/").await.err().unwrap();
        assert!(error.message().contains("`cert` and `key`"), "{}", error.message());

        tls.client_certificate = Some((file("ca.pem"), file("key.pem")));
        let known = secure.client(HttpConfig { tls, ..HttpConfig::default() });
        assert_eq!(known.text("https://a.test/x").await, "/x");
    });
}

#[test]
fn a_port_that_speaks_tls_alone_is_named() {
    run(async {
        let secure = Secure::new(&[]).await;
        let error = Client::new(HttpConfig::default()).get(&secure.server.url("/")).await;
        let message = error.err().unwrap().message();
        assert!(message.contains("https://"), "{message}");
        for answer in [&b""[..], b"\x15\x03\x03\0\x02\x02\x0a"] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            tokio::task::spawn_local(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.read_buf(&mut Vec::with_capacity(4096)).await.unwrap();
                stream.write_all(answer).await.unwrap();
            });
            let error = Client::new(HttpConfig::default()).get(&url).await.err().unwrap();
            let message = error.message();
            assert!(message.contains("https://"), "{message}");
        }
    });
}

#[test]
fn a_port_without_tls_is_named() {
    run(async {
        let server = Server::plain(text).await;
        let client = Client::new(HttpConfig::default());
        let url = format!("https://{}/", server.address);
        let error = client.get(&url).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.message().contains("was http:// meant?"), "{}", error.message());
    });
}

#[test]
fn files_that_hold_no_certificate_are_named_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    let missing = directory.path().join("missing.pem");
    for path in [empty, missing] {
        let tls = TlsOptions { extra_ca: Some(path.clone()), ..TlsOptions::default() };
        let config = HttpConfig { tls, ..HttpConfig::default() };
        let result = Http::new(config, Arc::new(TcpConnector::default()), Rc::new(|_| ()));
        let error = result.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.message().contains(path.to_str().unwrap()), "{}", error.message());
    }
}
