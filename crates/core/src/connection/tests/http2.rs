//! HTTP/2 against a server that has its hands on the frames.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::Response;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::exchange::until;
use super::*;
use crate::ErrorKind;

type Accepted = h2::server::Connection<TcpStream, Bytes>;

/// Leads each connection to `serve`, with its number from 1. Returns where.
async fn server<F: Future<Output = ()> + 'static>(
    serve: impl Fn(usize, Accepted) -> F + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::task::spawn_local(async move {
        for number in 1.. {
            let (stream, _) = listener.accept().await.unwrap();
            let connection = h2::server::handshake(stream).await.unwrap();
            tokio::task::spawn_local(serve(number, connection));
        }
    });
    url
}

fn client() -> Client {
    let protocol = ProtocolChoice::Http2PriorKnowledge;
    Client::new(HttpConfig { protocol, ..HttpConfig::default() })
}

fn answer(mut respond: SendResponse<Bytes>, body: &'static str) {
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
}

/// Sends as much as it is given credit for.
async fn pour(mut stream: SendStream<Bytes>, sent: Rc<Cell<u64>>) {
    stream.reserve_capacity(1 << 30);
    while let Some(Ok(credit)) = poll_fn(|cx| stream.poll_capacity(cx)).await {
        sent.set(sent.get() + credit as u64);
        if stream.send_data(vec![0; credit].into(), false).is_err() {
            return;
        }
        stream.reserve_capacity(1 << 30);
    }
}

#[test]
fn credit_ends_where_what_is_wanted_ends() {
    run(async {
        let sent = Rc::<Cell<u64>>::default();
        let pouring = Rc::clone(&sent);
        let url = server(move |_, mut connection| {
            let sent = Rc::clone(&pouring);
            async move {
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    if request.uri().path() == "/small" {
                        answer(respond, "small");
                        continue;
                    }
                    let stream = begun(&mut respond, 1 << 30, 0);
                    tokio::task::spawn_local(pour(stream, Rc::clone(&sent)));
                }
            }
        })
        .await;
        let client = client();
        client.http.set_limit(&origin(&url), 1);
        let mut response = client.get(&url).await.unwrap();
        let (position, end) = (Cell::new(0), Cell::new(3_000_000));
        while position.get() < end.get() {
            let left = || end.get() - position.get();
            let length = response.piece_or_pipe(left, false, |piece| match piece {
                Piece::Bytes(bytes) => bytes.len() as u64,
                Piece::Piped(_) => unreachable!(),
            });
            position.set(position.get() + length.await.unwrap().unwrap());
            end.set(2_000_000);
        }
        // The answer comes behind everything that the server was told before.
        assert_eq!(client.text(&format!("{url}small")).await, "small");
        assert_eq!(sent.get(), 2_000_000);
        assert_eq!(client.http.counters().opened, 1);
    });
}

/// A body of so many bytes, by its head, of which so many are sent.
fn begun(respond: &mut SendResponse<Bytes>, length: usize, sent: usize) -> SendStream<Bytes> {
    let head = Response::builder().header("content-length", length).body(()).unwrap();
    let mut stream = respond.send_response(head, false).unwrap();
    stream.send_data(vec![7; sent].into(), false).unwrap();
    stream
}

#[test]
fn a_server_that_ends_bodies_with_a_frame_of_its_own_has_room_for_it() {
    run(async {
        let resets = Rc::<Cell<u32>>::default();
        let counted = Rc::clone(&resets);
        let url = server(move |_, mut connection| {
            let resets = Rc::clone(&counted);
            async move {
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    let mut stream = begun(&mut respond, 300_000, 300_000);
                    let resets = Rc::clone(&resets);
                    tokio::task::spawn_local(async move {
                        // As nghttp2 does: no frame where there is no room for a byte.
                        stream.reserve_capacity(300_001);
                        loop {
                            match poll_fn(|cx| stream.poll_capacity(cx)).await {
                                Some(Ok(credit)) if credit > 0 && stream.capacity() > 0 => break,
                                Some(Ok(_)) => {}
                                _ => return resets.set(resets.get() + 1),
                            }
                        }
                        stream.send_data(Bytes::new(), true).unwrap();
                    });
                }
            }
        })
        .await;
        let client = client();
        assert_eq!(client.text(&url).await.len(), 300_000);
        assert_eq!(resets.get(), 0);
    });
}

