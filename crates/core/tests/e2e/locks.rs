//! Runs that meet in one directory: each file is one run's alone, and nothing is left lying about.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::SystemTime;

use pelton_core::catalog::FileSpec;
use pelton_core::engine::{Opened, Resumable, Validator};
use pelton_core::sink::{DirectoryOptions, DirectorySink, Output, Sink};
use pelton_core::{ErrorKind, Job};
use pelton_lab::content::VirtualFile;
use pelton_lab::origin::{Origin, OriginConfig};

use crate::support::{assert_holds, by_last_part, client, names, report_of, tree};

const STATE: &str = "f.part.state";

fn open_in(directory: &Path) -> (Opened, Box<dyn Output>) {
    open_with(directory, DirectoryOptions::default())
}

fn open_with(directory: &Path, options: DirectoryOptions) -> (Opened, Box<dyn Output>) {
    let spec = FileSpec::from_url("http://h/f".parse().unwrap()).unwrap();
    DirectorySink::new(directory, options).open(&spec)
}

/// The first `end` bytes of the file are there.
#[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
fn done(end: u64) -> Resumable {
    let validator = Validator { etag: Some("\"1\"".into()), ..Validator::default() };
    Resumable { size: 10, validator, done: vec![0..end] }
}

/// A run that has written half of the file and says so.
fn half(directory: &Path) -> Box<dyn Output> {
    half_of(open_in(directory).1)
}

fn half_of(mut output: Box<dyn Output>) -> Box<dyn Output> {
    output.write_at(0, b"01234").unwrap();
    output.checkpoint(&done(5));
    output
}

fn finish(mut output: Box<dyn Output>) {
    output.write_at(5, b"56789").unwrap();
    output.finish(Some(SystemTime::UNIX_EPOCH), None).unwrap();
}

fn assert_finished_alone(directory: &Path) {
    assert_eq!(names(directory), ["f".to_owned()].into());
    assert_eq!(tree(directory)["f"], b"0123456789");
}

#[test]
fn a_part_that_another_run_finished_is_neither_continued_nor_begun_again() {
    for begins_before in [true, false] {
        let out = tempfile::tempdir().unwrap();
        let early = begins_before.then(|| open_in(out.path()));
        let first = half(out.path());
        let (opened, mut second) = early.unwrap_or_else(|| open_in(out.path()));
        assert_eq!(matches!(opened, Opened::Part(_)), !begins_before);
        finish(first);
        let error = second.write_at(5, b"xxxxx").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileIo);
        assert!(error.message().contains("another run has just finished it"), "{error}");
        second.abandon(None);
        assert_finished_alone(out.path());
    }
}

#[test]
fn a_part_that_another_run_threw_away_is_not_continued() {
    let out = tempfile::tempdir().unwrap();
    let first = half(out.path());
    let (_, mut second) = open_in(out.path());
    first.abandon(None);
    let error = second.write_at(5, b"xxxxx").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotResume);
    assert!(error.message().contains("another run has changed it"), "{error}");
    second.abandon(None);
    assert!(names(out.path()).is_empty(), "{:?}", names(out.path()));
}

#[test]
fn whatever_a_second_run_does_the_part_stays_the_first_ones() {
    let acts: [fn(Box<dyn Output>); 5] = [
        |mut output| {
            let error = output.write_at(0, b"xxxxx").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FileIo);
            assert!(error.message().contains("another run is writing it"), "{error}");
            output.abandon(None);
        },
        // The server's file is another one.
        |mut output| {
            output.restart().unwrap();
            output.abandon(None);
        },
        // The server's file is empty.
        |output| assert!(output.finish(None, None).is_err()),
        |mut output| assert!(output.verify().is_err()),
        |output| output.abandon(Some(&done(10))),
    ];
    for act in acts {
        let out = tempfile::tempdir().unwrap();
        let first = half(out.path());
        let state = tree(out.path())[STATE].clone();
        act(open_in(out.path()).1);
        assert_eq!(tree(out.path())[STATE], state);
        assert_eq!(tree(out.path())["f.part"], b"01234");
        finish(first);
        assert_finished_alone(out.path());
    }
}

