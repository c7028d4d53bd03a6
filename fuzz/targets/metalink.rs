//! A Metalink. Names stay below their directory.

#![no_main]

use pelton_core::catalog::metalink;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for spec in metalink::parse(text).unwrap_or_default() {
        pelton_core::fuzzing::assert_safe(&spec.name);
    }
});
