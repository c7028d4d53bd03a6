//! A short file in memory until it is whole: it gets its name at once, and costs neither a part nor a state.

use std::ffi::OsStr;
use std::time::SystemTime;

use super::PartFile;
use crate::digest::Hasher;
use crate::error::is_out_of_descriptors;
use crate::sink::directory::leads_out;
use crate::sink::io_failure;
use crate::sink::unnamed::{Place, Unnamed};
use crate::{Error, Result};

/// Bytes of a file that stays in memory. A run that is killed loses no more of each.
const MOST_HELD: u64 = 32 * 1024;

/// The bytes of a file from the first on, as long as they are nowhere else.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Vec<u8>,
    /// Of the whole file.
    size: usize,
    directory: Place,
    /// Has all of the bytes, once they are there.
    unnamed: Option<Unnamed>,
}

impl PartFile {
    /// Nobody else has begun the file, which goes to `directory`: its bytes may stay in memory, if they are few.
    pub(in crate::sink) fn is_alone_in(&mut self, directory: Option<Place>) {
        self.directory = directory.filter(|_| !self.options.fsync);
    }

    /// The file has `size` bytes in all.
    pub(super) fn hold_if_short(&mut self, size: u64) {
        if self.file.is_some() || self.held.is_some() || size > MOST_HELD {
            return;
        }
        let size = size as usize;
        self.held = self.directory.take().map(|directory| Held {
            bytes: Vec::with_capacity(size),
            size,
            directory,
            unnamed: None,
        });
    }

    /// Appends `data`, unless it is to go elsewhere than behind what is there, or finds no place on the disk.
    pub(super) fn hold(&mut self, offset: u64, data: &[u8]) -> bool {
        let Some(held) = self.held.as_mut().filter(|_| self.file.is_none()) else { return false };
        let before = held.bytes.len();
        if before as u64 != offset || data.len() > held.size - before {
            return false;
        }
        held.bytes.extend_from_slice(data);
        if held.bytes.len() == held.size {
            held.unnamed = held.directory.make(&held.bytes).ok();
            if held.unnamed.is_none() {
                held.bytes.truncate(before);
                return false;
            }
        }
        true
    }

