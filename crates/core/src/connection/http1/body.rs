//! The body of a response, read straight from the stream.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use bytes::Buf;
use http::{Method, Response};
use pelton_algos::connections::LONGEST_AHEAD;

use super::head::{self, Framing, malformed};
use super::{Lent, Stream};
use crate::connection::pace::Share;
use crate::connection::scratch::{Came, Piece, Scratch};

/// The longest line of a chunk's size, and the longest trailers.
const LONGEST_LINE: usize = 16 * 1024;

/// Where in the body the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// So many bytes come yet.
    Length(u64),
    UntilClose,
    /// The line with the size of a chunk comes (RFC 9112, section 7.1).
    ChunkSize,
    /// So many bytes of the chunk come yet.
    Chunk(u64),
    /// The line end behind a chunk comes.
    ChunkEnd,
    Trailers,
    End,
}

/// A body that is being read.
pub(in crate::connection) struct Http1Body {
    /// Given back at the end.
    lent: Option<Lent>,
    place: Place,
    is_reusable: bool,
}

impl Http1Body {
    pub(super) fn new(lent: Lent, method: &Method, response: &Response<()>) -> io::Result<Self> {
        let place = match head::framing(method, response)? {
            Framing::Length(length) => Place::Length(length),
            Framing::Chunked => Place::ChunkSize,
            Framing::UntilClose => Place::UntilClose,
        };
        let is_reusable = head::stays_open(response) && place != Place::UntilClose;
        let mut body = Self { lent: Some(lent), place, is_reusable };
        body.moved(0);
        Ok(body)
    }

    /// Whether it takes so long that requests behind it are better sent over other connections.
    pub(in crate::connection) fn is_long(&self) -> bool {
        match self.place {
            Place::Length(left) => left > LONGEST_AHEAD.0,
            Place::UntilClose => true,
            _ => false,
        }
    }

    /// Whether the body has ended. The connection takes another request then, or is closed.
    pub(in crate::connection) fn is_at_end(&self) -> bool {
        self.place == Place::End
    }

    /// Waits until something of it has come, or nothing will: who reads it meets the same end.
    pub(in crate::connection) async fn begin(&mut self) {
        if let Some(Lent { stream, .. }) = &mut self.lent
            && stream.buffer.is_empty()
        {
            let _ = stream.read_more().await;
        }
    }

