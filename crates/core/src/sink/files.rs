//! What the standard library lacks for files in transfer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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
    let opened = at_once(options).open(path);
    let is_regular = match &opened {
        Ok(file) => file.metadata()?.is_file(),
        // The system refuses some others by itself, in words of its own.
        Err(_) => !is_irregular(path),
    };
    if is_regular { opened } else { Err(io::Error::other(IRREGULAR)) }
}

/// What is wrong with a path that [`is_irregular`], and what to do.
pub(super) const IRREGULAR: &str =
    "something that is no regular file has this name; remove it or choose another name";

/// Whether something is at `path` that is no regular file.
pub(super) fn is_irregular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())
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

/// The file at `path`, for this run alone as long as it is open; `None` while another run has it.
pub(super) fn claim(options: &mut OpenOptions, path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = open_regular(options, path)?;
        if !lock(&file) {
            return Ok(None);
        }
        // Until the lock was had, the other run may have ended and removed the file.
        if is_at(&file, path) {
            return Ok(Some(file));
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

/// Whether `file` is what `path` names.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    matches!(
        (file.metadata().map(identity), fs::metadata(path).map(identity)),
        (Ok(one), Ok(other)) if one == other
    )
}

#[cfg(not(unix))]
pub(crate) fn is_at(_file: &File, _path: &Path) -> bool {
    true
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
