//! A body on its way into the file.

use std::time::Duration;

use pelton_algos::credit::news_of_promise;
use pelton_algos::parts::Parts;
use pelton_algos::ranges::{ByteRange, StreamId};
use pelton_algos::time::Timestamp;
use tokio::time::{Instant, timeout};

use super::{Context, request, with_output};
use crate::connection::{Further, GetResponse, Piece, shown};
use crate::engine::{Event, Fetch};
use crate::{Error, ErrorKind, Result};

/// For how long the end of a body is waited for whose last byte has come. It comes with that, or in the packet behind it,
/// which is sent again after 200 ms at first where it was lost.
const PATIENCE_WITH_END: Duration = Duration::from_millis(500);

/// A body on its way into the file.
pub(super) struct Incoming<'a> {
    pub(super) context: &'a Context,
    pub(super) fetch: &'a Fetch,
    pub(super) began: Instant,
    /// Of the next byte in the file.
    pub(super) position: u64,
    /// Where the body ends in the file, where that is known.
    pub(super) body_ends: Option<u64>,
    pub(super) parts: Option<Parts>,
    /// What was asked for behind it.
    pub(super) next: Option<(Further, ByteRange)>,
    /// It was told that the server may send up to here.
    pub(super) told: u64,
}

/// Tells up to where the server may send what is at `position`, if that is far enough beyond what was `told`.
pub(super) fn tell_of_promise(
    context: &Context,
    stream: StreamId,
    position: u64,
    response: &GetResponse,
    told: &mut u64,
) {
    let news = response.ahead().and_then(|ahead| news_of_promise(position, ahead, *told));
    if let Some(end) = news {
        *told = end;
        (context.tell)(Event::Promised { stream, end });
    }
}

impl Incoming<'_> {
    /// Reads it to its end, or to where the stream stops. Returns whether that is the end of the stream.
    pub(super) async fn read(&mut self, response: &mut GetResponse) -> Result<bool> {
        let has_file = with_output(self.context, |output| Ok(output.file()?.is_some()))?;
        let (context, body_ends) = (self.context, self.body_ends);
        let stops = || context.end.get().min(body_ends.unwrap_or(u64::MAX));
        loop {
            let position = self.position;
            let left = || stops().saturating_sub(position);
            let keep = |piece: Piece<'_>| keep(context, position, left(), piece);
            let piece = response.piece_or_pipe(left, has_file, keep);
            let piece = if body_ends == Some(position) && left() == 0 {
                // Some caches never send the last chunk of a range: all that was promised is here.
                let ended = timeout(PATIENCE_WITH_END, piece).await;
                let Ok(piece) = ended else { return Ok(self.is_last()) };
                piece
            } else {
                piece.await
            };
            let Some(kept) = piece? else { break };
            let kept = kept?;
            if kept > 0 {
                self.position += kept;
                (context.tell)(Event::Data { stream: self.fetch.stream, bytes: kept });
                tell_of_promise(
                    context,
                    self.fetch.stream,
                    self.position,
                    response,
                    &mut self.told,
                );
                self.ask_for_more(kept, response)?;
            }
            // The end of the body is waited for, so that the connection can be used again; a body that
            // is longer than it should be is not.
            let is_at_end = body_ends == Some(self.position);
            if self.position >= stops() && (kept == 0 || !is_at_end) {
                return Ok(self.is_last());
            }
        }
        match body_ends {
            Some(end) if self.position < end.min(context.end.get()) => {
                let left = end - self.position;
                let url = shown(&self.fetch.url);
                let message = format!("{url}: the body ended {left} bytes early");
                Err(Error::new(ErrorKind::ShortBody, message))
            }
            _ => Ok(self.is_last()),
        }
    }

    /// Whether the stream ends with this body.
    fn is_last(&self) -> bool {
        self.parts.is_none() || self.position >= self.context.end.get()
    }

    /// Asks for the next part, if it is time.
    fn ask_for_more(&mut self, bytes: u64, response: &GetResponse) -> Result<()> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        parts.on_bytes(Timestamp::new(self.began.elapsed()), bytes);
        let may_ask = self.next.is_none() && self.body_ends == Some(parts.asked());
        let from = parts.asked();
        let end = self.context.end.get();
        if let Some(end) = may_ask.then(|| parts.next(self.position, end)).flatten() {
            let range = from..end;
            let request = request(self.context, self.fetch, Some(&range));
            if let Some(further) = self.context.http.get_further(&request, response)? {
                self.next = Some((further, range));
                (self.context.tell)(Event::Asked { stream: self.fetch.stream, end });
            }
        }
        Ok(())
    }
}

/// Writes what of `piece`, which begins at `position`, is among the `left` bytes that this stream is
/// still to bring.
fn keep(context: &Context, position: u64, left: u64, piece: Piece<'_>) -> Result<u64> {
    let pipe = match piece {
        Piece::Bytes(bytes) => {
            let kept = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            let length = kept.len() as u64;
            if !kept.is_empty() {
                with_output(context, |output| {
                    output.write_at(position, kept)?;
                    output.wrote(position..position + length);
                    Ok(())
                })?;
            }
            return Ok(length);
        }
        Piece::Piped(pipe) => pipe,
    };
    let length = pipe.waiting() as u64;
    with_output(context, |output| {
        if let Some(file) = output.file()? {
            pipe.move_to(file, position);
        }
        // A file system without splice, or a failure that the output can name.
        let mut buffer = [0; 16 * 1024];
        while pipe.waiting() > 0 {
            let offset = position + (length - pipe.waiting() as u64);
            let read = pipe.read(&mut buffer).map_err(|error| {
                Error::new(ErrorKind::FileIo, "a pipe of this process is broken").with_source(error)
            })?;
            output.write_at(offset, &buffer[..read])?;
        }
        output.wrote(position..position + length);
        Ok(())
    })?;
    Ok(length)
}
