//! Files below a directory.

use std::fs;
use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};

use super::files::{irregular, is_irregular, may_write, written};
use super::names::{SeenNames, link_out_of};
use super::part::PartFile;
use super::space::space_at;
use super::unnamed::Directory;
use super::{Output, Sink, Space, io_failure};
use crate::catalog::FileSpec;
use crate::engine::{Existing, Opened};
use crate::{Error, ErrorKind, Result, journal};

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
    names: SeenNames,
    /// The directory that a file was to go to last: it is there, or was removed behind this run's back.
    made: PathBuf,
    /// The same, as it was found.
    found: Option<Directory>,
    /// Nothing was in it before this run, so that nothing needs to be looked for.
    was_empty: bool,
    /// Why no file can be made in it, as the system's number of that: so none is asked for in vain.
    refused: Option<i32>,
}

impl DirectorySink {
    /// A sink below `directory`.
    pub fn new(directory: impl Into<PathBuf>, options: DirectoryOptions) -> Self {
        Self {
            directory: directory.into(),
            options,
            names: SeenNames::default(),
            made: PathBuf::new(),
            found: None,
            was_empty: false,
            refused: None,
        }
    }

    fn make(&mut self, directory: &Path) -> io::Result<()> {
        let is_first = self.made.as_os_str().is_empty();
        let is_new = fs::symlink_metadata(directory).is_err();
        fs::create_dir_all(directory)?;
        let is_empty = || fs::read_dir(directory).is_ok_and(|mut found| found.next().is_none());
        self.was_empty = is_new || is_first && is_empty();
        self.found = Directory::open(&self.directory, directory);
        self.refused = may_write(directory).err().and_then(|error| error.raw_os_error());
        directory.clone_into(&mut self.made);
        Ok(())
    }

    fn fresh(&self, output: &mut PartFile) -> Result<Opened> {
        if let Some(refused) = self.refused {
            let error = io::Error::from_raw_os_error(refused);
            return Err(io_failure(&self.made, "can't be written to", error));
        }
        output.is_alone_in(self.found.as_ref().map(Directory::place));
        Ok(Opened::Fresh)
    }

    fn look(&mut self, spec: &FileSpec, output: &mut PartFile) -> Result<Opened> {
        if let Some(failure) = leads_out(&self.directory, &spec.name) {
            return Err(failure);
        }
        if let Some(parent) = output.target.parent().filter(|parent| **parent != self.made) {
            self.make(parent).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                    let message = format!(
                        "{}: it, or what is above it, is a file and no directory: choose another one",
                        parent.display()
                    );
                    Error::new(ErrorKind::FileIo, message)
                }
                _ => io_failure(parent, "can't be made", error),
            })?;
        }
        if let Some(other) = self.names.same_file(&self.directory, &spec.name) {
            let message = format!(
                "{}: this file system takes it for {other}, which is another file of this run; give \
                 one another name (out=)",
                output.target.display()
            );
            return Err(Error::new(ErrorKind::Exists, message));
        }
        if self.was_empty {
            return self.fresh(output);
        }
        match fs::metadata(&output.target) {
            Ok(found) if !found.is_file() => return Err(irregular(&output.target)),
            Ok(found) => {
                output.forget_finished();
                // Never the same by size and date where a digest says what it is.
                let size_tells = !spec.is_verifiable();
                let modified = found.modified().ok().filter(|_| size_tells);
                let bytes_tell = size_tells && !self.options.overwrite;
                let size = found.len();
                return Ok(Opened::Existing(Existing { size, modified, size_tells, bytes_tell }));
            }
            Err(error) if error.kind() == IoKind::NotFound => {}
            Err(error) => return Err(io_failure(&output.target, "can't be looked at", error)),
        }
        let Ok(part) = fs::symlink_metadata(&output.part) else {
            return self.fresh(output);
        };
        if let Some(path) =
            [&output.part, &output.state].into_iter().find(|path| is_irregular(path))
        {
            return Err(irregular(path));
        }
        if !self.options.overwrite && output.is_foreign() {
            let part = output.part.display();
            let message = format!("{part}: another program's; use `overwrite` to replace it");
            return Err(Error::new(ErrorKind::Exists, message));
        }
        if !self.options.resume {
            return Ok(Opened::Fresh);
        }
        let saved = journal::load(&output.state, &output.url, part.len());
        Ok(saved.map_or_else(|| unusable(&part), Opened::Part))
    }
}

/// A part that can't be continued.
fn unusable(part: &fs::Metadata) -> Opened {
    match written(part) {
        0 => Opened::Fresh,
        bytes => Opened::Unusable { bytes },
    }
}

/// Why `name` is not written to, if a link leads it out of `root`.
pub(super) fn leads_out(root: &Path, name: &str) -> Option<Error> {
    let link = link_out_of(root, name)?;
    let message = format!(
        "{}: a link that leads out of {}; remove it, or give the directory that it leads to",
        link.display(),
        root.display()
    );
    Some(Error::new(ErrorKind::FileIo, message))
}

impl Sink for DirectorySink {
    fn open(&mut self, spec: &FileSpec) -> (Opened, Box<dyn Output>) {
        let target = self.directory.join(&spec.name);
        let mut output = PartFile::new(target, spec, self.options);
        let opened =
            self.look(spec, &mut output).unwrap_or_else(|error| Opened::Failed(error.into()));
        match &opened {
            Opened::Part(part) => output.go_on_with(part.clone()),
            Opened::Existing(_) => output.replaces = true,
            _ => {}
        }
        (opened, Box::new(output))
    }

    fn space(&self) -> Option<Space> {
        space_at(&self.directory)
    }
}
