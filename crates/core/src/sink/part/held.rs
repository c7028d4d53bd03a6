//! A short file in memory until it is whole: it gets its name at once, and costs neither a part nor a state.

use std::time::SystemTime;

use super::PartFile;
use crate::Result;
use crate::digest::Hasher;
use crate::sink::files::link_new;

/// Bytes of a file that stays in memory. A run that is killed loses no more of each.
const MOST_HELD: u64 = 32 * 1024;

impl PartFile {
    /// Nobody else has begun the file: its bytes may stay in memory, if they are few.
    pub(in crate::sink) fn is_alone(&mut self) {
        self.may_hold = !self.options.fsync;
    }

    /// The file has `size` bytes in all.
    pub(super) fn hold_if_short(&mut self, size: u64) {
        if self.may_hold && self.file.is_none() && self.held.is_none() && size <= MOST_HELD {
            self.held = Some(Vec::with_capacity(size as usize));
        }
    }

    /// Appends `data`, unless it is to go elsewhere than behind what is there.
    pub(super) fn hold(&mut self, offset: u64, data: &[u8]) -> bool {
        let Some(held) = &mut self.held else { return false };
        let follows = held.len() as u64 == offset;
        let fits = held.len() + data.len() <= MOST_HELD as usize;
        if follows && fits {
            held.extend_from_slice(data);
        }
        follows && fits
    }

    /// What was held goes to the part, as what follows will.
    pub(super) fn spill(&mut self) -> Result<()> {
        self.may_hold = false;
        match self.held.take() {
            Some(held) if !held.is_empty() => self.write_to_part(0, &held),
            _ => Ok(()),
        }
    }

    /// Whether what is held is the whole file and has the digest that was promised.
    pub(super) fn holds_what_was_promised(&self) -> bool {
        let (Some(held), None) = (&self.held, &self.pieces) else { return false };
        self.promised().is_none_or(|promised| {
            let mut hasher = Hasher::new(promised.algorithm);
            hasher.update(held);
            hasher.finish() == promised.value
        })
    }

    /// Gives what is held its name. If that can't be, it goes to the part, which tells why.
    pub(super) fn name_what_is_held(&mut self, modified: Option<SystemTime>) -> Result<bool> {
        let Some(held) = &self.held else { return Ok(false) };
        let is_named = link_new(&self.target, held, modified).is_ok();
        if !is_named {
            self.spill()?;
        }
        Ok(is_named)
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
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
    fn what_came_of_it_is_kept_for_a_rerun() {
        let out = tempfile::tempdir().unwrap();
        let mut output = begun(out.path(), &spec());
        output.write_at(0, &CONTENT[..5]).unwrap();
        let validator = Validator { etag: Some("\"1\"".into()), last_modified: None };
        let part = Resumable { size: 10, validator, done: vec![0..5] };
        output.abandon(Some(&part));
        let (opened, mut output) =
            DirectorySink::new(out.path(), DirectoryOptions::default()).open(&spec());
        assert_eq!(opened, Opened::Part(part));
        output.write_at(5, &CONTENT[5..]).unwrap();
        output.finish(None, None).unwrap();
        assert_is_alone_and_whole(out.path());
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
