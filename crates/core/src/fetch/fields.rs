//! What the header fields of a response say. Pure.

use std::time::{Duration, SystemTime};

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, LAST_MODIFIED, RETRY_AFTER,
};
use http::{HeaderMap, HeaderName};
use url::Url;

use crate::engine::Validator;

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    text(headers, &CONTENT_LENGTH)?.parse().ok()
}

pub(super) fn modified(headers: &HeaderMap) -> Option<SystemTime> {
    date(headers, &LAST_MODIFIED)
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, name)?).ok()
}

pub(super) fn encoded(headers: &HeaderMap) -> bool {
    text(headers, &CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.trim().eq_ignore_ascii_case("identity"))
}

/// Clocks that are set from networks are nearer to one another.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

/// What tells this version from others for certain: only strong validators join ranges (RFC 9110,
/// section 8.8.1). A date is one where the answer is younger by a second at least: within the second
/// the file may have changed once more (section 8.8.2.2). An answer without its own date has that of when it was `received`
/// (section 6.6.1), by another clock, which may differ.
pub(crate) fn validator(headers: &HeaderMap, received: SystemTime) -> Validator {
    let tag = text(headers, &ETAG).unwrap_or_default().trim();
    let etag = tag.starts_with('"').then(|| tag.to_owned());
    let weak_etag = tag.strip_prefix("W/").map(str::to_owned);
    let (answered, doubtful) = if headers.contains_key(DATE) {
        (date(headers, &DATE), Duration::from_secs(1))
    } else {
        (Some(received), CLOCKS_DIFFER)
    };
    let is_strong = modified(headers)
        .zip(answered)
        .is_some_and(|(modified, answered)| modified + doubtful <= answered);
    let last_modified = text(headers, &LAST_MODIFIED).filter(|_| is_strong).map(str::to_owned);
    Validator { etag, weak_etag, last_modified }
}

/// Whether two answers belong to the same version; `None` where nothing tells. Strong tags decide
/// where both sides have one, else dates; but not against a tag that is another one even by the weak comparison
/// (RFC 9110, section 8.8.3.2).
pub(super) fn same_version(known: &Validator, now: &Validator) -> Option<bool> {
    let equal =
        |one: Option<&String>, other: Option<&String>| one.zip(other).map(|(one, it)| one == it);
    let opaque = |of: &'_ Validator| of.etag.clone().or_else(|| of.weak_etag.clone());
    equal(known.etag.as_ref(), now.etag.as_ref()).or_else(|| {
        match equal(opaque(known).as_ref(), opaque(now).as_ref()) {
            Some(false) => Some(false),
            _ => equal(known.last_modified.as_ref(), now.last_modified.as_ref()),
        }
    })
}

/// What `Content-Range` says of a part: start, end (excluded) and the size of the whole.
pub(super) fn content_range(headers: &HeaderMap) -> Option<(u64, u64, Option<u64>)> {
    parse_content_range(text(headers, &CONTENT_RANGE)?)
}

/// The size of the whole that `Content-Range: bytes */SIZE` states beside a 416.
pub(super) fn unsatisfied_total(headers: &HeaderMap) -> Option<u64> {
    text(headers, &CONTENT_RANGE)?.trim().strip_prefix("bytes */")?.parse().ok()
}

/// `bytes START-LAST/TOTAL` as (start, end excluded, total), RFC 9110 section 14.4.
pub(crate) fn parse_content_range(value: &str) -> Option<(u64, u64, Option<u64>)> {
    let (unit, rest) = value.trim().split_once(' ')?;
    let (range, total) = rest.split_once('/').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
    let (start, last) = range.split_once('-')?;
    let (start, last) = (start.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse::<u64>().ok()?),
    };
    let end = last.checked_add(1)?;
    (start <= last && total.is_none_or(|total| end <= total)).then_some((start, end, total))
}

/// `Retry-After` as seconds or a date (RFC 9110 section 10.2.3), from `now` on. A date is one of the
/// server's clock: so is the answer's own, and where there is one, `now` does not matter.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = text(headers, &RETRY_AFTER)?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number has room for are a very long time.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let then = httpdate::parse_http_date(value).ok()?;
    let now = date(headers, &DATE).unwrap_or(now);
    Some(then.duration_since(now).unwrap_or(Duration::ZERO))
}

