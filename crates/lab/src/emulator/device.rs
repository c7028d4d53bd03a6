//! What is set up inside a namespace: the TUN device, the address, TCP's settings.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use tun_rs::{DeviceBuilder, SyncDevice};

use super::{CLIENT, EmulatorError, SERVER};

/// The largest IP packet, as on Ethernet.
pub(super) const MTU: u16 = 1500;

/// Packets that may wait for the pump: 200 ms at 400 Mbit/s and full size, so that none is lost when
/// the pump is kept from running for a moment. The queue of the model is another one.
const DEVICE_QUEUE: &str = "8000";

/// What TCP at the server follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 9438, the default of Linux.
    Cubic,
    /// BBR version 1, where the kernel has it.
    Bbr,
}

impl CongestionControl {
    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// Settings of TCP and IP on both sides. The buffers are the kernel's defaults, written out because
/// a new namespace inherits the machine's.
const BOTH: [(&str, &str); 6] = [
    // No run inherits another's congestion window or RTT.
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_rmem", "4096 131072 6291456"),
    ("ipv4/tcp_wmem", "4096 16384 4194304"),
    // Neighbour discovery would send packets of its own.
    ("ipv6/conf/all/disable_ipv6", "1"),
    // Everyone may send pings.
    ("ipv4/ping_group_range", "0 0"),
    ("ipv4/tcp_slow_start_after_idle", "1"),
];

/// The server's send buffers: three bandwidth-delay products of the fastest preset, so that the link
/// and the client's window are what limits.
const SERVER_WMEM: &str = "4096 16384 67108864";

pub(super) fn set_up_server() -> Result<SyncDevice, EmulatorError> {
    let device = set_up("pelton-s", &format!("{SERVER}/24"))?;
    set("ipv4/tcp_wmem", SERVER_WMEM).map_err(EmulatorError::io("raise tcp_wmem"))?;
    Ok(device)
}

pub(super) fn set_up_client() -> Result<SyncDevice, EmulatorError> {
    set_up("pelton-c", &format!("{CLIENT}/24"))
}

fn set_up(name: &str, address: &str) -> Result<SyncDevice, EmulatorError> {
    for (key, value) in BOTH {
        // A kernel without IPv6 lacks its settings.
        let absent = !Path::new("/proc/sys/net").join(key).exists();
        if !absent {
            set(key, value).map_err(EmulatorError::io(format!("set net/{key} to {value}")))?;
        }
    }
    // Without offloads the kernel cuts what TCP hands down into packets of the MTU.
    let builder = DeviceBuilder::new().name(name).mtu(MTU).offload(false).enable(false);
    let device = builder.build_sync().map_err(EmulatorError::NoTun)?;
    device.set_nonblocking(true).map_err(EmulatorError::NoTun)?;
    ip(&["link", "set", "lo", "up"])?;
    ip(&["address", "add", address, "dev", name])?;
    ip(&["link", "set", name, "txqueuelen", DEVICE_QUEUE, "up"])?;
    Ok(device)
}

/// Makes `control` the default of this thread's namespace.
pub(super) fn follow(control: CongestionControl) -> io::Result<()> {
    set("ipv4/tcp_congestion_control", control.name())
}

/// Runs `job` while everyone on the machine may use `control`: outside the first network namespace
/// only such ones are taken. That is a setting of the machine, so it is undone at once; sockets of a
/// namespace follow its default either way.
pub(super) fn while_allowed<T>(
    control: CongestionControl,
    job: impl FnOnce() -> T,
) -> Result<T, EmulatorError> {
    const KEY: &str = "ipv4/tcp_allowed_congestion_control";
    let name = control.name();
    let refused = |error| EmulatorError::NoCongestionControl(name, error);
    let before = fs::read_to_string(Path::new("/proc/sys/net").join(KEY)).map_err(refused)?;
    set(KEY, &format!("{} {name}", before.trim())).map_err(refused)?;
    let outcome = job();
    set(KEY, before.trim()).map_err(refused)?;
    Ok(outcome)
}

fn set(key: &str, value: &str) -> io::Result<()> {
    // `net` there is that of the thread that opens it.
    fs::write(Path::new("/proc/sys/net").join(key), value)
}

fn ip(arguments: &[&str]) -> Result<(), EmulatorError> {
    let command = || format!("ip {}", arguments.join(" "));
    let output =
        Command::new("ip").args(arguments).output().map_err(|error| EmulatorError::Command {
            command: command(),
            message: format!("{error}; it is in the package iproute2"),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(EmulatorError::Command { command: command(), message })
}
