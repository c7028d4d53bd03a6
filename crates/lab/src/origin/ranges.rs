//! The `Range` field (RFC 9110, section 14).

use std::ops::Range;

/// What a `Range` field asks of a representation of a known size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Requested {
    /// No range, several, another unit, or nonsense: the whole representation. A server may
    /// ignore what it does not like (section 14.2).
    Whole,
    /// These bytes, never empty.
    Part(Range<u64>),
    /// Nothing that the representation has: 416.
    Unsatisfiable,
}

/// Reads a `Range` field for a representation of `size` bytes.
pub(super) fn parse(field: &str, size: u64) -> Requested {
    let Some((unit, spec)) = field.split_once('=') else {
        return Requested::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else {
        return Requested::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") || spec.contains(',') {
        return Requested::Whole;
    }
    let range = match (position(first), position(last)) {
        (Some(first), None) if last.is_empty() => first..size,
        (Some(first), Some(last)) if first <= last => first..size.min(last.saturating_add(1)),
        (None, Some(suffix)) if first.is_empty() => size.saturating_sub(suffix)..size,
        _ => return Requested::Whole,
    };
    if range.is_empty() { Requested::Unsatisfiable } else { Requested::Part(range) }
}

/// Digits only; a number too large for any file counts as the largest.
fn position(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_ranges() {
        assert_eq!(parse("bytes=0-0", 10), Requested::Part(0..1));
        assert_eq!(parse("bytes=2-5", 10), Requested::Part(2..6));
        assert_eq!(parse("Bytes=2-", 10), Requested::Part(2..10));
        assert_eq!(parse("bytes=-3", 10), Requested::Part(7..10));
        assert_eq!(parse("bytes=-30", 10), Requested::Part(0..10));
        assert_eq!(parse("bytes=5-99999999999999999999999", 10), Requested::Part(5..10));
    }

    #[test]
    fn beyond_the_end_is_unsatisfiable() {
        assert_eq!(parse("bytes=10-", 10), Requested::Unsatisfiable);
        assert_eq!(parse("bytes=10-20", 10), Requested::Unsatisfiable);
        assert_eq!(parse("bytes=-0", 10), Requested::Unsatisfiable);
        assert_eq!(parse("bytes=0-0", 0), Requested::Unsatisfiable);
    }

    #[test]
    fn nonsense_is_ignored() {
        for field in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=+1-2",
            "lines=1-2",
            "bytes=0-1,3-4",
        ] {
            assert_eq!(parse(field, 10), Requested::Whole, "{field}");
        }
    }
}
