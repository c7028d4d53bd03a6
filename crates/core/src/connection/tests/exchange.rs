//! Requests, connections and their number.

use std::cell::Cell;
use std::future::pending;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Response, StatusCode, Version};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use super::server::{Server, text};
use super::*;
use crate::ErrorKind;

fn prior_knowledge() -> HttpConfig {
    HttpConfig { protocol: ProtocolChoice::Http2PriorKnowledge, ..HttpConfig::default() }
}

#[test]
fn sends_what_a_range_needs_and_uses_the_connection_again() {
    run(async {
        let server = Server::plain(text).await;
        let client = Client::new(HttpConfig::default());
        let mut request = GetRequest::new(Url::parse(&server.url("/a?b=c#d")).unwrap());
        request.range = Some((5, Some(9)));
        let mut response = client.http.get(&request).await.unwrap();
        assert_eq!(response.protocol, Protocol::Http11);
        assert_eq!(response.final_url.as_str(), server.url("/a?b=c"));
        assert_eq!(read(&mut response).await.unwrap(), "/a");
        let seen = server.last();
        assert_eq!(seen.path, "/a?b=c");
        assert_eq!(seen.header("host"), Some(server.address.to_string().as_str()));
        assert_eq!(seen.header("range"), Some("bytes=5-9"));
        assert_eq!(seen.header("accept-encoding"), Some("identity"));
        assert_eq!(seen.header("accept"), Some("*/*"));
        assert!(seen.header("user-agent").unwrap().starts_with("pelton/"));

        request.range = Some((7, None));
        client.http.get(&request).await.unwrap();
        assert_eq!(server.last().header("range"), Some("bytes=7-"));
        assert_eq!(server.accepted.get(), 1);
        let counters = client.http.counters();
        assert_eq!((counters.opened, counters.open_now), (1, 1));
        assert!(counters.sent > 100 && counters.received > 100, "{counters:?}");
    });
}

#[test]
fn an_answer_is_there_when_its_body_begins() {
    const THINKS: Duration = Duration::from_millis(30);
    for config in [HttpConfig::default(), prior_knowledge()] {
        run(async {
            // Its head goes out at once; nobody waits for what it says of a refusal.
            let server = Server::plain(|path| {
                let status =
                    if path == "/late" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                let body = async move {
                    match status {
                        StatusCode::OK => tokio::time::sleep(THINKS).await,
                        _ => pending().await,
                    }
                    Ok(Frame::data(Bytes::from_static(b"late")))
                };
                let mut answer = Response::new(StreamBody::new(body.into_stream()).boxed_unsync());
                *answer.status_mut() = status;
                answer
            })
            .await;
            let client = Client::new(config);
            let mut late = client.get(&server.url("/late")).await.unwrap();
            assert!(late.response_time >= THINKS, "{:?}", late.response_time);
            assert_eq!(read(&mut late).await.unwrap(), "late");
            client.get(&server.url("/refused")).await.unwrap();
        });
    }
}

#[test]
fn events_tell_of_a_connections_life() {
    run(async {
        let server = Server::plain(text).await;
        let client = Client::new(HttpConfig::default());
        client.text(&server.url("/")).await;
        let (closed, when_closed) = oneshot::channel();
        let closed = Cell::new(Some(closed));
        let observer = Rc::new(move |event| {
            if let ConnectionEvent::Closed { id, .. } = event {
                closed.take().unwrap().send(id).unwrap();
            }
        });
        match &client.events.borrow()[..] {
            [
                ConnectionEvent::Reached { rtt: reached, .. },
                ConnectionEvent::Opened { origin, protocol, rtt, handshake, .. },
            ] => {
                assert_eq!(origin.to_string(), server.url(""));
                assert_eq!(*protocol, Protocol::Http11);
                assert!(*reached < Duration::from_secs(1) && *handshake > Duration::ZERO);
                assert_eq!(*rtt, Some(*reached));
            }
            other => panic!("{other:?}"),
        }
        let http =
            Http::new(HttpConfig::default(), Arc::new(TcpConnector::default()), observer).unwrap();
        let request = GetRequest::new(Url::parse(&server.url("/")).unwrap());
        let mut response = http.get(&request).await.unwrap();
        read(&mut response).await.unwrap();
        http.close_idle(&response.origin);
        assert_eq!(when_closed.await.unwrap(), response.connection);
        assert_eq!(http.counters().open_now, 0);
    });
}