/// Whether the name at the end of `url` says that it is compressed: servers that say so of such a file mean
/// the file itself.
pub(super) fn is_compressed_by_name(url: &Url) -> bool {
    const ENDS: [&str; 7] = [".gz", ".tgz", ".bz2", ".xz", ".zst", ".br", ".z"];
    let path = url.path().to_ascii_lowercase();
    ENDS.iter().any(|end| path.ends_with(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn content_ranges() {
        assert_eq!(parse_content_range("bytes 0-99/1000"), Some((0, 100, Some(1000))));
        assert_eq!(parse_content_range("BYTES 5-5/*"), Some((5, 6, None)));
        for wrong in [
            "bytes */1000",
            "bytes 9-5/100",
            "bytes 0-100/100",
            "items 0-1/2",
            "bytes 0-1",
            "",
            "bytes -5/10",
            "bytes 0-18446744073709551615/*",
        ] {
            assert_eq!(parse_content_range(wrong), None, "{wrong}");
        }
        let unsatisfied = headers(&[(CONTENT_RANGE, "bytes */1000")]);
        assert_eq!(unsatisfied_total(&unsatisfied), Some(1000));
    }

    #[test]
    fn weak_tags_never_join_ranges() {
        let of = |tag| validator(&headers(&[(ETAG, tag)]), SystemTime::UNIX_EPOCH).etag;
        assert_eq!(of("W/\"a\""), None);
        assert_eq!(of("\"a\"").as_deref(), Some("\"a\""));
    }

    #[test]
    fn dates_within_the_second_of_the_answer_never_join_ranges() {
        const WRITTEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        let received = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 + 3600);
        let of =
            |date: &str| validator(&headers(&[(LAST_MODIFIED, WRITTEN), (DATE, date)]), received);
        assert_eq!(of("Sun, 06 Nov 1994 08:49:38 GMT").last_modified.as_deref(), Some(WRITTEN));
        assert_eq!(of(WRITTEN).last_modified, None);
        assert_eq!(of("soon").last_modified, None);
    }

    #[test]
    fn an_answer_without_a_date_has_that_of_when_it_came() {
        let written = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let after = |seconds| {
            let received = written + Duration::from_secs(seconds);
            let headers = headers(&[(LAST_MODIFIED, "Sun, 06 Nov 1994 08:49:37 GMT")]);
            validator(&headers, received).last_modified.is_some()
        };
        assert!(after(3600));
        assert!(!after(59) && !after(0), "the clocks may differ");
    }

    #[test]
    fn versions_are_the_same_by_tag_then_by_date_else_nothing_tells() {
        let version = |etag: Option<&str>, date: Option<&str>| Validator {
            etag: etag.filter(|tag| !tag.starts_with('W')).map(str::to_owned),
            weak_etag: etag.and_then(|tag| tag.strip_prefix("W/")).map(str::to_owned),
            last_modified: date.map(str::to_owned),
        };
        let known = version(Some("\"1\""), Some("then"));
        for (now, same) in [
            (version(Some("\"1\""), Some("now")), Some(true)),
            (version(Some("\"2\""), Some("then")), Some(false)),
            (version(None, Some("then")), Some(true)),
            (version(None, Some("now")), Some(false)),
            (version(None, None), None),
            (version(Some("W/\"1\""), Some("then")), Some(true)),
            (version(Some("W/\"2\""), Some("then")), Some(false)),
            (version(Some("W/\"1\""), None), None),
        ] {
            assert_eq!(same_version(&known, &now), same, "{now:?}");
        }
        let weak = |tag| version(Some(tag), Some("then"));
        assert_eq!(same_version(&weak("W/\"1\""), &weak("W/\"2\"")), Some(false));
        assert_eq!(same_version(&weak("W/\"1\""), &version(None, Some("then"))), Some(true));
    }

    #[test]
    fn retry_after_as_seconds() {
        for (value, seconds) in [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("99999999999999999999", Some(u64::MAX)),
            ("soon", None),
            ("", None),
            ("-7", None),
            ("7.5", None),
        ] {
            let pause = retry_after(&headers(&[(RETRY_AFTER, value)]), SystemTime::now());
            assert_eq!(pause, seconds.map(Duration::from_secs), "{value:?}");
        }
    }

    #[test]
    fn retry_after_as_a_date_is_counted_from_the_answers_own() {
        const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        let then = httpdate::parse_http_date(THEN).unwrap();
        let early = then - Duration::from_secs(90);
        for (own, now, seconds) in [
            (None, early, 90),
            (None, then + Duration::from_secs(1), 0),
            (Some("Sun, 06 Nov 1994 08:49:30 GMT"), early, 7),
            (Some("Sun, 06 Nov 1994 08:49:30 GMT"), then + Duration::from_secs(1), 7),
            (Some("Sun, 06 Nov 1994 08:49:38 GMT"), early, 0),
            (Some("today"), early, 90),
        ] {
            let fields = [(RETRY_AFTER, Some(THEN)), (DATE, own)];
            let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
            let pause = retry_after(&headers(&fields.collect::<Vec<_>>()), now);
            assert_eq!(pause, Some(Duration::from_secs(seconds)), "{own:?} {now:?}");
        }
    }

    proptest! {
        #[test]
        fn no_content_range_panics(value in ".{0,60}") {
            let _ = parse_content_range(&value);
        }

        #[test]
        fn well_formed_content_ranges_are_read(start in 0u64..1 << 60, length in 1u64..1 << 60, rest in 0u64..1 << 60) {
            let end = start + length;
            let value = format!("bytes {start}-{}/{}", end - 1, end + rest);
            prop_assert_eq!(parse_content_range(&value), Some((start, end, Some(end + rest))));
        }
    }
}
