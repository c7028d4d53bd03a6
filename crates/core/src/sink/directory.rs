//! Files below a directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::space::space_at;
use super::{Output, Sink, Space, checksum_failure, io_failure};
use crate::catalog::{Digest, FileSpec};
use crate::connection::shown;
use crate::digest::hash_file;
use crate::engine::{Existing, Opened, Resumable};
use crate::journal::{self, Journal};
use crate::{Error, ErrorKind, Result};

/// How space for a file is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allocation {
    /// Not at all: the file grows as bytes come.
    #[default]
    None,
    /// Its length is set at once; blocks come as they are written.
    Truncate,
    /// Its blocks are reserved at once, so that a full disk shows at the start.
    Reserve,
}

/// How [`DirectorySink`] treats files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryOptions {
    /// Continue parts that an earlier run left, and keep parts for a later one.
    pub resume: bool,
    /// How space is set aside.
    pub allocation: Allocation,
    /// Wait until data and names are on the disk.
    pub fsync: bool,
    /// Replace a part that another program has left.
    pub overwrite: bool,
}

impl Default for DirectoryOptions {
    fn default() -> Self {
        Self { resume: true, allocation: Allocation::None, fsync: false, overwrite: false }
    }
}

/// Files below a directory, which is made when it is missing.
#[derive(Debug)]
pub struct DirectorySink {
    directory: PathBuf,
    options: DirectoryOptions,
}

impl DirectorySink {
    /// A sink below `directory`.
    pub fn new(directory: impl Into<PathBuf>, options: DirectoryOptions) -> Self {
        Self { directory: directory.into(), options }
    }

    fn look(&self, spec: &FileSpec, output: &PartFile) -> Result<Opened> {
        if let Some(parent) = output.target.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| io_failure(parent, "can't be made", error))?;
        }
        match fs::metadata(&output.target) {
            Ok(found) if !found.is_file() => {
                let message = format!(
                    "{}: something that is no regular file has this name",
                    output.target.display()
                );
                return Err(Error::new(ErrorKind::Exists, message));
            }
            Ok(found) => {
                // Never the same by size and date where a digest says what it is.
                let modified = found.modified().ok().filter(|_| spec.digest.is_none());
                return Ok(Opened::Existing(Existing { size: found.len(), modified }));
            }
            Err(error) if error.kind() == IoKind::NotFound => {}
            Err(error) => return Err(io_failure(&output.target, "can't be looked at", error)),
        }
        let Ok(part) = fs::metadata(&output.part) else { return Ok(Opened::Fresh) };
        if !self.options.overwrite && !output.state.exists() && output.is_foreign() {
            let part = output.part.display();
            let message = format!("{part}: another program's; use --overwrite to replace it");
            return Err(Error::new(ErrorKind::Exists, message));
        }
        if self.options.resume
            && let Some(saved) = journal::load(&output.state, &output.url, part.len())
        {
            return Ok(Opened::Part(saved));
        }
        Ok(Opened::Fresh)
    }
}

impl Sink for DirectorySink {
    fn open(&mut self, spec: &FileSpec) -> (Opened, Box<dyn Output>) {
        let target = self.directory.join(&spec.name);
        let mut output = PartFile {
            part: beside(&target, ".part"),
            state: beside(&target, ".part.state"),
            target,
            url: shown(&spec.url),
            digest: spec.digest.clone(),
            options: self.options,
            file: None,
            continues: None,
            journal: Journaling::Silent,
        };
        let opened = self.look(spec, &output).unwrap_or_else(|error| Opened::Failed(error.into()));
        if let Opened::Part(part) = &opened {
            output.continues = Some(part.clone());
        }
        (opened, Box::new(output))
    }

    fn space(&self) -> Option<Space> {
        space_at(&self.directory)
    }
}

/// `path` with `suffix`, shortened where the name would be longer than file systems allow; what
/// was cut off is replaced by its hash.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    const LONGEST: usize = 240;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.len() + suffix.len() <= LONGEST {
        return path.with_file_name(format!("{name}{suffix}"));
    }
    let keep = (0..=LONGEST - 40).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    let hash = blake3::hash(name.as_bytes()).to_hex();
    path.with_file_name(format!("{}~{}{suffix}", &name[..keep], &hash[..16]))
}