/// A server whose answers wait for a permit, and the most requests that it held at once.
async fn gated() -> (Server, Rc<Semaphore>, Rc<Cell<usize>>) {
    let gate = Rc::new(Semaphore::new(0));
    let (held, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (inner_gate, inner_most) = (Rc::clone(&gate), Rc::clone(&most));
    let server = Server::start(None, move |request| {
        let (gate, held, most) = (Rc::clone(&inner_gate), Rc::clone(&held), Rc::clone(&inner_most));
        Box::pin(async move {
            held.set(held.get() + 1);
            most.set(most.get().max(held.get()));
            gate.acquire().await.unwrap().forget();
            held.set(held.get() - 1);
            text(request.uri().path())
        })
    })
    .await;
    (server, gate, most)
}

pub(super) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn no_more_connections_than_the_limit() {
    run(async {
        let (server, gate, most) = gated().await;
        let client = Rc::new(Client::new(HttpConfig::default()));
        client.http.set_limit(&origin(&server.url("/")), 3);
        let requests: Vec<_> = (0..10)
            .map(|number| {
                let (client, url) = (Rc::clone(&client), server.url(&format!("/{number}")));
                tokio::task::spawn_local(async move { client.text(&url).await })
            })
            .collect();
        until(|| server.seen.borrow().len() == 3).await;
        gate.add_permits(10);
        for (number, request) in requests.into_iter().enumerate() {
            assert_eq!(request.await.unwrap(), format!("/{number}"));
        }
        assert_eq!((server.accepted.get(), most.get()), (3, 3));
        let order: Vec<_> = server.seen.borrow().iter().map(|seen| seen.path.clone()).collect();
        assert_eq!(order[3..], (3..10).map(|number| format!("/{number}")).collect::<Vec<_>>());
    });
}

#[test]
fn http2_streams_spread_over_the_limit_and_then_share() {
    run(async {
        let (server, gate, most) = gated().await;
        let client = Rc::new(Client::new(prior_knowledge()));
        client.http.set_limit(&origin(&server.url("/")), 2);
        let requests: Vec<_> = (0..6)
            .map(|number| {
                let (client, url) = (Rc::clone(&client), server.url(&format!("/{number}")));
                tokio::task::spawn_local(async move { client.text(&url).await })
            })
            .collect();
        until(|| most.get() == 6).await;
        gate.add_permits(6);
        for (number, request) in requests.into_iter().enumerate() {
            assert_eq!(request.await.unwrap(), format!("/{number}"));
        }
        assert_eq!(server.accepted.get(), 2);
        assert_eq!(server.last().version, Version::HTTP_2);
        let on_first = server.seen.borrow().iter().filter(|seen| seen.connection == 1).count();
        assert_eq!(on_first, 3);
    });
}

#[test]
fn connections_beyond_a_lowered_limit_close_when_they_are_free() {
    run(async {
        let (server, gate, _) = gated().await;
        let client = Rc::new(Client::new(HttpConfig::default()));
        let origin = origin(&server.url("/"));
        client.http.set_limit(&origin, 4);
        let requests: Vec<_> = (0..4)
            .map(|_| {
                let (client, url) = (Rc::clone(&client), server.url("/"));
                tokio::task::spawn_local(async move { client.text(&url).await })
            })
            .collect();
        until(|| server.seen.borrow().len() == 4).await;
        client.http.set_limit(&origin, 1);
        gate.add_permits(5);
        for request in requests {
            request.await.unwrap();
        }
        until(|| client.http.counters().open_now == 1).await;
        client.text(&server.url("/")).await;
        assert_eq!(server.accepted.get(), 4);
    });
}

#[test]
fn opening_early_saves_the_wait() {
    run(async {
        let server = Server::plain(text).await;
        let client = Client::new(HttpConfig::default());
        let origin = origin(&server.url("/"));
        client.http.set_limit(&origin, 2);
        client.http.open_early(&origin, 5);
        client.http.open_early(&origin, 2);
        until(|| client.http.counters().open_now == 2).await;
        client.text(&server.url("/")).await;
        assert_eq!(client.http.counters().opened, 2);
    });
}

#[test]
fn a_body_that_is_not_read_costs_http1_its_connection_and_http2_its_stream() {
    run(async {
        let large = "x".repeat(1 << 20);
        let server = Server::plain(move |_| text(&large)).await;
        for (config, opened) in [(HttpConfig::default(), 2), (prior_knowledge(), 1)] {
            let client = Client::new(config);
            client.http.set_limit(&origin(&server.url("/")), 1);
            let mut response = client.get(&server.url("/")).await.unwrap();
            response.piece(|_| ()).await.unwrap().unwrap();
            drop(response);
            assert_eq!(client.text(&server.url("/")).await.len(), 1 << 20);
            assert_eq!(client.http.counters().opened, opened);
        }
    });
}

#[test]
fn a_request_that_is_given_up_frees_its_place() {
    run(async {
        let (server, gate, _) = gated().await;
        let client = Rc::new(Client::new(HttpConfig::default()));
        client.http.set_limit(&origin(&server.url("/")), 1);
        let (waiting, url) = (Rc::clone(&client), server.url("/"));
        let abandoned = tokio::task::spawn_local(async move { waiting.text(&url).await });
        until(|| server.seen.borrow().len() == 1).await;
        abandoned.abort();
        gate.add_permits(2);
        assert_eq!(client.text(&server.url("/next")).await, "/next");
    });
}

/// Reads one request head and answers it.
async fn answer(stream: &mut tokio::net::TcpStream, response: &str) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    stream.write_all(response.as_bytes()).await.unwrap();
}

