//! Files that have no name before they are whole (Linux: `O_TMPFILE`).

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::files::write_all_at;

/// A directory of a run. It stays the same one if its path comes to lead elsewhere.
#[derive(Debug)]
pub(super) struct Directory {
    file: File,
    /// Device and inode.
    identity: (u64, u64),
    /// What all names of the run are below.
    pub(super) root: PathBuf,
}

impl Directory {
    /// The directory at `path`, which is `root` or below. `None` where that can't be.
    pub(super) fn open(root: &Path, path: &Path) -> Option<Self> {
        // Not to be listed: a directory may be written to by who may not read it.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        let found = file.metadata().ok()?;
        Some(Self { file, identity: (found.dev(), found.ino()), root: root.to_owned() })
    }

    /// Whether it is what `path` leads to.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        path.metadata().is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }

    /// Whether something in it has `name`.
    pub(super) fn has(&self, name: &OsStr) -> bool {
        rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// A file in it that has no name, with `bytes`.
    ///
    /// # Errors
    /// The disk is full, or files without a name are not to be had here.
    pub(super) fn make(&self, bytes: &[u8]) -> io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.file, ".", flags, Mode::from_raw_mode(0o666))?;
        let made = File::from(made);
        write_all_at(&made, 0, bytes)?;
        Ok(made)
    }

    /// Gives `made` its `name`.
    ///
    /// # Errors
    /// Something has that name.
    pub(super) fn link(&self, made: &File, name: &OsStr) -> io::Result<()> {
        // Since Linux 6.10 whoever has opened a file may do so, which costs no lookup in /proc.
        match rustix::fs::linkat(made, "", &self.file, name, AtFlags::EMPTY_PATH) {
            Err(Errno::NOENT) => {}
            done => return Ok(done?),
        }
        let unnamed = format!("/proc/self/fd/{}", made.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, unnamed, &self.file, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}
