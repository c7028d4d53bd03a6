//! Threads that a pipe or a socket without a reader does not end the program of.

use std::mem::MaybeUninit;

/// Runs `start` with SIGPIPE blocked: threads that it starts inherit that, and what they write to
/// then fails with EPIPE. The caller's own mask is as before when this returns.
pub(super) fn blocked_while<T>(start: impl FnOnce() -> T) -> T {
    let mut sigpipe = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: each call writes what the next one reads.
    let was_set = unsafe {
        libc::sigemptyset(sigpipe.as_mut_ptr());
        libc::sigaddset(sigpipe.as_mut_ptr(), libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, sigpipe.as_ptr(), before.as_mut_ptr()) == 0
    };
    let started = start();
    if was_set {
        // SAFETY: it was written by the call above, which succeeded.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    started
}
