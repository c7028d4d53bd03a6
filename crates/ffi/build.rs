//! Gives the C library the name that programs ask the dynamic linker for. It changes with the ABI.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    // The Java library is loaded by its path.
    if set("CARGO_CFG_TARGET_OS") == "linux" && std::env::var_os("CARGO_FEATURE_JNI").is_none() {
        let major = set("CARGO_PKG_VERSION_MAJOR");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpelton.so.{major}");
    }
}
