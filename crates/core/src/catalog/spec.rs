//! One file to fetch.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::str::FromStr;

use http::{HeaderName, HeaderValue};
use url::Url;

use super::names;
use crate::connection::{shown, shown_text};
use crate::{Error, ErrorKind, Result};

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
    /// BLAKE3 with its default output of 32 bytes.
    Blake3,
    /// CRC-32C (Castagnoli), most significant byte first.
    Crc32c,
}

impl DigestAlgorithm {
    /// Every algorithm.
    pub const ALL: [Self; 6] =
        [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512, Self::Blake3, Self::Crc32c];

    /// The length of its digests in bytes.
    pub const fn digest_len(self) -> usize {
        match self {
            Self::Crc32c => 4,
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 | Self::Blake3 => 32,
            Self::Sha512 => 64,
        }
    }

    /// The better, the higher: first those that nobody can forge, of them first those that cost
    /// the least.
    const fn rank(self) -> u8 {
        match self {
            Self::Crc32c => 0,
            Self::Md5 => 1,
            Self::Sha1 => 2,
            Self::Sha512 => 3,
            Self::Sha256 => 4,
            Self::Blake3 => 5,
        }
    }

    /// Its name as `--checksum` and manifests spell it, e.g. `sha-256`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha-1",
            Self::Sha256 => "sha-256",
            Self::Sha512 => "sha-512",
            Self::Blake3 => "blake3",
            Self::Crc32c => "crc32c",
        }
    }
}

impl fmt::Display for DigestAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DigestAlgorithm {
    type Err = Error;

    /// Reads a name in any case, with or without hyphens: `sha-256`, `SHA256`.
    fn from_str(text: &str) -> Result<Self> {
        let bare = |name: &str| name.replace('-', "").to_ascii_lowercase();
        Self::ALL.into_iter().find(|algorithm| bare(algorithm.name()) == bare(text)).ok_or_else(
            || {
                Error::new(
                    ErrorKind::Usage,
                    format!(
                        "{} is no digest algorithm that is supported; those are {}",
                        names::excerpt(text),
                        Self::ALL.map(Self::name).join(", ")
                    ),
                )
            },
        )
    }
}

/// What the bytes of a file must hash to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest {
    /// How it was made.
    pub algorithm: DigestAlgorithm,
    /// Its bytes.
    pub value: Vec<u8>,
}

impl Digest {
    /// Reads `ALGORITHM=HEX`, e.g. `sha-256=9f86…0a08`.
    ///
    /// # Errors
    /// `Usage`: an unknown algorithm, or not exactly the hexadecimal digits that it needs.
    pub fn parse(text: &str) -> Result<Self> {
        let Some((algorithm, hex)) = text.split_once('=') else {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("{} is no digest; write it as sha-256=HEX", names::excerpt(text)),
            ));
        };
        Self::from_hex(algorithm.trim().parse()?, hex.trim())
    }

    /// The best of several digests of the same bytes.
    pub(crate) fn best(digests: impl IntoIterator<Item = Self>) -> Option<Self> {
        digests.into_iter().max_by_key(|digest| digest.algorithm.rank())
    }

    /// A digest from its hexadecimal digits.
    ///
    /// # Errors
    /// `Usage`: not exactly the hexadecimal digits that `algorithm` needs.
    pub fn from_hex(algorithm: DigestAlgorithm, hex: &str) -> Result<Self> {
        let value = decode_hex(hex).filter(|value| value.len() == algorithm.digest_len());
        let Some(value) = value else {
            return Err(Error::new(
                ErrorKind::Usage,
                format!(
                    "{} is no {algorithm} digest, which has {} hexadecimal digits",
                    names::excerpt(hex),
                    2 * algorithm.digest_len()
                ),
            ));
        };
        Ok(Self { algorithm, value })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.algorithm)?;
        self.value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// Digests of the parts of a file, which tell of wrong bytes where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// How they were made.
    pub algorithm: DigestAlgorithm,
    /// Bytes of a part; the last one may be shorter.
    pub length: NonZeroU64,
    /// The digest of each part in their order.
    pub digests: Vec<Vec<u8>>,
}

impl Pieces {
    /// The parts of a file of `size` bytes with their digests.
    pub fn of(&self, size: u64) -> impl Iterator<Item = (Range<u64>, &[u8])> {
        let length = self.length.get();
        (0u64..).zip(&self.digests).map(move |(index, digest)| {
            let start = index.saturating_mul(length).min(size);
            (start..start.saturating_add(length).min(size), digest.as_slice())
        })
    }
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
    /// What its parts must hash to.
    pub pieces: Option<Pieces>,
    /// Further places that hold the same bytes, asked in their order when `url` is given up.
    pub mirrors: Vec<Url>,
    /// Request headers for this file alone: name and value. Those that requests have of their own (`Range`, `If-Range`, `Host`,
    /// `Accept-Encoding` and what tells of connections and bodies) are left out.
    pub headers: Vec<(String, String)>,
}

impl FileSpec {
    /// The file at `url`, named by the last part of its path (`index.html` where that is empty),
    /// and nothing else known about it. A fragment is dropped: servers never see it.
    ///
    /// # Errors
    /// `Usage`: `url` is not http or https, or gives no usable name.
    pub fn from_url(url: Url) -> Result<Self> {
        let name = names::from_url(&url)?;
        Self::with_name(url, name)
    }

    /// The same with its name and its headers as they are used.
    ///
    /// # Errors
    /// `Usage`: a URL that is not http or https, a name that is no [relative one](super::relative_name), a header that can't be sent.
    pub(crate) fn checked(mut self) -> Result<Self> {
        std::iter::once(&self.url).chain(&self.mirrors).try_for_each(check_scheme)?;
        let of_file = |error: Error| error.prefixed(&shown(&self.url));
        self.name = names::relative_name(&self.name).map_err(of_file)?;
        for (name, value) in &mut self.headers {
            (*name, *value) = parse_header(name, value).map_err(of_file)?;
        }
        Ok(self)
    }

