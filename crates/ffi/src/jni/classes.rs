//! The Java classes whose objects are made here.
#![expect(
    elided_lifetimes_in_paths,
    clippy::too_many_arguments,
    clippy::transmute_ptr_to_ptr,
    reason = "constructors have a parameter a field, and the rest is the macro's code"
)]

use jni::Env;
use jni::errors::Result;
use jni::objects::JClass;
use jni::refs::LoaderContext;

jni::bind_java_type! {
    pub(super) JProgress => io.pelton.Progress,
    constructors {
        fn new(
            seconds: jdouble, files: jlong, files_done: jlong, files_failed: jlong, bytes: jlong,
            bytes_expected: jlong, bits_per_second: jdouble, joules: jdouble, connections: jint,
            seconds_left: jdouble,
        ),
    },
}

jni::bind_java_type! {
    pub(super) JPeltonException => io.pelton.PeltonException,
    constructors {
        fn new(code: jint, kind: JString, retryable: jboolean, message: JString),
    },
    is_instance_of = { JThrowable },
}

jni::bind_java_type! {
    pub(super) JFileReport => io.pelton.FileReport,
    type_map = { JPeltonException => io.pelton.PeltonException },
    constructors {
        fn new(
            name: JString, url: JString, bytes: jlong, seconds: jdouble, connections: jint,
            protocol: JString, resumed_from: jlong, already_there: jboolean, digest: JString,
            joules: jdouble, error: JPeltonException,
        ),
    },
}

jni::bind_java_type! {
    pub(super) JReport => io.pelton.Report,
    type_map = { JFileReport => io.pelton.FileReport },
    constructors {
        fn new(
            policy: JString, files: jlong, files_done: jlong, files_failed: jlong, bytes: jlong,
            seconds: jdouble, bits_per_second: jdouble, joules: jdouble, energy_source: JString,
            connections: jlong, requests: jlong, retries: jlong, cpu_seconds: jdouble,
            list: JFileReport[], json: JString,
        ),
    },
}

jni::bind_java_type! {
    pub(super) JEvent => io.pelton.Event,
    type_map = { JPeltonException => io.pelton.PeltonException },
    constructors {
        fn new(download: jlong, what: JObject, failure: JPeltonException),
    },
}

/// Looks up every class with the loader of `class`: threads that native code has started see only
/// the system's classes, and a context class loader may be another one.
pub(super) fn cache(env: &mut Env<'_>, class: &JClass<'_>) -> Result<()> {
    let loader = class.get_class_loader(env)?;
    let loader = LoaderContext::Loader(&loader);
    JProgressAPI::get(env, &loader)?;
    JPeltonExceptionAPI::get(env, &loader)?;
    JFileReportAPI::get(env, &loader)?;
    JReportAPI::get(env, &loader)?;
    JEventAPI::get(env, &loader)?;
    Ok(())
}
