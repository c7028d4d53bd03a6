//! What is told, as Java objects.

use jni::Env;
use jni::errors::Result;
use jni::objects::{JObject, JObjectArray, JString};
use pelton::events::{ErrorReport, FileReport, Progress, Summary};
use pelton::{ErrorKind, Protocol, Report};

use super::classes::{JEvent, JFileReport, JPeltonException, JProgress, JReport};
use super::clients::Told;

/// The event of `download` as Java's dispatcher takes it.
pub(super) fn event<'local>(
    env: &mut Env<'local>,
    download: i64,
    told: &Told,
) -> Result<JEvent<'local>> {
    let (what, failure): (JObject<'_>, _) = match told {
        Told::Progress(now) => (progress(env, now)?.into(), None),
        Told::File(file) => (file_report(env, file)?.into(), None),
        Told::Over(over) => match over.as_ref() {
            Ok(done) => (report(env, done)?.into(), failure_of(done)),
            Err(error) => (JObject::null(), Some(error_report(error))),
        },
    };
    let failure = exception(env, failure.as_ref())?;
    JEvent::new(env, download, &what, &failure)
}

/// `error` as an exception that can be thrown; none without an error.
pub(super) fn exception<'local>(
    env: &mut Env<'local>,
    error: Option<&ErrorReport>,
) -> Result<JPeltonException<'local>> {
    let Some(error) = error else { return Ok(JPeltonException::null()) };
    let kind = JString::new(env, error.kind)?;
    let message = JString::new(env, &error.message)?;
    JPeltonException::new(env, error.code.into(), &kind, error.retryable, &message)
}

/// A failure of the whole run.
pub(super) fn error_report(error: &pelton::Error) -> ErrorReport {
    let kind = error.kind();
    ErrorReport {
        code: kind.exit_code(),
        kind: kind.name(),
        retryable: kind.may_succeed_later(),
        message: error.message(),
    }
}

fn progress<'local>(env: &mut Env<'local>, now: &Progress) -> Result<JProgress<'local>> {
    JProgress::new(
        env,
        now.at_s,
        now.files.cast_signed(),
        now.files_done.cast_signed(),
        now.files_failed.cast_signed(),
        now.bytes.cast_signed(),
        now.bytes_expected.cast_signed(),
        now.throughput_bps,
        or_nan(now.energy_j),
        now.connections.cast_signed(),
        or_nan(now.remaining_s),
    )
}

fn file_report<'local>(env: &mut Env<'local>, file: &FileReport) -> Result<JFileReport<'local>> {
    let name = JString::new(env, &file.name)?;
    let url = JString::new(env, &file.url)?;
    let protocol = optional(env, file.protocol.map(Protocol::name))?;
    let digest = optional(env, file.digest.as_deref())?;
    let error = exception(env, file.error.as_deref())?;
    JFileReport::new(
        env,
        &name,
        &url,
        file.bytes.cast_signed(),
        file.seconds,
        file.connections.cast_signed(),
        &protocol,
        file.resumed_from.cast_signed(),
        file.already_there,
        &digest,
        or_nan(file.energy_j),
        &error,
    )
}

fn report<'local>(env: &mut Env<'local>, done: &Report) -> Result<JReport<'local>> {
    const REFERENCES_A_FILE: usize = 16;
    let none = JFileReport::null();
    let list = JObjectArray::<JFileReport<'_>>::new(env, done.files.len(), &none)?;
    for (index, file) in done.files.iter().enumerate() {
        env.with_local_frame(REFERENCES_A_FILE, |env| {
            let file = file_report(env, file)?;
            list.set_element(env, index, &file)
        })?;
    }
    let json = serde_json::to_string(done).unwrap_or_default();
    let json = JString::new(env, &json)?;
    let Summary { policy, energy_source, .. } = &done.summary;
    let policy = JString::new(env, policy)?;
    let energy_source = optional(env, energy_source.as_deref())?;
    let sum = &done.summary;
    JReport::new(
        env,
        &policy,
        sum.files.cast_signed(),
        sum.files_done.cast_signed(),
        sum.files_failed.cast_signed(),
        sum.bytes.cast_signed(),
        sum.seconds,
        sum.throughput_bps,
        or_nan(sum.energy_j),
        &energy_source,
        sum.connections.cast_signed(),
        sum.requests.cast_signed(),
        sum.retries.cast_signed(),
        sum.cpu_s,
        &list,
        &json,
    )
}

/// What a run failed with whose files are not all there.
fn failure_of(report: &Report) -> Option<ErrorReport> {
    let (sum, code) = (&report.summary, report.summary.exit_code);
    if code == 0 {
        return None;
    }
    if code == ErrorKind::Cancelled.exit_code() {
        let message = format!("cancelled: {} of {} files are there", sum.files_done, sum.files);
        let kind = ErrorKind::Cancelled.name();
        return Some(ErrorReport { code, kind, retryable: true, message });
    }
    let errors: Vec<&ErrorReport> =
        report.files.iter().filter_map(|file| file.error.as_deref()).collect();
    let first = *errors.first()?;
    if errors.len() == 1 {
        return Some(first.clone());
    }
    Some(ErrorReport {
        code,
        kind: if errors.iter().all(|e| e.kind == first.kind) { first.kind } else { "unfinished" },
        retryable: errors.iter().all(|error| error.retryable),
        message: format!("{} of {} files failed; first {}", errors.len(), sum.files, first.message),
    })
}

fn optional<'local>(env: &mut Env<'local>, text: Option<&str>) -> Result<JString<'local>> {
    text.map_or_else(|| Ok(JString::null()), |text| JString::new(env, text))
}

fn or_nan(number: Option<f64>) -> f64 {
    number.unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests;
