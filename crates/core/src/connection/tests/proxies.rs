//! Requests through proxies.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::server::{Server, text};
use super::*;
use crate::ErrorKind;

/// What a proxy was asked.
type Asked = Rc<RefCell<Vec<Vec<u8>>>>;

/// A proxy that makes a tunnel to one target, whatever it is asked for, and keeps what it was asked.
struct Proxy {
    url: String,
    asked: Asked,
}

impl Proxy {
    async fn http(target: SocketAddr, answer: &'static str) -> Self {
        Self::start("http", move |stream, asked| serve_http(stream, asked, target, answer)).await
    }

    async fn socks(target: SocketAddr) -> Self {
        Self::start("socks5h", move |stream, asked| serve_socks(stream, asked, target)).await
    }

    async fn start<F>(scheme: &str, serve: impl Fn(TcpStream, Asked) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let asked = Rc::default();
        let log = Rc::clone(&asked);
        tokio::task::spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::task::spawn_local(serve(stream, Rc::clone(&log)));
            }
        });
        Self { url, asked }
    }

    fn client(&self, config: HttpConfig) -> Client {
        let (url, except) = (self.url.clone(), Some(String::new()));
        Client::new(HttpConfig { proxies: Proxies::Explicit { url, except }, ..config })
    }

    fn asked(&self) -> Vec<u8> {
        self.asked.borrow().last().unwrap().clone()
    }
}

async fn serve_http(mut stream: TcpStream, asked: Asked, target: SocketAddr, answer: &str) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    asked.borrow_mut().push(head);
    stream.write_all(answer.as_bytes()).await.unwrap();
    if answer.contains(" 200 ") {
        pass_on(stream, target).await;
    }
}

async fn serve_socks(mut stream: TcpStream, asked: Asked, target: SocketAddr) {
    let mut greeting = [0; 3];
    stream.read_exact(&mut greeting).await.unwrap();
    stream.write_all(&[5, 0]).await.unwrap();
    let mut request = vec![0; 5];
    stream.read_exact(&mut request).await.unwrap();
    let mut rest = vec![0; usize::from(request[4]) + 2];
    stream.read_exact(&mut rest).await.unwrap();
    request.extend(rest);
    asked.borrow_mut().push(request);
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    pass_on(stream, target).await;
}

async fn pass_on(mut stream: TcpStream, target: SocketAddr) {
    let mut onward = TcpStream::connect(target).await.unwrap();
    // Either side may go away at any time.
    let _ = copy_bidirectional(&mut stream, &mut onward).await;
}

fn insecure() -> HttpConfig {
    let tls = TlsOptions { insecure: true, ..TlsOptions::default() };
    HttpConfig { tls, ..HttpConfig::default() }
}

#[test]
fn plain_requests_are_forwarded_in_absolute_form() {
    run(async {
        // To its client a forwarding proxy is a server whose requests have whole URLs.
        let proxy = Server::plain(text).await;
        let url = format!("http://me:pw@{}", proxy.address);
        let proxies = Proxies::Explicit { url, except: Some("direct.test".into()) };
        let client = Client::new(HttpConfig { proxies, ..HttpConfig::default() });
        assert_eq!(client.text("http://a.test/x?y").await, "/x");
        assert_eq!(client.text("http://a.test/z").await, "/z");
        assert_eq!(proxy.accepted.get(), 1);
        let seen = &proxy.seen.borrow()[0];
        assert_eq!(seen.path, "http://a.test/x?y");
        assert_eq!(seen.header("host"), Some("a.test"));
        // printf 'me:pw' | base64
        assert_eq!(seen.header("proxy-authorization"), Some("Basic bWU6cHc="));
        assert_eq!(seen.header("authorization"), None);
    });
}

