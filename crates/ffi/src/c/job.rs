//! The handle of a download under way.

use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pelton::{Download, Job};

use super::client::PeltonClient;
use super::code::PeltonCode;
use super::dispatcher::{Dispatcher, Followed};
use super::error::{Failure, PeltonError, guarded, shielded};
use super::event::PeltonEvent;
use super::options::PeltonLimits;
use super::pointer::{c_text, handle, null, out, release};
use super::request::{self, PeltonJobOptions};

/// A download under way.
///
/// Threads: every function may be called by several threads at once with the same job, except
/// pelton_job_free.
pub struct PeltonJob {
    followed: Arc<Followed>,
    dispatcher: Arc<Dispatcher>,
}

impl PeltonJob {
    /// How long a call may wait: forever if the number is negative.
    fn patience(&self, timeout_ms: i32) -> Result<Option<Duration>, Failure> {
        if timeout_ms != 0 && self.dispatcher.is_here() {
            let why = "a callback would wait for itself: use the time-out 0 here";
            return Err(Failure::new(PeltonCode::WrongThread, why));
        }
        Ok(u64::try_from(timeout_ms).ok().map(Duration::from_millis))
    }
}

/// Starts a download on a thread of its own.
///
/// Ownership: `*job` belongs to the caller, who frees it with pelton_job_free. `options` is copied,
/// file descriptors are duplicated, and the client may be freed while the download goes on.
/// `*job` is set before the first callback. Threads: any. NULL: only `error` may be. Errors:
/// PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_NOT_UTF8, PELTON_CODE_USAGE for a
/// malformed URL or list and for options that contradict each other, PELTON_CODE_FILE_IO for a
/// descriptor that is none, PELTON_CODE_DESCRIPTORS when too many are open, PELTON_CODE_INTERNAL when
/// no thread can be started; `*job` is NULL then. What else goes wrong is told by events and by pelton_job_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_start(
    client: *const PeltonClient,
    options: *const PeltonJobOptions,
    job: *mut *mut PeltonJob,
    error: *mut *mut PeltonError,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let (place, client) = unsafe { (out(job, "job")?, handle(client, "client")?) };
        // SAFETY: as above.
        let request = unsafe { request::read(options) }?.ok_or_else(|| null("options"))?;
        let cancelled = Arc::<AtomicBool>::default();
        let (download, callback) = request.download(&client.client, Arc::clone(&cancelled))?;
        let mut started = start(download)?;
        let events = started.events();
        let followed = Arc::new(Followed::new(started, client.policy, callback, cancelled));
        let dispatcher = Arc::clone(&client.dispatcher);
        let made = PeltonJob { followed: Arc::clone(&followed), dispatcher };
        *place = Box::into_raw(Box::new(made));
        followed.set_handle(*place);
        client.dispatcher.follow(events, followed).inspect_err(|_| {
            // SAFETY: made above, and nobody has it.
            unsafe { release(*place) };
            *place = std::ptr::null_mut();
        })
    };
    // SAFETY: as above.
    unsafe { guarded(error, body) }
}

#[cfg(unix)]
fn start(download: Download) -> Result<Job, Failure> {
    Ok(super::sigpipe::blocked_while(|| download.start())?)
}

#[cfg(not(unix))]
fn start(download: Download) -> Result<Job, Failure> {
    Ok(download.start()?)
}

/// Frees a job, and cancels it if it is not over. What has arrived is kept for a later download into
/// the same directory.
///
/// From the return on its callback is not called, and does not run on another thread: this waits for
/// a call that is under way, unless the callback itself calls this. (The caller must hold no lock
/// that the callback wants.) The download ends shortly after.
///
/// Ownership: takes the job. Threads: any, its own callback too; no other call with this job may be
/// under way. NULL: nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_free(job: *mut PeltonJob) {
    // SAFETY: the caller passes NULL or a job that pelton made.
    if let Some(job) = unsafe { job.as_ref() } {
        shielded((), || {
            job.followed.close();
            job.followed.cancel();
        });
    }
    // SAFETY: as above, and it is not used again.
    unsafe { release(job) };
}

/// Stops for good and keeps what a later download into the same directory needs to go on. It returns
/// at once; the end shows as an event, and pelton_job_wait gives PELTON_CODE_CANCELLED then, unless
/// everything was there already. No effect once the run is over.
///
/// Threads: any, callbacks too. NULL: PELTON_CODE_NULL_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_cancel(job: *const PeltonJob) -> PeltonCode {
    // SAFETY: the caller passes NULL or a job that is not freed.
    unsafe { command(job, Followed::cancel) }
}

/// Stops all streams; what has arrived is kept. It returns at once. No effect once the run is over.
///
/// Threads: any, callbacks too. NULL: PELTON_CODE_NULL_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_pause(job: *const PeltonJob) -> PeltonCode {
    // SAFETY: the caller passes NULL or a job that is not freed.
    unsafe { command(job, |followed| followed.with_job(Job::pause)) }
}

/// Goes on after pelton_job_pause. It returns at once. No effect once the run is over.
///
/// Threads: any, callbacks too. NULL: PELTON_CODE_NULL_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_resume(job: *const PeltonJob) -> PeltonCode {
    // SAFETY: the caller passes NULL or a job that is not freed.
    unsafe { command(job, |followed| followed.with_job(Job::resume)) }
}

