//! pelton for other languages: a C ABI, and with the feature `jni` the native half of the Java
//! library.

#[allow(
    unsafe_code,
    unreachable_pub,
    clippy::doc_markdown,
    reason = "C hands over raw pointers, finds symbols by name, and reads the documentation"
)]
mod c;
#[cfg(feature = "jni")]
mod jni;
