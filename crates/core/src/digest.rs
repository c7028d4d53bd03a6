//! Hashes bytes as they arrive.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crc_fast::CrcAlgorithm;
use sha2::Digest as _;

use crate::catalog::DigestAlgorithm;

/// Bytes read from a file at once: large enough that the hash and not the system calls take the
/// time, small enough to stay in the L2 cache.
const BLOCK: usize = 128 * 1024;

/// A running hash of one [`DigestAlgorithm`].
pub struct Hasher(State);

enum State {
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
    Blake3(Box<blake3::Hasher>),
    Crc32c(crc_fast::Digest),
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

impl Hasher {
    /// A hash of no bytes yet.
    pub fn new(algorithm: DigestAlgorithm) -> Self {
        Self(match algorithm {
            DigestAlgorithm::Md5 => State::Md5(md5::Md5::new()),
            DigestAlgorithm::Sha1 => State::Sha1(sha1::Sha1::new()),
            DigestAlgorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            DigestAlgorithm::Sha512 => State::Sha512(sha2::Sha512::new()),
            DigestAlgorithm::Blake3 => State::Blake3(Box::default()),
            // CRC-32/ISCSI is the catalogued name of CRC-32C (RFC 3720, section 12.1).
            DigestAlgorithm::Crc32c => {
                State::Crc32c(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi))
            }
        })
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Md5(hash) => hash.update(bytes),
            State::Sha1(hash) => hash.update(bytes),
            State::Sha256(hash) => hash.update(bytes),
            State::Sha512(hash) => hash.update(bytes),
            State::Blake3(hash) => {
                hash.update(bytes);
            }
            State::Crc32c(hash) => hash.update(bytes),
        }
    }

    /// Appends everything that `reader` gives.
    ///
    /// # Errors
    /// Those of `reader`.
    pub(crate) fn read_from(&mut self, mut reader: impl Read) -> io::Result<()> {
        let mut block = vec![0; BLOCK];
        loop {
            match reader.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(read) => self.update(&block[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The digest of everything appended, as [`Digest::value`](crate::catalog::Digest::value) has it.
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            State::Md5(hash) => hash.finalize().to_vec(),
            State::Sha1(hash) => hash.finalize().to_vec(),
            State::Sha256(hash) => hash.finalize().to_vec(),
            State::Sha512(hash) => hash.finalize().to_vec(),
            State::Blake3(hash) => hash.finalize().as_bytes().to_vec(),
            State::Crc32c(hash) => (hash.finalize() as u32).to_be_bytes().to_vec(),
        }
    }
}

/// The digest of the file at `path`. Reads the whole file and blocks while it does.
///
/// # Errors
/// The file can't be opened or read.
pub fn hash_file(path: &Path, algorithm: DigestAlgorithm) -> io::Result<Vec<u8>> {
    let mut hasher = Hasher::new(algorithm);
    hasher.read_from(File::open(path)?)?;
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Digest;

    /// Published check values for the nine bytes "123456789" or, for the hashes, as the
    /// coreutils and b3sum print them.
    const KNOWN: [&str; 6] = [
        "md5=25f9e794323b453885f5181f1b624d0b",
        "sha-1=f7c3bc1d808e04732adf679965ccc34ca7ae3441",
        "sha-256=15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
        "sha-512=d9e6762dd1c8eaf6d61b3c6192fc408d4d6d5f1176d0c29169bc24e71c3f274ad27fcd5811b313d681f7e55ec02d73d499c95455b6b5bb503acf574fba8ffe85",
        "blake3=b7d65b48420d1033cb2595293263b6f72eabee20d55e699d0df1973b3c9deed1",
        "crc32c=e3069283",
    ];

    #[test]
    fn known_answers_in_one_piece_in_many_and_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("digits");
        std::fs::write(&path, "123456789").unwrap();
        for known in KNOWN {
            let known = Digest::parse(known).unwrap();
            let mut hasher = Hasher::new(known.algorithm);
            b"123456789".iter().for_each(|byte| hasher.update(&[*byte]));
            assert_eq!(hasher.finish(), known.value, "{}", known.algorithm);
            assert_eq!(hash_file(&path, known.algorithm).unwrap(), known.value);
        }
    }

    #[test]
    fn a_file_longer_than_a_block_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        let bytes: Vec<u8> = (0..3 * BLOCK + 17).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mut whole = Hasher::new(DigestAlgorithm::Sha256);
        whole.update(&bytes);
        assert_eq!(hash_file(&path, DigestAlgorithm::Sha256).unwrap(), whole.finish());
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = hash_file(&folder.path().join("none"), DigestAlgorithm::Md5).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
