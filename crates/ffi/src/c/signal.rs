//! An eventfd for event loops, where the system has one.

use super::error::Failure;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use eventfd::Signal;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod eventfd {
    use std::os::fd::{AsRawFd, OwnedFd};

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::io::{read, write};

    use super::super::code::PeltonCode;
    use super::Failure;

    /// A descriptor that is readable while it is set.
    pub(in super::super) struct Signal {
        descriptor: OwnedFd,
        is_set: bool,
    }

    impl Signal {
        pub(in super::super) fn new() -> Result<Self, Failure> {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
            let descriptor = made.map_err(|error| {
                Failure::new(PeltonCode::Internal, format!("no eventfd could be made: {error}"))
            })?;
            Ok(Self { descriptor, is_set: false })
        }

        pub(in super::super) fn set(&mut self, is_set: bool) {
            if self.is_set == is_set {
                return;
            }
            // Neither blocks nor fails: the counter goes from 0 to 1 and back.
            let _ = if is_set {
                write(&self.descriptor, &1_u64.to_ne_bytes())
            } else {
                read(&self.descriptor, &mut [0; 8])
            };
            self.is_set = is_set;
        }

        pub(in super::super) fn descriptor(&self) -> i32 {
            self.descriptor.as_raw_fd()
        }
    }
}

/// There is none.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) enum Signal {}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Signal {
    pub(super) fn new() -> Result<Self, Failure> {
        let why = "this system has no eventfd; use pelton_next_event with a time-out";
        Err(Failure::new(super::code::PeltonCode::Unsupported, why))
    }

    pub(super) fn set(&mut self, _is_set: bool) {
        match *self {}
    }

    pub(super) fn descriptor(&self) -> i32 {
        match *self {}
    }
}