    /// Whether wrong bytes would be noticed.
    pub const fn is_verifiable(&self) -> bool {
        self.digest.is_some() || self.pieces.is_some()
    }

    /// The file at `url`, whatever that ends in, stored as `name`, a path as [`relative_name`] gives it.
    ///
    /// # Errors
    /// `Usage`: a URL that is not http or https.
    ///
    /// [`relative_name`]: super::relative_name
    pub fn with_name(mut url: Url, name: String) -> Result<Self> {
        check_scheme(&url)?;
        url.set_fragment(None);
        Ok(Self {
            url,
            name,
            size: None,
            size_hint: None,
            digest: None,
            pieces: None,
            mirrors: Vec::new(),
            headers: Vec::new(),
        })
    }
}

/// An http or https URL from `text`, resolved against `base` where there is one.
pub(super) fn parse_url(text: &str, base: Option<&Url>) -> Result<Url> {
    let url = Url::options().base_url(base).parse(text).map_err(|error| {
        let line = format!("{} is no URL: {error}", names::excerpt(&shown_text(text)));
        Error::new(ErrorKind::Usage, line)
    })?;
    check_scheme(&url)?;
    Ok(url)
}

/// A request header, checked so that it can be sent as it is.
pub(super) fn parse_header(name: &str, value: &str) -> Result<(String, String)> {
    let (name, value) = (name.trim(), value.trim());
    if HeaderName::from_str(name).is_err() {
        let line = format!("{} is no header name", names::excerpt(name));
        return Err(Error::new(ErrorKind::Usage, line));
    }
    // The value may be a secret: it is not shown.
    if HeaderValue::from_str(value).is_err() {
        let line = format!("the value of header {name} holds a control character");
        return Err(Error::new(ErrorKind::Usage, line));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// `base` as the directory that names are resolved against: with a `/` at the end of its path.
pub(super) fn as_directory(base: &Url) -> Url {
    let mut directory = base.clone();
    if !base.path().ends_with('/') {
        directory.set_path(&format!("{}/", base.path()));
    }
    directory
}

/// Whether `url` is one of those that are fetched.
///
/// # Errors
/// `Usage`, with the URL that was meant where a scheme was left out.
pub(crate) fn check_scheme(url: &Url) -> Result<()> {
    if matches!(url.scheme(), "http" | "https") {
        return Ok(());
    }
    let text = shown(url);
    let advice = if is_host_and_port(url) {
        format!("; write http://{text} or https://{text}")
    } else {
        String::new()
    };
    let line = format!("{text}: only http and https URLs can be fetched{advice}");
    Err(Error::new(ErrorKind::Usage, line))
}

/// Whether `url` is a host and a port without a scheme, of which the host was taken for one.
fn is_host_and_port(url: &Url) -> bool {
    let port = url.path().split('/').next().unwrap_or_default();
    url.cannot_be_a_base() && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_spellings_read_and_print_alike() {
        let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        for spelling in ["sha-256", "sha256", "SHA256", "Sha-256"] {
            let digest = Digest::parse(&format!("{spelling}={hex}")).unwrap();
            assert_eq!(digest.algorithm, DigestAlgorithm::Sha256);
            assert_eq!(digest.to_string(), format!("sha-256={hex}"));
        }
        let upper: Digest = format!("blake3={}", hex.to_uppercase()).parse().unwrap();
        assert_eq!(upper.to_string(), format!("blake3={hex}"));
    }

    #[test]
    fn every_algorithm_reads_its_own_name_and_length() {
        for algorithm in DigestAlgorithm::ALL {
            let text = format!("{algorithm}={}", "5a".repeat(algorithm.digest_len()));
            assert_eq!(Digest::parse(&text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_digests_say_what_is_wrong() {
        let message = |text: &str| {
            let error = Digest::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            error.to_string()
        };
        assert!(message("deadbeef").contains("sha-256=HEX"));
        assert!(message("whirlpool=00").contains("\"whirlpool\" is no digest algorithm"));
        assert!(message("md5=00").contains("32 hexadecimal digits"));
        assert!(message("md5=0123456789abcdef0123456789abcdeg").contains("no md5 digest"));
        assert!(message("crc32c=1234567é").contains("8 hexadecimal digits"));
    }

    #[test]
    fn from_url_takes_the_last_part_and_drops_the_fragment() {
        let url = "https://example.org/a/b%20c.txt?x=1#top".parse().unwrap();
        let spec = FileSpec::from_url(url).unwrap();
        assert_eq!(spec.name, "b c.txt");
        assert_eq!(spec.url.as_str(), "https://example.org/a/b%20c.txt?x=1");
    }

    #[test]
    fn other_schemes_are_refused() {
        let error = FileSpec::from_url("ftp://example.org/x".parse().unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ftp://example.org/x: only http and https URLs can be fetched"
        );
    }

    #[test]
    fn a_host_with_its_port_is_not_taken_for_a_scheme() {
        for (text, is_meant) in [
            ("localhost:7080/x", true),
            ("example.org:80", true),
            ("mailto:me@example.org", false),
            ("data:,1", false),
            ("ftp://h:80/x", false),
        ] {
            let error = FileSpec::from_url(text.parse().unwrap()).unwrap_err();
            let advice = format!("; write http://{text} or https://{text}");
            assert_eq!(error.to_string().ends_with(&advice), is_meant, "{error}");
        }
    }
}