/// Other ceilings from now on; streams beyond them are ended. It returns at once. No effect once the
/// run is over.
///
/// Threads: any, callbacks too. NULL: `limits` means the defaults; `job` may not be. Errors:
/// PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_USAGE for a rate that is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_set_limits(
    job: *const PeltonJob,
    limits: *const PeltonLimits,
    error: *mut *mut PeltonError,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let (job, limits) = unsafe { (handle(job, "job")?, PeltonLimits::read(limits)?) };
        job.followed.with_job(|job| job.set_limits(limits));
        Ok(())
    };
    // SAFETY: as above.
    unsafe { guarded(error, body) }
}

/// Waits for the next event at most `timeout_ms` milliseconds, or forever if that is negative.
///
/// Events come in order, each to one caller, and end with one of the kind end. Those that nobody
/// takes are kept until the job is freed, except that of several in a row that say how far the run is
/// only the last is.
///
/// Ownership: `*event` belongs to the caller, who frees it with pelton_event_free. Threads: any.
/// NULL: only `error` may be. Errors: PELTON_CODE_AGAIN when nothing came in time, PELTON_CODE_END
/// after the last event (these two make no error), PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_USAGE when
/// events go to a callback, PELTON_CODE_WRONG_THREAD in a callback of the same client unless
/// `timeout_ms` is 0; `*event` is NULL then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_next_event(
    job: *const PeltonJob,
    timeout_ms: i32,
    event: *mut *mut PeltonEvent,
    error: *mut *mut PeltonError,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let (place, job) = unsafe { (out(event, "event")?, handle(job, "job")?) };
        if job.followed.has_callback() {
            return Err(Failure::usage("the events of this job go to its callback"));
        }
        let patience = job.patience(timeout_ms)?;
        *place = Box::into_raw(job.followed.queue.next(patience)?);
        Ok(())
    };
    // SAFETY: as above.
    unsafe { guarded(error, body) }
}

/// A file descriptor (an eventfd) for poll, epoll and the like: readable while pelton_next_event
/// would not wait, so after the last event too. Only poll it: pelton reads and writes it.
///
/// Ownership: belongs to the job and ends with it. Threads: any. NULL: only `error` may be. Errors:
/// PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_USAGE when events go to a callback,
/// PELTON_CODE_UNSUPPORTED on other systems than Linux and Android, PELTON_CODE_INTERNAL when the
/// process has no descriptor left; `*descriptor` is -1 then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_event_fd(
    job: *const PeltonJob,
    descriptor: *mut i32,
    error: *mut *mut PeltonError,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let place = unsafe { descriptor.as_mut() }.ok_or_else(|| null("descriptor"))?;
        *place = -1;
        // SAFETY: as above.
        let job = unsafe { handle(job, "job") }?;
        if job.followed.has_callback() {
            return Err(Failure::usage("the events of this job go to its callback"));
        }
        *place = job.followed.queue.descriptor()?;
        Ok(())
    };
    // SAFETY: as above.
    unsafe { guarded(error, body) }
}

/// Waits for the end of the run at most `timeout_ms` milliseconds, or forever if that is negative.
/// Events are left where they are. A callback has been told of the end, and has returned: the caller
/// must hold no lock that it wants, and no callback may wait for a thread that waits here.
///
/// PELTON_CODE_OK: every file is there. If files failed, the code of their failures if it is the same
/// for all, else PELTON_CODE_UNFINISHED; `*error` has the first one's message. A run that could not
/// begin gives the code of the reason.
///
/// Threads: any. NULL: only `error` may be. Errors besides: PELTON_CODE_AGAIN when it is not over in
/// time (without an error), PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_WRONG_THREAD in a callback of the
/// same client unless `timeout_ms` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_wait(
    job: *const PeltonJob,
    timeout_ms: i32,
    error: *mut *mut PeltonError,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let job = unsafe { handle(job, "job") }?;
        let patience = job.patience(timeout_ms)?;
        let queue = &job.followed.queue;
        // A callback may be the one that is told.
        let outcome =
            if job.dispatcher.is_here() { queue.outcome() } else { queue.outcome_told(patience) };
        outcome?.result()
    };
    // SAFETY: as above.
    unsafe { guarded(error, body) }
}

/// The report of a run that is over, as JSON: what `pelton get --report FILE.json` writes. UTF-8.
///
/// Ownership: `*json` belongs to the caller, who frees it with pelton_string_free. Threads: any,
/// callbacks too. NULL: only `error` may be. Errors: PELTON_CODE_AGAIN before the end (without an
/// error), PELTON_CODE_NULL_ARGUMENT; `*json` is NULL then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_job_report_json(
    job: *const PeltonJob,
    json: *mut *mut c_char,
    error: *mut *mut PeltonError,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let (place, job) = unsafe { (out(json, "json")?, handle(job, "job")?) };
        let outcome = job.followed.queue.outcome()?;
        *place = c_text(&outcome.report).into_raw();
        Ok(())
    };
    // SAFETY: as above.
    unsafe { guarded(error, body) }
}

/// Frees a text that a function says belongs to the caller.
///
/// Ownership: takes the text. Threads: any. NULL: nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_string_free(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: the caller passes a text that pelton made, and does not use it again.
        drop(unsafe { CString::from_raw(string) });
    }
}

/// # Safety
/// `job` is NULL, or a job that is not freed.
unsafe fn command(job: *const PeltonJob, ask: fn(&Followed)) -> PeltonCode {
    let body = || {
        // SAFETY: the caller's promise.
        ask(&unsafe { handle(job, "job") }?.followed);
        Ok(())
    };
    // SAFETY: NULL is allowed.
    unsafe { guarded(std::ptr::null_mut(), body) }
}
