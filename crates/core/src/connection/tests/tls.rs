//! TLS with a certificate that nobody knows.

use std::fs;

use http::Version;
use rustls::pki_types::PrivateKeyDer;

use super::server::{Server, text};
use super::*;
use crate::ErrorKind;

pub(super) struct Secure {
    pub(super) server: Server,
    directory: tempfile::TempDir,
}

impl Secure {
    pub(super) async fn new(alpn: &[&str]) -> Self {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("ca.pem"), made.cert.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let handler = |request: http::Request<hyper::body::Incoming>| {
            let response = text(request.uri().path());
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

    fn trusting(&self, protocol: ProtocolChoice) -> Client {
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

#[test]
fn a_certificate_must_be_known_and_for_the_name() {
    run(async {
        let secure = Secure::new(&[]).await;
        let error =
            secure.client(HttpConfig::default()).get("https://a.test/").await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.message().contains("--cacert FILE"), "{}", error.message());

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
