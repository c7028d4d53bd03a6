//! Bytes on their way through a TLS stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::unbuffered::{EncodeError, EncryptError};
use tokio::io::{AsyncRead, ReadBuf};

use super::tls_failure;

/// Most bytes of records that wait: what one system call may bring, and the longest handshake
/// message that is taken.
const RECORDS: usize = 128 * 1024;

/// Bytes that wait for who takes them.
#[derive(Default)]
pub(super) struct Waiting {
    bytes: Vec<u8>,
    taken: usize,
}

/// Records as they came.
pub(super) struct Records {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    pub(super) fn take(&mut self, length: usize) {
        self.taken += length;
        if self.is_empty() {
            self.bytes.clear();
            self.taken = 0;
        }
    }

    /// Gives `bytes` to `reader` and keeps what it has no room for. Nothing must wait before them.
    pub(super) fn give(&mut self, bytes: &[u8], reader: Option<&mut ReadBuf<'_>>) {
        let mut kept = bytes;
        if let Some(reader) = reader {
            let given;
            (given, kept) = bytes.split_at(bytes.len().min(reader.remaining()));
            reader.put_slice(given);
        }
        self.bytes.extend_from_slice(kept);
    }

    /// Appends what `encode` makes in a buffer, which tells how much room that takes.
    pub(super) fn seal<E: NeedsRoom>(
        &mut self,
        mut encode: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), rustls::Error> {
        let before = self.bytes.len();
        let mut sealed = encode(&mut []);
        if let Err(error) = &sealed
            && let Some(room) = error.room()
        {
            self.bytes.resize(before + room, 0);
            sealed = encode(&mut self.bytes[before..]);
        }
        self.bytes.truncate(before + sealed.as_ref().map_or(0, |length| *length));
        sealed.map(drop).map_err(|_| rustls::Error::EncryptError)
    }
}

/// An error that may mean that a buffer is too small.
pub(super) trait NeedsRoom {
    /// The size that is large enough.
    fn room(&self) -> Option<usize>;
}

impl NeedsRoom for EncodeError {
    fn room(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(error) => Some(error.required_size),
            Self::AlreadyEncoded => None,
        }
    }
}

impl NeedsRoom for EncryptError {
    fn room(&self) -> Option<usize> {
        match self {
            Self::InsufficientSize(error) => Some(error.required_size),
            Self::EncryptExhausted => None,
        }
    }
}

impl Records {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; RECORDS], start: 0, end: 0 }
    }

    pub(super) fn waiting(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    pub(super) fn discard(&mut self, length: usize) {
        self.start += length;
    }

    /// Reads more records; none at the end of `io`.
    pub(super) fn poll_fill<T: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut T,
    ) -> Poll<io::Result<usize>> {
        // What waits is less than a record, or a message of the handshake.
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let mut free = ReadBuf::new(&mut self.buffer[self.end..]);
        if free.remaining() == 0 {
            let error = rustls::InvalidMessage::HandshakePayloadTooLarge;
            return Poll::Ready(Err(tls_failure(error.into())));
        }
        ready!(Pin::new(io).poll_read(cx, &mut free))?;
        let read = free.filled().len();
        self.end += read;
        Poll::Ready(Ok(read))
    }
}
