//! One file into a stream.

use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use super::{Output, Sink, io_failure, wrong_digest};
use crate::catalog::{Digest, FileSpec};
use crate::connection::shown;
use crate::digest::Hasher;
use crate::engine::{Opened, Resumable};
use crate::{Error, ErrorKind, Result};

/// One file into a stream, such as standard output. Nothing can be taken back: when the file
/// starts anew, what was passed on has to come again just as it was, and is not passed on twice.
pub struct StreamSink {
    writer: Option<Box<dyn Write + Send>>,
}

impl StreamSink {
    /// A sink that passes the bytes of one file on to `writer`.
    pub fn new(writer: Box<dyn Write + Send>) -> Self {
        Self { writer: Some(writer) }
    }
}

impl Sink for StreamSink {
    fn open(&mut self, spec: &FileSpec) -> (Opened, Box<dyn Output>) {
        let output = StreamOutput {
            writer: self.writer.take(),
            passed_on: Passed::default(),
            again: None,
            hasher: spec
                .digest
                .as_ref()
                .map(|digest| (Hasher::new(digest.algorithm), digest.clone())),
            url: shown(&spec.url),
        };
        let opened = if output.writer.is_some() {
            Opened::Fresh
        } else {
            let message = format!("{}: a stream takes one file only", output.url);
            Opened::Failed(Error::new(ErrorKind::Usage, message).into())
        };
        (opened, Box::new(output))
    }

    fn takes_any_order(&self) -> bool {
        false
    }
}

struct StreamOutput {
    writer: Option<Box<dyn Write + Send>>,
    passed_on: Passed,
    /// What has come again since the file started anew, as long as that is less than was passed on.
    again: Option<Passed>,
    hasher: Option<(Hasher, Digest)>,
    url: String,
}

/// The first bytes of a file: how many, and which.
#[derive(Default)]
struct Passed {
    bytes: u64,
    hash: blake3::Hasher,
}

impl Passed {
    fn add(&mut self, data: &[u8]) {
        self.hash.update(data);
        self.bytes += data.len() as u64;
    }
}

impl StreamOutput {
    /// The part of `data` that has not come yet.
    fn news<'a>(&mut self, offset: u64, data: &'a [u8]) -> Result<&'a [u8]> {
        let position = self.again.as_ref().unwrap_or(&self.passed_on).bytes;
        let Some(known) = position.checked_sub(offset) else {
            let message = format!("{}: bytes out of order", self.url);
            return Err(Error::new(ErrorKind::Internal, message));
        };
        let data = &data[known.min(data.len() as u64) as usize..];
        let Some(again) = &mut self.again else { return Ok(data) };
        let missing = self.passed_on.bytes - again.bytes;
        let (old, news) = data.split_at(missing.min(data.len() as u64) as usize);
        again.add(old);
        if again.bytes == self.passed_on.bytes {
            if again.hash.finalize() != self.passed_on.hash.finalize() {
                return Err(self.changed());
            }
            self.again = None;
        }
        Ok(news)
    }

    fn changed(&self) -> Error {
        let message =
            format!("{}: it has changed and what was passed on can't be taken back", self.url);
        Error::new(ErrorKind::CannotResume, message)
    }
}

impl Output for StreamOutput {
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let news = self.news(offset, data)?;
        if let Some((hasher, _)) = &mut self.hasher {
            hasher.update(news);
        }
        self.passed_on.add(news);
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write_all(news)).map_err(stream_failure)
    }

    fn expect(&mut self, digest: &Digest) {
        if self.hasher.is_none() && self.passed_on.bytes == 0 {
            self.hasher = Some((Hasher::new(digest.algorithm), digest.clone()));
        }
    }

    fn set_size(&mut self, _size: u64) -> Result<()> {
        Ok(())
    }

    fn restart(&mut self) -> Result<()> {
        self.again = (self.passed_on.bytes > 0).then(Passed::default);
        Ok(())
    }

    fn finish_takes_long(&self) -> bool {
        false
    }

    fn finish(
        mut self: Box<Self>,
        _modified: Option<SystemTime>,
        _part: Option<&Resumable>,
    ) -> Result<()> {
        if self.again.is_some() {
            return Err(self.changed());
        }
        if let Some(writer) = &mut self.writer {
            writer.flush().map_err(stream_failure)?;
        }
        let Some((hasher, expected)) = self.hasher else { return Ok(()) };
        let actual = Digest { algorithm: expected.algorithm, value: hasher.finish() };
        if actual == expected {
            Ok(())
        } else {
            let wrong = wrong_digest(&expected, &actual);
            let message = format!("{}: {wrong}; its bytes have been passed on already", self.url);
            Err(Error::new(ErrorKind::Checksum, message))
        }
    }

    fn abandon(self: Box<Self>, _part: Option<&Resumable>) {}
}

fn stream_failure(error: io::Error) -> Error {
    io_failure(Path::new("the output stream"), "can't be written", error)
}
