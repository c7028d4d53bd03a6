//! A list of URLs. Names stay below their directory.

#![no_main]

use pelton_core::catalog::input_file;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for spec in input_file::parse(text).unwrap_or_default() {
        pelton_core::fuzzing::assert_safe(&spec.name);
    }
});
