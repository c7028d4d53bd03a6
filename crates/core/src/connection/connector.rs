//! Opens byte streams. Replace it to shape, proxy or simulate the link.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::Result;

/// A byte stream to a server.
pub trait Io: AsyncRead + AsyncWrite + Unpin {
    /// The least round-trip time that this stream has seen, where its transport knows it.
    fn min_rtt(&self) -> Option<Duration> {
        None
    }

    /// The round-trip time of what was received lately, queues included, where its transport knows it
    /// and acknowledges what is read late when it is read. It makes reads rare where that saves
    /// acknowledgements.
    fn rtt_of_received(&self) -> Option<Duration> {
        None
    }

    /// The round-trip time of what was sent and acknowledged lately, queues included, where its transport knows it.
    fn rtt_of_sent(&self) -> Option<Duration> {
        None
    }

    /// Segments that came before one that was sent earlier, since this stream began, where its transport counts them.
    fn out_of_order(&self) -> Option<u32> {
        None
    }

    /// The socket whose bytes are those of this stream, unchanged and unshaped, where there is one:
    /// on Linux the kernel then moves them to a file without a copy in this process.
    fn socket(&self) -> Option<&TcpStream> {
        None
    }

    /// The segments that this stream has moved, where its transport counts them.
    fn segments(&self) -> Option<Segments> {
        None
    }
}

/// Segments that a TCP connection has sent and received, bare acknowledgements among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segments {
    /// Sent.
    pub sent: u32,
    /// Received.
    pub received: u32,
    /// Bytes in those that were received, whether they were read or not.
    pub received_bytes: u64,
}

/// A byte stream that was just opened.
pub struct Connected {
    /// The stream, before any TLS.
    pub io: Box<dyn Io>,
    /// The round-trip time as the handshake showed it. The connector owns this reading: one that
    /// delays its stream reports the delayed time.
    pub rtt: Option<Duration>,
}

/// Opens byte streams to a host. One connector serves a whole run and lives on its one thread.
pub trait Connector: Send + Sync {
    /// Opens one byte stream to `host` (a name or an address without brackets) at `port`.
    ///
    /// # Errors
    /// `Resolve` or `Connect`, with the host and port in the message.
    fn connect<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>>;

    /// The same with a receive buffer for `buffer` bytes from the first packet on: a limit on the rate
    /// asks for it. By default the buffer is that of [`connect`](Self::connect).
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    fn connect_narrow<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        _buffer: u32,
    ) -> Pin<Box<dyn Future<Output = Result<Connected>> + 'a>> {
        self.connect(host, port)
    }
}
