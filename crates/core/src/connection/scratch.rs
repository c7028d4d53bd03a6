//! Where the bytes of every body of a thread wait for the moment until they are used.
//!
//! One place for all of them stays in the processor's cache, and gathers what comes in small pieces:
//! TLS records, HTTP/2 frames. A write for each of those would cost more than the copy.

use std::cell::{Cell, RefCell};
use std::io;
use std::io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use super::http1::{Duplex, Pipe};

/// What is gathered at most. More would not stay in a processor's second cache, beside what else
/// is in there: 1 MiB costs TLS a third more CPU time.
const LENGTH: usize = 256 * 1024;

/// The place, shared by all bodies of a thread.
#[derive(Clone, Default)]
pub(super) struct Scratch(Rc<Places>);

#[derive(Default)]
struct Places {
    buffer: RefCell<Vec<u8>>,
    pipe: RefCell<Option<Pipe>>,
    /// Whether the system refused to fill a pipe from a socket.
    has_no_pipes: Cell<bool>,
}

/// A piece of a body.
#[derive(Clone, Copy)]
pub(crate) enum Piece<'a> {
    /// In memory.
    Bytes(&'a [u8]),
    /// In the kernel. What is left there is lost.
    Piped(&'a Pipe),
}

/// Where the next piece came to, and its length.
#[derive(Clone, Copy)]
pub(super) enum Came {
    Buffer(usize),
    Pipe(usize),
}

impl Scratch {
    /// Fills the scratch from `stream`: its pipe if that can be and `room` is not 0, or its buffer. With
    /// what is there now, at least a byte and `most` at most; none at the end of the stream.
    pub(super) fn poll_fill(
        &self,
        cx: &mut Context<'_>,
        stream: &mut dyn Duplex,
        most: usize,
        room: usize,
    ) -> Poll<io::Result<Came>> {
        if room > 0
            && !self.0.has_no_pipes.get()
            && let Some(filled) = self.poll_fill_pipe(cx, stream, most.min(room))
        {
            return filled.map_ok(Came::Pipe);
        }
        let read = |buffer: &mut ReadBuf<'_>| Pin::new(&mut *stream).poll_read(cx, buffer);
        self.poll_gather(most, read).map_ok(Came::Buffer)
    }

    /// `None` where no pipe can be filled from `stream`.
    fn poll_fill_pipe(
        &self,
        cx: &mut Context<'_>,
        stream: &mut dyn Duplex,
        most: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        let mut place = self.0.pipe.borrow_mut();
        if place.is_none() {
            *place = Pipe::new().ok();
        }
        let filled = stream.poll_fill(cx, place.as_ref()?, most)?;
        if let Poll::Ready(Err(error)) = &filled
            && matches!(error.kind(), InvalidInput | Unsupported | PermissionDenied)
        {
            self.0.has_no_pipes.set(true);
            return None;
        }
        Some(filled)
    }

    /// Fills the buffer with what `read` has now, at least a byte and `most` at most; none at its end.
    /// An end or a failure behind the first byte is left to the next call, which must meet it again.
    pub(super) fn poll_gather<E>(
        &self,
        most: usize,
        mut read: impl FnMut(&mut ReadBuf<'_>) -> Poll<Result<(), E>>,
    ) -> Poll<Result<usize, E>> {
        let mut memory = self.0.buffer.borrow_mut();
        if memory.is_empty() {
            memory.resize(LENGTH, 0);
        }
        let most = most.min(memory.len());
        let mut buffer = ReadBuf::new(&mut memory[..most]);
        while buffer.remaining() > 0 {
            let before = buffer.filled().len();
            let came = read(&mut buffer);
            let is_filled = buffer.filled().len() > before;
            match came {
                Poll::Ready(Ok(())) if is_filled => {}
                _ if before > 0 => break,
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(0)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Gives what came to `take`. Nothing else may have run on this thread since.
    pub(super) fn hand_over<R>(&self, came: Came, take: impl FnOnce(Piece<'_>) -> R) -> Option<R> {
        match came {
            Came::Buffer(length) => Some(take(Piece::Bytes(&self.0.buffer.borrow()[..length]))),
            Came::Pipe(_) => {
                let mut place = self.0.pipe.borrow_mut();
                let taken = take(Piece::Piped(place.as_ref()?));
                // The next piece needs an empty one.
                place.take_if(|pipe| pipe.waiting() > 0);
                Some(taken)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `Scratch::poll_gather` makes of reads that bring these, and how many reads that takes.
    fn gathered(most: usize, reads: &[Poll<Result<&'static str, ()>>]) -> (String, usize) {
        let scratch = Scratch::default();
        let mut taken = 0;
        let came = scratch.poll_gather(most, |buffer| {
            let read = reads[taken];
            taken += 1;
            read.map_ok(|bytes| buffer.put_slice(&bytes.as_bytes()[..bytes.len().min(most)]))
        });
        let text = match came {
            Poll::Pending => "pending".to_owned(),
            Poll::Ready(Err(())) => "failed".to_owned(),
            Poll::Ready(Ok(length)) => scratch
                .hand_over(Came::Buffer(length), |piece| match piece {
                    Piece::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                    Piece::Piped(_) => "a pipe".to_owned(),
                })
                .unwrap(),
        };
        (text, taken)
    }

    #[test]
    fn what_is_there_is_gathered() {
        let (ab, cd, end) = (Poll::Ready(Ok("ab")), Poll::Ready(Ok("cd")), Poll::Ready(Ok("")));
        let failed = Poll::Ready(Err(()));
        for (most, reads, expected) in [
            (9, &[ab, cd, Poll::Pending][..], ("abcd", 3)),
            (9, &[ab, end], ("ab", 2)),
            (9, &[ab, failed], ("ab", 2)),
            (4, &[ab, cd], ("abcd", 2)),
            (9, &[Poll::Pending], ("pending", 1)),
            (9, &[failed], ("failed", 1)),
            (9, &[end], ("", 1)),
        ] {
            assert_eq!(gathered(most, reads), (expected.0.to_owned(), expected.1));
        }
    }
}
