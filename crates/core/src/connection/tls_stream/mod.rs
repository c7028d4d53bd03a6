//! A TLS stream that reads many records with one system call and copies each byte as little as
//! rustls allows.
//!
//! rustls's buffered connection reads 4 KiB at a time, into a buffer of its own that it moves for
//! each record. Its unbuffered one decrypts where the bytes came to.

mod buffers;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, ReadTraffic, UnbufferedStatus};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::buffers::{Records, Waiting};
use super::http1::Duplex;

/// Most bytes that are encrypted at once: those of one record (RFC 8446, section 5.1).
const PLAIN_RECORD: usize = 16 * 1024;

/// A client's side of a TLS connection over `io`.
pub(super) struct TlsStream<T> {
    io: T,
    tls: Tls,
    records: Records,
    /// Decrypted bytes that no reader had room for.
    plain: Waiting,
    /// Records that are to be sent.
    sealed: Waiting,
}

/// rustls's part, and how it ended.
struct Tls {
    connection: UnbufferedClientConnection,
    failure: Option<rustls::Error>,
    /// The server said that nothing more comes.
    is_ended: bool,
    is_shut: bool,
}

/// What rustls does as soon as it has no more records to look at.
#[derive(Clone, Copy)]
enum Then<'a> {
    Read,
    Encrypt(&'a [u8]),
    CloseNotify,
}

/// Why rustls stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The reader has no room for more.
    Filled,
    /// It is connected and has looked at all records that are there.
    Connected,
    /// The handshake needs more records.
    Handshake,
    /// Both sides have said that nothing more comes.
    Closed,
}

impl<T: AsyncRead + AsyncWrite + Unpin> TlsStream<T> {
    /// Connects to `name` over `io`.
    ///
    /// # Errors
    /// What `io` says; `UnexpectedEof` when it ends; `InvalidData` around a [`rustls::Error`] for
    /// everything that TLS does not allow.
    pub(super) async fn connect(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        io: T,
    ) -> io::Result<Self> {
        let connection = UnbufferedClientConnection::new(config, name).map_err(tls_failure)?;
        let tls = Tls { connection, failure: None, is_ended: false, is_shut: false };
        let records = Records::new();
        let (plain, sealed) = (Waiting::default(), Waiting::default());
        let mut stream = Self { io, tls, records, plain, sealed };
        poll_fn(|cx| stream.poll_handshake(cx)).await?;
        Ok(stream)
    }

