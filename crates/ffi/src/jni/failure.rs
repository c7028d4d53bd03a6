//! Errors and panics on their way to Java: each becomes an `io.pelton.PeltonException`.

use std::any::Any;

use jni::Env;
use jni::errors::ErrorPolicy;
use jni::objects::JThrowable;
use pelton::ErrorKind;
use pelton::events::ErrorReport;

use super::objects;

/// What a native method failed with.
#[derive(Debug)]
pub(super) enum Fault {
    /// Java's side of the border.
    Jni(jni::errors::Error),
    /// pelton's.
    Pelton(pelton::Error),
}

impl From<jni::errors::Error> for Fault {
    fn from(error: jni::errors::Error) -> Self {
        Self::Jni(error)
    }
}

impl From<pelton::Error> for Fault {
    fn from(error: pelton::Error) -> Self {
        Self::Pelton(error)
    }
}

/// Throws a `PeltonException`, unless another exception is on its way already.
pub(super) struct ThrowPeltonException;

impl<T: Default> ErrorPolicy<T, Fault> for ThrowPeltonException {
    type Captures<'unowned_env_local: 'native_method, 'native_method> = ();

    fn on_error<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _captures: &mut Self::Captures<'unowned_env_local, 'native_method>,
        fault: Fault,
    ) -> jni::errors::Result<T> {
        match fault {
            Fault::Pelton(error) => throw(env, &objects::error_report(&error)),
            Fault::Jni(error) => throw(env, &internal(error.to_string())),
        }
    }

    fn on_panic<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _captures: &mut Self::Captures<'unowned_env_local, 'native_method>,
        payload: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        throw(env, &internal(format!("a fault of pelton: {}", text.unwrap_or("a panic"))))
    }
}

fn internal(message: String) -> ErrorReport {
    let kind = ErrorKind::Internal;
    ErrorReport { code: kind.exit_code(), kind: kind.name(), retryable: false, message }
}

fn throw<T: Default>(env: &mut Env<'_>, error: &ErrorReport) -> jni::errors::Result<T> {
    if !env.exception_check() {
        let exception: JThrowable<'_> = objects::exception(env, Some(error))?.into();
        match env.throw(&exception) {
            // This is what a throw that worked says.
            Err(jni::errors::Error::JavaException) | Ok(()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(T::default())
}
