//! Which pelton this is.

use std::ffi::{CStr, c_char};

/// The version of the library, such as `0.1.0`.
///
/// Ownership: a constant, never freed. Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn pelton_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}
