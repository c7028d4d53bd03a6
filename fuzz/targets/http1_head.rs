//! The head of an HTTP/1.1 response.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pelton_core::fuzzing::http1_head(bytes));
