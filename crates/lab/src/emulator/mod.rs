//! Real packets over a modelled link: two network namespaces, a TUN device in each, and a thread
//! that carries packets from one to the other as [`crate::model`] says.
//!
//! ```text
//! server namespace          this process          client namespace
//!  10.77.0.1  pelton-s  <->  pump (model)  <->  pelton-c  10.77.0.2
//! ```
//!
//! The namespaces have no names: they belong to threads of this process, and the kernel removes
//! them with their devices when it ends, however it ends.

mod counters;
mod device;
mod error;
mod namespace;
mod packet;
mod pcap;
mod privilege;
pub mod probe;
mod pump;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

pub use device::CongestionControl;
use device::MTU;
pub use error::EmulatorError;
pub use namespace::Namespace;
pub use privilege::become_able;
pub use pump::{DirectionStats, Stats};

use crate::model::{LinkModel, LinkSpec};

/// The server's address.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// The client's address.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// What to emulate.
#[derive(Debug, Clone)]
pub struct EmulatorConfig {
    /// The link. Its schedule starts with the first packet.
    pub link: LinkSpec,
    /// Decides which packets are lost, and the jitter.
    pub seed: u64,
    /// What the server's TCP follows.
    pub congestion_control: CongestionControl,
    /// Where to write the packets' headers, as the client sees them, in pcap's format.
    pub packet_log: Option<PathBuf>,
}

impl EmulatorConfig {
    /// `link` with CUBIC and without a log.
    pub fn new(link: LinkSpec, seed: u64) -> Self {
        Self { link, seed, congestion_control: CongestionControl::Cubic, packet_log: None }
    }
}

/// Two namespaces and the link between them. Dropping it takes both down.
pub struct Emulator {
    // The pump ends first: its devices live in the namespaces.
    pump: pump::Pump,
    server: Namespace,
    client: Namespace,
}

impl Emulator {
    /// Sets up both namespaces and starts to carry packets. Call [`become_able`] once before.
    ///
    /// # Errors
    /// What is missing: privileges, the TUN device, `ip`.
    pub fn start(config: EmulatorConfig) -> Result<Self, EmulatorError> {
        let log = config.packet_log.map(pcap::PacketLog::create).transpose()?;
        let server = Namespace::new("server")?;
        let client = Namespace::new("client")?;
        let server_device = server.run(device::set_up_server)??;
        let client_device = client.run(device::set_up_client)??;
        follow(&server, config.congestion_control)?;
        let model = LinkModel::new(&config.link, config.seed);
        let pump = pump::Pump::start(model, server_device, client_device, log)?;
        Ok(Self { pump, server, client })
    }

    /// Where the server runs.
    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// Where the client runs.
    pub fn client(&self) -> &Namespace {
        &self.client
    }

    /// What has passed so far.
    pub fn stats(&self) -> Stats {
        self.pump.stats()
    }

    /// Segments that TCP has sent again so far: the server, and the client.
    ///
    /// # Errors
    /// When the kernel does not count them.
    pub fn retransmitted(&self) -> Result<[u64; 2], EmulatorError> {
        Ok([counters::retransmitted(&self.server)?, counters::retransmitted(&self.client)?])
    }

    /// Ends the link and says what has passed.
    ///
    /// # Errors
    /// When a device or the log failed while packets were carried.
    pub fn stop(mut self) -> Result<Stats, EmulatorError> {
        self.pump.stop()
    }
}

/// Makes the sockets in `namespace` follow `control`.
fn follow(namespace: &Namespace, control: CongestionControl) -> Result<(), EmulatorError> {
    // What is allowed is a setting of the machine: one at a time may change it and change it back.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let follow = || namespace.run(move || device::follow(control));
    if follow()?.is_ok() {
        return Ok(());
    }
    device::while_allowed(control, follow)??
        .map_err(|error| EmulatorError::NoCongestionControl(control.name(), error))
}
