//! Cookie files and netrc.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = pelton_core::connection::Cookies::parse(text, "cookies");
    let _ = pelton_core::connection::Netrc::parse(text, "netrc");
});
