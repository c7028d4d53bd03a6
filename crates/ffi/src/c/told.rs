//! What events tell, as structures.

use std::ffi::c_char;

use pelton::events::{FileReport, Progress, Summary};

use super::code::PeltonCode;
use super::event::PeltonEvent;
use super::pointer::Versioned;

/// How far a run is. Set `struct_size` before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeltonProgress {
    /// sizeof(struct pelton_progress).
    pub struct_size: usize,
    /// Since the run began, seconds.
    pub at_s: f64,
    /// Goodput over the last sample, bits a second.
    pub throughput_bps: f64,
    /// Energy so far, joules; not a number without a meter.
    pub energy_j: f64,
    /// Expected time to the end at this rate, seconds; not a number when nothing moves.
    pub remaining_s: f64,
    /// Body bytes received.
    pub bytes: u64,
    /// Body bytes of the whole list, as far as known or predicted.
    pub bytes_expected: u64,
    /// Files in the list.
    pub files: u64,
    /// Files that are there.
    pub files_done: u64,
    /// Files given up.
    pub files_failed: u64,
    /// Connections open.
    pub connections: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: `repr(C)`, `struct_size` is first, and all fields are numbers.
unsafe impl Versioned for PeltonProgress {
    const NAME: &str = "pelton_progress";
}

impl From<&Progress> for PeltonProgress {
    fn from(now: &Progress) -> Self {
        Self {
            struct_size: size_of::<Self>(),
            at_s: now.at_s,
            throughput_bps: now.throughput_bps,
            energy_j: now.energy_j.unwrap_or(f64::NAN),
            remaining_s: now.remaining_s.unwrap_or(f64::NAN),
            bytes: now.bytes,
            bytes_expected: now.bytes_expected,
            files: now.files,
            files_done: now.files_done,
            files_failed: now.files_failed,
            connections: now.connections,
            reserved: 0,
        }
    }
}

/// A file that begins or is over. Set `struct_size` before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeltonFile {
    /// sizeof(struct pelton_file).
    pub struct_size: usize,
    /// Its name under the directory; empty for a listing that can't be read. Belongs to the event.
    pub name: *const c_char,
    /// Where from. Belongs to the event.
    pub url: *const c_char,
    /// Why it is not there: one line for people, else empty. Belongs to the event.
    pub message: *const c_char,
    /// Since the run began, seconds.
    pub at_s: f64,
    /// From its first request to its end, seconds.
    pub seconds: f64,
    /// What it drew while its bytes moved, joules; not a number without a meter.
    pub energy_j: f64,
    /// Its size, or what of it is there, bytes.
    pub bytes: u64,
    /// Bytes that an earlier run had left.
    pub resumed_from: u64,
    /// A value of pelton_code: PELTON_CODE_OK when it is there and verified, and when it begins.
    pub code: i32,
    /// Connections that brought it.
    pub connections: u32,
    /// 1: it was there already and nothing was transferred.
    pub already_there: u32,
    /// 1: it failed, and a rerun may succeed.
    pub retryable: u32,
}

// SAFETY: `repr(C)`, `struct_size` is first, and zeros are NULLs and numbers.
unsafe impl Versioned for PeltonFile {
    const NAME: &str = "pelton_file";
}

impl PeltonFile {
    pub(super) fn over(event: &PeltonEvent, file: &FileReport) -> Self {
        let error = file.error.as_ref();
        Self {
            struct_size: size_of::<Self>(),
            name: event.text(0),
            url: event.text(1),
            message: event.text(2),
            at_s: file.at_s,
            seconds: file.seconds,
            energy_j: file.energy_j.unwrap_or(f64::NAN),
            bytes: file.bytes,
            resumed_from: file.resumed_from,
            code: error.map_or(PeltonCode::Ok, |error| PeltonCode::of_kind(error.kind)) as i32,
            connections: file.connections,
            already_there: file.already_there.into(),
            retryable: error.is_some_and(|error| error.retryable).into(),
        }
    }
}

/// What a run did. Set `struct_size` before the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeltonSummary {
    /// sizeof(struct pelton_summary).
    pub struct_size: usize,
    /// Where joules come from: `measured: ...` or `modelled: ...`; empty without a meter. Belongs to
    /// the event.
    pub energy_source: *const c_char,
    /// From the start to the last file's end, seconds.
    pub seconds: f64,
    /// Bytes over seconds, bits a second.
    pub throughput_bps: f64,
    /// Energy with the radio's tail, joules; not a number without a meter.
    pub energy_j: f64,
    /// CPU time of this process during the run, seconds.
    pub cpu_s: f64,
    /// Body bytes received.
    pub bytes: u64,
    /// Files in the list.
    pub files: u64,
    /// Files that are there.
    pub files_done: u64,
    /// Files given up.
    pub files_failed: u64,
    /// Connections opened.
    pub connections: u64,
    /// Requests made.
    pub requests: u64,
    /// Requests made again.
    pub retries: u64,
    /// What the command `pelton` would exit with.
    pub exit_code: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: `repr(C)`, `struct_size` is first, and zeros are NULLs and numbers.
unsafe impl Versioned for PeltonSummary {
    const NAME: &str = "pelton_summary";
}

impl PeltonSummary {
    pub(super) fn of(event: &PeltonEvent, summary: &Summary) -> Self {
        Self {
            struct_size: size_of::<Self>(),
            energy_source: event.text(0),
            seconds: summary.seconds,
            throughput_bps: summary.throughput_bps,
            energy_j: summary.energy_j.unwrap_or(f64::NAN),
            cpu_s: summary.cpu_s,
            bytes: summary.bytes,
            files: summary.files,
            files_done: summary.files_done,
            files_failed: summary.files_failed,
            connections: summary.connections,
            requests: summary.requests,
            retries: summary.retries,
            exit_code: summary.exit_code.into(),
            reserved: 0,
        }
    }
}