#[derive(Debug)]
struct PartFile {
    target: PathBuf,
    part: PathBuf,
    state: PathBuf,
    url: String,
    digest: Option<Digest>,
    options: DirectoryOptions,
    /// Opened with the first byte: a file that fails before leaves nothing behind.
    file: Option<File>,
    /// What an earlier run left of it.
    continues: Option<Resumable>,
    journal: Journaling,
}

#[derive(Debug)]
enum Journaling {
    /// There was nothing to say yet.
    Silent,
    On(Journal),
    /// It could not be written, or not on.
    Broken {
        /// Whether what it holds is of use.
        is_useful: bool,
    },
}

impl PartFile {
    fn opened(&mut self) -> Result<&File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.take_over()?,
        };
        Ok(self.file.insert(file))
    }

    /// Opens the part for this run alone.
    fn take_over(&self) -> Result<File> {
        let file = self.open_locked()?;
        let failed = |error| io_failure(&self.part, "can't be made", error);
        let Some(expected) = &self.continues else {
            // What an earlier run knew is not true of the part that begins here.
            journal::clear(&self.state).map_err(failed)?;
            file.set_len(0).map_err(failed)?;
            return Ok(file);
        };
        let length = file.metadata().map_err(failed)?.len();
        if journal::load(&self.state, &self.url, length).as_ref() != Some(expected) {
            let part = self.part.display();
            let message = format!("{part}: another run has changed it; run the command again");
            return Err(Error::new(ErrorKind::CannotResume, message));
        }
        Ok(file)
    }

    /// Whether the part, which has no state, is no other run's that is just ending.
    fn is_foreign(&self) -> bool {
        let opened = not_followed(OpenOptions::new().write(true)).open(&self.part);
        opened.map_or_else(|error| error.kind() != IoKind::NotFound, |file| lock(&file))
    }

    fn open_locked(&self) -> Result<File> {
        // Before the part, so that no other run ever sees that without its state; with what it
        // holds, which may be the other's.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let state = not_followed(&mut options).open(&self.state);
        state.map_err(|error| io_failure(&self.part, "can't be made", error))?;
        loop {
            let mut options = OpenOptions::new();
            options.write(true).create(self.continues.is_none()).truncate(false);
            let opened = not_followed(&mut options).open(&self.part);
            let file = opened.map_err(|error| io_failure(&self.part, "can't be made", error))?;
            if !lock(&file) {
                let part = self.part.display();
                let message = format!("{part}: another run is writing it; wait for its end");
                return Err(Error::new(ErrorKind::FileIo, message));
            }
            // Until the lock was had, the other run may have given the file its final name.
            if is_at(&file, &self.part) {
                return Ok(file);
            }
        }
    }

    fn verify(&self) -> Result<()> {
        let Some(expected) = &self.digest else { return Ok(()) };
        let actual = hash_file(&self.part, expected.algorithm)
            .map_err(|error| io_failure(&self.part, "can't be read", error))?;
        if actual == expected.value {
            return Ok(());
        }
        let actual = Digest { algorithm: expected.algorithm, value: actual };
        Err(checksum_failure(&self.url, expected, &actual))
    }

    fn complete(&mut self, modified: Option<SystemTime>) -> Result<()> {
        self.opened()?;
        self.verify()?;
        let (fsync, part) = (self.options.fsync, self.part.clone());
        let file = self.opened()?;
        if let Some(modified) = modified {
            // A file system without times is no reason to fail.
            let _ = file.set_modified(modified);
        }
        if fsync {
            file.sync_all().map_err(|error| io_failure(&part, "can't be synced", error))?;
        }
        fs::rename(&self.part, &self.target)
            .map_err(|error| io_failure(&self.target, "can't be given its name", error))?;
        if let Some(directory) = self.target.parent().filter(|_| fsync) {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(|error| io_failure(directory, "can't be synced", error))?;
        }
        Ok(())
    }

    /// Appends what is new of `part` to the journal.
    fn record(&mut self, part: &Resumable) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| self.options.resume) else { return Ok(()) };
        // After a disk that was full it may be written again.
        if !matches!(self.journal, Journaling::On(_)) {
            self.journal = Journaling::On(Journal::open(&self.state, &self.url, part)?);
        }
        if let Journaling::On(journal) = &mut self.journal {
            journal.append(part)?;
            journal.sync_sometimes(file)?;
        }
        Ok(())
    }

    /// Whether a rerun can continue the part by its journal.
    fn has_state(&self) -> bool {
        let says_something = match &self.journal {
            Journaling::Silent => false,
            Journaling::On(journal) => !journal.is_empty(),
            Journaling::Broken { is_useful } => *is_useful,
        };
        self.continues.is_some() || says_something
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.part);
        let _ = fs::remove_file(&self.state);
    }
}

