//! The file of settings.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| pelton_fuzz_cli::fuzz_settings(text));
