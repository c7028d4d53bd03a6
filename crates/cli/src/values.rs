//! Reads the values of flags.

use std::ffi::OsStr;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use http::header::{CONTENT_LENGTH, EXPECT, IF_RANGE, RANGE, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue};
use pelton_algos::units::{BitRate, Bytes};
use pelton_core::catalog::Digest;
use pelton_core::connection::ConnectTo;

/// A number of bytes: digits, and K, M or G for powers of 1024.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    let (digits, shift) = match suffix(text) {
        None => (text, 0),
        Some((digits, 'K')) => (digits, 10),
        Some((digits, 'M')) => (digits, 20),
        Some((digits, 'G')) => (digits, 30),
        Some(_) => return Err(not_a_size()),
    };
    let number: u64 = digits.parse().map_err(|_| not_a_size())?;
    number.checked_mul(1 << shift).map(Bytes).ok_or_else(|| "too large".to_owned())
}

/// The least that a range stream may be made for: less is a packet or two.
const LEAST_SPLIT: u64 = 1 << 10;

pub(crate) fn split_size(text: &str) -> Result<Bytes, String> {
    size(text).and_then(|size| match size {
        Bytes(..LEAST_SPLIT) => {
            Err("at least 1K: a connection for less costs more than it brings".to_owned())
        }
        size => Ok(size),
    })
}

fn not_a_size() -> String {
    "a size is a whole number, with K, M or G for powers of 1024: 65536, 64K, 20M".to_owned()
}

/// A rate in bit/s: a number, and K, M or G for powers of 1000.
pub(crate) fn rate(text: &str) -> Result<BitRate, String> {
    let malformed = || "a rate is a number of bit/s, with K, M or G for powers of 1000: 50M, 2.5G; 500 kB/s are 4M";
    let (digits, factor) = match suffix(text) {
        None => (text, 1.0),
        Some((digits, 'K')) => (digits, 1e3),
        Some((digits, 'M')) => (digits, 1e6),
        Some((digits, 'G')) => (digits, 1e9),
        Some(_) => return Err(malformed().to_owned()),
    };
    // Rust would read `inf`, `nan` and `1e9` as well.
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 =
        digits.parse().ok().filter(|_| plain).ok_or_else(|| malformed().to_owned())?;
    if number <= 0.0 {
        return Err("must be more than 0".to_owned());
    }
    Ok(BitRate::from_bps(number * factor))
}

/// The same, or 0.
pub(crate) fn rate_or_none(text: &str) -> Result<BitRate, String> {
    if text == "0" { Ok(BitRate::ZERO) } else { rate(text) }
}

/// Splits a trailing letter off, in upper case.
fn suffix(text: &str) -> Option<(&str, char)> {
    let (at, last) = text.char_indices().last()?;
    last.is_alphabetic().then(|| (&text[..at], last.to_ascii_uppercase()))
}

/// A span of time with its unit.
pub(crate) fn rtt(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text)
        .map_err(|_| "a time is a number with its unit: 200ms, 1s".to_owned())?;
    if time.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(time) }
}

/// A span of time with its unit, or a number of seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|s: f64| Duration::try_from_secs_f64(s).ok());
    let time = seconds.map_or_else(|| humantime::parse_duration(text), Ok).map_err(|_| {
        "a time is a number of seconds, or one with its unit: 30, 1.5, 250ms, 2m".to_owned()
    })?;
    if time.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(time) }
}

/// The same, or 0.
pub(crate) fn time_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { time(text) }
}

/// Headers that frame a request, or say which bytes it wants.
const OWN_HEADERS: [HeaderName; 5] = [CONTENT_LENGTH, TRANSFER_ENCODING, EXPECT, RANGE, IF_RANGE];

/// A request header: `Name: value`, or `Name;` for one without a value, as curl has it.
pub(crate) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) if !value.trim().is_empty() => (name, value.trim()),
        _ => text
            .strip_suffix(';')
            .map(|name| (name, ""))
            .ok_or("write it as `Name: value`, or as `Name;` for an empty value")?,
    };
    let name: HeaderName =
        name.trim().parse().map_err(|_| format!("`{name}` is no header name"))?;
    if OWN_HEADERS.contains(&name) {
        return Err(format!("`{name}` is pelton's own: it says what is asked for"));
    }
    Ok((name, header_value(value)?))
}