#[test]
fn a_body_has_ended_when_all_has_come_though_its_server_never_says_so() {
    run(async {
        let url = server(|_, mut connection| async move {
            let mut kept = Vec::new();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                kept.push(begun(&mut respond, 100, 100));
            }
        })
        .await;
        assert_eq!(client().text(&url).await.len(), 100);
    });
}

#[test]
fn bodies_of_which_all_has_come_are_not_waited_for_and_their_streams_not_reset() {
    run(async {
        let resets = Rc::<Cell<u32>>::default();
        let counted = Rc::clone(&resets);
        let url = server(move |_, mut connection| {
            let resets = Rc::clone(&counted);
            async move {
                let mut unended: Vec<SendStream<Bytes>> = Vec::new();
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    // Each ends when the next one is asked for.
                    for mut stream in unended.drain(..) {
                        let reset = poll_fn(|cx| Poll::Ready(stream.poll_reset(cx))).await;
                        resets.set(resets.get() + u32::from(reset.is_ready()));
                        stream.send_data(Bytes::new(), true).unwrap();
                    }
                    unended.push(begun(&mut respond, 100, 100));
                }
            }
        })
        .await;
        let client = client();
        for _ in 0..5 {
            assert_eq!(client.text(&url).await.len(), 100);
        }
        assert_eq!(resets.get(), 0);
    });
}

#[test]
fn what_a_server_has_not_begun_with_is_asked_for_again() {
    run(async {
        let url = server(|_, mut connection| async move {
            let mut refused = false;
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                if std::mem::replace(&mut refused, true) {
                    answer(respond, "ok");
                } else {
                    respond.send_reset(Reason::REFUSED_STREAM);
                }
            }
        })
        .await;
        let client = client();
        assert_eq!(client.text(&url).await, "ok");
        assert_eq!(client.http.counters().opened, 1);
    });
}

#[test]
fn connections_that_refuse_or_are_silent_are_left_for_one_that_answers() {
    for refuses in [true, false] {
        run(async move {
            let url = server(move |number, mut connection| async move {
                let mut ignored = Vec::new();
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    match number {
                        1 => answer(respond, "ok"),
                        _ if refuses => respond.send_reset(Reason::REFUSED_STREAM),
                        _ => ignored.push(respond),
                    }
                }
            })
            .await;
            let client = client();
            client.http.set_limit(&origin(&url), 2);
            assert_eq!(client.text(&url).await, "ok");
            for _ in 0..3 {
                let both = tokio::join!(client.text(&url), client.text(&url));
                assert_eq!((both.0.as_str(), both.1.as_str()), ("ok", "ok"));
            }
        });
    }
}

#[test]
fn a_server_that_goes_away_answers_what_it_has_begun_with() {
    run(async {
        let url = server(|number, mut connection| async move {
            let (_, first) = connection.accept().await.unwrap().unwrap();
            connection.graceful_shutdown();
            tokio::task::spawn_local(async move { while connection.accept().await.is_some() {} });
            answer(first, if number == 1 { "one" } else { "two" });
        })
        .await;
        let client = client();
        client.http.set_limit(&origin(&url), 1);
        assert_eq!(client.text(&url).await, "one");
        assert_eq!(client.text(&url).await, "two");
        assert_eq!(client.http.counters().opened, 2);
    });
}

