//! Opens TCP connections.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, lookup_host};

use super::connector::{Connected, Connector, Io};
use super::happy_eyeballs::{interleave, race};
use super::origin::host_and_port;
use crate::{Error, ErrorKind, Result};

/// Silence before the first keep-alive probe, and between probes: a dead peer shows after about
/// two minutes, and a NAT that forgets flows after some minutes keeps ours.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// How long sent bytes may stay unacknowledged (RFC 5482): a request into a vanished network fails
/// after this and not after the kernel's quarter of an hour.
#[cfg(any(target_os = "linux", target_os = "android"))]
const USER_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Which addresses of a host are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressFamily {
    /// Both, raced as in RFC 8305.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Sends connections for one host and port elsewhere: curl's `--connect-to HOST:PORT:ADDR:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    /// The host it is for; `None` = every host.
    pub host: Option<String>,
    /// The port it is for; `None` = every port.
    pub port: Option<u16>,
    /// The host to connect to; `None` = the requested one.
    pub to_host: Option<String>,
    /// The port to connect to; `None` = the requested one.
    pub to_port: Option<u16>,
}

impl FromStr for ConnectTo {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = || {
            let message = format!("'{text}': not HOST:PORT:ADDR:PORT, where each may be empty");
            Error::new(ErrorKind::Usage, message)
        };
        let (host, rest) = split_host(text).ok_or_else(malformed)?;
        let (port, rest) = rest.split_once(':').ok_or_else(malformed)?;
        let (to_host, to_port) = split_host(rest).ok_or_else(malformed)?;
        let port_of = |text: &str| match text {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| malformed()),
        };
        let host_of = |text: &str| (!text.is_empty()).then(|| text.to_ascii_lowercase());
        Ok(Self {
            host: host_of(host),
            port: port_of(port)?,
            to_host: host_of(to_host),
            to_port: port_of(to_port)?,
        })
    }
}

/// Splits `host:rest`, where the host may be an IPv6 address in brackets, which are taken off.
fn split_host(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once("]:"),
        None => text.split_once(':'),
    }
}

/// Opens TCP connections: resolves, races the addresses, sets `TCP_NODELAY` and keep-alive. The
/// receive buffer is left to the kernel's autotuning, unless a limit on the rate wants a small one.
#[derive(Debug, Clone)]
pub struct TcpConnector {
    /// Where connections go elsewhere; the first match counts.
    pub connect_to: Vec<ConnectTo>,
    /// Which addresses are tried.
    pub family: AddressFamily,
    /// How long resolving and connecting may take together.
    pub connect_timeout: Duration,
}

impl Default for TcpConnector {
    fn default() -> Self {
        Self {
            connect_to: Vec::new(),
            family: AddressFamily::default(),
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}

impl TcpConnector {
    fn target<'a>(&'a self, host: &'a str, port: u16) -> (&'a str, u16) {
        let applies = |rule: &&ConnectTo| {
            rule.host.as_deref().is_none_or(|only| only.eq_ignore_ascii_case(host))
                && rule.port.is_none_or(|only| only == port)
        };
        match self.connect_to.iter().find(applies) {
            Some(rule) => (rule.to_host.as_deref().unwrap_or(host), rule.to_port.unwrap_or(port)),
            None => (host, port),
        }
    }

    async fn open_in_time(&self, host: &str, port: u16, buffer: Option<u32>) -> Result<Connected> {
        let (host, port) = self.target(host, port);
        match tokio::time::timeout(self.connect_timeout, self.open(host, port, buffer)).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                format!(
                    "{}: no connection within {} s",
                    host_and_port(host, port),
                    self.connect_timeout.as_secs_f64()
                ),
            )),
        }
    }

    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>> {
        let found = lookup_host((host, port)).await.map_err(|error| {
            let failure = format!("{host}: cannot be resolved; check the name and the network");
            Error::of_system(ErrorKind::Resolve, failure, error)
        })?;
        let addresses = interleave(found.filter(|address| match self.family {
            AddressFamily::Any => true,
            AddressFamily::V4 => address.is_ipv4(),
            AddressFamily::V6 => address.is_ipv6(),
        }));
        if addresses.is_empty() {
            let family = match self.family {
                AddressFamily::Any => "",
                AddressFamily::V4 => "IPv4 ",
                AddressFamily::V6 => "IPv6 ",
            };
            return Err(Error::new(ErrorKind::Resolve, format!("{host}: has no {family}address")));
        }
        Ok(addresses)
    }

    async fn open(&self, host: &str, port: u16, buffer: Option<u32>) -> Result<Connected> {
        let addresses = self.resolve(host, port).await?;
        let (stream, took) =
            race(addresses, |address| connect(address, buffer)).await.map_err(|error| {
                let failure = format!(
                    "{}: cannot connect; check host, port and network",
                    host_and_port(host, port)
                );
                match error {
                    Some(cause) => Error::of_system(ErrorKind::Connect, failure, cause),
                    None => Error::new(ErrorKind::Connect, failure),
                }
            })?;
        let io = TcpIo(stream);
        let rtt = io.min_rtt().unwrap_or(took);
        Ok(Connected { io: Box::new(io), rtt: Some(rtt) })
    }
}

