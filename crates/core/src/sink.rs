//! Where bytes go: positioned writes to `NAME.part`, renamed only when complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind as IoKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::catalog::{Digest, FileSpec};
use crate::connection::shown;
use crate::digest::{Hasher, hash_file};
use crate::engine::{Existing, Opened, Resumable, UserLimits};
use crate::{Error, ErrorKind, Result, journal};

/// Takes the files of a run. [`DirectorySink`] and [`StreamSink`] are pelton's own.
pub trait Sink: Send {
    /// Looks at what is where `spec` goes, and readies an output for it. An output is not used
    /// when the answer is [`Opened::Verified`] or [`Opened::Failed`].
    fn open(&mut self, spec: &FileSpec) -> (Opened, Box<dyn Output>);

    /// Whether bytes may come in any order. If not, files come one after the other over one stream
    /// each.
    fn takes_any_order(&self) -> bool {
        true
    }
}

/// `limits` as far as `sink` bears them.
pub(crate) fn bounded(limits: UserLimits, sink: &dyn Sink) -> UserLimits {
    if sink.takes_any_order() {
        return limits;
    }
    UserLimits { max_files: Some(1), max_streams_per_file: Some(1), ..limits }
}

/// Takes the bytes of one file.
pub trait Output: Send {
    /// Writes `data` at `offset` bytes from the start.
    ///
    /// # Errors
    /// `DiskFull` or `FileIo`, naming the file.
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<()>;

    /// The size of the whole file in bytes became known.
    ///
    /// # Errors
    /// `DiskFull` or `FileIo`, naming the file.
    fn set_size(&mut self, size: u64) -> Result<()>;

    /// Forgets what was written: the file starts anew.
    ///
    /// # Errors
    /// `FileIo`, naming the file.
    fn restart(&mut self) -> Result<()>;

    /// Whether [`finish`](Self::finish) takes long and shall run on a thread of its own.
    fn finish_takes_long(&self) -> bool;

    /// Every byte is there: verifies the file and gives it its name and modification time.
    ///
    /// # Errors
    /// `Checksum` when the bytes are not those that were promised, `DiskFull` or `FileIo`.
    fn finish(self: Box<Self>, modified: Option<SystemTime>) -> Result<()>;

    /// The file was given up. `part` is what a rerun can continue, if anything.
    fn abandon(self: Box<Self>, part: Option<&Resumable>);
}

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
}

impl Default for DirectoryOptions {
    fn default() -> Self {
        Self { resume: true, allocation: Allocation::None, fsync: false }
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
            Ok(found) if found.is_dir() => {
                let message = format!("{}: a directory has this name", output.target.display());
                return Err(Error::new(ErrorKind::Exists, message));
            }
            Ok(found) => {
                if let Some(digest) = &spec.digest {
                    let actual = hash_file(&output.target, digest.algorithm)
                        .map_err(|error| io_failure(&output.target, "can't be read", error))?;
                    if actual == digest.value {
                        return Ok(Opened::Verified { size: found.len() });
                    }
                    // Never the same by size and date when the digest says otherwise.
                    return Ok(Opened::Existing(Existing { size: found.len(), modified: None }));
                }
                return Ok(Opened::Existing(Existing {
                    size: found.len(),
                    modified: found.modified().ok(),
                }));
            }
            Err(error) if error.kind() == IoKind::NotFound => {}
            Err(error) => return Err(io_failure(&output.target, "can't be looked at", error)),
        }
        if self.options.resume
            && let Ok(part) = fs::metadata(&output.part)
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
            continues: false,
        };
        let opened = self.look(spec, &output).unwrap_or_else(|error| Opened::Failed(error.into()));
        output.continues = matches!(opened, Opened::Part(_));
        (opened, Box::new(output))
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
    continues: bool,
}

impl PartFile {
    fn file(&mut self) -> Result<&File> {
        if self.file.is_none() {
            if !self.continues {
                // What an earlier run knew is not true of the part that begins here.
                let _ = fs::remove_file(&self.state);
            }
            let opened = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(!self.continues)
                .open(&self.part)
                .map_err(|error| io_failure(&self.part, "can't be made", error))?;
            self.file = Some(opened);
        }
        // What was just put there is there.
        self.file.as_ref().ok_or_else(|| Error::new(ErrorKind::Internal, "a file vanished"))
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
        self.file()?;
        self.verify()?;
        let (fsync, part) = (self.options.fsync, self.part.clone());
        let file = self.file()?;
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

    fn remove(&self) {
        let _ = fs::remove_file(&self.part);
        let _ = fs::remove_file(&self.state);
    }
}

impl Output for PartFile {
    fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let written = write_all_at(self.file()?, offset, data);
        written.map_err(|error| io_failure(&self.part, "can't be written", error))
    }

    fn set_size(&mut self, size: u64) -> Result<()> {
        let allocation = self.options.allocation;
        if allocation == Allocation::None {
            return Ok(());
        }
        let part = self.part.clone();
        let file = self.file()?;
        let set = match allocation {
            Allocation::Reserve => reserve(file, size),
            _ => file.set_len(size),
        };
        set.map_err(|error| io_failure(&part, "can't be made as long as it will be", error))
    }

    fn restart(&mut self) -> Result<()> {
        self.continues = false;
        let _ = fs::remove_file(&self.state);
        if let Some(file) = &self.file {
            file.set_len(0).map_err(|error| io_failure(&self.part, "can't be emptied", error))?;
        }
        Ok(())
    }

    fn finish_takes_long(&self) -> bool {
        self.digest.is_some() || self.options.fsync
    }

    fn finish(mut self: Box<Self>, modified: Option<SystemTime>) -> Result<()> {
        let finished = self.complete(modified);
        match &finished {
            Ok(()) if self.continues => {
                let _ = fs::remove_file(&self.state);
            }
            Ok(()) => {}
            Err(_) => self.remove(),
        }
        finished
    }

    fn abandon(self: Box<Self>, part: Option<&Resumable>) {
        let Some(part) = part.filter(|_| self.options.resume) else {
            // Only what this run has written or taken over is ours to remove.
            if self.file.is_some() {
                self.remove();
            }
            return;
        };
        if let Err(error) = journal::save(&self.state, &self.url, part) {
            tracing::warn!(state = %self.state.display(), %error, "a rerun can't continue this file");
        }
    }
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

fn checksum_failure(url: &str, expected: &Digest, actual: &Digest) -> Error {
    let message =
        format!("{url}: the digest is {actual} and should be {expected}; the file was not kept");
    Error::new(ErrorKind::Checksum, message)
}

/// A failed file operation as an error that says what to do.
pub(crate) fn io_failure(path: &Path, what: &str, error: io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        IoKind::StorageFull | IoKind::QuotaExceeded => {
            let message =
                format!("{path}: no space left; free some and run the same command again");
            Error::new(ErrorKind::DiskFull, message)
        }
        _ => Error::new(ErrorKind::FileIo, format!("{path} {what}")).with_source(error),
    }
}

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
        let opened = match output.writer {
            Some(_) => Opened::Fresh,
            None => {
                let message = format!("{}: a stream takes one file only", output.url);
                Opened::Failed(Error::new(ErrorKind::Usage, message).into())
            }
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

    fn finish(mut self: Box<Self>, _modified: Option<SystemTime>) -> Result<()> {
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
            Err(checksum_failure(&self.url, &expected, &actual))
        }
    }

    fn abandon(self: Box<Self>, _part: Option<&Resumable>) {}
}

fn stream_failure(error: io::Error) -> Error {
    io_failure(Path::new("the output stream"), "can't be written", error)
}
