//! Requests behind others.

use std::rc::Rc;

use futures_util::FutureExt;
use http::Request;
use tokio_test::io::Builder;

use super::*;
use crate::connection::pace::Share;
use crate::connection::scratch::{Piece, Scratch};

/// An answer that is waited for.
type Asked = LocalBoxFuture<'static, Result<(Response<()>, Http1Body)>>;

const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 131073\r\n\r\n";

fn ask(connection: &Rc<Http1>, path: &str) -> Asked {
    connection.send(Request::get(path).body(()).unwrap())
}

async fn read(answer: Result<(Response<()>, Http1Body)>) -> Result<String> {
    let (_, mut body) = answer?;
    let mut all = Vec::new();
    let (scratch, share) = (Scratch::default(), Share::default());
    let mut keep = |piece: Piece<'_>| match piece {
        Piece::Bytes(bytes) => all.extend_from_slice(bytes),
        Piece::Piped(_) => unreachable!("this is no socket"),
    };
    while body.piece(&scratch, &share, || 0, &mut keep).await?.is_some() {}
    Ok(String::from_utf8(all).unwrap())
}

/// Has the connection send what it is to send, as its watcher does.
fn send(connection: &Http1) {
    let waker = futures_util::task::noop_waker();
    assert!(connection.poll_watch(&mut Context::from_waker(&waker)).is_pending());
}

/// A connection that was asked for `/a`, `/b` and `/c` before the server, which then says `answers`.
fn asked_thrice(answers: &str) -> (Rc<Http1>, [Asked; 3]) {
    let mut stream = Builder::new();
    stream.write(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n");
    stream.read(answers.as_bytes());
    let connection = Rc::new(Http1::new(stream.build()));
    let asked = ["/a", "/b", "/c"].map(|path| ask(&connection, path));
    assert!(connection.is_ready(), "nothing is sent yet");
    send(&connection);
    assert!(!connection.is_ready(), "what came later would be answered later");
    (connection, asked)
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn requests_of_one_moment_go_out_in_one_piece() {
    let mut stream = Builder::new();
    stream.write(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
    let connection = Rc::new(Http1::new(stream.build()));
    connection.begin_wait();
    let first = ask(&connection, "/a");
    connection.end_wait();
    connection.begin_wait();
    let mut first = Box::pin(first);
    assert!(first.as_mut().now_or_never().is_none());
    send(&connection);
    assert!(connection.is_ready(), "another one is about to be sent");
    let _second = ask(&connection, "/b");
    connection.end_wait();
    send(&connection);
    assert!(!connection.is_ready());
    drop(first);
}

#[test]
fn answers_go_to_requests_in_their_order() {
    let (connection, [a, b, c]) = asked_thrice(&[answer("1"), answer(""), answer("333")].concat());
    let c = async { read(c.await).await };
    let b = async { read(b.await).await };
    let a = async { read(a.await).await };
    let all = futures_util::future::join3(c, b, a);
    let mut all = Box::pin(all);
    // Each gets the stream from the one before.
    let ended = (0..3).find_map(|_| all.as_mut().now_or_never());
    let (c, b, a) = ended.expect("everything is there");
    assert_eq!((&*a.unwrap(), &*b.unwrap(), &*c.unwrap()), ("1", "", "333"));
    assert!(connection.is_ready() && !connection.is_closed());
}

#[test]
fn what_comes_behind_the_last_answer_ends_the_connection() {
    let (connection, [a, b, c]) =
        asked_thrice(&[answer("1"), answer("2"), answer("3"), "x".to_owned()].concat());
    let all = async { (read(a.await).await, read(b.await).await, read(c.await).await) };
    let (_, _, c) = all.now_or_never().expect("everything is there");
    assert_eq!(c.unwrap(), "3");
    assert!(connection.is_closed());
}

#[test]
fn behind_an_answer_that_ends_the_connection_none_has_its_turn() {
    for first in
        ["HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "nonsense\r\n\r\n"]
    {
        let (connection, [a, b, c]) = asked_thrice(first);
        let all = async { (a.await.map(|_| ()), b.await.map(|_| ()), c.await.map(|_| ())) };
        let (_, b, c) = all.now_or_never().expect("everything is there");
        assert!(had_no_turn(&b.unwrap_err()) && had_no_turn(&c.unwrap_err()));
        assert!(connection.is_closed());
    }
}

#[test]
fn who_had_a_turn_and_no_answer_is_told_apart() {
    let (_, [a, b, c]) = asked_thrice(&[answer("1"), "nonsense\r\n\r\n".to_owned()].concat());
    let all = async { (read(a.await).await, b.await.map(|_| ()), c.await.map(|_| ())) };
    let (a, b, c) = all.now_or_never().expect("everything is there");
    assert_eq!(a.unwrap(), "1");
    assert!(!had_no_turn(&b.unwrap_err()) && had_no_turn(&c.unwrap_err()));
}

#[test]
fn behind_a_long_answer_others_are_better_served_elsewhere() {
    let (connection, [a, b, c]) = asked_thrice(LONG);
    let first = a.now_or_never().expect("its head is there").unwrap();
    let (b, c) = (b.now_or_never().unwrap(), c.now_or_never().unwrap());
    assert!(had_no_turn(&b.map(|_| ()).unwrap_err()) && had_no_turn(&c.map(|_| ()).unwrap_err()));
    assert!(!connection.is_ready() && !connection.is_closed(), "it still counts");
    drop(first);
    assert!(connection.is_closed(), "their answers will come and be wanted by nobody");
}

#[test]
fn a_long_answer_that_nobody_waits_behind_takes_nobody_either() {
    let mut stream = Builder::new();
    stream.write(b"GET /a HTTP/1.1\r\n\r\n").read(LONG.as_bytes());
    let connection = Rc::new(Http1::new(stream.build()));
    let first = ask(&connection, "/a").now_or_never().expect("its head is there").unwrap();
    assert!(!connection.is_ready() && !connection.is_closed());
    // Who was given it before that is not sent: the answer would go to whoever comes next.
    let late = ask(&connection, "/b").now_or_never().expect("at once");
    assert!(had_no_turn(&late.map(|_| ()).unwrap_err()));
    drop(first);
    assert!(connection.is_closed());
}

#[test]
fn an_answer_that_nobody_wants_any_more_ends_the_connection_in_its_turn() {
    let (connection, [a, b, c]) = asked_thrice(&[answer("1"), answer("2"), answer("3")].concat());
    // All are sent.
    let mut first = a;
    let waker = futures_util::task::noop_waker();
    let mut b = b;
    assert!(b.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(b);
    assert!(!connection.is_ready(), "it takes none behind that");
    let a = async { read(first.as_mut().await).await };
    assert_eq!(a.now_or_never().expect("it is there").unwrap(), "1");
    assert!(connection.is_closed());
    assert!(had_no_turn(&c.now_or_never().unwrap().map(|_| ()).unwrap_err()));
}
