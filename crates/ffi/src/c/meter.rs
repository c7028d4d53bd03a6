//! A power meter that the application reads.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pelton::ClientBuilder;
use pelton::algos::units::Joules;
use pelton::power::meters::{Callback, Sample};
use pelton::power::{Choice, ModelledConfig, PowerMeter, Resolution, Scope};

use super::error::Failure;
use super::pointer::{self, Versioned, text};

/// What a meter covers.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeltonScope {
    /// The whole device.
    Device = 0,
    /// The network interface.
    Radio = 1,
    /// The processor cores.
    Cpu = 2,
    /// The processor package.
    Package = 3,
}

/// What a meter tells.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeltonMeterUnit {
    /// Joules that were used since any fixed moment. What falls, or rises faster than 100 kW, begins anew.
    Joules = 0,
    /// Watts at this moment. Below zero or beyond 100 kW is no value.
    Watts = 1,
}

/// A sensor that the application reads, such as a phone's battery gauge.
///
/// Set it to zeros, then `struct_size`, then what is needed. pelton copies it, so it and its texts
/// may go after pelton_client_new.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PeltonMeter {
    /// sizeof(struct pelton_meter).
    pub struct_size: usize,
    /// Its name, as in `measured: NAME`. UTF-8. Must not be NULL.
    pub name: *const c_char,
    /// Writes the present value and gives 0; another result means that there is none now. Must not
    /// be NULL.
    ///
    /// It is called about ten times a second and when a file begins or ends, on the thread of each download of the client, so with
    /// several downloads by several threads at once. It must return at once, must not throw, and may
    /// call no function of pelton that waits.
    pub read: Option<unsafe extern "C" fn(user_data: *mut c_void, value: *mut f64) -> i32>,
    /// Handed to `read` and `release`.
    pub user_data: *mut c_void,
    /// Called once, on any thread, when `read` will not be called again: the client is freed and its
    /// downloads are over. If pelton_client_new fails, neither is ever called. May be NULL.
    pub release: Option<unsafe extern "C" fn(user_data: *mut c_void)>,
    /// The least difference that shows, joules.
    pub step_j: f64,
    /// The time between two fresh values; 0: always fresh. Above 200 ms the joules of policies come
    /// from the model, and this meter's stand in the report.
    pub interval_ms: u32,
    /// A value of pelton_scope.
    pub scope: i32,
    /// A value of pelton_meter_unit.
    pub unit: i32,
    /// Zero.
    pub reserved: i32,
}

// SAFETY: `repr(C)`, `struct_size` is first, and zeros are NULLs, `None`s and numbers.
unsafe impl Versioned for PeltonMeter {
    const NAME: &str = "pelton_meter";
}

/// The application's data, given back when nobody reads the meter any more.
pub(super) struct UserData {
    data: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
    is_taken: AtomicBool,
}

impl UserData {
    /// The client is there: from now on the data is pelton's to give back.
    pub(super) fn take(&self) {
        self.is_taken.store(true, Ordering::Release);
    }
}

// SAFETY: the header says that `read` is called by several threads at once and `release` by any.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(release) = self.release.filter(|_| self.is_taken.load(Ordering::Acquire)) {
            // SAFETY: the application's function, called once and after the last `read`.
            unsafe { release(self.data) };
        }
    }
}

/// `builder` with the application's meter, and its data.
///
/// # Safety
/// `pointer` is as [`pointer::read`] wants it, and what it holds as the header says.
pub(super) unsafe fn set(
    builder: ClientBuilder,
    pointer: *const PeltonMeter,
) -> Result<(ClientBuilder, Option<Arc<UserData>>), Failure> {
    // SAFETY: the caller's promise.
    let Some(meter) = (unsafe { pointer::read(pointer) })? else { return Ok((builder, None)) };
    let (data, release) = (meter.user_data, meter.release);
    let user_data = Arc::new(UserData { data, release, is_taken: AtomicBool::new(false) });
    let asked = Arc::clone(&user_data);
    // SAFETY: the caller's promise.
    let name = unsafe { text(meter.name, "pelton_meter.name") }?;
    let name = name.ok_or_else(|| pointer::null("pelton_meter.name"))?;
    let read = meter.read.ok_or_else(|| pointer::null("pelton_meter.read"))?;
    pointer::unused("pelton_meter.reserved", meter.reserved == 0)?;
    let scope = scope(meter.scope)?;
    let is_power = match meter.unit {
        unit if unit == PeltonMeterUnit::Joules as i32 => false,
        unit if unit == PeltonMeterUnit::Watts as i32 => true,
        unit => return Err(Failure::usage(format!("pelton_meter.unit {unit} is not known"))),
    };
    if !(meter.step_j.is_finite() && meter.step_j >= 0.0) {
        let step = meter.step_j;
        return Err(Failure::usage(format!("pelton_meter.step_j is {step}; it is 0 or more")));
    }
    let resolution = Resolution {
        interval: Duration::from_millis(meter.interval_ms.into()),
        step: Joules::new(meter.step_j),
    };
    let callback = Callback::new(name, scope, resolution, move || {
        let mut value = f64::NAN;
        // SAFETY: the application's function, with its own data and a place for the result.
        let code = unsafe { read(asked.data, &raw mut value) };
        let sample = if is_power { Sample::Power(value) } else { Sample::Energy(value) };
        (code == 0).then_some(sample)
    });
    let builder = builder.meter_from(move || {
        let reason = callback.source().to_string();
        Choice::new(Box::new(callback.clone()), reason, ModelledConfig::default())
    });
    Ok((builder, Some(user_data)))
}

fn scope(number: i32) -> Result<Scope, Failure> {
    Ok(match number {
        it if it == PeltonScope::Device as i32 => Scope::Device,
        it if it == PeltonScope::Radio as i32 => Scope::Radio,
        it if it == PeltonScope::Cpu as i32 => Scope::Cpu,
        it if it == PeltonScope::Package as i32 => Scope::Package,
        _ => return Err(Failure::usage(format!("pelton_meter.scope {number} is not known"))),
    })
}
