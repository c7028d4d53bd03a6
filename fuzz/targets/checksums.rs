//! A list of checksums. Names stay below their directory.

#![no_main]

use pelton_core::catalog::checksums;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let base: url::Url = "http://h/d/".parse().expect("a URL");
    for spec in checksums::parse(text, &base).unwrap_or_default() {
        pelton_core::fuzzing::assert_safe(&spec.name);
    }
});
