//! Every line of `docs/command.md` that a reader may type.

use std::env;
use std::path::Path;
use std::process::Command;

use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginConfig};

use crate::common::{Run, said};

const GUIDE: &str = include_str!("../../../../docs/command.md");

fn blocks() -> impl Iterator<Item = &'static str> {
    GUIDE.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap())
}

#[test]
fn every_example_runs() {
    let paths = [("/data/a.bin", 400_000), ("/data/b.txt", 12_000), ("/data/sub/c.txt", 9_000)];
    let files = paths.map(|(path, size)| VirtualFile::new(path, size, size)).to_vec();
    let origin = Origin::start(OriginConfig { files, ..OriginConfig::default() }).unwrap();
    let run = Run::new();
    let program = Path::new(env!("CARGO_BIN_EXE_pelton")).parent().unwrap();
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap_or_default());
    let mut count = 0;
    for block in blocks() {
        let output = Command::new("sh")
            .args(["-euc", block])
            .current_dir(run.folder())
            .env_clear()
            .env("PATH", &path)
            .env("HOME", run.folder())
            .env("SITE", origin.url("").trim_end_matches('/'))
            .output()
            .unwrap();
        let told = said(output);
        assert_eq!(told.code, 0, "{block}\nsaid:\n{}{}", told.stdout, told.stderr);
        count += 1;
    }
    assert!(count > 10, "the guide lost its examples");
    for name in [
        "a.bin",
        "copies/b.bin",
        "level/b.txt",
        "tree/sub/c.txt",
        "texts/b.txt",
        "listed/first.bin",
        "b.txt",
        "checked/a.bin",
        "lowe.json",
        "fixed/sub/c.txt",
        "events/b.txt",
        "manifest/set/first.bin",
        "manifest/c.txt",
        "settings/a.bin",
    ] {
        assert!(run.folder().join(name).exists(), "no {name}");
    }
    assert!(!run.folder().join("level/sub").exists() && !run.folder().join("texts/sub").exists());
}
