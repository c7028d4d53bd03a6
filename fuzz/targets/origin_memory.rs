//! An origin memory: whatever lies there is read, and what is made of it is read the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = pelton_core::fuzzing::origin_memory(bytes);
});
