//! Why there is no emulated link.

use std::io;

use thiserror::Error;

/// What the emulator lacks or what failed, and what to do about it.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// Neither root nor a user namespace.
    #[error(
        "network namespaces need root, or a kernel that lets users make user namespaces ({0}); run it with sudo"
    )]
    NoPrivilege(io::Error),
    /// A namespace could not be made.
    #[error(
        "can't make a network namespace: {0}; run it as root, in a container with CAP_SYS_ADMIN"
    )]
    NoNamespace(io::Error),
    /// The TUN device can't be used.
    #[error(
        "can't open the TUN device /dev/net/tun: {0}; load it with `modprobe tun`, and see that you may open it (in a container: --device /dev/net/tun)"
    )]
    NoTun(io::Error),
    /// A command failed.
    #[error("`{command}` failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// The end of what it said.
        message: String,
    },
    /// A kernel without a congestion control, or one that does not allow it.
    #[error(
        "can't use the TCP congestion control {0} ({1}); see that sysctl net.ipv4.tcp_allowed_congestion_control names it, and try `modprobe tcp_{0}`"
    )]
    NoCongestionControl(&'static str, io::Error),
    /// Something of the system failed.
    #[error("can't {doing}: {error}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system said.
        error: io::Error,
    },
}

impl EmulatorError {
    /// Whether this machine does not let this process emulate, and nothing has failed.
    pub fn is_denied(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        match self {
            Self::NoPrivilege(_)
            | Self::NoNamespace(_)
            | Self::NoTun(_)
            | Self::NoCongestionControl(..) => true,
            Self::Io { error, .. } => {
                matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
            }
            Self::Command { .. } => false,
        }
    }

    /// An [`EmulatorError::Io`] while `doing`.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Io { doing, error }
    }
}
