//! `Content-Range`: what is read lies within the file that it speaks of.

#![no_main]

libfuzzer_sys::fuzz_target!(|value: &str| {
    if let Some((start, end, total)) = pelton_core::fuzzing::content_range(value) {
        assert!(start < end && total.is_none_or(|total| end <= total), "{value:?}");
    }
});
