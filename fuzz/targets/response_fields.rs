//! Validators and digests in the fields of a response.

#![no_main]

libfuzzer_sys::fuzz_target!(|fields: &[u8]| pelton_core::fuzzing::response_fields(fields));