#[test]
fn a_stale_connection_is_replaced_once() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        tokio::task::spawn_local(async move {
            let (mut first, _) = listener.accept().await.unwrap();
            answer(&mut first, ok).await;
            // The second request arrives and gets no answer.
            answer(&mut first, "").await;
            drop(first);
            let (mut second, _) = listener.accept().await.unwrap();
            answer(&mut second, ok).await;
            answer(&mut second, "").await;
            drop(second);
            let (mut third, _) = listener.accept().await.unwrap();
            answer(&mut third, "").await;
        });
        let client = Client::new(HttpConfig::default());
        assert_eq!(client.text(&url).await, "ok");
        assert_eq!(client.text(&url).await, "ok");
        assert_eq!(client.http.counters().opened, 2);
        let error = client.get(&url).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::ShortBody);
        assert_eq!(client.http.counters().opened, 3);
    });
}

#[test]
fn a_fresh_connection_without_an_answer_is_an_error() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user:secret@{}/x", listener.local_addr().unwrap());
        tokio::task::spawn_local(async move {
            let (mut first, _) = listener.accept().await.unwrap();
            answer(&mut first, "").await;
            drop(first);
            let (mut second, _) = listener.accept().await.unwrap();
            answer(&mut second, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort").await;
            drop(second);
            let (mut third, _) = listener.accept().await.unwrap();
            answer(&mut third, "SMTP ready\r\n\r\n").await;
        });
        let client = Client::new(HttpConfig::default());
        let error = client.get(&url).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::ShortBody);
        assert!(!error.message().contains("secret"), "{}", error.message());
        let mut response = client.get(&url).await.unwrap();
        let error = read(&mut response).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ShortBody);
        assert!(error.message().contains("/x: the connection ended before the body did"));
        let error = client.get(&url).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{}", error.message());
    });
}

#[test]
fn tls_and_http2_are_spoken_of_where_the_answer_may_be_that() {
    const SETTINGS: &[u8] = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64";
    let endless = [b"HTTP/1.1 200 OK\r\nX: ", "x".repeat(1 << 17).as_bytes()].concat();
    for (said, hint) in [
        (&b""[..], "(if it speaks TLS there, ask for https://)"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "it speaks TLS on this port: was https:// meant?"),
        (
            SETTINGS,
            "it answers with HTTP/2 what was asked over HTTP/1.1: if it speaks that without TLS, ask with ",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-", "before a response: in the middle of its head"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "Content-Length is no length"),
        (&endless, "the head of the response is longer than 64 KiB"),
    ] {
        run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let said = said.to_vec();
            tokio::task::spawn_local(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                answer(&mut stream, "").await;
                // Who has seen enough goes away.
                let _ = stream.write_all(&said).await;
            });
            let error = Client::new(HttpConfig::default()).get(&url).await.err().unwrap();
            let message = error.message();
            assert!(message.contains(hint), "{message}");
            assert_eq!(message.contains("https://"), hint.contains("https://"), "{message}");
            assert_eq!(message.matches("TLS").count(), hint.matches("TLS").count(), "{message}");
        });
    }
}

