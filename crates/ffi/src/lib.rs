//! pelton for other languages: a C ABI, and with the feature `jni` the native half of the Java
//! library.

#[cfg(feature = "jni")]
mod jni;
