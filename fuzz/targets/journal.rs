//! A journal: what it is trusted for lies within the file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(part) = pelton_core::fuzzing::journal(bytes) {
        assert!(part.done.iter().all(|range| range.start < range.end && range.end <= part.size));
    }
});
