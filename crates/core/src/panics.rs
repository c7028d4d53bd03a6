//! Panics of what an application hands over (a writer, a sink, a connector, a policy): they end as failures, so that
//! whoever waits is told.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use crate::{Error, ErrorKind, Result};

/// What `task` comes to; where it panics a failure of kind `Internal`, of what is `subject`.
///
/// Nothing that it has left half-done is used again but to be dropped, abandoned or told of.
pub(crate) fn caught<T>(
    subject: impl FnOnce() -> String,
    task: impl Future<Output = Result<T>>,
) -> impl Future<Output = Result<T>> {
    let task = AssertUnwindSafe(Box::pin(task)).catch_unwind();
    async move {
        task.await.unwrap_or_else(|panic| {
            let line = format!("{}: a panic: {}", subject(), said(&*panic));
            Err(Error::new(ErrorKind::Internal, line))
        })
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    said.unwrap_or("without a message")
}
