//! Files into descriptors that the application has opened.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use pelton::core::digest::Hasher;
use pelton::core::engine::{Opened, Resumable};
use pelton::core::sink::{Output, Sink};
use pelton::{Digest, Error, ErrorKind, FileSpec};
use rustix::fs::{OFlags, fcntl_getfl};

use super::code::PeltonCode;
use super::error::Failure;
use super::pipe::Pipe;

/// Bytes read at once for a digest.
const BLOCK: usize = 128 * 1024;

/// Where the bytes go.
pub(super) enum Target {
    /// One file, in order, into something that can't be written anywhere.
    Stream(Pipe),
    /// Regular files.
    Files(Descriptors),
}

/// Duplicates `descriptors`, one for each of `files`. Once `cancelled`, nothing waits for a reader.
pub(super) fn open(
    files: &[FileSpec],
    descriptors: &[i32],
    cancelled: Arc<AtomicBool>,
) -> Result<Target, Failure> {
    if files.len() != descriptors.len() {
        let (files, descriptors) = (files.len(), descriptors.len());
        let why = format!("{files} files and {descriptors} descriptors: each needs the other");
        return Err(Failure::usage(why));
    }
    let mut opened = HashMap::new();
    for (index, (spec, descriptor)) in files.iter().zip(descriptors).enumerate() {
        let unusable = |error: io::Error| {
            let why = format!("descriptors[{index}] ({descriptor}) can't be used: {error}");
            Failure::new(PeltonCode::FileIo, why)
        };
        let file = duplicate(*descriptor).map_err(unusable)?;
        let flags = fcntl_getfl(&file).map_err(|error| unusable(error.into()))?;
        if flags.intersection(OFlags::RWMODE) == OFlags::RDONLY {
            let why = format!("descriptors[{index}] is not open for writing");
            return Err(Failure::usage(why));
        }
        if !file.metadata().map_err(unusable)?.is_file() {
            if files.len() == 1 {
                return Ok(Target::Stream(Pipe::new(file, cancelled)));
            }
            let why = format!("descriptors[{index}] is no regular file: it can take a single file");
            return Err(Failure::usage(why));
        }
        if flags.contains(OFlags::APPEND) {
            let why = format!("descriptors[{index}] appends: open it without O_APPEND");
            return Err(Failure::usage(why));
        }
        if spec.digest.is_some() && flags.intersection(OFlags::RWMODE) == OFlags::WRONLY {
            let why = format!(
                "descriptors[{index}] has to be open for reading too: there is a digest to check"
            );
            return Err(Failure::usage(why));
        }
        if descriptors[..index].contains(descriptor) {
            let why = format!("descriptors[{index}] is given twice: each file needs its own");
            return Err(Failure::usage(why));
        }
        if opened.insert(spec.name.clone(), file).is_some() {
            let why = format!("two files are called {:?}: name one in a list (out=)", spec.name);
            return Err(Failure::usage(why));
        }
    }
    Ok(Target::Files(Descriptors(opened)))
}

fn duplicate(descriptor: i32) -> io::Result<File> {
    if descriptor < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: it is not -1 and used only for this call, which fails if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned().map(File::from)
}

/// Takes each file into its own descriptor, found by the file's name.
pub(super) struct Descriptors(HashMap<String, File>);

impl Sink for Descriptors {
    fn open(&mut self, spec: &FileSpec) -> (Opened, Box<dyn Output>) {
        let file = self.0.remove(&spec.name);
        let output = DescriptorFile { file, name: spec.name.clone(), digest: spec.digest.clone() };
        let opened = match output.emptied() {
            Ok(()) => Opened::Fresh,
            Err(error) => Opened::Failed(error.into()),
        };
        (opened, Box::new(output))
    }
}

struct DescriptorFile {
    file: Option<File>,
    name: String,
    digest: Option<Digest>,
}

impl DescriptorFile {
    fn opened(&self) -> pelton::Result<&File> {
        self.file.as_ref().ok_or_else(|| {
            let why = format!("{}: there is no descriptor left for it", self.name);
            Error::new(ErrorKind::Internal, why)
        })
    }

    fn emptied(&self) -> pelton::Result<()> {
        self.opened()?.set_len(0).map_err(|error| self.failed("can't be emptied", error))
    }

    fn failed(&self, what: &str, error: io::Error) -> Error {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::DiskFull,
            _ => ErrorKind::FileIo,
        };
        Error::new(kind, format!("the descriptor of {} {what}", self.name)).with_source(error)
    }

    fn hash(&self, digest: &Digest) -> pelton::Result<Vec<u8>> {
        let unreadable = "can't be read for its digest: open it for reading and writing";
        let (mut hasher, mut block) = (Hasher::new(digest.algorithm), vec![0; BLOCK]);
        let mut offset = 0;
        loop {
            match self.opened()?.read_at(&mut block, offset) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(read) => {
                    hasher.update(&block[..read]);
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(unreadable, error)),
            }
        }
    }
}

impl Output for DescriptorFile {
    fn write_at(&mut self, offset: u64, data: &[u8]) -> pelton::Result<()> {
        let written = self.opened()?.write_all_at(data, offset);
        written.map_err(|error| self.failed("can't be written", error))
    }

    fn file(&mut self) -> pelton::Result<Option<&File>> {
        self.opened().map(Some)
    }

    fn set_size(&mut self, _size: u64) -> pelton::Result<()> {
        Ok(())
    }

    fn restart(&mut self) -> pelton::Result<()> {
        self.emptied()
    }

    fn finish_takes_long(&self) -> bool {
        self.digest.is_some()
    }

    fn finish(
        self: Box<Self>,
        modified: Option<SystemTime>,
        _part: Option<&Resumable>,
    ) -> pelton::Result<()> {
        if let Some(expected) = &self.digest {
            let value = self.hash(expected)?;
            if value != expected.value {
                let actual = Digest { algorithm: expected.algorithm, value };
                let why = format!("{}: the digest is {actual} and should be {expected}", self.name);
                return Err(Error::new(ErrorKind::Checksum, why));
            }
        }
        if let Some(modified) = modified {
            // A file system without times is no reason to fail.
            let _ = self.opened()?.set_modified(modified);
        }
        Ok(())
    }

    fn abandon(self: Box<Self>, _part: Option<&Resumable>) {}
}
