//! The native half of the Java library: the methods of `io.pelton.Native`.
//!
//! Java calls down and is never called up: its own threads ask for events and hand over what its
//! meter has read, so no thread of pelton ever runs Java code, and none has to be attached.
#![allow(
    unsafe_code,
    reason = "the macros of the jni crate export symbols and bind objects; one descriptor is taken over"
)]
#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "the macros fix the shape of native methods"
)]

mod classes;
mod clients;
mod failure;
mod objects;
mod sample;
mod settings;

use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use jni::objects::{JClass, JObjectArray, JString};
use jni::refs::IntoAuto as _;
use jni::sys::{jboolean, jdouble, jint, jlong};
use jni::{Env, NativeMethod, native_method};
use pelton::power::meters::{BatteryManager, Sample};
use pelton::{Error, ErrorKind, Job};

use classes::JEvent;
use clients::Client;
use failure::{Fault, ThrowPeltonException};
use sample::LastSample;
use settings::{Order, Setting};

/// A static method of `io.pelton.Native` that throws `PeltonException`.
macro_rules! native {
    ($($signature:tt)*) => {
        const _: NativeMethod<'_> = native_method! {
            java_type = "io.pelton.Native",
            type_map = { JEvent => io.pelton.Event },
            error_policy = ThrowPeltonException,
            static extern fn $($signature)*,
        };
    };
}

native!(initialise());
native!(open_client(settings: JString[]) -> jlong);
native!(close_client(client: jlong));
native!(start(client: jlong, download: jlong, settings: JString[], descriptor: jint));
native!(close_descriptor(descriptor: jint));
native!(pause(client: jlong, download: jlong));
native!(resume(client: jlong, download: jlong));
native!(cancel(client: jlong, download: jlong));
native!(next_event(client: jlong) -> JEvent);
native!(set_joules(client: jlong, joules: jdouble));
native!(set_watts(client: jlong, watts: jdouble));
native!(set_battery(
    client: jlong, current_now: jlong, charge_counter: jlong, energy_counter: jlong,
    millivolts: jlong, charging: jboolean
));
native!(forget_sample(client: jlong));
#[cfg(debug_assertions)]
native!(panic_for_tests());

type Result<T, E = Fault> = std::result::Result<T, E>;

/// Called once, when the class `io.pelton.Native` is initialised.
fn initialise<'local>(env: &mut Env<'local>, class: JClass<'local>) -> Result<()> {
    Ok(classes::cache(env, &class)?)
}

/// A new client by number; Java closes it.
fn open_client<'local>(
    env: &mut Env<'local>,
    _class: JClass<'local>,
    settings: JObjectArray<'local, JString<'local>>,
) -> Result<jlong> {
    let sample = Arc::new(LastSample::default());
    let client = settings::client(&pairs(env, &settings)?, &sample)?;
    Ok(Client::open(client, sample)?)
}

/// Cancels its downloads; what they still tell can be asked for until `nextEvent` answers null.
fn close_client<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
) -> Result<()> {
    if let Some(client) = Client::find(client) {
        client.close();
    }
    Ok(())
}

/// Starts a download under a number that Java has chosen. A `descriptor` that is not negative is
/// where its one file goes; it belongs to the download from here on, and is closed when this fails.
fn start<'local>(
    env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
    download: jlong,
    settings: JObjectArray<'local, JString<'local>>,
    descriptor: jint,
) -> Result<()> {
    let target = (descriptor >= 0).then(|| owned(descriptor));
    let order = Order::parse(&pairs(env, &settings)?)?;
    let client =
        Client::find(client).ok_or_else(|| Error::new(ErrorKind::Usage, "the client is closed"))?;
    client.start(download, |client| {
        let prepared = order.download(client)?;
        Ok(match target {
            Some(file) => prepared.to_writer(Box::new(file)),
            None => prepared,
        })
    })?;
    Ok(())
}

fn owned(descriptor: jint) -> File {
    // SAFETY: the caller of `Request.Builder.toDescriptor` has detached the descriptor and uses it no
    // more, as its documentation asks; each request hands it over once.
    File::from(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn close_descriptor<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    descriptor: jint,
) -> Result<()> {
    drop(owned(descriptor));
    Ok(())
}

fn pause<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
    download: jlong,
) -> Result<()> {
    with_job(client, download, Job::pause)
}

fn resume<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
    download: jlong,
) -> Result<()> {
    with_job(client, download, Job::resume)
}

fn cancel<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
    download: jlong,
) -> Result<()> {
    with_job(client, download, Job::cancel)
}

/// What is over takes no commands: that is no error.
fn with_job(client: jlong, download: jlong, act: impl FnOnce(&Job)) -> Result<()> {
    if let Some(client) = Client::find(client) {
        client.with_job(download, act);
    }
    Ok(())
}

/// Waits for the next event; null once the client is closed and all of its downloads are over.
fn next_event<'local>(
    env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
) -> Result<JEvent<'local>> {
    let told = Client::find(client).and_then(|found| found.next(client));
    let Some((download, told)) = told else { return Ok(JEvent::null()) };
    Ok(objects::event(env, download, &told)?)
}

fn set_joules<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
    joules: jdouble,
) -> Result<()> {
    set_sample(client, Some(Sample::Energy(joules)))
}

fn set_watts<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
    watts: jdouble,
) -> Result<()> {
    set_sample(client, Some(Sample::Power(watts)))
}

#[expect(clippy::too_many_arguments, reason = "what Android's BatteryManager tells")]
fn set_battery<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
    current_now: jlong,
    charge_counter: jlong,
    energy_counter: jlong,
    millivolts: jlong,
    charging: jboolean,
) -> Result<()> {
    let battery =
        BatteryManager { current_now, charge_counter, energy_counter, millivolts, charging };
    set_sample(client, battery.sample())
}

fn forget_sample<'local>(
    _env: &mut Env<'local>,
    _class: JClass<'local>,
    client: jlong,
) -> Result<()> {
    set_sample(client, None)
}

fn set_sample(client: jlong, sample: Option<Sample>) -> Result<()> {
    if let Some(client) = Client::find(client) {
        client.set_sample(sample);
    }
    Ok(())
}

/// Shows that a panic ends as an exception: nothing else is known to panic.
#[cfg(debug_assertions)]
fn panic_for_tests<'local>(_env: &mut Env<'local>, _class: JClass<'local>) -> Result<()> {
    panic!("it was asked to panic");
}

/// Names and values that stand in turn in one array.
fn pairs<'local>(
    env: &mut Env<'local>,
    settings: &JObjectArray<'local, JString<'local>>,
) -> jni::errors::Result<Vec<Setting>> {
    let length = settings.len(env)?;
    // Each reference is let go at once: a frame has room for few, and a list may be long.
    let text =
        |env: &mut Env<'local>, index| settings.get_element(env, index)?.auto().try_to_string(env);
    (0..length / 2).map(|i| Ok((text(env, 2 * i)?, text(env, 2 * i + 1)?))).collect()
}
