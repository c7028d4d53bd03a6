//! What size a file will likely have before its server has said so.
//!
//! A bare list of URLs is the usual case. Files of one directory and one extension are alike, so
//! the sizes of those seen predict the sizes of those that wait.

use std::collections::BTreeMap;

use crate::units::Bytes;

/// A group of files that are expected to be alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u32);

/// So many of the last files tell what part of those that wait has to be brought.
const LAST_FILES: u64 = 8;

#[derive(Debug, Clone, Copy, Default)]
struct Group {
    seen: u64,
    mean: f64,
    /// Files that were here already, or were brought, and the part of the last ones that was here.
    asked: u64,
    kept: f64,
}

impl Group {
    fn add(&mut self, size: Bytes) {
        self.seen += 1;
        self.mean += (size.as_f64() - self.mean) / self.seen as f64;
    }

    fn on_asked(&mut self, is_kept: bool) {
        self.asked += 1;
        let kept = f64::from(u8::from(is_kept));
        self.kept += (kept - self.kept) / self.asked.min(LAST_FILES) as f64;
    }

    /// The bytes that another one brings.
    fn expected(&self) -> Option<Bytes> {
        (self.seen > 0).then_some(Bytes((self.mean * (1.0 - self.kept)) as u64))
    }
}

/// Learns sizes per directory and extension.
#[derive(Debug, Clone, Default)]
pub struct SizeModel {
    ids: BTreeMap<String, GroupId>,
    groups: Vec<Group>,
    overall: Group,
}

impl SizeModel {
    /// The group of the file at `path` (of a URL, with `/`): its directory and extension.
    pub fn group_of(&mut self, path: &str) -> GroupId {
        let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
        let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
        let key = [directory, "/.", extension].concat();
        let next = GroupId(self.groups.len() as u32);
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.groups.push(Group::default());
        }
        id
    }

    /// A file of `group` turned out to have `size` bytes.
    pub fn on_size(&mut self, group: GroupId, size: Bytes) {
        self.overall.add(size);
        if let Some(group) = self.groups.get_mut(group.0 as usize) {
            group.add(size);
        }
    }

    /// A file of `group` is here already, as other ones may be, or was not and is brought.
    pub fn on_asked(&mut self, group: GroupId, is_kept: bool) {
        self.overall.on_asked(is_kept);
        if let Some(group) = self.groups.get_mut(group.0 as usize) {
            group.on_asked(is_kept);
        }
    }

    /// Whether any file of `group` has shown its size.
    pub fn knows(&self, group: GroupId) -> bool {
        self.groups.get(group.0 as usize).is_some_and(|group| group.seen > 0)
    }

    /// Whether any file has shown its size.
    pub const fn knows_any(&self) -> bool {
        self.overall.seen > 0
    }

    /// The bytes that a file of `group` will likely bring: the mean size of its group, as far as the last files were not
    /// here already, else that of all files, else nothing.
    pub fn predict(&self, group: GroupId) -> Option<Bytes> {
        self.groups
            .get(group.0 as usize)
            .and_then(Group::expected)
            .or_else(|| self.overall.expected())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_directory_and_extension_predict_each_other() {
        let mut sizes = SizeModel::default();
        let html = sizes.group_of("/site/a.html");
        let video = sizes.group_of("/site/a.mp4");
        assert_eq!(sizes.group_of("/site/b.html"), html);
        assert_ne!(html, video);
        assert_ne!(sizes.group_of("/other/b.html"), html);
        assert_eq!(sizes.predict(html), None);
        sizes.on_size(html, Bytes(1_000));
        sizes.on_size(html, Bytes(3_000));
        assert_eq!(sizes.predict(html), Some(Bytes(2_000)));
        assert!(!sizes.knows(video));
        assert_eq!(
            sizes.predict(video),
            Some(Bytes(2_000)),
            "the overall mean is better than nothing"
        );
    }

    #[test]
    fn where_files_are_here_already_the_others_bring_little() {
        let mut sizes = SizeModel::default();
        let html = sizes.group_of("/site/a.html");
        (0..8).for_each(|_| {
            sizes.on_size(html, Bytes(1_000_000));
            sizes.on_asked(html, true);
        });
        assert_eq!(sizes.predict(html), Some(Bytes(0)));
        sizes.on_asked(html, false);
        assert_eq!(sizes.predict(html), Some(Bytes(125_000)));
        (0..40).for_each(|_| sizes.on_asked(html, false));
        assert!(sizes.predict(html).is_some_and(|size| size.0 > 980_000));
    }
}
