//! How a run ended, in one code and one line.

use std::collections::BTreeSet;

use pelton::{ErrorKind, Report};

use super::code::PeltonCode;
use super::error::Failure;

/// How a run ended.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) code: PeltonCode,
    pub(super) message: String,
    pub(super) is_retryable: bool,
    /// The report as JSON.
    pub(super) report: String,
}

impl Outcome {
    /// The outcome of a run under the policy of this name.
    pub(super) fn new(policy: &str, result: Result<Report, pelton::Error>) -> Self {
        let (failure, report) = match result {
            Ok(report) => (failure_of(&report), report),
            Err(error) => (Some((&error).into()), Report::not_begun(policy, &error)),
        };
        let report = serde_json::to_string(&report).unwrap_or_default();
        let Some(Failure { code, message, is_retryable }) = failure else {
            let (code, message) = (PeltonCode::Ok, String::new());
            return Self { code, message, is_retryable: false, report };
        };
        Self { code, message, is_retryable, report }
    }

    /// `Err` unless every file is there.
    pub(super) fn result(&self) -> Result<(), Failure> {
        let Self { code, message, is_retryable, .. } = self;
        if *code == PeltonCode::Ok {
            return Ok(());
        }
        let (code, message, is_retryable) = (*code, message.clone(), *is_retryable);
        Err(Failure { code, message, is_retryable })
    }
}

/// Why not every file is there.
fn failure_of(report: &Report) -> Option<Failure> {
    let exit_code = report.summary.exit_code;
    if exit_code == 0 {
        return None;
    }
    let failed = report.files.iter().filter_map(|file| file.error.as_ref());
    let kinds: BTreeSet<&str> = failed.clone().map(|error| error.kind).collect();
    let code = match kinds.first() {
        _ if exit_code == ErrorKind::Cancelled.exit_code() => PeltonCode::Cancelled,
        Some(kind) if kinds.len() == 1 => PeltonCode::of_kind(kind),
        _ => PeltonCode::Unfinished,
    };
    let is_cancelled = code == PeltonCode::Cancelled;
    let of_run = if is_cancelled { "the download was cancelled" } else { "the run failed" };
    let first = failed.clone().next().map_or(of_run, |error| &error.message);
    let message = match failed.clone().count() {
        0 | 1 => first.to_owned(),
        more => format!("{first} (and {} more)", more - 1),
    };
    Some(Failure {
        code,
        message,
        is_retryable: is_cancelled || failed.clone().any(|error| error.retryable),
    })
}
