//! A JSON manifest. Names stay below their directory.

#![no_main]

use pelton_core::catalog::manifest;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let base: url::Url = "http://h/d/".parse().expect("a URL");
    for spec in manifest::parse(text, Some(&base)).unwrap_or_default() {
        pelton_core::fuzzing::assert_safe(&spec.name);
    }
});
