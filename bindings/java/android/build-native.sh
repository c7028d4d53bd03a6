#!/usr/bin/env bash
# Builds the native library for Android's ABIs with an NDK, into target/android-jni of the workspace.
#
#   ANDROID_NDK_HOME=/path/to/ndk bindings/java/android/build-native.sh
#
# It needs the Rust targets: rustup target add aarch64-linux-android armv7-linux-androideabi x86_64-linux-android
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

: "${ANDROID_NDK_HOME:?name the folder of an Android NDK, r27 or later}"
# What minSdk is.
readonly api=24
tools="$ANDROID_NDK_HOME/toolchains/llvm/prebuilt/linux-x86_64/bin"

# ABI, Rust target, prefix of the NDK's compiler.
build() {
    local abi=$1 target=$2 compiler="$tools/$3$api-clang"
    local upper="${target^^}"
    upper="${upper//-/_}"
    env "CARGO_TARGET_${upper}_LINKER=$compiler" \
        "CC_${target//-/_}=$compiler" \
        "AR_${target//-/_}=$tools/llvm-ar" \
        RUSTFLAGS="-C link-arg=-Wl,-z,max-page-size=16384" \
        cargo build --locked --release --package pelton-ffi --features jni --target "$target"
    mkdir -p "target/android-jni/$abi"
    "$tools/llvm-strip" --strip-unneeded "target/$target/release/libpelton_ffi.so" \
        -o "target/android-jni/$abi/libpelton_jni.so"
}

build arm64-v8a aarch64-linux-android aarch64-linux-android
build armeabi-v7a armv7-linux-androideabi armv7a-linux-androideabi
build x86_64 x86_64-linux-android x86_64-linux-android
