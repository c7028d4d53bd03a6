//! How much room a file system has.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pelton_algos::units::Bytes;

use super::Space;

/// The space where `path` is, or would be.
pub(super) fn space_at(path: &Path) -> Option<Space> {
    let mount = mount_of(path)?;
    let found = rustix::fs::statvfs(&mount).ok()?;
    Some(Space { mount, free: Bytes(found.f_bavail.saturating_mul(found.f_frsize)) })
}

/// Where the file system is mounted that `path` is on, or would be.
pub(super) fn mount_of(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let there = path.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok())?;
    let device = fs::metadata(&there).ok()?.dev();
    let is_on_it = |path: &&Path| fs::metadata(path).is_ok_and(|found| found.dev() == device);
    there.ancestors().take_while(is_on_it).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_from_what_is_not_there_yet() {
        assert_eq!(mount_of(Path::new("/proc/self/none/at/all")), Some(PathBuf::from("/proc")));
        let space = space_at(Path::new(".")).unwrap();
        assert!(space.mount.is_absolute() && space.free > Bytes::ZERO);
    }
}
