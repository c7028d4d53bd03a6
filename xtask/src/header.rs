//! The C header, written from the Rust code that it declares.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use cbindgen::{Builder, Config};

use crate::step::{note, root};

/// The files of crates/ffi/src/c that declare something, in the header's order.
const SOURCES: [&str; 10] = [
    "version.rs",
    "code.rs",
    "error.rs",
    "options.rs",
    "meter.rs",
    "client.rs",
    "request.rs",
    "job.rs",
    "event.rs",
    "told.rs",
];

/// Writes `include/pelton.h`.
pub(crate) fn write() -> Result<()> {
    let path = path();
    fs::write(&path, generated()?)
        .with_context(|| format!("{} can't be written", path.display()))?;
    note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Fails when the header in the tree is not what the code gives.
pub(crate) fn check() -> Result<()> {
    note("the C header");
    let path = path();
    let kept = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    if kept != generated()? {
        bail!("{} is out of date: run `cargo xtask header`", path.display());
    }
    Ok(())
}

fn path() -> PathBuf {
    root().join("crates/ffi/include/pelton.h")
}

fn generated() -> Result<String> {
    let ffi = root().join("crates/ffi");
    let config = Config::from_file(ffi.join("cbindgen.toml"))
        .map_err(|error| anyhow::anyhow!("crates/ffi/cbindgen.toml: {error}"))?;
    let mut builder = Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(ffi.join("src/c").join(source));
    }
    let mut header = Vec::new();
    builder.generate()?.write(&mut header);
    Ok(String::from_utf8(header)?)
}
