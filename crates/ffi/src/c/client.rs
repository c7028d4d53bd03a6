//! The handle of a client.

use std::sync::Arc;

use pelton::Client;
use pelton::algos::units::BitRate;

use super::code::PeltonCode;
use super::dispatcher::Dispatcher;
use super::error::{PeltonError, guarded};
use super::options::{self, PeltonClientOptions};
use super::pointer::{handle, out, release};

/// Downloads with one set of settings, and the dispatcher thread of its downloads.
///
/// Threads: every function may be called by several threads at once with the same client, except
/// pelton_client_free.
pub struct PeltonClient {
    pub(super) client: Client,
    pub(super) policy: &'static str,
    pub(super) dispatcher: Arc<Dispatcher>,
}

/// Makes a client.
///
/// Ownership: `*client` belongs to the caller, who frees it with pelton_client_free. `options` is
/// copied. Threads: any. NULL: `options` may be NULL, which means the defaults; so may `error`.
/// Errors: PELTON_CODE_NULL_ARGUMENT, PELTON_CODE_STRUCT_SIZE, PELTON_CODE_NOT_UTF8,
/// PELTON_CODE_USAGE for a value that means nothing, PELTON_CODE_INTERNAL when no thread can be
/// started; `*client` is NULL then. Files that settings name are read when a download starts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_client_new(
    options: *const PeltonClientOptions,
    client: *mut *mut PeltonClient,
    error: *mut *mut PeltonError,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes pointers as the header says.
        let (place, made) = unsafe { (out(client, "client")?, options::client(options)?) };
        let options::Made { client, policy, meter } = made;
        let dispatcher = Arc::new(Dispatcher::start()?);
        meter.inspect(|data| data.take());
        *place = Box::into_raw(Box::new(PeltonClient { client, policy, dispatcher }));
        Ok(())
    };
    // SAFETY: as above.
    unsafe { guarded(error, body) }
}

/// From now on the bodies of all downloads of `client` come no faster than this together, bits a second;
/// their files share it evenly. 0 is no limit. What each download may take besides is in pelton_limits.
///
/// Threads: any, callbacks too. NULL: PELTON_CODE_NULL_ARGUMENT. Errors: PELTON_CODE_NULL_ARGUMENT,
/// PELTON_CODE_USAGE for a rate that is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_client_set_max_rate(
    client: *const PeltonClient,
    max_rate_bps: f64,
    error: *mut *mut PeltonError,
) -> PeltonCode {
    let body = || {
        // SAFETY: the caller passes NULL or a client that is not freed.
        let client = unsafe { handle(client, "client")? };
        let rate = options::hint(max_rate_bps, "max_rate_bps")?;
        client.client.set_max_rate(rate.map(BitRate::from_bps));
        Ok(())
    };
    // SAFETY: the caller passes a pointer as the header says.
    unsafe { guarded(error, body) }
}

/// Frees a client. Its downloads go on; their handles are freed apart.
///
/// Ownership: takes the client. Threads: any, callbacks too; no other call with this client may be
/// under way. NULL: nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pelton_client_free(client: *mut PeltonClient) {
    // SAFETY: the caller passes NULL or a client that pelton made, and does not use it again.
    unsafe { release(client) };
}
