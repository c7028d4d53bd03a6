//! What the emulated link really does: a bulk flow, pings, counted datagrams.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use pelton_algos::units::{BitRate, Bytes};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, Socket, Type};

use super::{CLIENT, Emulator, EmulatorConfig, EmulatorError, MTU, SERVER};
use crate::model::LinkSpec;

/// TCP's payload of a full packet: the MTU less 20 of IPv4, 20 of TCP and 12 of its time stamps.
pub const PAYLOAD: u64 = MTU as u64 - 52;

/// An answer that takes longer is counted as lost.
const LONGEST_PING: Duration = Duration::from_secs(3);

/// What `streams` TCP connections together carry from server to client in `time`, after `warm_up`:
/// their payload. One connection fills no link whose bandwidth-delay product is more than a client's
/// receive window, some 3 MB.
///
/// # Errors
/// When a connection breaks.
pub fn flow(
    emulator: &Emulator,
    streams: usize,
    warm_up: Duration,
    time: Duration,
) -> Result<BitRate, EmulatorError> {
    let io = || EmulatorError::io("measure a bulk flow");
    let listener = emulator.server().run(|| TcpListener::bind((SERVER, 0)))?.map_err(io())?;
    let address = listener.local_addr().map_err(io())?;
    // Senders end because their connections are closed.
    thread::spawn(move || {
        for stream in listener.incoming().take(streams) {
            let mut stream = stream?;
            let block = vec![0x5a; 65_536];
            thread::spawn(move || while stream.write_all(&block).is_ok() {});
        }
        Ok::<_, io::Error>(())
    });
    let begin = Instant::now() + warm_up;
    let receivers = (0..streams)
        .map(|_| {
            let stream = emulator.client().run(move || TcpStream::connect(address))?;
            let stream = stream.map_err(io())?;
            Ok(thread::spawn(move || receive(stream, begin, begin + time)))
        })
        .collect::<Result<Vec<_>, EmulatorError>>()?;
    let mut total = Bytes::ZERO;
    for receiver in receivers {
        let received = receiver.join().map_err(|_| io()(ErrorKind::Other.into()))?;
        total += received.map_err(io())?;
    }
    Ok(total / time)
}

/// The bytes that come between `begin` and `end`.
fn receive(mut stream: TcpStream, begin: Instant, end: Instant) -> io::Result<Bytes> {
    let mut buffer = vec![0; 65_536];
    let mut total = Bytes::ZERO;
    while Instant::now() < end {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if Instant::now() >= begin {
            total += Bytes(count as u64);
        }
    }
    Ok(total)
}

/// A client asks for `bytes` and receives them over one connection, through a socket buffer of `buffer`:
/// with it the kernel bounds what is in flight.
///
/// # Errors
/// When the connection breaks.
pub fn download(emulator: &Emulator, bytes: Bytes, buffer: Bytes) -> Result<(), EmulatorError> {
    const REQUEST: [u8; 100] = [b'?'; 100];
    let io = || EmulatorError::io("record a download");
    let listener = emulator.server().run(|| TcpListener::bind((SERVER, 0)))?.map_err(io())?;
    let address = listener.local_addr().map_err(io())?;
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut request = REQUEST;
        stream.read_exact(&mut request)?;
        let block = vec![0x5a; 65_536];
        let mut left = bytes.0 as usize;
        while left > 0 {
            left -= stream.write(&block[..left.min(block.len())])?;
        }
        Ok::<_, io::Error>(())
    });
    let receive = move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_recv_buffer_size(buffer.0 as usize)?;
        socket.connect(&address.into())?;
        let mut stream = TcpStream::from(socket);
        stream.write_all(&REQUEST)?;
        io::copy(&mut stream, &mut io::sink())
    };
    let received = emulator.client().run(receive)?.map_err(io())?;
    server.join().map_err(|_| io()(ErrorKind::Other.into()))?.map_err(io())?;
    if received == bytes.0 { Ok(()) } else { Err(io()(ErrorKind::UnexpectedEof.into())) }
}

/// The round-trip times of `count` pings from client to server, one after the other, in order of
/// size.
///
/// # Errors
/// When one gets no answer, or the kernel has no unprivileged pings.
pub fn pings(emulator: &Emulator, count: u16) -> Result<Vec<Duration>, EmulatorError> {
    let ping = move || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
        let socket = UdpSocket::from(socket);
        socket.connect((SERVER, 0))?;
        socket.set_read_timeout(Some(LONGEST_PING))?;
        let mut times = (0..count).map(|_| ping(&socket)).collect::<io::Result<Vec<_>>>()?;
        times.sort();
        Ok(times)
    };
    emulator.client().run(ping)?.map_err(EmulatorError::io("ping"))
}

/// RFC 792, "Echo or Echo Reply Message"; the kernel fills in identifier and checksum.
fn ping(socket: &UdpSocket) -> io::Result<Duration> {
    const ECHO: [u8; 16] = [8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let sent = Instant::now();
    socket.send(&ECHO)?;
    socket.recv(&mut [0; 64])?;
    Ok(sent.elapsed())
}

/// Sends `count` small datagrams from server to client and says which share of them was lost. They
/// go in volleys that no queue is too short for.
///
/// # Errors
/// When a socket fails.
pub fn loss(emulator: &Emulator, count: u32) -> Result<f64, EmulatorError> {
    const VOLLEY: u32 = 20;
    let io = || EmulatorError::io("count datagrams");
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let receiver = emulator.client().run(move || UdpSocket::bind((CLIENT, 0)))?.map_err(io())?;
    // More than the machine's default, so that nothing is lost that the link has delivered.
    set_socket_recv_buffer_size_force(&receiver, 16 << 20).map_err(|error| io()(error.into()))?;
    let sender = emulator.server().run(move || UdpSocket::bind(any))?.map_err(io())?;
    sender.connect(receiver.local_addr().map_err(io())?).map_err(io())?;
    receiver.set_read_timeout(Some(Duration::from_secs(1))).map_err(io())?;
    let counter = thread::spawn(move || {
        let mut arrived = 0_u32;
        while receiver.recv(&mut [0; 64]).is_ok() {
            arrived += 1;
        }
        arrived
    });
    for _ in 0..count / VOLLEY {
        for _ in 0..VOLLEY {
            sender.send(&[0; 32]).map_err(io())?;
        }
        thread::sleep(Duration::from_millis(1));
    }
    let arrived = counter.join().map_err(|_| io()(ErrorKind::Other.into()))?;
    Ok(1.0 - f64::from(arrived) / f64::from(count / VOLLEY * VOLLEY))
}

/// The fastest link that this machine can emulate now: what a bulk flow of full packets reaches on
/// one without a limit, as IP packets.
///
/// # Errors
/// As of [`flow`].
pub fn capacity() -> Result<BitRate, EmulatorError> {
    let endless = BitRate::from_mbps(100_000.0);
    let link = LinkSpec::plain(endless, Duration::from_millis(1)).map_err(|error| {
        EmulatorError::io("measure the emulator's capacity")(io::Error::other(error))
    })?;
    let emulator = Emulator::start(EmulatorConfig::new(link, 1))?;
    let payload = flow(&emulator, 1, Duration::from_millis(500), Duration::from_secs(1))?;
    Ok(payload * (f64::from(MTU) / PAYLOAD as f64))
}
