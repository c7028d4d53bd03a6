//! What the standard library lacks for files in transfer.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind as IoKind, Read};
use std::path::{Path, PathBuf};

use crate::{Error, ErrorKind};

/// `path` with `suffix`, shortened where the name would be longer than file systems allow; what
/// was cut off is replaced by its hash.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    const LONGEST: usize = 240;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.len() + suffix.len() <= LONGEST {
        return path.with_file_name(format!("{name}{suffix}"));
    }
    let keep = (0..=LONGEST - 40).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    let hash = blake3::hash(name.as_bytes()).to_hex();
    path.with_file_name(format!("{}~{}{suffix}", &name[..keep], &hash[..16]))
}

/// Opens a regular file and nothing else. A symbolic link that was put where a part goes would lead the
/// bytes elsewhere, and a pipe would wait for somebody at its other end.
pub(crate) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = open_at_once(options, path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other(IRREGULAR)) }
}

/// Opens what is at `path`, which may still be no regular file.
fn open_at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // The system refuses some that are none by itself, in words of its own.
    at_once(options)
        .open(path)
        .map_err(|error| if is_irregular(path) { io::Error::other(IRREGULAR) } else { error })
}

/// Makes the file at `path`, or opens the one that is there, and says whether it is new: there is
/// nothing else to be known of a new one.
pub(super) fn make_or_open(path: &Path) -> io::Result<(File, bool)> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == IoKind::AlreadyExists => {
            let mut options = OpenOptions::new();
            let file = open_regular(options.write(true).create(true).truncate(false), path)?;
            Ok((file, false))
        }
        made => made.map(|file| (file, true)),
    }
}

/// What is wrong with a path that [`is_irregular`], and what to do.
const IRREGULAR: &str = "something that is no regular file has this name; choose another one";

/// Whether something is at `path` that is no regular file.
pub(super) fn is_irregular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())
}

/// The error of a path that [`is_irregular`].
pub(super) fn irregular(path: &Path) -> Error {
    Error::new(ErrorKind::Exists, format!("{}: {IRREGULAR}", path.display()))
}

/// The bytes of the regular file at `path`.
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(OpenOptions::new().read(true), path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Follows no link and waits for nobody.
#[cfg(unix)]
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
}

#[cfg(not(unix))]
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// The regular file at `path`, for this run alone as long as it is open, and its length; `None` while
/// another run has it.
pub(super) fn claim(options: &mut OpenOptions, path: &Path) -> io::Result<Option<(File, u64)>> {
    loop {
        let file = open_at_once(options, path)?;
        if !lock(&file) {
            return Ok(None);
        }
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other(IRREGULAR));
        }
        // Until the lock was had, the other run may have ended and removed the file.
        if is_at(&found, path) {
            return Ok(Some((file, found.len())));
        }
    }
}

/// Whether no other run holds `file`. The lock ends with the file. A file system without locks can't
/// tell.
#[cfg(unix)]
fn lock(file: &File) -> bool {
    !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))
}

/// Locks bind readers of the same process there, and the digest is read by one.
#[cfg(not(unix))]
fn lock(_file: &File) -> bool {
    true
}

/// Whether the file that was `found` is what `path` names.
#[cfg(unix)]
pub(crate) fn is_at(found: &Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    fs::metadata(path).is_ok_and(|named| identity(&named) == identity(found))
}

#[cfg(not(unix))]
pub(crate) fn is_at(_found: &Metadata, _path: &Path) -> bool {
    true
}

/// Bytes for which the file that was `found` has blocks.
#[cfg(unix)]
pub(super) fn written(found: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    const OF_BLOCK: u64 = 512;
    found.blocks().saturating_mul(OF_BLOCK).min(found.len())
}

/// Its length, as no blocks are told.
#[cfg(not(unix))]
pub(super) fn written(found: &Metadata) -> u64 {
    found.len()
}

/// Cuts off what `file` has behind `length`.
pub(super) fn shorten(file: &File, length: u64) -> io::Result<()> {
    if file.metadata()?.len() > length { file.set_len(length) } else { Ok(()) }
}

#[cfg(unix)]
pub(super) fn write_all_at(file: &File, offset: u64, data: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    file.write_all_at(data, offset)
}

#[cfg(windows)]
pub(super) fn write_all_at(file: &File, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !data.is_empty() {
        let written = file.seek_write(data, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        offset += written as u64;
        data = &data[written..];
    }
    Ok(())
}

/// Whether files may be made in `directory`, as far as that can be told before.
#[cfg(target_os = "linux")]
pub(super) fn may_write(directory: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use rustix::io::Errno;
    match accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::ROFS)) => Err(error.into()),
        // It may be that the system does not know how to tell.
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) const fn may_write(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn reserve(file: &File, size: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    if size == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::empty(), 0, size) {
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(size),
        other => other.map_err(io::Error::from),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn reserve(file: &File, size: u64) -> io::Result<()> {
    file.set_len(size)
}
