use pelton::events::Summary;

use super::*;

fn failed(kind: ErrorKind, name: &str) -> FileReport {
    let error = error_report(&pelton::Error::new(kind, format!("{name} failed")));
    FileReport {
        at_s: 0.0,
        name: name.to_owned(),
        url: String::new(),
        bytes: 0,
        seconds: 0.0,
        connections: 0,
        protocol: None,
        resumed_from: 0,
        restarts: 0,
        already_there: false,
        digest: None,
        energy_j: None,
        throughput_per_joule: None,
        ok: false,
        error: Some(Box::new(error)),
    }
}

fn report(exit_code: u8, files: Vec<FileReport>) -> Report {
    let nothing = Report::not_begun("eht", &pelton::Error::new(ErrorKind::Usage, ""));
    let summary = Summary { files: 3, files_done: 1, exit_code, error: None, ..nothing.summary };
    Report { files, summary, ..nothing }
}

#[test]
fn a_complete_run_has_not_failed() {
    assert_eq!(failure_of(&report(0, Vec::new())), None);
}

#[test]
fn one_failure_is_that_of_the_run() {
    let failure = failure_of(&report(6, vec![failed(ErrorKind::Timeout, "a")])).unwrap();
    assert_eq!((failure.code, failure.kind, failure.retryable), (6, "timeout", true));
    assert_eq!(failure.message, "a failed");
}

#[test]
fn several_failures_are_retryable_only_together() {
    let files = vec![failed(ErrorKind::Timeout, "a"), failed(ErrorKind::NotFound, "b")];
    let failure = failure_of(&report(7, files)).unwrap();
    assert_eq!((failure.code, failure.kind, failure.retryable), (7, "unfinished", false));
    assert_eq!(failure.message, "2 of 3 files failed; first a failed");
    let files = vec![failed(ErrorKind::Timeout, "a"), failed(ErrorKind::Timeout, "b")];
    let failure = failure_of(&report(6, files)).unwrap();
    assert_eq!((failure.code, failure.kind, failure.retryable), (6, "timeout", true));
}

#[test]
fn a_cancelled_run_is_cancelled_whatever_else_failed() {
    let failure = failure_of(&report(130, vec![failed(ErrorKind::Timeout, "a")])).unwrap();
    assert_eq!((failure.code, failure.kind), (130, "cancelled"));
    assert_eq!(failure.message, "cancelled: 1 of 3 files are there");
}
