//! Which bytes of a part are not those that were promised.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use pelton_algos::ranges::ByteRange;

use super::{Journaling, PartFile};
use crate::catalog::Digest;
use crate::digest::Hasher;
use crate::sink::{Damage, wrong_digest};
use crate::{Error, ErrorKind, journal};

/// Wrong pieces that a message names.
const NAMED: usize = 3;

impl PartFile {
    /// Whether the whole has the digest that was promised, else what it has. `None` where none was.
    fn wrong_digest(&mut self) -> io::Result<Option<Digest>> {
        let Some(hashing) = &mut self.hashing else { return Ok(None) };
        let value = hashing.finish()?;
        let actual = self.promised().map(|expected| Digest { value, ..expected.clone() });
        Ok(actual.filter(|actual| Some(actual) != self.promised()))
    }

    /// The pieces of the file at `path` whose bytes are not those that were promised.
    pub(super) fn wrong_pieces(&self, path: &Path) -> io::Result<Vec<ByteRange>> {
        let Some(pieces) = &self.pieces else { return Ok(Vec::new()) };
        let mut part = File::open(path)?;
        let size = part.metadata()?.len();
        let mut wrong = Vec::new();
        for (range, digest) in pieces.of(size) {
            let mut hasher = Hasher::new(pieces.algorithm);
            hasher.read_from(io::Read::by_ref(&mut part).take(range.end - range.start))?;
            if hasher.finish() != digest {
                wrong.push(range);
            }
        }
        Ok(wrong)
    }

    pub(super) fn damage(&mut self) -> io::Result<Option<Damage>> {
        let actual = self.wrong_digest()?;
        // The digest of the whole is as good as those of its pieces, which tell where it is wrong.
        let is_right = actual.is_none() && self.hashing.is_some();
        let ranges = if is_right { Vec::new() } else { self.wrong_pieces(&self.part)? };
        let message = match (&actual, self.promised()) {
            _ if !ranges.is_empty() => describe(&ranges),
            (Some(actual), Some(expected)) => wrong_digest(expected, actual),
            _ => return Ok(None),
        };
        let failure = Error::new(ErrorKind::Checksum, message);
        let whole = 0..fs::metadata(&self.part)?.len();
        let ranges = if ranges.is_empty() { vec![whole] } else { ranges };
        // Nobody must take them for right ones, not after a crash either.
        journal::clear(&self.state)?;
        (self.journal, self.continues) = (Journaling::Silent, None);
        if let Some(hashing) = &mut self.hashing {
            hashing.spoil();
        }
        Ok(Some(Damage { ranges, failure }))
    }
}

/// Says which pieces are wrong.
fn describe(wrong: &[ByteRange]) -> String {
    let named = wrong.iter().take(NAMED);
    let mut named: Vec<_> =
        named.map(|range| format!("{} to {}", range.start, range.end - 1)).collect();
    if wrong.len() > NAMED {
        named.push(format!("{} more", wrong.len() - NAMED));
    }
    let last = named.pop().unwrap_or_default();
    match (named.is_empty(), wrong.len()) {
        (true, _) => format!("the piece of bytes {last} has another digest than it should"),
        (false, all) => format!(
            "{all} pieces have other digests than they should: bytes {} and {last}",
            named.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_pieces_are_named() {
        let pieces: Vec<ByteRange> = (0..5).map(|at| at * 10..at * 10 + 10).collect();
        assert_eq!(
            describe(&pieces[..1]),
            "the piece of bytes 0 to 9 has another digest than it should"
        );
        assert_eq!(
            describe(&pieces[1..3]),
            "2 pieces have other digests than they should: bytes 10 to 19 and 20 to 29"
        );
        assert_eq!(
            describe(&pieces),
            "5 pieces have other digests than they should: bytes 0 to 9, 10 to 19, 20 to 29 and 2 more"
        );
    }
}
