//! What is told of files that failed.

use std::collections::BTreeSet;

use crate::connection::shown;
use crate::engine::Failure;
use crate::events::{ErrorReport, FileReport};

/// Some files failed for different reasons.
const UNFINISHED: u8 = 7;

/// The exit code for failures with these codes.
pub(crate) fn common_code(codes: impl Iterator<Item = u8>) -> u8 {
    let codes: BTreeSet<u8> = codes.collect();
    match codes.first() {
        None => 0,
        Some(code) if codes.len() == 1 => *code,
        Some(_) => UNFINISHED,
    }
}

/// The report of what failed before any of its bytes was asked for.
pub(crate) fn not_begun(at_s: f64, name: String, url: &url::Url, failure: Failure) -> FileReport {
    let url = shown(url);
    let failure = naming(&url, failure);
    FileReport {
        at_s,
        name,
        url,
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
        error: Some(Box::new(error_report(failure))),
    }
}

pub(super) fn error_report(failure: Failure) -> ErrorReport {
    ErrorReport {
        code: failure.kind.exit_code(),
        kind: failure.kind.name(),
        retryable: failure.kind.may_succeed_later(),
        message: failure.message,
    }
}

/// A message that says which URL failed: some failures know only their host or their file.
pub(super) fn naming(url: &str, failure: Failure) -> Failure {
    if failure.message.contains(url) {
        return failure;
    }
    Failure { message: format!("{url}: {}", failure.message), ..failure }
}
