//! Hashes a file while it comes, so that little is left to do when its last byte is there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use pelton_algos::ranges::{ByteRange, FileRanges};

use crate::catalog::DigestAlgorithm;
use crate::digest::{Hasher, hash_file};

/// What is hashed at once: much more work than starting a thread for it, and still in the kernel's
/// cache.
const STEP: u64 = 4 * 1024 * 1024;

/// The hash of a file as far as it is there from its first byte on. Its bytes are read back: on Linux
/// many never came through this process.
#[derive(Debug)]
pub(super) struct Hashing {
    path: PathBuf,
    algorithm: DigestAlgorithm,
    written: FileRanges,
    /// How much is hashed, or will be when the thread has ended.
    hashed: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Idle(Box<Hasher>),
    Running(JoinHandle<io::Result<Box<Hasher>>>),
    /// What was hashed is not what is there: all of it is to be hashed again.
    Spoilt,
}

impl Hashing {
    /// Of the file at `path`, of which nothing is there.
    pub(super) fn new(path: PathBuf, algorithm: DigestAlgorithm) -> Self {
        let state = State::Idle(Box::new(Hasher::new(algorithm)));
        Self { path, algorithm, written: FileRanges::default(), hashed: 0, state }
    }

    /// `range` was written.
    pub(super) fn wrote(&mut self, range: ByteRange) {
        if range.start < self.hashed {
            self.spoil();
        }
        self.written.mark_done(range);
        let prefix = self.written.done().next().filter(|first| first.start == 0);
        let end = prefix.map_or(0, |first| first.end);
        if end >= self.hashed + STEP {
            self.go_on_to(end);
        }
    }

    /// What was hashed was overwritten or will be.
    pub(super) fn spoil(&mut self) {
        self.state = State::Spoilt;
    }

    /// Hashes up to `end` on a thread, unless one is at it.
    fn go_on_to(&mut self, end: u64) {
        if matches!(&self.state, State::Running(thread) if !thread.is_finished()) {
            return;
        }
        let hasher = match std::mem::replace(&mut self.state, State::Spoilt) {
            State::Idle(hasher) => Ok(hasher),
            State::Running(thread) => joined(thread),
            State::Spoilt => return,
        };
        let (path, range) = (self.path.clone(), self.hashed..end);
        let hash = move || go_on(&path, hasher?, range);
        if let Ok(thread) = std::thread::Builder::new().name("hash".to_owned()).spawn(hash) {
            self.hashed = end;
            self.state = State::Running(thread);
        }
    }

    /// The digest of the file, which is there to its end. Blocks.
    pub(super) fn finish(&mut self) -> io::Result<Vec<u8>> {
        let so_far = match std::mem::replace(&mut self.state, State::Spoilt) {
            State::Idle(hasher) => Some(hasher),
            State::Running(thread) => joined(thread).ok(),
            State::Spoilt => None,
        };
        match so_far {
            Some(hasher) => Ok(go_on(&self.path, hasher, self.hashed..u64::MAX)?.finish()),
            None => hash_file(&self.path, self.algorithm),
        }
    }
}

fn joined(thread: JoinHandle<io::Result<Box<Hasher>>>) -> io::Result<Box<Hasher>> {
    thread.join().map_err(|_| io::Error::other("hashing a part failed"))?
}

/// `hasher` with the bytes of `range` of the file at `path`, as far as it has them.
fn go_on(path: &Path, mut hasher: Box<Hasher>, range: ByteRange) -> io::Result<Box<Hasher>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(range.start))?;
    hasher.read_from(file.take(range.end - range.start))?;
    Ok(hasher)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    const SIZE: usize = 3 * STEP as usize + 12_345;

    fn content(seed: u8) -> Vec<u8> {
        (0..SIZE).map(|i| (i % 251) as u8 ^ seed).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn in_whatever_order_bytes_come_the_digest_is_that_of_the_file(
            cuts in proptest::collection::vec(0..SIZE, 0..6),
            order in any::<u64>(),
            rewritten in proptest::option::of(0..SIZE),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("f");
            let file = File::create(&path).unwrap();
            let (old, new) = (content(7), content(0));
            let mut hashing = Hashing::new(path.clone(), DigestAlgorithm::Crc32c);
            let mut cuts: Vec<usize> = cuts.into_iter().chain([0, SIZE]).collect();
            cuts.sort_unstable();
            let mut ranges: Vec<_> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
            ranges.sort_by_key(|range| (range.start as u64).wrapping_mul(order | 1));
            let mut write = |bytes: &[u8], range: std::ops::Range<usize>| {
                file.write_all_at(&bytes[range.clone()], range.start as u64).unwrap();
                hashing.wrote(range.start as u64..range.end as u64);
            };
            if let Some(end) = rewritten {
                write(&old, 0..end);
            }
            for range in ranges {
                write(&new, range);
            }
            let expected = hash_file(&path, DigestAlgorithm::Crc32c).unwrap();
            prop_assert_eq!(hashing.finish().unwrap(), expected);
        }
    }
}
