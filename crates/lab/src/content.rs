//! Files whose bytes are a function of a seed and an offset, so that nothing has to be stored.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Files are made of blocks of this size; no chunk is longer. 64 KiB keeps the work per byte of
/// hyper and the kernel small.
pub const BLOCK: u64 = 64 * 1024;

/// Distinct blocks: the positions in the pool at which a block may begin. With 2^20 of them, two
/// swapped blocks go unnoticed by a digest once in a million.
const STARTS: u64 = 1 << 20;

/// Random bytes that every block is a window into: content costs one addition of offsets, and the
/// origin serves as fast as the kernel copies.
static POOL: LazyLock<Bytes> = LazyLock::new(|| {
    let mut state = 0x70_65_6c_74_6f_6e;
    let words = (STARTS + BLOCK) / 8;
    (0..words).flat_map(|_| next_random(&mut state).to_le_bytes()).collect::<Vec<_>>().into()
});

/// `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A file that exists as its seed only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VirtualFile {
    /// Where the origin serves it: begins with `/`, not percent-encoded.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Decides its content. Two files with the same size and seed are equal.
    pub seed: u64,
}

impl VirtualFile {
    /// A file at `path`; a missing leading `/` is added.
    pub fn new(path: impl Into<String>, size: u64, seed: u64) -> Self {
        let mut path = path.into();
        if !path.starts_with('/') {
            path.insert(0, '/');
        }
        Self { path, size, seed }
    }

    /// At most `limit` bytes from `offset` on, without copying. Empty at the end of the file.
    pub fn chunk(&self, offset: u64, limit: u64) -> Bytes {
        let Some(left) = self.size.checked_sub(offset) else {
            return Bytes::new();
        };
        let within = offset % BLOCK;
        let len = limit.min(left).min(BLOCK - within) as usize;
        let mut state = self.seed ^ (offset / BLOCK).rotate_left(32);
        let start = (next_random(&mut state) % STARTS + within) as usize;
        POOL.slice(start..start + len)
    }

    /// The bytes `range`, cut off at the end of the file.
    pub fn bytes(&self, range: std::ops::Range<u64>) -> Vec<u8> {
        let end = range.end.min(self.size);
        let mut bytes = Vec::with_capacity(end.saturating_sub(range.start) as usize);
        self.for_each_chunk(range.start, end, |chunk| bytes.extend_from_slice(chunk));
        bytes
    }

    /// The SHA-256 of the whole file.
    pub fn sha256(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        self.for_each_chunk(0, self.size, |chunk| hasher.update(chunk));
        hasher.finalize().into()
    }

    /// When the file was last modified: in 2024, and another moment for another seed.
    pub fn modified(&self) -> SystemTime {
        const JANUARY_2024: u64 = 1_704_067_200;
        const ELEVEN_MONTHS: u64 = 28_908_800;
        SystemTime::UNIX_EPOCH + Duration::from_secs(JANUARY_2024 + self.seed % ELEVEN_MONTHS)
    }

    /// A strong entity tag (RFC 9110, section 8.8.3) with its quotation marks.
    pub fn etag(&self) -> String {
        format!("\"{:x}-{:x}\"", self.seed, self.size)
    }

    /// Writes the file below `dir`, with its modification time, so that another server can serve
    /// the same bytes.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write_to(&self, dir: &Path) -> io::Result<()> {
        let target = dir.join(self.path.trim_start_matches('/'));
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = fs::File::create(target)?;
        let mut offset = 0;
        while offset < self.size {
            let chunk = self.chunk(offset, BLOCK);
            file.write_all(&chunk)?;
            offset += chunk.len() as u64;
        }
        file.set_modified(self.modified())
    }

    fn for_each_chunk(&self, start: u64, end: u64, mut visit: impl FnMut(&[u8])) {
        let mut offset = start;
        while offset < end {
            let chunk = self.chunk(offset, end - offset);
            visit(&chunk);
            offset += chunk.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn another_seed_or_offset_is_other_content() {
        let file = VirtualFile::new("a", 1_000_000, 1);
        assert_eq!(file.sha256(), VirtualFile::new("b", 1_000_000, 1).sha256());
        assert_ne!(file.sha256(), VirtualFile::new("a", 1_000_000, 2).sha256());
        assert_ne!(file.sha256(), VirtualFile::new("a", 999_999, 1).sha256());
        assert_ne!(file.chunk(0, BLOCK), file.chunk(BLOCK, BLOCK));
        assert_ne!(file.etag(), VirtualFile::new("a", 1_000_000, 2).etag());
        assert_ne!(file.modified(), VirtualFile::new("a", 1_000_000, 2).modified());
    }

    #[test]
    fn the_file_on_disk_is_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = VirtualFile::new("/sub/ä b.bin", 200_001, 7);
        file.write_to(dir.path()).unwrap();
        let target = dir.path().join("sub/ä b.bin");
        assert_eq!(<[u8; 32]>::from(Sha256::digest(fs::read(&target).unwrap())), file.sha256());
        assert_eq!(fs::metadata(target).unwrap().modified().unwrap(), file.modified());
    }

    proptest! {
        #[test]
        fn any_range_is_a_window_into_the_whole(size in 0u64..300_000, a in 0u64..310_000, b in 0u64..310_000) {
            let file = VirtualFile::new("/f", size, 3);
            let whole = file.bytes(0..size);
            prop_assert_eq!(whole.len() as u64, size);
            let (start, end) = (a.min(b), a.max(b));
            let expected = &whole[start.min(size) as usize..end.min(size) as usize];
            prop_assert_eq!(file.bytes(start..end), expected);
        }
    }
}