#[test]
fn a_refused_connection_fails_all_who_wait() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        let client = Client::new(HttpConfig::default());
        let (one, two) = tokio::join!(client.get(&url), client.get(&url));
        for error in [one.err().unwrap(), two.err().unwrap()] {
            assert_eq!(error.kind(), ErrorKind::Connect);
            assert!(error.message().contains("refused"), "{}", error.message());
        }
        assert_eq!(client.events.borrow().len(), 2);
    });
}

/// Connects over TCP a few times and then fails.
struct Scarce {
    tcp: TcpConnector,
    left: AtomicUsize,
    tried: Arc<AtomicUsize>,
}

impl Connector for Scarce {
    fn connect<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = crate::Result<Connected>> + 'a>> {
        self.tried.fetch_add(1, Relaxed);
        if self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            self.tcp.connect(host, port)
        } else {
            Box::pin(async { Err(crate::Error::new(ErrorKind::Connect, "no more")) })
        }
    }
}

#[test]
fn who_waits_takes_the_connections_that_there_are() {
    for config in [HttpConfig::default(), prior_knowledge()] {
        run(async {
            let server = Server::plain(text).await;
            let (tried, events) = (Arc::default(), Rc::new(RefCell::new(Vec::new())));
            let left = AtomicUsize::new(1);
            let connector =
                Scarce { tcp: TcpConnector::default(), left, tried: Arc::clone(&tried) };
            let sink = Rc::clone(&events);
            let observer = Rc::new(move |event| sink.borrow_mut().push(event));
            let http = Http::new(config, Arc::new(connector), observer).unwrap();
            http.set_limit(&origin(&server.url("/")), 4);
            let requests: Vec<_> = (0..20)
                .map(|number| {
                    let url = Url::parse(&server.url(&format!("/{number}"))).unwrap();
                    let http = http.clone();
                    tokio::task::spawn_local(async move {
                        let mut response = http.get(&GetRequest::new(url)).await?;
                        read(&mut response).await
                    })
                })
                .collect();
            for (number, request) in requests.into_iter().enumerate() {
                assert_eq!(request.await.unwrap().unwrap(), format!("/{number}"));
            }
            assert_eq!(server.accepted.get(), 1);
            assert_eq!(tried.load(Relaxed), 4, "a refused connection is not tried again at once");
            let failed = |event: &&ConnectionEvent| {
                matches!(event, ConnectionEvent::OpenFailed { kind: ErrorKind::Connect, .. })
            };
            assert_eq!(events.borrow().iter().filter(failed).count(), 3);
        });
    }
}

#[test]
fn a_connection_that_crawls_is_shunned_where_there_can_be_another() {
    run(async {
        let (server, gate, _) = gated().await;
        for (limit, connection) in [(2, 2), (1, 1)] {
            let client = Rc::new(Client::new(prior_knowledge()));
            client.http.set_limit(&origin(&server.url("/")), limit);
            let ask = |path: &str| {
                let (client, url) = (Rc::clone(&client), server.url(path));
                tokio::task::spawn_local(async move { client.get(&url).await.unwrap().connection })
            };
            let seen = server.seen.borrow().len();
            gate.add_permits(1);
            let first = ask("/first").await.unwrap();
            let busy = ask("/busy");
            until(|| server.seen.borrow().len() == seen + 2).await;
            client.http.shun(first);
            let other = ask("/other");
            until(|| server.seen.borrow().len() == seen + 3).await;
            gate.add_permits(2);
            assert_eq!(busy.await.unwrap(), first);
            assert_eq!(other.await.unwrap() == first, connection == 1, "{limit}");
            // It is free now, and gone.
            gate.add_permits(1);
            assert_ne!(ask("/last").await.unwrap(), first, "{limit}");
        }
    });
}
