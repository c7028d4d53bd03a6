//! Where bytes go: positioned writes to `NAME.part`, renamed only when complete.

mod directory;
mod files;
mod hashing;
mod names;
mod part;
#[cfg_attr(not(unix), path = "sink/space_elsewhere.rs")]
mod space;
mod stream;
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    path = "sink/unnamed_elsewhere.rs"
)]
mod unnamed;

use std::fs::File;
use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use directory::{Allocation, DirectoryOptions, DirectorySink};
pub(crate) use files::{is_at, open_regular, read_regular};
pub use stream::StreamSink;

use pelton_algos::ranges::ByteRange;
use pelton_algos::units::Bytes;

use crate::catalog::{Digest, FileSpec};
use crate::engine::{Opened, Resumable, UserLimits};
use crate::{Error, ErrorKind, Result};

/// Takes the files of a run. [`DirectorySink`] and [`StreamSink`] are pelton's own.
pub trait Sink: Send {
    /// Looks at what is where `spec` goes, and readies an output for it. An output is not used
    /// when the answer is [`Opened::Verified`] or [`Opened::Failed`].
    fn open(&mut self, spec: &FileSpec) -> (Opened, Box<dyn Output>);

    /// How much space there is for bytes, where that can be known.
    fn space(&self) -> Option<Space> {
        None
    }

    /// Whether bytes may come in any order. If not, files come one after the other over one stream
    /// each.
    fn takes_any_order(&self) -> bool {
        true
    }
}

/// What is free where files go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Where the file system is mounted.
    pub mount: PathBuf,
    /// Bytes that this user may write. A quota may allow fewer.
    pub free: Bytes,
}

/// `limits` as far as `sink` bears them.
pub(crate) fn bounded(limits: UserLimits, sink: &dyn Sink) -> UserLimits {
    if sink.takes_any_order() {
        return limits;
    }
    UserLimits { max_files: Some(1), max_streams_per_file: Some(1), ..limits }
}

/// What of a file is not what was promised.
#[derive(Debug)]
pub struct Damage {
    /// Where its bytes are wrong, as far as can be told.
    pub ranges: Vec<ByteRange>,
    /// The failure that it is if there is nobody else to ask. The URL that was asked is put before its message.
    pub failure: Error,
}

/// Takes the bytes of one file.
pub trait Output: Send {
    /// Writes `data` at `offset` bytes from the start.
    ///
    /// # Errors
    /// `DiskFull` or `FileIo`, naming the file.
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<()>;

    /// The file that holds at each offset what [`write_at`](Self::write_at) writes there, where there
    /// is one. On Linux the kernel moves bytes to it from a socket without a copy in this process.
    ///
    /// # Errors
    /// `DiskFull` or `FileIo`, naming the file.
    fn file(&mut self) -> Result<Option<&File>> {
        Ok(None)
    }

    /// The bytes of `range` were written, by [`write_at`](Self::write_at) or into the
    /// [`file`](Self::file).
    fn wrote(&mut self, range: ByteRange) {
        let _ = range;
    }

    /// The server says what the whole file hashes to, where nothing else does.
    fn expect(&mut self, digest: &Digest) {
        let _ = digest;
    }

    /// The size of the whole file in bytes became known.
    ///
    /// # Errors
    /// `DiskFull` or `FileIo`, naming the file.
    fn set_size(&mut self, size: u64) -> Result<()>;

    /// Takes note of what a rerun could continue if this process ended now. Its bytes were written.
    fn checkpoint(&mut self, part: &Resumable) {
        let _ = part;
    }

    /// Forgets what was written: the file starts anew.
    ///
    /// # Errors
    /// `FileIo`, naming the file.
    fn restart(&mut self) -> Result<()>;

    /// Whether the file that is there under the final name has the digest that was promised. Asked
    /// after [`Opened::Existing`] for a file with a digest, on a thread of its own: it may take long.
    ///
    /// # Errors
    /// `FileIo`: it can't be read.
    fn verify_existing(&self) -> Result<bool> {
        Ok(false)
    }

    /// Whether [`verify`](Self::verify) and [`finish`](Self::finish) take long and shall run on a thread
    /// of their own.
    fn finish_takes_long(&self) -> bool;

    /// Every byte is there: looks whether they are those that were promised. Wrong ones are fetched
    /// again, from elsewhere if there is a mirror, and then this is asked once more.
    ///
    /// # Errors
    /// `FileIo`: they can't be read.
    fn verify(&mut self) -> Result<Option<Damage>> {
        Ok(None)
    }

    /// Every byte is there: gives the file its name and modification time. If that fails, `part` is
    /// what a rerun can try it with again, where it can tell the version from others.
    ///
    /// # Errors
    /// `DiskFull` or `FileIo`; `Checksum` when wrong bytes can't be taken back.
    fn finish(
        self: Box<Self>,
        modified: Option<SystemTime>,
        part: Option<&Resumable>,
    ) -> Result<()>;

    /// The file was given up. `part` is what a rerun can continue, if anything.
    fn abandon(self: Box<Self>, part: Option<&Resumable>);
}

fn wrong_digest(expected: &Digest, actual: &Digest) -> String {
    format!("the digest is {actual} and should be {expected}")
}

/// Says that what is mounted at `mount` takes no more: nobody's, or no more of this user's.
pub(crate) fn full(mount: Option<&Path>, is_quota: bool) -> String {
    let mount = mount.map(|mount| format!(" on {}", mount.display())).unwrap_or_default();
    if is_quota {
        format!("the disk quota{mount} is used up")
    } else {
        format!("no space left{mount}")
    }
}

/// A failed file operation as an error that says what to do.
pub(crate) fn io_failure(at: &Path, what: &str, error: io::Error) -> Error {
    let path = at.display();
    match error.kind() {
        IoKind::StorageFull | IoKind::QuotaExceeded => {
            let full = full(space::mount_of(at).as_deref(), error.kind() == IoKind::QuotaExceeded);
            let message = format!("{path}: {full}; free some space and run the same command again");
            Error::new(ErrorKind::DiskFull, message).with_source(error)
        }
        _ => {
            let advice = if is_link_loop(&error) {
                ", as symbolic links lead in a circle there; remove one of them"
            } else {
                ""
            };
            Error::of_system(ErrorKind::FileIo, format!("{path} {what}{advice}"), error)
        }
    }
}

#[cfg(unix)]
fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
fn is_link_loop(_error: &io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_not_taken_for_a_full_disk() {
        let message = |kind: IoKind| {
            let error = io_failure(Path::new("/f"), "can't be written", kind.into());
            assert_eq!(error.kind(), ErrorKind::DiskFull);
            error.message()
        };
        let (quota, full) = (message(IoKind::QuotaExceeded), message(IoKind::StorageFull));
        assert!(quota.contains("the disk quota on / is used up"), "{quota}");
        assert!(!quota.contains("no space left"), "{quota}");
        assert!(full.contains("no space left on /"), "{full}");
    }
}
