//! What a server says that a file hashes to: `Repr-Digest` (RFC 9530), its forerunner `Digest` (RFC
//! 3230) and `Content-MD5` (RFC 1864). Pure.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::catalog::{Digest, DigestAlgorithm};

/// Asks for `Repr-Digest` (RFC 9530, section 4).
pub(crate) const WANT_REPR_DIGEST: HeaderName = HeaderName::from_static("want-repr-digest");
pub(super) const WANTED: HeaderValue = HeaderValue::from_static("sha-256=10, sha-512=5");

/// The best digest of the whole file that a response names. `Repr-Digest` and `Digest` are of the
/// whole even beside a part of it; `Content-Digest` and `Content-MD5` are of the body.
pub(crate) fn promised(status: StatusCode, headers: &HeaderMap) -> Option<Digest> {
    let of = |name: &'static str, parse: fn(&str) -> Option<Digest>| {
        let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let members = lines.flat_map(|line| line.split(','));
        members.filter_map(parse).collect::<Vec<_>>()
    };
    let mut found = of("repr-digest", structured);
    found.extend(of("digest", member));
    if status == StatusCode::OK {
        found.extend(of("content-digest", structured));
        found.extend(of("content-md5", |value| decoded(DigestAlgorithm::Md5, value)));
    }
    Digest::best(found)
}

/// A member of a dictionary whose values are byte sequences: `sha-256=:BASE64:` (RFC 9651, sections
/// 3.2 and 3.3.5). Parameters are ignored.
fn structured(member: &str) -> Option<Digest> {
    let (name, value) = member.trim().split_once('=')?;
    let (value, _) = value.strip_prefix(':')?.split_once(':')?;
    decoded(algorithm(name)?, value)
}

/// `SHA-256=BASE64`.
fn member(member: &str) -> Option<Digest> {
    let (name, value) = member.trim().split_once('=')?;
    decoded(algorithm(name)?, value)
}

/// `sha` alone is SHA-1 in both registries.
fn algorithm(name: &str) -> Option<DigestAlgorithm> {
    match name.trim() {
        sha if sha.eq_ignore_ascii_case("sha") => Some(DigestAlgorithm::Sha1),
        name => name.parse().ok(),
    }
}

fn decoded(algorithm: DigestAlgorithm, value: &str) -> Option<Digest> {
    let value = BASE64_STANDARD.decode(value.trim()).ok()?;
    (value.len() == algorithm.digest_len()).then_some(Digest { algorithm, value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHA256: &str = "sha-256=15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";
    const MD5: &str = "md5=25f9e794323b453885f5181f1b624d0b";
    const BASE64_256: &str = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=";
    const BASE64_MD5: &str = "JfnnlDI7RTiF9RgfG2JNCw==";

    fn of(status: u16, fields: &[(&'static str, String)]) -> Option<String> {
        let headers = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        promised(StatusCode::from_u16(status).unwrap(), &headers).map(|digest| digest.to_string())
    }

    #[test]
    fn every_field_is_read_and_the_best_digest_taken() {
        for (fields, expected) in [
            (vec![("repr-digest", format!("sha-256=:{BASE64_256}:"))], SHA256),
            (vec![("repr-digest", format!("unixsum=:AA==:, sha-256=:{BASE64_256}:;q=1"))], SHA256),
            (vec![("digest", format!("SHA-256={BASE64_256}, md5={BASE64_MD5}"))], SHA256),
            (vec![("digest", format!("md5={BASE64_MD5}"))], MD5),
            (vec![("content-md5", BASE64_MD5.to_owned())], MD5),
            (
                vec![
                    ("content-md5", BASE64_MD5.to_owned()),
                    ("content-digest", format!("sha-256=:{BASE64_256}:")),
                ],
                SHA256,
            ),
        ] {
            assert_eq!(of(200, &fields).as_deref(), Some(expected), "{fields:?}");
        }
    }

    #[test]
    fn what_is_of_a_part_says_nothing_of_the_whole() {
        let of_body = [
            ("content-md5", BASE64_MD5.to_owned()),
            ("content-digest", format!("sha-256=:{BASE64_256}:")),
        ];
        assert_eq!(of(206, &of_body), None);
        let of_whole = [("repr-digest", format!("sha-256=:{BASE64_256}:"))];
        assert_eq!(of(206, &of_whole).as_deref(), Some(SHA256));
    }

    #[test]
    fn nonsense_promises_nothing() {
        for value in
            ["", "sha-256", "sha-256=::", "sha-256=:AAAA:", "sha-256=:%%%:", "sha-384=:AA==:"]
        {
            assert_eq!(of(200, &[("repr-digest", value.to_owned())]), None, "{value}");
            assert_eq!(of(200, &[("digest", value.to_owned())]), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_field_panics(value in "[ -~]{0,80}") {
            let _ = of(200, &[("repr-digest", value.clone()), ("digest", value)]);
        }
    }
}
