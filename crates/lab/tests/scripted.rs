//! The scripted server, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pelton_lab::origin::scripted::{Reply, Scripted};

const REQUEST: &[u8] = b"GET /a%20b HTTP/1.1\r\nHost: lab\r\nrange: bytes=5-\r\n\r\n";

fn ask(origin: &Scripted) -> TcpStream {
    let mut stream = TcpStream::connect(origin.address()).unwrap();
    stream.write_all(REQUEST).unwrap();
    stream
}

#[test]
fn exactly_what_it_was_told_and_then_the_end() {
    let origin = Scripted::start(|_| {
        Reply::status("206 Partial Content")
            .field("Content-Range", "bytes 0-9/10")
            .field("Content-Length", 100)
            .body("abc")
            .pause(Duration::from_millis(1))
            .body("def")
            .close()
    })
    .unwrap();
    let mut answer = String::new();
    ask(&origin).read_to_string(&mut answer).unwrap();
    assert_eq!(
        answer,
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 100\r\n\r\nabcdef"
    );
    let request = &origin.requests()[0];
    assert_eq!((request.number, request.target()), (0, "/a%20b"));
    assert_eq!((request.field("Range"), request.field("Accept")), (Some("bytes=5-"), None));
}

#[test]
fn a_script_may_tell_requests_apart() {
    let origin =
        Scripted::start(|request| Reply::raw(format!("garbage {}", request.number))).unwrap();
    let mut stream = ask(&origin);
    stream.write_all(REQUEST).unwrap();
    let mut answer = [0; 18];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"garbage 0garbage 1");
}

#[test]
fn a_reset_follows_what_was_sent() {
    let origin = Scripted::start(|_| Reply::raw("abc").reset()).unwrap();
    let mut stream = ask(&origin);
    let mut answer = Vec::new();
    assert_eq!(stream.read_to_end(&mut answer).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(answer, b"abc");
}

#[test]
fn a_hanging_server_hangs_until_it_is_dropped() {
    let origin = Scripted::start(|_| Reply::raw("abc").hang()).unwrap();
    let mut stream = ask(&origin);
    stream.read_exact(&mut [0; 3]).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let error = stream.read(&mut [0]).unwrap_err().kind();
    assert!(matches!(error, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    drop(origin);
    stream.set_read_timeout(None).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
}