/// The value of a header.
pub(crate) fn header_value(text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| "it holds a control character".to_owned())
}

/// A user's name and password.
pub(crate) fn user(text: &str) -> Result<(String, String), String> {
    let (name, password) = text.split_once(':').ok_or("write it as USER:PASSWORD")?;
    Ok((name.to_owned(), password.to_owned()))
}

/// A number of things, at least one.
pub(crate) fn count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("write a whole number from 1 to {}", u32::MAX))
}

/// A digest.
pub(crate) fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).map_err(|error| error.message())
}

/// Where connections go elsewhere.
pub(crate) fn connect_to(text: &str) -> Result<ConnectTo, String> {
    text.parse().map_err(|error: pelton_core::Error| error.message())
}

/// The file of a report, whose form its name shows.
pub(crate) fn report(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if is_json { Ok(path) } else { Err("reports are JSON: name a file ending in .json".to_owned()) }
}

/// Reads a value with its `FromStr`, and names `T`'s known values to shells that complete.
#[derive(Clone)]
pub(crate) struct Suggesting<T> {
    names: &'static [&'static str],
    value: PhantomData<fn() -> T>,
}

impl<T> Suggesting<T> {
    pub(crate) const fn new(names: &'static [&'static str]) -> Self {
        Self { names, value: PhantomData }
    }
}

impl<T> TypedValueParser for Suggesting<T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parse = |text: &str| text.parse::<T>();
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_with_powers_of_1024() {
        for (text, bytes) in [("0", 0), ("65536", 65_536), ("1K", 1024), ("1k", 1024)] {
            assert_eq!(size(text), Ok(Bytes(bytes)), "{text}");
        }
        assert_eq!(size("20M"), Ok(Bytes::mib(20)));
        assert_eq!(size("3G"), Ok(Bytes(3 << 30)));
        for text in ["", "K", "1.5M", "-1", "1KB", "1T", "1 K", "x", "é"] {
            assert_eq!(size(text), Err(not_a_size()), "{text}");
        }
        assert_eq!(size("17179869184G"), Err("too large".to_owned()));
        assert_eq!(split_size("1K"), Ok(Bytes::kib(1)));
        assert!(split_size("1023").is_err() && split_size("x").is_err());
    }

    #[test]
    fn rates_are_decimal_bits_per_second() {
        assert_eq!(rate("50M"), Ok(BitRate::from_mbps(50.0)));
        assert_eq!(rate("2.5g"), Ok(BitRate::from_mbps(2500.0)));
        assert_eq!(rate("64k"), Ok(BitRate::from_bps(64_000.0)));
        assert_eq!(rate("9600"), Ok(BitRate::from_bps(9600.0)));
        for text in ["", "M", "fast", "inf", "NaN", "-5M", "1e9", "50Mbit", "0", "0K", "1..5"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_a_unit_or_are_seconds() {
        assert_eq!(rtt("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(time("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("30"), Ok(Duration::from_secs(30)));
        for text in ["", "200", "0ms", "x"] {
            assert!(rtt(text).is_err(), "{text}");
        }
        for text in ["", "0", "-1", "inf", "1 parsec"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn headers_are_curls() {
        let (name, value) = header("X-Trace:  a: b ").unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-trace", "a: b"));
        assert_eq!(header("X-Empty;").unwrap().1, "");
        for text in
            ["X", "X:", ": v", "X Y: z", "X: a\nb", "", "range: bytes=0-", "Content-Length: 5"]
        {
            assert!(header(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn counts_are_at_least_one() {
        assert_eq!(count("1").unwrap().get(), 1);
        for text in ["0", "-1", "1.5", "", "4294967296", "many"] {
            assert!(count(text).unwrap_err().contains("from 1 to 4294967295"), "{text}");
        }
    }

    #[test]
    fn a_password_may_hold_colons() {
        assert_eq!(user("me:a:b"), Ok(("me".to_owned(), "a:b".to_owned())));
        assert_eq!(user("me:"), Ok(("me".to_owned(), String::new())));
        assert!(user("me").is_err());
    }

    #[test]
    fn a_report_is_named_by_its_form() {
        assert!(report("run.JSON").is_ok());
        assert!(report("run.html").unwrap_err().contains(".json"));
    }
}
