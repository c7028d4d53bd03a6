//! Failures on their way to C, and the border that no panic passes.

use std::any::Any;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::code::PeltonCode;
use super::pointer::{c_text, release};

/// Why a call, a file or a run failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) code: PeltonCode,
    pub(super) message: String,
    pub(super) is_retryable: bool,
}

impl Failure {
    /// A mistake in a call.
    pub(super) fn new(code: PeltonCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), is_retryable: false }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(PeltonCode::Usage, message)
    }

    /// Not a failure, but not done either: there is nothing to say about it.
    pub(super) fn nothing(code: PeltonCode) -> Self {
        Self::new(code, "")
    }
}

impl From<&pelton::Error> for Failure {
    fn from(error: &pelton::Error) -> Self {
        Self {
            code: error.kind().into(),
            message: error.message(),
            is_retryable: error.kind().may_succeed_later(),
        }
    }
}

impl From<pelton::Error> for Failure {
    fn from(error: pelton::Error) -> Self {
        (&error).into()
    }
}

/// Why a call failed, in words. Made by the functions that take a `pelton_error **`.
///
/// Such a pointer may be NULL: then only the code is told. Otherwise the function first sets what it
/// points to to NULL, and to an error that the caller frees with pelton_error_free if it fails.
/// PELTON_CODE_AGAIN and PELTON_CODE_END are no failures and make no error.
pub struct PeltonError {
    code: PeltonCode,
    message: CString,
    is_retryable: bool,
}

/// Runs the body of a function that C called: a panic ends here, and a failure is told.
///
/// # Safety
/// `error` is NULL, or what it points to can be written.
pub(super) unsafe fn guarded(
    error: *mut *mut PeltonError,
    body: impl FnOnce() -> Result<(), Failure>,
) -> PeltonCode {
    if !error.is_null() {
        // SAFETY: not NULL, so it can be written.
        unsafe { *error = ptr::null_mut() };
    }
    // Nothing that the body has left half-done is used again: handles are only freed then.
    let outcome =
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panicked(&*panic)));
    let Err(Failure { code, message, is_retryable }) = outcome else { return PeltonCode::Ok };
    if !error.is_null() && !matches!(code, PeltonCode::Again | PeltonCode::End) {
        let told = PeltonError { code, message: c_text(&message), is_retryable };
        // SAFETY: as above.
        unsafe { *error = Box::into_raw(Box::new(told)) };
    }
    code
}

/// Runs the body of a function that can't fail: after a panic it gives `otherwise`.
pub(super) fn shielded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let said = said.unwrap_or("without a message");
    Failure::new(PeltonCode::Panic, format!("pelton panicked, which is a fault of it: {said}"))
}

/// For the tests in C: shows that a panic ends at the border. Not in the header.
///
/// # Safety
/// As [`guarded`].
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_panic_for_tests(error: *mut *mut PeltonError) -> PeltonCode {
    // SAFETY: the caller's promise is the same.
    unsafe { guarded(error, || panic!("asked to panic")) }
}

/// The code of an error.
///
/// Threads: any. NULL: PELTON_CODE_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_error_code(error: *const PeltonError) -> PeltonCode {
    // SAFETY: the caller passes NULL or an error that is not freed.
    unsafe { error.as_ref() }.map_or(PeltonCode::Ok, |error| error.code)
}

/// One line for people: what failed, on which URL or file, why, what to do. UTF-8.
///
/// Ownership: belongs to the error and ends with it. Threads: any. NULL: an empty text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_error_message(error: *const PeltonError) -> *const c_char {
    // SAFETY: the caller passes NULL or an error that is not freed.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Whether the same may succeed later.
///
/// Threads: any. NULL: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_error_is_retryable(error: *const PeltonError) -> bool {
    // SAFETY: the caller passes NULL or an error that is not freed.
    unsafe { error.as_ref() }.is_some_and(|error| error.is_retryable)
}

/// Frees an error.
///
/// Ownership: takes the error. Threads: any. NULL: nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_error_free(error: *mut PeltonError) {
    // SAFETY: the caller passes NULL or an error that pelton made, and does not use it again.
    unsafe { release(error) };
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn told(body: impl FnOnce() -> Result<(), Failure>) -> (PeltonCode, Option<String>) {
        let mut error = ptr::null_mut();
        // SAFETY: `error` is a variable of this function, and freed once.
        unsafe {
            let code = guarded(&raw mut error, body);
            assert_eq!(
                pelton_error_code(error),
                if error.is_null() { PeltonCode::Ok } else { code }
            );
            let message = CStr::from_ptr(pelton_error_message(error)).to_str().unwrap().to_owned();
            let message = (!error.is_null()).then_some(message);
            pelton_error_free(error);
            (code, message)
        }
    }

    #[test]
    fn a_panic_ends_at_the_border() {
        for (code, message) in [
            told(|| panic!("at {}", 3)),
            told(|| std::panic::panic_any(3)),
            told(|| Err(Failure::usage("no\0 such"))),
        ] {
            let message = message.unwrap();
            match code {
                PeltonCode::Panic => assert!(message.starts_with("pelton panicked"), "{message}"),
                _ => assert_eq!(message, "no such"),
            }
        }
        assert_eq!(shielded(7, || panic!("not seen")), 7);
    }

    #[test]
    fn what_is_no_failure_makes_no_error() {
        assert_eq!(told(|| Ok(())), (PeltonCode::Ok, None));
        assert_eq!(told(|| Err(Failure::nothing(PeltonCode::End))), (PeltonCode::End, None));
        // SAFETY: NULL is allowed.
        let code = unsafe { guarded(ptr::null_mut(), || Err(Failure::usage("x"))) };
        assert_eq!(code, PeltonCode::Usage);
    }
}
