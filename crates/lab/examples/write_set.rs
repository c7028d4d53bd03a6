//! Writes a set of files below a directory, for any server to serve.
//!
//! `cargo run -p pelton-lab --example write_set -- SET DIRECTORY`

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(set), Some(directory)) = (args.next(), args.next()) else {
        return Err("usage: write_set SET DIRECTORY".into());
    };
    let directory = PathBuf::from(directory);
    for file in pelton_lab::sets::by_name(&set, 1).ok_or("no such set")? {
        file.write_to(&directory)?;
    }
    Ok(())
}
