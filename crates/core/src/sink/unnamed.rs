//! Files that have no name before they are whole (Linux: `O_TMPFILE`).

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Weak};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::files::write_all_at;

/// A directory of a run, kept open.
#[derive(Debug)]
pub(super) struct Directory {
    _kept_open: Arc<File>,
    place: Place,
}

/// The same for its files. It stays the same one if its path comes to lead elsewhere, and is open as long as the run keeps it
/// so: files may wait in many directories, and a process may open few.
#[derive(Debug, Clone)]
pub(super) struct Place {
    open: Weak<File>,
    path: Arc<Path>,
    identity: Identity,
    /// What all names of the run are below.
    pub(super) root: Arc<Path>,
}

/// Device and inode.
type Identity = (u64, u64);

impl Directory {
    /// The directory at `path`, which is `root` or below. `None` where that can't be.
    pub(super) fn open(root: &Path, path: &Path) -> Option<Self> {
        let (file, identity) = open(path).ok()?;
        let file = Arc::new(file);
        let (open, path, root) = (Arc::downgrade(&file), path.into(), root.into());
        Some(Self { _kept_open: file, place: Place { open, path, identity, root } })
    }

    pub(super) fn place(&self) -> Place {
        self.place.clone()
    }
}

fn open(path: &Path) -> io::Result<(File, Identity)> {
    // Not to be listed: a directory may be written to by who may not read it.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    Ok((file, (found.dev(), found.ino())))
}

impl Place {
    fn opened(&self) -> io::Result<Arc<File>> {
        if let Some(file) = self.open.upgrade() {
            return Ok(file);
        }
        let (file, identity) = open(&self.path)?;
        let is_same = identity == self.identity;
        is_same.then(|| Arc::new(file)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whether it is where it was found.
    pub(super) fn is_there(&self) -> bool {
        self.path.metadata().is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }

    /// A file in it that has no name, with `bytes`.
    ///
    /// # Errors
    /// The disk is full, or files without a name are not to be had here.
    pub(super) fn make(&self, bytes: &[u8]) -> io::Result<Unnamed> {
        let directory = self.opened()?;
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&*directory, ".", flags, Mode::from_raw_mode(0o666))?;
        let file = File::from(file);
        write_all_at(&file, 0, bytes)?;
        Ok(Unnamed { file, directory })
    }
}

/// A file that has no name yet, and where it will have one.
#[derive(Debug)]
pub(super) struct Unnamed {
    pub(super) file: File,
    directory: Arc<File>,
}

impl Unnamed {
    /// Whether something beside it has `name`.
    pub(super) fn is_beside(&self, name: &OsStr) -> bool {
        rustix::fs::statat(&*self.directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Gives it its `name`.
    ///
    /// # Errors
    /// Something has that name.
    pub(super) fn link(&self, name: &OsStr) -> io::Result<()> {
        // Since Linux 6.10 whoever has opened a file may do so, which costs no lookup in /proc.
        match rustix::fs::linkat(&self.file, "", &*self.directory, name, AtFlags::EMPTY_PATH) {
            Err(Errno::NOENT) => {}
            done => return Ok(done?),
        }
        let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, unnamed, &*self.directory, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}