    /// What was held goes to the part, as what follows will. Where it can't be, it stays in memory.
    pub(super) fn spill(&mut self) -> Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let written = self.write_held(&held);
        if written.is_err() {
            self.held = Some(held);
        }
        written
    }

    fn write_held(&mut self, held: &Held) -> Result<()> {
        if !held.directory.is_there()
            && let Some(failure) = self.leads_out_of(&held.directory)
        {
            return Err(failure);
        }
        if held.bytes.is_empty() { Ok(()) } else { self.write_to_part(0, &held.bytes) }
    }

    fn leads_out_of(&self, directory: &Place) -> Option<Error> {
        let name = self.target.strip_prefix(&directory.root).ok()?;
        leads_out(&directory.root, name.to_str()?)
    }

    /// Whether what is held is the whole file and has the digest that was promised.
    pub(super) fn holds_what_was_promised(&self) -> bool {
        let (Some(held), None) = (&self.held, &self.pieces) else { return false };
        self.promised().is_none_or(|promised| {
            let mut hasher = Hasher::new(promised.algorithm);
            hasher.update(&held.bytes);
            hasher.finish() == promised.value
        })
    }

    /// Opens what it takes to give what is held its name. Whatever else stands against that, the name tells.
    pub(super) fn make_ready_for_name(&mut self) -> Result<()> {
        let Some(held) = self.held.as_mut().filter(|held| held.unnamed.is_none()) else {
            return Ok(());
        };
        match held.directory.make(&held.bytes) {
            Ok(unnamed) => held.unnamed = Some(unnamed),
            Err(error) if is_out_of_descriptors(&error) => {
                return Err(io_failure(&self.target, "can't be made", error));
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Gives what is held its name. If that can't be, it goes to the part, which tells why.
    pub(super) fn name_what_is_held(&mut self, modified: Option<SystemTime>) -> Result<bool> {
        let Some(held) = &self.held else { return Ok(false) };
        let is_named = self.file.is_none() && self.link_held(held, modified).is_some();
        if !is_named {
            self.spill()?;
        }
        Ok(is_named)
    }

    fn link_held(&self, held: &Held, modified: Option<SystemTime>) -> Option<()> {
        let made;
        let unnamed = if let Some(unnamed) = &held.unnamed {
            unnamed
        } else {
            made = held.directory.make(&held.bytes).ok()?;
            &made
        };
        // Another run that has a state has, or had, a part: it goes on, or this one has to clear it away.
        let state = self.state.file_name().unwrap_or(OsStr::new(""));
        if !held.directory.is_there() || unnamed.is_beside(state) {
            return None;
        }
        if let Some(modified) = modified {
            // A file system without times is no reason to fail.
            let _ = unnamed.file.set_modified(modified);
        }
        unnamed.link(self.target.file_name()?).ok()
    }

    /// Forgets what is held.
    pub(super) fn forget_held(&mut self) {
        if let Some(held) = &mut self.held {
            held.bytes.clear();
            held.unnamed = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use crate::ErrorKind;
    use crate::catalog::FileSpec;
    use crate::digest::hash_file;
    use crate::engine::{Opened, Resumable, Validator};
    use crate::sink::{DirectoryOptions, DirectorySink, Output, Sink};

    const CONTENT: &[u8] = b"0123456789";

    fn spec() -> FileSpec {
        FileSpec::from_url("http://h/f".parse().unwrap()).unwrap()
    }

    fn begun(directory: &Path, spec: &FileSpec) -> Box<dyn Output> {
        let (opened, mut output) =
            DirectorySink::new(directory, DirectoryOptions::default()).open(spec);
        assert_eq!(opened, Opened::Fresh);
        output.set_size(CONTENT.len() as u64).unwrap();
        output
    }

    /// The first half of it is there.
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
    fn half() -> Resumable {
        let validator = Validator { etag: Some("\"1\"".into()), ..Validator::default() };
        Resumable { size: 10, validator, done: vec![0..5] }
    }

    fn names(directory: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn assert_is_alone_and_whole(directory: &Path) {
        assert_eq!(names(directory), ["f".to_owned()].into());
        assert_eq!(fs::read(directory.join("f")).unwrap(), CONTENT);
    }

    #[test]
    fn a_short_file_is_nowhere_until_it_is_whole() {
        let out = tempfile::tempdir().unwrap();
        let mut output = begun(out.path(), &spec());
        output.write_at(0, &CONTENT[..5]).unwrap();
        output.write_at(5, &CONTENT[5..]).unwrap();
        assert!(names(out.path()).is_empty());
        assert!(output.verify().unwrap().is_none());
        output.finish(None, None).unwrap();
        assert_is_alone_and_whole(out.path());
    }

    #[test]
    fn what_came_of_it_is_kept_for_a_rerun() {
        let out = tempfile::tempdir().unwrap();
        let mut output = begun(out.path(), &spec());
        output.write_at(0, &CONTENT[..5]).unwrap();
        output.abandon(Some(&half()));
        let (opened, mut output) =
            DirectorySink::new(out.path(), DirectoryOptions::default()).open(&spec());
        assert_eq!(opened, Opened::Part(half()));
        output.write_at(5, &CONTENT[5..]).unwrap();
        output.finish(None, None).unwrap();
        assert_is_alone_and_whole(out.path());
    }

    #[test]
    fn what_another_run_has_left_half_way_is_cleared_away() {
        let out = tempfile::tempdir().unwrap();
        let [mut first, mut second] = [(); 2].map(|()| begun(out.path(), &spec()));
        first.write_at(0, &CONTENT[..5]).unwrap();
        second.write_at(0, CONTENT).unwrap();
        first.abandon(Some(&half()));
        assert_eq!(names(out.path()), ["f.part".to_owned(), "f.part.state".to_owned()].into());
        second.finish(None, None).unwrap();
        assert_is_alone_and_whole(out.path());
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_becomes_a_link_is_not_followed() {
        for (is_finished, was_written) in [(true, true), (true, false), (false, true)] {
            let (out, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let mut spec = spec();
            spec.name = "sub/f".to_owned();
            let mut output = begun(out.path(), &spec);
            if was_written {
                output.write_at(0, CONTENT).unwrap();
            }
            fs::rename(out.path().join("sub"), out.path().join("moved")).unwrap();
            std::os::unix::fs::symlink(elsewhere.path(), out.path().join("sub")).unwrap();
            if is_finished {
                let written = if was_written { Ok(()) } else { output.write_at(0, CONTENT) };
                let error = written.and_then(|()| output.finish(None, None)).unwrap_err();
                assert!(error.message().contains("a link that leads out of"), "{error}");
            } else {
                output.abandon(Some(&half()));
            }
            assert!(names(elsewhere.path()).is_empty(), "{:?}", names(elsewhere.path()));
        }
    }

    #[test]
    fn the_part_of_another_program_stays_its_own() {
        let out = tempfile::tempdir().unwrap();
        let mut output = begun(out.path(), &spec());
        output.write_at(0, CONTENT).unwrap();
        fs::write(out.path().join("f"), "another").unwrap();
        fs::write(out.path().join("f.part"), "another's part").unwrap();
        output.finish(None, None).unwrap_err();
        assert_eq!(names(out.path()), ["f".to_owned(), "f.part".to_owned()].into());
        assert_eq!(fs::read(out.path().join("f.part")).unwrap(), b"another's part");
    }

    #[test]
    fn nothing_is_left_of_one_that_is_given_up() {
        let out = tempfile::tempdir().unwrap();
        let mut output = begun(out.path(), &spec());
        output.write_at(0, &CONTENT[..5]).unwrap();
        output.abandon(None);
        assert!(names(out.path()).is_empty());
    }

    #[test]
    fn bytes_may_come_in_any_order() {
        let out = tempfile::tempdir().unwrap();
        let mut output = begun(out.path(), &spec());
        output.write_at(0, &CONTENT[..2]).unwrap();
        output.write_at(5, &CONTENT[5..]).unwrap();
        output.write_at(2, &CONTENT[2..5]).unwrap();
        output.finish(None, None).unwrap();
        assert_is_alone_and_whole(out.path());
    }

    #[test]
    fn one_that_begins_anew_forgets_what_came() {
        let out = tempfile::tempdir().unwrap();
        let mut output = begun(out.path(), &spec());
        output.write_at(0, b"xxxxx").unwrap();
        output.restart().unwrap();
        output.write_at(0, CONTENT).unwrap();
        output.finish(None, None).unwrap();
        assert_is_alone_and_whole(out.path());
    }

    #[test]
    fn wrong_bytes_are_found_and_taken_back() {
        let out = tempfile::tempdir().unwrap();
        let right = out.path().join("right");
        fs::write(&right, CONTENT).unwrap();
        let mut spec = spec();
        let algorithm = crate::catalog::DigestAlgorithm::Sha256;
        let value = hash_file(&right, algorithm).unwrap();
        fs::remove_file(&right).unwrap();
        spec.digest = Some(crate::catalog::Digest { algorithm, value });
        let mut output = begun(out.path(), &spec);
        output.write_at(0, b"0123x56789").unwrap();
        let damage = output.verify().unwrap().unwrap();
        assert_eq!(damage.failure.kind(), ErrorKind::Checksum);
        for range in damage.ranges {
            let part = range.start as usize..range.end as usize;
            output.write_at(range.start, &CONTENT[part]).unwrap();
            output.wrote(range);
        }
        assert!(output.verify().unwrap().is_none());
        output.finish(None, None).unwrap();
        assert_is_alone_and_whole(out.path());
    }

    #[test]
    fn what_was_put_there_meanwhile_is_not_replaced() {
        let out = tempfile::tempdir().unwrap();
        let mut output = begun(out.path(), &spec());
        output.write_at(0, CONTENT).unwrap();
        fs::write(out.path().join("f"), "another").unwrap();
        let error = output.finish(None, None).unwrap_err();
        assert!(error.message().contains("another run has just finished it"), "{error}");
        assert_eq!(names(out.path()), ["f".to_owned()].into());
        assert_eq!(fs::read(out.path().join("f")).unwrap(), b"another");
    }
}
