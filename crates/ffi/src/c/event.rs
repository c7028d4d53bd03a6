//! What a run tells, as C sees it.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::OnceLock;

use pelton::RunEvent;
use pelton::events::{FileReport, Progress, Summary};
use serde::Serialize;

use super::code::PeltonCode;
use super::error::{Failure, guarded, shielded};
use super::outcome::Outcome;
use super::pointer::{self, Versioned, c_text, handle, release};

/// What sort of event it is. A program must bear kinds that it does not know.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeltonKind {
    /// No event: the pointer was NULL.
    None = 0,
    /// What will be done, before the first byte. Its parts are in the JSON.
    Plan = 1,
    /// A file's transfer begins: see pelton_event_file.
    Start = 2,
    /// Channels or streams are dealt anew, and why. Its parts are in the JSON.
    Decision = 3,
    /// A file is there, or given up: see pelton_event_file.
    File = 4,
    /// How far the run is, at most four times a second: see pelton_event_progress.
    Progress = 5,
    /// Totals, when every file is over: see pelton_event_summary.
    Summary = 6,
    /// The last event of every job: the report is ready. See pelton_event_end.
    End = 7,
    /// An event that has no number yet; the JSON says what it is.
    Other = 8,
}

/// Something that a run tells.
///
/// Threads: every function may be called by several threads at once with the same event, except
/// pelton_event_free.
pub struct PeltonEvent {
    told: Told,
    json: OnceLock<CString>,
    /// The texts that the structures of this event point to.
    texts: Vec<CString>,
}

/// What an event holds.
#[derive(Debug)]
pub(super) enum Told {
    Run(Box<RunEvent>),
    End(Outcome),
}

impl PeltonEvent {
    pub(super) fn new(told: Told) -> Self {
        let texts = match &told {
            Told::Run(event) => match &**event {
                RunEvent::Start(start) => vec![c_text(&start.name), c_text(&start.url)],
                RunEvent::File(file) => {
                    let message = file.error.as_ref().map_or("", |error| &error.message);
                    vec![c_text(&file.name), c_text(&file.url), c_text(message)]
                }
                RunEvent::Summary(summary) => {
                    vec![c_text(summary.energy_source.as_deref().unwrap_or_default())]
                }
                _ => Vec::new(),
            },
            Told::End(outcome) => vec![c_text(&outcome.message)],
        };
        Self { told, json: OnceLock::new(), texts }
    }

    pub(super) fn is_progress(&self) -> bool {
        self.kind() == PeltonKind::Progress
    }

    fn kind(&self) -> PeltonKind {
        match &self.told {
            Told::Run(event) => match **event {
                RunEvent::Plan(_) => PeltonKind::Plan,
                RunEvent::Start(_) => PeltonKind::Start,
                RunEvent::Decision(_) => PeltonKind::Decision,
                RunEvent::File(_) => PeltonKind::File,
                RunEvent::Progress(_) => PeltonKind::Progress,
                RunEvent::Summary(_) => PeltonKind::Summary,
                _ => PeltonKind::Other,
            },
            Told::End(_) => PeltonKind::End,
        }
    }

    fn run(&self) -> Option<&RunEvent> {
        match &self.told {
            Told::Run(event) => Some(event),
            Told::End(_) => None,
        }
    }

    fn text(&self, index: usize) -> *const c_char {
        self.texts.get(index).map_or(ptr::null(), |text| text.as_ptr())
    }

    fn json(&self) -> &CString {
        self.json.get_or_init(|| {
            let json = match &self.told {
                Told::Run(event) => serde_json::to_string(event),
                Told::End(outcome) => serde_json::to_string(&End::from(outcome)),
            };
            c_text(&json.unwrap_or_default())
        })
    }
}

/// The JSON of the last event, which only the C ABI has.
#[derive(Serialize)]
struct End<'a> {
    event: &'static str,
    code: i32,
    message: &'a str,
}