#[test]
fn who_takes_the_place_of_one_that_goes_away_and_still_brings_something_stays() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let inner = Rc::clone(&gate);
        let url = server(move |number, mut connection| {
            let gate = Rc::clone(&inner);
            async move {
                let Some(Ok((_, mut respond))) = connection.accept().await else { return };
                if number > 1 {
                    answer(respond, "two");
                } else {
                    let mut stream = respond.send_response(Response::new(()), false).unwrap();
                    stream.send_data(Bytes::from_static(b"one"), false).unwrap();
                    tokio::task::spawn_local(async move {
                        gate.acquire().await.unwrap().forget();
                        stream.send_data(Bytes::new(), true).unwrap();
                    });
                }
                connection.graceful_shutdown();
                while connection.accept().await.is_some() {}
            }
        })
        .await;
        let client = Rc::new(client());
        client.http.set_limit(&origin(&url), 1);
        let mut first = client.get(&url).await.unwrap();
        let second = {
            let (client, url) = (Rc::clone(&client), url.clone());
            tokio::task::spawn_local(async move { client.text(&url).await })
        };
        until(|| second.is_finished() || client.http.counters().opened > 2).await;
        assert_eq!(client.http.counters().opened, 2, "it was closed as one too many");
        assert_eq!(second.await.unwrap(), "two");
        gate.add_permits(1);
        assert_eq!(read(&mut first).await.unwrap(), "one");
    });
}

#[test]
fn a_reset_is_told_with_its_reason() {
    run(async {
        let gate = Rc::new(Semaphore::new(0));
        let inner = Rc::clone(&gate);
        let url = server(move |_, mut connection| {
            let gate = Rc::clone(&inner);
            async move {
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    if request.uri().path() == "/head" {
                        respond.send_reset(Reason::ENHANCE_YOUR_CALM);
                        continue;
                    }
                    let mut stream = respond.send_response(Response::new(()), false).unwrap();
                    stream.send_data(Bytes::from_static(b"begun"), false).unwrap();
                    let gate = Rc::clone(&gate);
                    tokio::task::spawn_local(async move {
                        gate.acquire().await.unwrap().forget();
                        stream.send_reset(Reason::INTERNAL_ERROR);
                    });
                }
            }
        })
        .await;
        let client = client();
        let before = client.get(&format!("{url}head")).await.err().unwrap();
        let mut response = client.get(&format!("{url}body")).await.unwrap();
        gate.add_permits(1);
        let during = read(&mut response).await.err().unwrap();
        for (error, kind, why) in [
            (
                before,
                ErrorKind::Overloaded,
                "the server refused the stream (detected excessive load",
            ),
            (
                during,
                ErrorKind::ShortBody,
                "the server ended the stream (unexpected internal error",
            ),
        ] {
            assert_eq!(error.kind(), kind);
            assert!(error.message().contains(why), "{error}");
            assert!(!error.message().contains("stream error"), "its reason is said once");
        }
    });
}

#[test]
fn a_body_of_another_length_than_was_promised_is_said_to_be_that() {
    run(async {
        let url = server(|_, mut connection| async move {
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let sent = if request.uri().path() == "/longer" { 20 } else { 5 };
                let mut stream = begun(&mut respond, 10, sent);
                // Who was sent too much has reset it.
                let _ = stream.send_data(Bytes::new(), true);
            }
        })
        .await;
        let client = client();
        for path in ["longer", "shorter"] {
            let url = format!("{url}{path}");
            let mut response = client.get(&url).await.unwrap();
            let error = read(&mut response).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ShortBody);
            let expected = format!("{url}: the body is longer or shorter than its Content-Length");
            assert_eq!(error.message(), expected);
        }
    });
}

#[test]
fn an_idle_connection_is_closed_with_a_word() {
    run(async {
        let (closed, when_closed) = tokio::sync::oneshot::channel();
        let closed = Rc::new(Cell::new(Some(closed)));
        let url = server(move |_, mut connection| {
            let closed = Rc::clone(&closed);
            async move {
                while let Some(Ok((_, respond))) = connection.accept().await {
                    answer(respond, "ok");
                }
                closed.take().unwrap().send(()).unwrap();
            }
        })
        .await;
        let client = client();
        assert_eq!(client.text(&url).await, "ok");
        client.http.close_idle(&origin(&url));
        when_closed.await.unwrap();
        while client.http.counters().open_now > 0 {
            tokio::task::yield_now().await;
        }
    });
}
