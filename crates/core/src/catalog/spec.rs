//! One file to fetch.

use url::Url;

/// How a digest was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DigestAlgorithm {
    /// MD5 (RFC 1321).
    Md5,
    /// SHA-1 (FIPS 180-4).
    Sha1,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// SHA-512 (FIPS 180-4).
    Sha512,
    /// BLAKE3.
    Blake3,
    /// CRC-32C (Castagnoli).
    Crc32c,
}

/// What the bytes of a file must hash to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest {
    /// How it was made.
    pub algorithm: DigestAlgorithm,
    /// Its bytes.
    pub value: Vec<u8>,
}

/// One file to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// Where it is.
    pub url: Url,
    /// Where it goes: a relative path with `/` between its parts, safe to join to a directory.
    pub name: String,
    /// Its size in bytes where the source states it exactly. A server that disagrees is an error.
    pub size: Option<u64>,
    /// Its size in bytes as a listing shows it, perhaps rounded: a hint for the scheduler only.
    pub size_hint: Option<u64>,
    /// What its bytes must hash to.
    pub digest: Option<Digest>,
    /// Further places that hold the same bytes.
    pub mirrors: Vec<Url>,
    /// Request headers for this file alone: name and value.
    pub headers: Vec<(String, String)>,
}
