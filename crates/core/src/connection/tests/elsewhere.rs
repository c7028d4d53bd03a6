//! Requests that another connection serves better.

use futures_util::future::join_all;
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};

use super::server::{Over, Server, text};
use super::*;
use crate::ErrorKind;

/// Answers whatever is asked over `stream` with what it was asked for, until the client closes it.
async fn serve(mut stream: TcpStream) {
    let (mut asked, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        let Ok(length @ 1..) = stream.read(&mut buffer).await else { return };
        asked.extend_from_slice(&buffer[..length]);
        let Some(end) = asked.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(asked.drain(..end + 4).collect()).unwrap();
        let path = head.split(' ').nth(1).unwrap();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[test]
fn who_is_in_the_queue_of_a_server_with_one_worker_is_served_by_it() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream).await;
            }
        });
        let client = Rc::new(Client::new(HttpConfig::default()));
        let url = |path: &str| format!("http://{address}{path}");
        client.http.set_limit(&origin(&url("/")), 3);
        let asked = ["/a", "/b", "/c"].map(|path| {
            let (client, url) = (Rc::clone(&client), url(path));
            tokio::task::spawn_local(async move { client.text(&url).await })
        });
        for (answer, path) in asked.into_iter().zip(["/a", "/b", "/c"]) {
            assert_eq!(answer.await.unwrap(), path, "it would wait for ever");
        }
    });
}

#[test]
fn a_server_that_closes_what_it_does_not_serve_is_known_to() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::task::spawn_local(async move {
            for place in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                if place < 2 {
                    tokio::task::spawn_local(serve(stream));
                }
            }
        });
        let client = Client::new(HttpConfig::default());
        let url = |path: &str| format!("http://{address}{path}");
        client.http.set_limit(&origin(&url("/")), 3);
        let urls = ["/a", "/b", "/c"].map(url);
        let answers = join_all(urls.iter().map(|url| client.get(url))).await;
        let failed = answers.into_iter().filter_map(Result::err).map(|error| error.kind());
        assert_eq!(failed.collect::<Vec<_>>(), [ErrorKind::ShortBody]);
        let events = client.events.borrow();
        let served = events.iter().find_map(|event| match event {
            ConnectionEvent::Unserved { served, .. } => Some(*served),
            _ => None,
        });
        assert_eq!(served, Some(2), "two of three are left");
    });
}

#[test]
fn a_server_that_thinks_about_its_first_answer_is_asked_for_more_beside_it() {
    run(async {
        let thought = Rc::new(Semaphore::new(0));
        let gate = Rc::clone(&thought);
        let server = Server::start(None, move |request| {
            let gate = Rc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                text(request.uri().path())
            })
        })
        .await;
        let client = Client::new(HttpConfig::default());
        client.http.set_limit(&origin(&server.url("/")), 2);
        let request = |path| GetRequest::new(Url::parse(&server.url(path)).unwrap());
        let (first, rest) = (request("/first"), request("/rest#here"));
        let is_asked = Notify::new();
        let over = |_| is_asked.notify_one();
        let beside = async {
            is_asked.notified().await;
            let further = client.http.get_beside(&rest).await;
            thought.add_permits(2);
            further
        };
        let (answer, further) = tokio::join!(client.http.get_over(&first, &over), beside);
        let mut answer = answer.unwrap();
        assert!(!further.is_behind());
        assert_eq!(read(&mut answer).await.unwrap(), "/first");
        let mut rest = further.answer(&answer).await.unwrap();
        assert_eq!(read(&mut rest).await.unwrap(), "/rest");
        assert_ne!(rest.connection, answer.connection);
    });
}

#[test]
fn a_connection_that_refuses_is_not_asked_where_another_has_answered() {
    run(async {
        // Each connection is led to a server of its own, and the second one is overloaded.
        for protocol in [ProtocolChoice::Http1, ProtocolChoice::Http2PriorKnowledge] {
            let server = Server::start(None, |request| {
                let mut response = text(request.uri().path());
                if request.extensions().get::<Over>().is_some_and(|over| over.0 == 2) {
                    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                }
                Box::pin(async move { response })
            })
            .await;
            let client = Client::new(HttpConfig { protocol, ..HttpConfig::default() });
            client.http.set_limit(&origin(&server.url("/")), 2);
            let both = async |path: &str| {
                let url = server.url(path);
                let (one, other) = tokio::join!(client.get(&url), client.get(&url));
                let (mut one, mut other) = (one.unwrap(), other.unwrap());
                read(&mut one).await.unwrap();
                read(&mut other).await.unwrap();
                [one.status, other.status]
            };
            client.text(&server.url("/alone")).await;
            let mut first = both("/first").await;
            first.sort();
            assert_eq!(first, [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE], "{protocol:?}");
            for _ in 0..5 {
                assert_eq!(both("/then").await, [StatusCode::OK; 2], "{protocol:?}");
            }
        }
    });
}