impl Connector for TcpConnector {
    fn connect<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>> {
        Box::pin(self.open_in_time(host, port, None))
    }

    fn connect_narrow<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        buffer: u32,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>> {
        Box::pin(self.open_in_time(host, port, Some(buffer)))
    }
}

/// Connects to one address and tells how long the handshake took: one round trip.
async fn connect(address: SocketAddr, buffer: Option<u32>) -> io::Result<(TcpStream, Duration)> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(buffer) = buffer {
        // Linux grants twice as much, for its own bookkeeping.
        socket.set_recv_buffer_size(buffer)?;
    }
    socket.set_nodelay(true)?;
    let options = SockRef::from(&socket);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE);
    #[cfg(not(target_os = "openbsd"))]
    let keepalive = keepalive.with_interval(KEEPALIVE_INTERVAL);
    options.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    options.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    let start = Instant::now();
    let stream = socket.connect(address).await?;
    Ok((stream, start.elapsed()))
}

/// A TCP connection that knows its round-trip time.
struct TcpIo(TcpStream);

impl Io for TcpIo {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn min_rtt(&self) -> Option<Duration> {
        use std::os::fd::AsFd;
        super::tcp_info::min_rtt(self.0.as_fd())
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn rtt_of_received(&self) -> Option<Duration> {
        use std::os::fd::AsFd;
        super::tcp_info::rtt_of_received(self.0.as_fd())
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn rtt_of_sent(&self) -> Option<Duration> {
        use std::os::fd::AsFd;
        super::tcp_info::rtt_of_sent(self.0.as_fd())
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn out_of_order(&self) -> Option<u32> {
        use std::os::fd::AsFd;
        super::tcp_info::out_of_order(self.0.as_fd())
    }

    fn socket(&self) -> Option<&TcpStream> {
        Some(&self.0)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn segments(&self) -> Option<super::connector::Segments> {
        use std::os::fd::AsFd;
        super::tcp_info::segments(self.0.as_fd())
    }
}

impl AsyncRead for TcpIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TcpIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[test]
    fn connect_to_reads_as_curls() {
        let rule: ConnectTo = "Example.com:443:[::1]:8443".parse().unwrap();
        assert_eq!(rule.host.as_deref(), Some("example.com"));
        assert_eq!((rule.port, rule.to_port), (Some(443), Some(8443)));
        assert_eq!(rule.to_host.as_deref(), Some("::1"));
        let wild: ConnectTo = "::localhost:".parse().unwrap();
        assert_eq!((wild.host, wild.port, wild.to_port), (None, None, None));
        for bad in ["", "a:1", "a:b:c:d", "a:1:b", "[::1:1:b:2"] {
            assert_eq!(bad.parse::<ConnectTo>().unwrap_err().kind(), ErrorKind::Usage, "{bad}");
        }
    }

    #[tokio::test]
    async fn connects_elsewhere_and_knows_the_rtt() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connector = TcpConnector {
            connect_to: vec![format!("a.test:80:127.0.0.1:{port}").parse().unwrap()],
            ..TcpConnector::default()
        };
        let mut connected = connector.connect("a.test", 80).await.unwrap();
        assert!(connected.rtt.is_some());
        let (mut peer, _) = listener.accept().await.unwrap();
        peer.write_all(b"hello").await.unwrap();
        let mut got = [0; 5];
        connected.io.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"hello");
    }

    #[tokio::test]
    async fn failures_say_where_and_why() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let connector = TcpConnector::default();
        let error = connector.connect("127.0.0.1", closed.port()).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Connect);
        assert!(error.message().contains(&closed.to_string()), "{}", error.message());
        assert!(error.message().contains("refused"), "{}", error.message());

        let only_v6 = TcpConnector { family: AddressFamily::V6, ..TcpConnector::default() };
        let error = only_v6.connect("127.0.0.1", 1).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Resolve);
        assert_eq!(error.message(), "127.0.0.1: has no IPv6 address");
    }
}
