//! Bytes that go from a socket to a file inside the kernel (splice(2), Linux alone).
//!
//! It saves one of the two copies that reading and writing make: a quarter of the CPU time on a fast
//! link.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// What a pipe may hold without privileges. The default, 64 KiB, would cost a pair of system calls
/// for as much.
const PIPE_SIZE: usize = 1024 * 1024;

/// A pipe, which is empty between two uses.
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    size: usize,
    /// Bytes that are in it.
    waiting: Cell<usize>,
}

impl Pipe {
    pub(in crate::connection) fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A user may own so many pages of pipes and no more.
        let size = fcntl_setpipe_size(&write, PIPE_SIZE).unwrap_or(64 * 1024);
        Ok(Self { read, write, size, waiting: Cell::new(0) })
    }

    /// Takes what waits in `socket`, `most` bytes at most; none at its end.
    pub(in crate::connection) fn fill(&self, socket: &TcpStream, most: usize) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let filled = socket.try_io(Interest::READABLE, || {
            Ok(splice(socket, None, &self.write, None, most.min(self.size), flags)?)
        })?;
        self.waiting.set(filled);
        Ok(filled)
    }

    /// How many bytes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Moves what waits to `file` at `offset`. What the kernel does not move there stays.
    pub(crate) fn move_to(&self, file: &File, mut offset: u64) {
        while self.waiting() > 0 {
            let (from, to) = (&self.read, Some(&mut offset));
            match splice(from, None, file, to, self.waiting(), SpliceFlags::MOVE) {
                Ok(0) => return,
                Ok(moved) => self.waiting.set(self.waiting() - moved),
                Err(Errno::INTR) => {}
                // A file system without splice, a full disk: writing tells.
                Err(_) => return,
            }
        }
    }

    /// Reads some of what waits, at least a byte while there is one.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.waiting());
        let buffer = &mut buffer[..most];
        let read = retry_on_intr(|| rustix::io::read(&self.read, &mut *buffer))?;
        self.waiting.set(self.waiting() - read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    /// A pipe with bytes that came over TCP, and the bytes.
    async fn filled() -> (Pipe, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let sent = (0..20_000_u32).map(|number| number.to_le_bytes()[0]).collect::<Vec<_>>();
        server.write_all(&sent).await.unwrap();
        socket.readable().await.unwrap();
        let pipe = Pipe::new().unwrap();
        let length = pipe.fill(&socket, 15_000).unwrap();
        assert!(length > 0 && length <= 15_000);
        (pipe, sent[..length].to_vec())
    }

    #[tokio::test]
    async fn bytes_move_to_their_place_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, bytes) = filled().await;
        let path = directory.path().join("file");
        let file = File::create(&path).unwrap();
        pipe.move_to(&file, 3);
        assert_eq!(pipe.waiting(), 0);
        let expected = [&[0; 3], &bytes[..]].concat();
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    }

    /// The kernel splices into no file that is open for appending (splice(2), EINVAL).
    #[tokio::test]
    async fn what_the_kernel_does_not_move_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, bytes) = filled().await;
        let path = directory.path().join("file");
        let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        pipe.move_to(&file, 0);
        assert_eq!(pipe.waiting(), bytes.len());
        let mut all = Vec::new();
        let mut buffer = [0; 4096];
        while pipe.waiting() > 0 {
            let length = pipe.read(&mut buffer).unwrap();
            all.extend_from_slice(&buffer[..length]);
        }
        assert_eq!(all, bytes);
    }
}