#[test]
fn tls_goes_through_a_tunnel() {
    run(async {
        let secure = super::tls::Secure::new(&["h2"]).await;
        let answer = "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n";
        let mut proxy = Proxy::http(secure.server.address, answer).await;
        proxy.url = proxy.url.replace("//", "//me:pw@");
        let client = proxy.client(insecure());
        let mut response = client.get("https://a.test/x").await.unwrap();
        assert_eq!(response.protocol, Protocol::Http2);
        assert_eq!(read(&mut response).await.unwrap(), "/x");
        let asked = String::from_utf8(proxy.asked()).unwrap();
        assert_eq!(
            asked,
            "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\
             Proxy-Authorization: Basic bWU6cHc=\r\n\r\n"
        );
        assert_eq!(secure.server.last().header("proxy-authorization"), None);
    });
}

#[test]
fn a_refused_tunnel_says_why() {
    run(async {
        for (answer, kind) in [
            ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", ErrorKind::Auth),
            ("HTTP/1.1 403 Forbidden\r\n\r\n", ErrorKind::HttpStatus),
            ("HTTP/1.1 504 Gateway Timeout\r\n\r\n", ErrorKind::Connect),
            ("HTTP/1.1 2", ErrorKind::Connect),
        ] {
            let proxy = Proxy::http(([127, 0, 0, 1], 1).into(), answer).await;
            let error = proxy.client(insecure()).get("https://a.test/x").await.err().unwrap();
            assert_eq!(error.kind(), kind, "{}", error.message());
            assert!(error.message().starts_with("https://a.test: "), "{}", error.message());
        }
    });
}

#[test]
fn socks_carries_everything() {
    run(async {
        let server = Server::plain(text).await;
        let proxy = Proxy::socks(server.address).await;
        let client = proxy.client(HttpConfig::default());
        assert_eq!(client.text("http://ab.test/x").await, "/x");
        assert_eq!(proxy.asked(), b"\x05\x01\x00\x03\x07ab.test\x00\x50");
        assert_eq!(server.last().path, "/x");
    });
}

#[test]
fn a_proxy_with_one_place_gets_it_back_when_it_is_wanted() {
    run(async {
        let server = Server::plain(text).await;
        let (target, is_taken) = (server.address, Rc::new(Cell::new(false)));
        let proxy = Proxy::start("socks5h", move |stream, asked| {
            let is_taken = Rc::clone(&is_taken);
            async move {
                if !is_taken.replace(true) {
                    serve_socks(stream, asked, target).await;
                    is_taken.set(false);
                }
            }
        })
        .await;
        let client = proxy.client(HttpConfig::default());
        assert_eq!(client.text("http://a.test/x").await, "/x");
        // The place of a.test is given up for it.
        assert!(client.get("http://b.test/y").await.is_err());
        let mut response = loop {
            match client.get("http://b.test/y").await {
                Ok(response) => break response,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert_eq!(read(&mut response).await.unwrap(), "/y");
    });
}

#[test]
fn a_proxy_that_is_not_there_is_named() {
    run(async {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let proxies = Proxies::Explicit { url: format!("user:secret@{closed}"), except: None };
        let client = Client::new(HttpConfig { proxies, ..HttpConfig::default() });
        let error = client.get("http://a.test/").await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Connect);
        let expected = format!("http://a.test: proxy: {closed}: cannot connect");
        assert!(error.message().starts_with(&expected), "{}", error.message());
    });
}

#[test]
fn opening_takes_no_longer_than_it_may() {
    run(async {
        // A proxy that accepts and says nothing.
        let accepted = Rc::new(Cell::new(0));
        let count = Rc::clone(&accepted);
        let proxy = Proxy::start("http", move |stream, _| {
            count.set(count.get() + 1);
            async move {
                std::future::pending::<()>().await;
                drop(stream);
            }
        })
        .await;
        let connect_timeout = Duration::from_millis(50);
        let client = proxy.client(HttpConfig { connect_timeout, ..insecure() });
        let error = client.get("https://a.test/").await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        let (_, address) = proxy.url.split_once("//").unwrap();
        let expected =
            format!("https://a.test: no connection within 0.05 s through the proxy {address}");
        assert_eq!(error.message(), expected);
        assert_eq!(accepted.get(), 1);
    });
}
