//! A way to an origin of which one connection has all but stopped: a few bytes a second come over it, which
//! is too much for a timer that each byte sets anew.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// What passes before: the handshake of HTTP/2, or a head, and a part of the body.
const BEFORE: usize = 8_000;
const PIECE: usize = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Leads to `origin`. Its connection of number `slow`, counted from zero, trickles.
///
/// # Errors
/// No port could be had.
pub fn start(origin: SocketAddr, slow: usize) -> io::Result<SocketAddr> {
    listen(move |number, stream| {
        let pass = if number == slow { trickle } else { copy };
        relay(stream, origin, pass)
    })
}

/// Serves each connection, counted from zero, on a thread of its own, as long as the process lives.
///
/// # Errors
/// No port could be had.
pub(super) fn listen(
    serve: impl Fn(usize, TcpStream) -> io::Result<()> + Copy + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { return };
            // A client that leaves in the middle is no failure.
            std::thread::spawn(move || serve(number, stream));
        }
    });
    Ok(address)
}

type Pass = fn(&mut TcpStream, &mut TcpStream) -> io::Result<()>;

pub(super) fn copy(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    io::copy(from, to).map(drop)
}

fn trickle(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    io::copy(&mut from.take(BEFORE as u64), to)?;
    let mut piece = [0; PIECE];
    loop {
        let length = from.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        to.write_all(&piece[..length])?;
        std::thread::sleep(PAUSE);
    }
}

/// Joins `stream` with a connection to `origin`, whose bytes `pass` hands on.
pub(super) fn relay(stream: TcpStream, origin: SocketAddr, pass: Pass) -> io::Result<()> {
    let there = TcpStream::connect(origin)?;
    let (mut from_client, mut to_origin) = (stream.try_clone()?, there.try_clone()?);
    std::thread::spawn(move || {
        let _ = copy(&mut from_client, &mut to_origin);
        let _ = to_origin.shutdown(Shutdown::Write);
    });
    let (mut from_origin, mut to_client) = (there, stream);
    pass(&mut from_origin, &mut to_client)?;
    to_client.shutdown(Shutdown::Both)
}
