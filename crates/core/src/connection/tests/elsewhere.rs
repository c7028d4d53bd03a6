//! Requests that another connection serves better.

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::server::{Over, Server, text};
use super::*;

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