impl Output for PartFile {
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let written = write_all_at(self.opened()?, offset, data);
        written.map_err(|error| io_failure(&self.part, "can't be written", error))
    }

    fn file(&mut self) -> Result<Option<&File>> {
        self.opened().map(Some)
    }

    fn set_size(&mut self, size: u64) -> Result<()> {
        let allocation = self.options.allocation;
        if allocation == Allocation::None {
            return Ok(());
        }
        let part = self.part.clone();
        let file = self.opened()?;
        let set = match allocation {
            Allocation::Reserve => reserve(file, size),
            _ => file.set_len(size),
        };
        set.map_err(|error| io_failure(&part, "can't be made as long as it will be", error))
    }

    fn checkpoint(&mut self, part: &Resumable) {
        if let Err(error) = self.record(part) {
            let is_useful = self.has_state();
            self.journal = Journaling::Broken { is_useful };
            tracing::warn!(
                state = %self.state.display(), %error,
                "a rerun can't continue this file from here"
            );
        }
    }

    fn restart(&mut self) -> Result<()> {
        self.continues = None;
        self.journal = Journaling::Silent;
        journal::clear(&self.state)
            .map_err(|error| io_failure(&self.state, "can't be emptied", error))?;
        if let Some(file) = &self.file {
            file.set_len(0).map_err(|error| io_failure(&self.part, "can't be emptied", error))?;
        }
        Ok(())
    }

    fn verify_existing(&self) -> Result<bool> {
        let Some(expected) = &self.digest else { return Ok(false) };
        let actual = hash_file(&self.target, expected.algorithm)
            .map_err(|error| io_failure(&self.target, "can't be read", error))?;
        Ok(actual == expected.value)
    }

    fn finish_takes_long(&self) -> bool {
        self.digest.is_some() || self.options.fsync
    }

    fn finish(mut self: Box<Self>, modified: Option<SystemTime>) -> Result<()> {
        let finished = self.complete(modified);
        match &finished {
            Ok(()) => {
                let _ = fs::remove_file(&self.state);
            }
            // With more space a rerun can finish it.
            Err(error) if error.kind() == ErrorKind::DiskFull => {}
            Err(_) => self.remove(),
        }
        finished
    }

    fn abandon(mut self: Box<Self>, part: Option<&Resumable>) {
        if self.file.is_none() {
            // What may be there is not this run's.
            return;
        }
        let Some(part) = part.filter(|_| self.options.resume) else {
            self.remove();
            return;
        };
        self.checkpoint(part);
        if !self.has_state() {
            // Nobody can use it, and on a full disk it is in the way.
            self.remove();
        }
    }
}

/// Opens no symbolic link: one that was put where a part goes would lead the bytes elsewhere.
#[cfg(unix)]
fn not_followed(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
}

#[cfg(not(unix))]
fn not_followed(options: &mut OpenOptions) -> &mut OpenOptions {
    options
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
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    matches!(
        (file.metadata().map(identity), fs::metadata(path).map(identity)),
        (Ok(one), Ok(other)) if one == other
    )
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

#[cfg(unix)]
fn write_all_at(file: &File, offset: u64, data: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    file.write_all_at(data, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !data.is_empty() {
        let written = file.seek_write(data, offset)?;
        if written == 0 {
            return Err(IoKind::WriteZero.into());
        }
        offset += written as u64;
        data = &data[written..];
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn reserve(file: &File, size: u64) -> io::Result<()> {
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
fn reserve(file: &File, size: u64) -> io::Result<()> {
    file.set_len(size)
}
