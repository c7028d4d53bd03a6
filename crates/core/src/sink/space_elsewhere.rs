//! Systems whose file systems are not asked.

use std::path::{Path, PathBuf};

use super::Space;

pub(super) fn space_at(_path: &Path) -> Option<Space> {
    None
}

pub(super) fn mount_of(_path: &Path) -> Option<PathBuf> {
    None
}
