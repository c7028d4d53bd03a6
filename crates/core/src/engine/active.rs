//! The files in transfer, which are gone through far more often than they change.

use super::FileId;

/// In the order of the list.
#[derive(Debug, Default)]
pub(super) struct ActiveFiles(Vec<FileId>);

impl ActiveFiles {
    /// Whether it was none of them before.
    pub(super) fn insert(&mut self, file: FileId) -> bool {
        let place = self.0.binary_search(&file);
        if let Err(place) = place {
            self.0.insert(place, file);
        }
        place.is_err()
    }

    /// Whether it was one of them.
    pub(super) fn remove(&mut self, file: FileId) -> bool {
        let place = self.0.binary_search(&file);
        if let Ok(place) = place {
            self.0.remove(place);
        }
        place.is_ok()
    }

    pub(super) fn contains(&self, file: FileId) -> bool {
        self.0.binary_search(&file).is_ok()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = FileId> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn to_vec(&self) -> Vec<FileId> {
        self.0.clone()
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
