//! What a directory makes of names: links that lead out of it, and names that it takes for others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use super::files::beside;

/// A directory on the way from `root` to the file `name` below it that is a link to somewhere else.
/// Links that stay below `root` are the user's own order.
pub(super) fn link_out_of(root: &Path, name: &str) -> Option<PathBuf> {
    let mut path = root.to_owned();
    let directories = name.rsplit_once('/').map_or("", |(directories, _)| directories);
    for part in directories.split('/').filter(|part| !part.is_empty()) {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {}
            Ok(_) => continue,
            // What is not there is made, and then is no link.
            Err(_) => return None,
        }
        let stays = match (path.canonicalize(), root.canonicalize()) {
            (Ok(target), Ok(root)) => target.starts_with(root),
            _ => false,
        };
        if !stays {
            return Some(path);
        }
    }
    None
}

/// The names of a run, to find those that a file system may take for one: without regard to case (FAT,
/// NTFS, APFS), or to how letters are composed (APFS, HFS+).
///
/// By what is left of them without that. Most names are just that, and of those nothing more is kept.
#[derive(Debug, Default)]
pub(super) struct SeenNames(HashMap<Box<str>, Vec<Box<str>>>);

impl SeenNames {
    /// Takes note of `name`, and tells the one before it that `directory` takes for the same file.
    pub(super) fn same_file(&mut self, directory: &Path, name: &str) -> Option<String> {
        self.same_by(name, |one, other| is_one_name(&directory.join(one), &directory.join(other)))
    }

    fn same_by(&mut self, name: &str, is_one: impl Fn(&str, &str) -> bool) -> Option<String> {
        let mut alike = match self.0.entry(folded(name).into()) {
            Entry::Occupied(alike) => alike,
            Entry::Vacant(place) => {
                let is_folded = **place.key() == *name;
                place.insert(if is_folded { Vec::new() } else { vec![name.into()] });
                return None;
            }
        };
        if alike.get().is_empty() {
            let first = alike.key().clone();
            alike.get_mut().push(first);
        }
        if alike.get().iter().any(|other| **other == *name) {
            return None;
        }
        let same = alike.get().iter().find(|other| is_one(other, name)).map(ToString::to_string);
        if same.is_none() {
            alike.get_mut().push(name.into());
        }
        same
    }
}

/// `name` without what some file systems do not tell apart.
fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.nfd().flat_map(char::to_lowercase).nfc().collect()
}

/// Tries whether the file system takes both paths for one.
fn is_one_name(one: &Path, other: &Path) -> bool {
    let (probe, seen_as) = (beside(one, ".probe"), beside(other, ".probe"));
    if seen_as.exists() || File::create_new(&probe).is_err() {
        return false;
    }
    let is_one = seen_as.exists();
    let _ = fs::remove_file(&probe);
    is_one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_or_composition_are_alike() {
        for (one, other) in [
            ("a/README", "A/readme"),
            ("a/readme", "A/README"),
            ("caf\u{e9}", "CAFE\u{301}"),
            ("\u{1e9e}", "\u{df}"),
        ] {
            let mut names = SeenNames::default();
            assert_eq!(names.same_by(one, |_, _| true), None);
            assert_eq!(names.same_by(one, |_, _| true), None, "it is opened once more");
            assert_eq!(names.same_by(other, |_, _| true).as_deref(), Some(one));
            assert_eq!(names.same_by(other, |_, _| false), None, "a file system that tells");
        }
        let mut names = SeenNames::default();
        assert_eq!(names.same_by("a", |_, _| true), None);
        // Cyrillic: it looks the same and is another letter.
        assert_eq!(names.same_by("\u{430}", |_, _| true), None);
    }

    #[test]
    fn a_file_system_is_asked_and_nothing_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("a"), directory.path().join("b"));
        assert!(!is_one_name(&one, &other));
        assert!(is_one_name(&one, &one.with_file_name("a")));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_directory_are_found() {
        use std::os::unix::fs::symlink;
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("root");
        fs::create_dir_all(root.join("real/deep")).unwrap();
        fs::create_dir(home.path().join("outside")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        symlink("real", root.join("in")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("../../../outside", root.join("real/deep/out")).unwrap();
        for (name, link) in [
            ("f", None),
            ("real/f", None),
            ("in/f", None),
            ("new/f", None),
            ("out", None),
            ("out/f", Some("out")),
            ("dangling/f", Some("dangling")),
            ("in/deep/out/f", Some("in/deep/out")),
        ] {
            assert_eq!(link_out_of(&root, name), link.map(|link| root.join(link)), "{name}");
        }
    }
}
