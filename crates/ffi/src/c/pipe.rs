//! One file into a descriptor that takes bytes in order alone, such as a pipe.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What POSIX lets a pipe take at once when poll says that it can be written: more may block.
const AT_ONCE: usize = 4096;
/// How often a reader that takes nothing is no reason to look whether anyone still waits.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Waits for its reader, but no longer than the download is wanted.
pub(super) struct Pipe {
    file: File,
    cancelled: Arc<AtomicBool>,
}

impl Pipe {
    pub(super) const fn new(file: File, cancelled: Arc<AtomicBool>) -> Self {
        Self { file, cancelled }
    }

    /// Whether it can be written now; it is asked again otherwise.
    fn is_ready(&self) -> io::Result<bool> {
        let mut asked = [PollFd::new(&self.file, PollFlags::OUT)];
        match poll(&mut asked, Some(&LOOK)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let part = &data[..data.len().min(AT_ONCE)];
        while !self.cancelled.load(Ordering::Acquire) {
            if !self.is_ready()? {
                continue;
            }
            match self.file.write(part) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
        Err(io::Error::other("the download was cancelled"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