    /// Gives the next piece to `take`. `None` at the end. It stays in the kernel if that can be and
    /// `room` says that as many bytes at most are welcome there.
    pub(in crate::connection) async fn piece<R>(
        &mut self,
        scratch: &Scratch,
        share: &Share,
        room: impl Fn() -> u64,
        take: impl FnOnce(Piece<'_>) -> R,
    ) -> io::Result<Option<R>> {
        self.enter_chunk().await?;
        let Some(Lent { stream, .. }) = &mut self.lent else { return Ok(None) };
        let most = match self.place {
            Place::Length(left) | Place::Chunk(left) => saturating(left),
            _ => usize::MAX,
        };
        if !stream.buffer.is_empty() {
            let there = most.min(stream.buffer.len());
            let turn = |_: &mut Context<'_>, turn| Poll::Ready(there.min(turn));
            let length = poll_fn(|cx| share.poll_read(cx, turn)).await;
            share.spend(length);
            let taken = take(Piece::Bytes(&stream.buffer[..length]));
            stream.buffer.advance(length);
            self.moved(length);
            return Ok(Some(taken));
        }
        let io = &mut stream.io;
        let came = poll_fn(|cx| {
            share.poll_read(cx, |cx, turn| {
                scratch.poll_fill(cx, io, most.min(turn), saturating(room()))
            })
        });
        let came = came.await?;
        let (Came::Buffer(length) | Came::Pipe(length)) = came;
        share.spend(length);
        if length == 0 {
            if self.place != Place::UntilClose {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.end();
            return Ok(None);
        }
        // Nothing else runs on this thread between the read and here.
        let taken = scratch.hand_over(came, take);
        self.moved(length);
        Ok(taken)
    }

    /// Reads what stands between chunks, up to the bytes of the next one or the end.
    async fn enter_chunk(&mut self) -> io::Result<()> {
        while let Some(Lent { stream, .. }) = &mut self.lent {
            let next = match self.place {
                Place::ChunkSize => read_chunk_size(stream)?,
                Place::ChunkEnd => read_chunk_end(stream)?,
                Place::Trailers => read_trailers(stream)?,
                _ => return Ok(()),
            };
            match next {
                Some(Place::End) => self.end(),
                Some(place) => self.place = place,
                None if stream.buffer.len() > LONGEST_LINE => {
                    return Err(malformed("a chunk without an end"));
                }
                None => stream.read_more().await?,
            }
        }
        Ok(())
    }

    /// `length` bytes of the body were taken.
    fn moved(&mut self, length: usize) {
        let length = length as u64;
        match self.place {
            Place::Length(left) if left == length => self.end(),
            Place::Length(left) => self.place = Place::Length(left - length),
            Place::Chunk(left) if left == length => self.place = Place::ChunkEnd,
            Place::Chunk(left) => self.place = Place::Chunk(left - length),
            _ => {}
        }
    }

    fn end(&mut self) {
        self.place = Place::End;
        let lent = self.lent.take();
        if let Some(lent) = lent.filter(|lent| self.is_reusable && lent.says_no_more_than_asked()) {
            lent.give_back();
        }
    }
}

fn read_chunk_size(stream: &mut Stream) -> io::Result<Option<Place>> {
    // The parser takes a line without digits for a size of zero, which ends the body.
    if stream.buffer.first().is_some_and(|byte| !byte.is_ascii_hexdigit()) {
        return Err(malformed("a chunk without a size"));
    }
    let parsed = httparse::parse_chunk_size(&stream.buffer);
    let httparse::Status::Complete((length, size)) =
        parsed.map_err(|_| malformed("a chunk without a size"))?
    else {
        return Ok(None);
    };
    stream.buffer.advance(length);
    Ok(Some(if size == 0 { Place::Trailers } else { Place::Chunk(size) }))
}

fn read_chunk_end(stream: &mut Stream) -> io::Result<Option<Place>> {
    match stream.buffer.get(..2) {
        None => Ok(None),
        Some(b"\r\n") => {
            stream.buffer.advance(2);
            Ok(Some(Place::ChunkSize))
        }
        Some(_) => Err(malformed("a chunk is longer than its size")),
    }
}

/// Trailers are no part of the file.
fn read_trailers(stream: &mut Stream) -> io::Result<Option<Place>> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    match httparse::parse_headers(&stream.buffer, &mut fields).map_err(malformed)? {
        httparse::Status::Complete((length, _)) => {
            stream.buffer.advance(length);
            Ok(Some(Place::End))
        }
        httparse::Status::Partial => Ok(None),
    }
}

fn saturating(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::task::Waker;

    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio_test::io::Builder;

    use super::super::{Duplex, Http1};
    use super::*;

    impl Duplex for tokio_test::io::Mock {}

    /// What of `script`, which comes in these pieces, is body; and whether the connection is reusable.
    fn body_of(script: &[&[u8]]) -> io::Result<(Vec<u8>, bool)> {
        let mut stream = Builder::new();
        stream.write(b"GET / HTTP/1.1\r\n\r\n");
        for piece in script {
            stream.read(piece);
        }
        let connection = Rc::new(Http1::new(stream.build()));
        let request = http::Request::get("/").body(()).unwrap();
        let read = async {
            let (_, mut body) = connection.send(request).await?;
            let mut all = Vec::new();
            let (scratch, share) = (Scratch::default(), Share::default());
            loop {
                let piece = body.piece(
                    &scratch,
                    &share,
                    || 0,
                    |piece| match piece {
                        Piece::Bytes(bytes) => all.extend_from_slice(bytes),
                        Piece::Piped(_) => unreachable!("this is no socket"),
                    },
                );
                if piece.await?.is_none() {
                    break;
                }
            }
            assert!(body.is_at_end());
            Ok::<_, io::Error>(all)
        };
        let body = read.now_or_never().expect("everything is there")?;
        Ok((body, connection.is_ready()))
    }

    #[test]
    fn a_body_with_a_length() {
        let read = body_of(&[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", b"cde"]);
        assert_eq!(read.unwrap(), (b"abcde".to_vec(), true));
    }

    #[test]
    fn a_short_body_is_an_error() {
        let read = body_of(&[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"]);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_comes_behind_a_body_ends_the_connection() {
        let read = body_of(&[b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc"]);
        assert_eq!(read.unwrap(), (b"ab".to_vec(), false));
    }

    #[test]
    fn a_body_until_the_end_of_the_connection() {
        let read = body_of(&[b"HTTP/1.0 200 OK\r\n\r\nab", b"cde"]);
        assert_eq!(read.unwrap(), (b"abcde".to_vec(), false));
    }

    #[test]
    fn interim_responses_are_passed_over() {
        let read = body_of(&[
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1",
            b" 200 OK\r\nContent-Length: 0\r\n\r\n",
        ]);
        assert_eq!(read.unwrap(), (Vec::new(), true));
    }

    #[test]
    fn chunks_with_extensions_and_trailers() {
        let read = body_of(&[
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n2\r\nd",
            b"e\r\n0\r\nDigest: x\r\n\r\n",
        ]);
        assert_eq!(read.unwrap(), (b"abcde".to_vec(), true));
    }

    #[test]
    fn with_both_framings_the_chunks_count_and_the_connection_ends() {
        let both = "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n";
        let answer = format!("HTTP/1.1 200 OK\r\n{both}\r\n2\r\nab\r\n0\r\n\r\n");
        assert_eq!(body_of(&[answer.as_bytes()]).unwrap(), (b"ab".to_vec(), false));
    }

    #[test]
    fn broken_chunks_are_errors() {
        for (broken, kind) in [
            (&b"3\r\nabcd\r\n"[..], io::ErrorKind::InvalidData),
            (b"x\r\n", io::ErrorKind::InvalidData),
            (b"\r\n\r\n", io::ErrorKind::InvalidData),
            (b"3\r\nabc\r\n;x=y\r\n\r\n", io::ErrorKind::InvalidData),
            (b"3\r\nabc\r\n \r\n\r\n", io::ErrorKind::InvalidData),
            (b"fffffffffffffffff\r\n", io::ErrorKind::InvalidData),
            (b"3\r\nab", io::ErrorKind::UnexpectedEof),
            (b"0\r\n", io::ErrorKind::UnexpectedEof),
        ] {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let error = body_of(&[head, broken]).unwrap_err();
            assert_eq!(error.kind(), kind, "{}", String::from_utf8_lossy(broken));
        }
    }

    #[test]
    fn an_idle_connection_that_the_server_closes_has_ended() {
        let connection = Http1::new(Builder::new().build());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(connection.poll_watch(&mut cx).is_ready());
        assert!(connection.is_closed() && !connection.is_ready());
    }

    proptest! {
        /// Chunks say the same however they and the reads are cut.
        #[test]
        fn chunks_join(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8), cut in 1usize..40) {
            let mut wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in &chunks {
                wire.extend(format!("{:x}\r\n", chunk.len()).bytes());
                wire.extend(chunk);
                wire.extend(b"\r\n");
            }
            wire.extend(b"0\r\n\r\n");
            let pieces = wire.chunks(cut).collect::<Vec<_>>();
            prop_assert_eq!(body_of(&pieces).unwrap(), (chunks.concat(), true));
        }
    }
}
