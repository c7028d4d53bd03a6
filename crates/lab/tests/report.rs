//! `pelton-lab report`, `reproduce` and `run --matrix` as people call them, where no link is needed.

#![expect(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// What a matrix without a cell would have written.
const RESULTS: &str = r#"{"schema": 2, "date": "2026-11-20T12:00:00Z", "command": ["pelton-lab", "run"],
"repeats": 1, "seed": 1, "jobs": 1, "lab": "0.1.0", "machine": "Linux", "server": "nginx/1.22.1",
"congestion_control": "cubic", "clients": {}, "skipped": {"axel": "axel: not found"}, "cells": []}"#;

fn lab(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pelton-lab"));
    command.current_dir(dir).args(arguments).output().unwrap()
}

/// The one line of a call that fails.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = lab(dir, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap().trim_end().to_owned()
}

#[test]
fn results_become_a_page() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("results.json"), RESULTS).unwrap();
    let output = lab(dir.path(), &["report", "results.json", "-o", "page.html"]);
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("left out: axel: not found"));
    let output = lab(dir.path(), &["report", "results.json", "-o", "page.md"]);
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(dir.path().join("page.md")).unwrap();
    assert!(
        page.starts_with("# pelton") && page.contains("**left out: axel: not found**"),
        "{page}"
    );
}

#[test]
fn what_are_no_results_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("other.json"), "{\"schema\": 2}").unwrap();
    fs::write(dir.path().join("old.json"), "{\"schema\": 1}").unwrap();
    fs::write(dir.path().join("results.json"), RESULTS).unwrap();
    let report = |file: &str, page: &str| refused(dir.path(), &["report", file, "-o", page]);
    let missing = report("none.json", "page.html");
    assert!(missing.starts_with("pelton-lab: none.json: No such file"), "{missing}");
    let other = report("other.json", "page.html");
    assert!(other.starts_with("pelton-lab: other.json: it holds no results"), "{other}");
    let old = report("old.json", "page.html");
    assert!(old.starts_with("pelton-lab: old.json: its format is version 1, "), "{old}");
    let nowhere = report("results.json", "none/page.html");
    assert!(nowhere.starts_with("pelton-lab: can't write none/page.html: "), "{nowhere}");
    assert!(!dir.path().join("page.html").exists());
}

#[test]
fn figures_and_matrices_that_can_not_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let none = refused(dir.path(), &["reproduce", "fig2", "--repeats", "0"]);
    assert_eq!(none, "pelton-lab: --repeats 0 measures nothing");
    let output = lab(dir.path(), &["reproduce", "fig5"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("[possible values: papers-000, fig2, fig3, fig4, papers-003, papers-004]"),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_broken_matrix_is_named_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let text = "repeats = 1\nclients = ['curl']\ncells = [{ link = 'moon', sets = ['small'] }]";
    fs::write(dir.path().join("matrix.toml"), text).unwrap();
    let broken = refused(dir.path(), &["run", "--matrix", "matrix.toml"]);
    assert!(broken.starts_with("pelton-lab: matrix.toml: there is no link \"moon\""), "{broken}");
    let missing = refused(dir.path(), &["run", "--matrix", "none.toml"]);
    assert!(missing.starts_with("pelton-lab: none.toml: No such file"), "{missing}");
}