    /// The protocol that the server picked (RFC 7301).
    pub(super) fn alpn_protocol(&self) -> Option<&[u8]> {
        self.tls.connection.alpn_protocol()
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let stop = self.step(cx, Then::Read, None)?;
            ready!(self.poll_send(cx))?;
            if stop != Stop::Handshake {
                return Pin::new(&mut self.io).poll_flush(cx);
            }
            if ready!(self.records.poll_fill(cx, &mut self.io))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Lets rustls work on the records that are there. After a failure the alert that it means for
    /// the server is sent, as far as that can be done at once.
    fn step(
        &mut self,
        cx: &mut Context<'_>,
        then: Then<'_>,
        reader: Option<&mut ReadBuf<'_>>,
    ) -> io::Result<Stop> {
        let stop =
            self.tls.step(&mut self.records, then, reader, &mut self.plain, &mut self.sealed);
        stop.map_err(|error| {
            // The failure itself says more than one of this.
            let _ = self.poll_send(cx);
            tls_failure(error)
        })
    }

    /// Sends what is sealed.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.sealed.is_empty() {
            let sent = ready!(Pin::new(&mut self.io).poll_write(cx, self.sealed.bytes()))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sealed.take(sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl Tls {
    fn step(
        &mut self,
        records: &mut Records,
        then: Then<'_>,
        mut reader: Option<&mut ReadBuf<'_>>,
        plain: &mut Waiting,
        sealed: &mut Waiting,
    ) -> Result<Stop, rustls::Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(records.waiting());
            let done = match state {
                Ok(ConnectionState::ReadTraffic(traffic)) => {
                    hand_out(traffic, reader.as_deref_mut(), plain, &mut discard)
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    sealed.seal(|buffer| message.encode(buffer)).map(|()| None)
                }
                // It goes in the order of `sealed`, before everything that comes later.
                Ok(ConnectionState::TransmitTlsData(message)) => {
                    message.done();
                    Ok(None)
                }
                Ok(ConnectionState::WriteTraffic(mut traffic)) => match then {
                    Then::Read => Ok(()),
                    Then::Encrypt(bytes) => sealed.seal(|buffer| traffic.encrypt(bytes, buffer)),
                    Then::CloseNotify => sealed.seal(|buffer| traffic.queue_close_notify(buffer)),
                }
                .map(|()| Some(Stop::Connected)),
                Ok(ConnectionState::PeerClosed) => {
                    self.is_ended = true;
                    Ok(None)
                }
                Ok(ConnectionState::BlockedHandshake) => Ok(Some(Stop::Handshake)),
                Ok(ConnectionState::Closed) => Ok(Some(Stop::Closed)),
                // Early data are the server's, and there are no others.
                Ok(_) => Err(rustls::Error::General("a state that no client is in".into())),
                Err(error) => Err(error),
            };
            records.discard(discard);
            match done {
                Ok(None) => {}
                Ok(Some(stop)) => return Ok(stop),
                Err(failure) => {
                    self.failure = Some(failure.clone());
                    self.seal_alert(records, sealed);
                    return Err(failure);
                }
            }
        }
    }

    /// Seals the alert that tells the server of a failure.
    fn seal_alert(&mut self, records: &mut Records, sealed: &mut Waiting) {
        let state = self.connection.process_tls_records(records.waiting()).state;
        if let Ok(ConnectionState::EncodeTlsData(mut alert)) = state {
            // There is a failure to tell already.
            let _ = sealed.seal(|buffer| alert.encode(buffer));
        }
    }
}

/// Gives decrypted records to `reader`, and to `plain` what it has no room for.
fn hand_out<D>(
    mut traffic: ReadTraffic<'_, '_, D>,
    mut reader: Option<&mut ReadBuf<'_>>,
    plain: &mut Waiting,
    discard: &mut usize,
) -> Result<Option<Stop>, rustls::Error> {
    while let Some(record) = traffic.next_record() {
        let record = record?;
        *discard += record.discard;
        plain.give(record.payload, reader.as_deref_mut());
    }
    let is_filled = reader.is_some_and(|reader| reader.remaining() == 0);
    Ok(is_filled.then_some(Stop::Filled))
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let length = this.plain.bytes().len().min(buffer.remaining());
        if length > 0 || buffer.remaining() == 0 {
            buffer.put_slice(&this.plain.bytes()[..length]);
            this.plain.take(length);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        loop {
            let stop = this.step(cx, Then::Read, Some(buffer));
            // An answer to a new key, say. If it cannot go now, it goes with the next request.
            let _ = this.poll_send(cx);
            if buffer.filled().len() > before {
                // A failure is told by the next call.
                return Poll::Ready(Ok(()));
            }
            stop?;
            if this.tls.is_ended {
                return Poll::Ready(Ok(()));
            }
            if ready!(this.records.poll_fill(cx, &mut this.io))? == 0 {
                // Without a word of the server anybody may have cut the connection.
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(cx))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let bytes = &bytes[..bytes.len().min(PLAIN_RECORD)];
        match self.step(cx, Then::Encrypt(bytes), None)? {
            Stop::Connected => {
                // What cannot go now goes with the next write or flush.
                if let Poll::Ready(Err(error)) = self.poll_send(cx) {
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(Ok(bytes.len()))
            }
            _ => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.tls.is_shut {
            self.tls.is_shut = true;
            self.step(cx, Then::CloseNotify, None)?;
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for TlsStream<T> {}

/// A TLS failure as [`super::tls::cause`] finds it.
fn tls_failure(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
