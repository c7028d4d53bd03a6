//! Response bodies: text, or a part of a virtual file at a pace.

use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use pelton_algos::units::{self, BitRate};
use tokio::time::{Instant, Sleep};

use crate::content::{BLOCK, VirtualFile};

/// A paced body moves in pieces of this size: at 1 Mbit/s one every 131 ms.
const PACED_PIECE: u64 = 16 * 1024;

/// When the next byte of a connection may leave, if its rate is capped. All bodies of a
/// connection share it.
#[derive(Debug, Default)]
pub(super) struct Pacer(Mutex<Option<Instant>>);

impl Pacer {
    /// Takes the time that `bytes` need at `rate` and says when they may leave.
    fn reserve(&self, bytes: u64, rate: BitRate) -> Instant {
        let now = Instant::now();
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let departure = next.unwrap_or(now).max(now) + units::Bytes(bytes) / rate;
        *next = Some(departure);
        departure
    }
}

/// A response body.
pub(super) enum OriginBody {
    Text(Option<Bytes>),
    File(FileBody),
}

/// A part of a virtual file.
pub(super) struct FileBody {
    pub(super) file: VirtualFile,
    /// What is still to be sent.
    pub(super) rest: Range<u64>,
    /// Do not tell the length in advance.
    pub(super) hide_length: bool,
    pub(super) pace: Option<(Arc<Pacer>, BitRate)>,
    /// A piece that waits for its departure.
    pub(super) waiting: Option<Pin<Box<Sleep>>>,
    /// Body bytes that the origin has sent.
    pub(super) sent: Arc<AtomicU64>,
}

impl OriginBody {
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self::Text(Some(text.into()))
    }

    pub(super) const fn empty() -> Self {
        Self::Text(None)
    }
}

impl FileBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let limit = if self.pace.is_some() { PACED_PIECE } else { BLOCK };
        let chunk = self.file.chunk(self.rest.start, limit.min(self.rest.end - self.rest.start));
        if let Some((pacer, rate)) = &self.pace {
            let waiting = self.waiting.get_or_insert_with(|| {
                Box::pin(tokio::time::sleep_until(pacer.reserve(chunk.len() as u64, *rate)))
            });
            ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
        }
        self.rest.start += chunk.len() as u64;
        self.sent.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        Poll::Ready(Some(chunk))
    }
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match self.get_mut() {
            Self::Text(text) => text.take(),
            Self::File(file) => ready!(file.poll_chunk(cx)),
        };
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(text) => text.is_none(),
            Self::File(file) => file.rest.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::File(file) if file.hide_length => SizeHint::default(),
            Self::File(file) => SizeHint::with_exact(file.rest.end - file.rest.start),
        }
    }
}
