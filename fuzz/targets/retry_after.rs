//! `Retry-After`, in seconds or as a date.

#![no_main]

libfuzzer_sys::fuzz_target!(|value: &[u8]| {
    let _ = pelton_core::fuzzing::retry_after(value);
});