impl<'a> From<&'a Outcome> for End<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        Self { event: "end", code: outcome.code as i32, message: &outcome.message }
    }
}

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
    fn over(event: &PeltonEvent, file: &FileReport) -> Self {
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
    fn of(event: &PeltonEvent, summary: &Summary) -> Self {
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

/// What sort of event it is.
///
/// Threads: any. NULL: PELTON_KIND_NONE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_event_kind(event: *const PeltonEvent) -> PeltonKind {
    // SAFETY: the caller passes NULL or an event that is not freed.
    unsafe { event.as_ref() }.map_or(PeltonKind::None, PeltonEvent::kind)
}

/// The event as one line of JSON, as `pelton get --json` writes it; UTF-8. The last event, which only
/// this interface has, is `{"event":"end","code":...,"message":...}`.
///
/// Ownership: belongs to the event and ends with it. Threads: any. NULL: an empty text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_event_json(event: *const PeltonEvent) -> *const c_char {
    // SAFETY: the caller passes NULL or an event that is not freed.
    let event = unsafe { event.as_ref() };
    shielded(c"".as_ptr(), || event.map_or(c"".as_ptr(), |event| event.json().as_ptr()))
}

/// How far the run is, from an event of the kind progress.
///
/// Threads: any. NULL: neither may be. Errors: PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE,
/// PELTON_CODE_USAGE for an event of another kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_event_progress(
    event: *const PeltonEvent,
    progress: *mut PeltonProgress,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let event = unsafe { handle(event, "event") }?;
        let Some(RunEvent::Progress(now)) = event.run() else { return Err(other_kind()) };
        // SAFETY: as above.
        unsafe { pointer::write(progress, &now.into()) }
    };
    // SAFETY: NULL is allowed.
    unsafe { guarded(ptr::null_mut(), body) }
}

/// The file of an event of the kind start or file. Of one that begins only `name`, `url` and `at_s`
/// are known.
///
/// Ownership: its texts belong to the event. Threads: any. NULL: neither may be. Errors:
/// PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_USAGE for an event of another
/// kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_event_file(
    event: *const PeltonEvent,
    file: *mut PeltonFile,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let event = unsafe { handle(event, "event") }?;
        let told = match event.run() {
            Some(RunEvent::File(over)) => PeltonFile::over(event, over),
            Some(RunEvent::Start(start)) => PeltonFile {
                name: event.text(0),
                url: event.text(1),
                message: c"".as_ptr(),
                at_s: start.at_s,
                ..pointer::zeros()
            },
            _ => return Err(other_kind()),
        };
        // SAFETY: as above.
        unsafe { pointer::write(file, &told) }
    };
    // SAFETY: NULL is allowed.
    unsafe { guarded(ptr::null_mut(), body) }
}

/// The totals of an event of the kind summary.
///
/// Ownership: its texts belong to the event. Threads: any. NULL: neither may be. Errors:
/// PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_USAGE for an event of another
/// kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_event_summary(
    event: *const PeltonEvent,
    summary: *mut PeltonSummary,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let event = unsafe { handle(event, "event") }?;
        let Some(RunEvent::Summary(over)) = event.run() else { return Err(other_kind()) };
        // SAFETY: as above.
        unsafe { pointer::write(summary, &PeltonSummary::of(event, over)) }
    };
    // SAFETY: NULL is allowed.
    unsafe { guarded(ptr::null_mut(), body) }
}

/// How the run ended, from an event of the kind end: what pelton_job_wait gives.
///
/// Ownership: `*message` belongs to the event. Threads: any. NULL: `message` may be; `event` gives
/// PELTON_CODE_NULL_ARGUMENT. Errors: PELTON_CODE_USAGE, with an empty message, for an event of
/// another kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_event_end(
    event: *const PeltonEvent,
    message: *mut *const c_char,
) -> PeltonCode {
    // SAFETY: the caller passes NULL or a place that can be written.
    let mut place = unsafe { message.as_mut() };
    if let Some(place) = &mut place {
        **place = c"".as_ptr();
    }
    // SAFETY: the caller passes NULL or an event that is not freed.
    let Some(event) = (unsafe { event.as_ref() }) else { return PeltonCode::NullArgument };
    let Told::End(outcome) = &event.told else { return PeltonCode::Usage };
    if let Some(place) = place {
        *place = event.text(0);
    }
    outcome.code
}

/// Frees an event of pelton_next_event. The event of a callback belongs to pelton and is not freed.
///
/// Ownership: takes the event. Threads: any. NULL: nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_event_free(event: *mut PeltonEvent) {
    // SAFETY: the caller passes NULL or an event that pelton gave it, and does not use it again.
    unsafe { release(event) };
}

fn other_kind() -> Failure {
    Failure::usage("the event is of another kind")
}