#[test]
fn a_run_under_way_does_not_lose_its_state_to_one_that_looks_at_the_finished_file() {
    let out = tempfile::tempdir().unwrap();
    fs::write(out.path().join("f"), "old").unwrap();
    let overwriting = DirectoryOptions { overwrite: true, ..DirectoryOptions::default() };
    let replacing = half_of(open_with(out.path(), overwriting).1);
    let state = tree(out.path())[STATE].clone();
    // Nothing stands in the way of taking it for what a killed run has left, but the lock.
    fs::rename(out.path().join("f.part"), out.path().join("elsewhere")).unwrap();
    open_in(out.path());
    assert_eq!(tree(out.path())[STATE], state);
    fs::rename(out.path().join("elsewhere"), out.path().join("f.part")).unwrap();
    finish(replacing);
    assert_finished_alone(out.path());
}

#[test]
fn runs_at_once_over_one_list_leave_whole_files_and_nothing_else() {
    let small = (0..80).map(|i| VirtualFile::new(format!("/small-{i}"), 100 * i, i));
    let files: Vec<_> = small
        .chain((0..8).map(|i| VirtualFile::new(format!("/large-{i}"), 300_000, 100 + i)))
        .collect();
    let origin =
        Origin::start(OriginConfig { files: files.clone(), ..OriginConfig::default() }).unwrap();
    for runs in [2, 3, 2, 3] {
        let out = tempfile::tempdir().unwrap();
        let start = |_| {
            let urls = files.iter().map(|file| origin.url(&file.path));
            client().download(urls).into_dir(out.path()).start().unwrap()
        };
        let jobs: Vec<Job> = (0..runs).map(start).collect();
        for job in jobs {
            let report = report_of(job).unwrap();
            for error in report.files.iter().filter_map(|file| file.error.as_ref()) {
                assert!(error.message.contains("another run"), "{}", error.message);
            }
        }
        assert_holds(out.path(), &files, by_last_part);
    }
}

/// Makes the file at `path` longer behind its owner's back.
fn append(path: &Path, junk: &[u8]) {
    fs::File::options().append(true).open(path).unwrap().write_all(junk).unwrap();
}

#[test]
fn what_others_append_to_a_part_is_no_part_of_the_file() {
    let out = tempfile::tempdir().unwrap();
    let part = out.path().join("f.part");
    half(out.path()).abandon(Some(&done(5)));
    append(&part, b"xxxxxxxxxx");
    let (opened, mut output) = open_in(out.path());
    assert!(matches!(opened, Opened::Part(_)));
    output.write_at(5, b"5").unwrap();
    assert_eq!(fs::metadata(&part).unwrap().len(), 10, "as long as the file will be");
    append(&part, b"yyyyyyyyyy");
    finish(output);
    assert_finished_alone(out.path());
}

#[test]
fn a_whole_file_that_can_not_have_its_name_waits_for_it() {
    let out = tempfile::tempdir().unwrap();
    let mut output = half(out.path());
    output.write_at(5, b"56789").unwrap();
    fs::create_dir(out.path().join("f")).unwrap();
    assert!(output.verify().unwrap().is_none());
    let error = output.finish(Some(SystemTime::UNIX_EPOCH), Some(&done(10))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileIo);
    assert_eq!(fs::read(out.path().join("f.part")).unwrap(), b"0123456789");
    fs::remove_dir(out.path().join("f")).unwrap();

    let (opened, output) = open_in(out.path());
    assert!(matches!(opened, Opened::Part(part) if part == done(10)));
    output.finish(None, Some(&done(10))).unwrap();
    assert_finished_alone(out.path());
    let modified = fs::metadata(out.path().join("f")).unwrap().modified().unwrap();
    assert_eq!(modified, SystemTime::UNIX_EPOCH, "the server's");
}
