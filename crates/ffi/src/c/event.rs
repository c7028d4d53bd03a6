//! What a run tells, as C sees it.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::OnceLock;

use pelton::RunEvent;
use serde::Serialize;

use super::code::PeltonCode;
use super::error::{Failure, guarded, shielded};
use super::outcome::Outcome;
use super::pointer::{self, c_text, handle, release};
use super::told::{PeltonFile, PeltonProgress, PeltonSummary};

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
    /// How far the run is, at most four times a second and at the end: see pelton_event_progress.
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

    pub(super) fn text(&self, index: usize) -> *const c_char {
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
