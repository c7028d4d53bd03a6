//! Files that have no name before they are whole are not to be had here.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// There is none.
#[derive(Debug)]
pub(super) struct Directory(Infallible);

/// There is none, either.
#[derive(Debug, Clone)]
pub(super) struct Place {
    never: Infallible,
    pub(super) root: Arc<Path>,
}

impl Directory {
    pub(super) fn open(_root: &Path, _path: &Path) -> Option<Self> {
        None
    }

    pub(super) fn place(&self) -> Place {
        match self.0 {}
    }
}

impl Place {
    pub(super) fn is_there(&self) -> bool {
        match self.never {}
    }

    pub(super) fn make(&self, _bytes: &[u8]) -> io::Result<Unnamed> {
        match self.never {}
    }
}

/// Nor any such file.
#[derive(Debug)]
pub(super) struct Unnamed {
    never: Infallible,
    pub(super) file: File,
}

impl Unnamed {
    pub(super) fn is_beside(&self, _name: &OsStr) -> bool {
        match self.never {}
    }

    pub(super) fn link(&self, _name: &OsStr) -> io::Result<()> {
        match self.never {}
    }
}
