//! A directory listing: names stay below their directory.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let base: url::Url = "http://h/d/".parse().expect("a URL");
    if let Ok(listing) = pelton_core::catalog::listing::parse(&base, None, body) {
        for entry in listing.entries {
            pelton_core::fuzzing::assert_safe(&entry.name);
            assert!(!entry.name.contains('/'), "{:?}", entry.name);
        }
    }
});
