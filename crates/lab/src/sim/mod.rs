//! A transfer in virtual time: the real engine and the real policies over a modelled link.
//!
//! A discrete-event simulation that depends on its [`Scenario`] alone: the same seed gives the same
//! run. Modelled are the link ([`crate::model`]), TCP with CUBIC, `HyStart`, selective
//! acknowledgements, tail probes and time-outs, handshakes of TCP and TLS 1.3, HTTP/1.1 with one
//! request at a time and HTTP/2 with streams that take turns, a server with its limits, and the
//! client's energy. pelton-core's `engine` is driven as its `driver` drives it: the same events, the
//! meter read as often, connections kept as its pool keeps them.
//!
//! Not modelled: name resolution, the disk, TLS records that have to arrive whole, competing
//! traffic, and the receiver's window growing (it is as large as it will ever be from the start).

mod agenda;
pub mod cases;
pub mod chart;
pub mod comparison;
mod connection;
mod cubic;
mod exchange;
pub mod grid;
mod meter;
pub mod oracle;
pub mod oracles;
mod origin;
mod pool;
pub mod regret;
pub mod stand_in;
pub mod sweep;
mod tcp;
mod trajectory;
mod transport;
mod world;

use pelton_algos::policy::{Decision, Policy};
use pelton_algos::time::Timestamp;
use pelton_algos::units::{Bytes, Joules};
use pelton_core::catalog::FileSpec;
use pelton_core::connection::{Origin, Scheme};
use pelton_core::engine::{Engine, EngineConfig};
use pelton_power::ModelledConfig;
use url::Url;

pub use origin::{OriginConfig, Overload};
pub use trajectory::Sample;

use crate::content::VirtualFile;
use crate::model::LinkSpec;

/// Files at a simulated server, as a bare list of URLs: sizes are not told.
#[derive(Debug, Clone)]
pub struct FileList {
    origin: Origin,
    specs: Vec<FileSpec>,
    sizes: Vec<u64>,
}

impl FileList {
    /// The files of a set.
    ///
    /// # Errors
    /// A path that no URL can have.
    pub fn new(files: &[VirtualFile]) -> pelton_core::Result<Self> {
        let usage =
            |message: String| pelton_core::Error::new(pelton_core::ErrorKind::Usage, message);
        let base = Url::parse("http://origin.test/").map_err(|error| usage(error.to_string()))?;
        let specs = files
            .iter()
            .map(|file| {
                let url =
                    base.join(&file.path).map_err(|e| usage(format!("{}: {e}", file.path)))?;
                FileSpec::from_url(url)
            })
            .collect::<Result<_, _>>()?;
        let sizes = files.iter().map(|file| file.size).collect();
        Ok(Self { origin: Origin::of(&base)?, specs, sizes })
    }

    /// The list tells sizes, as a listing or a manifest does.
    #[must_use]
    pub fn with_sizes(mut self) -> Self {
        for (spec, size) in self.specs.iter_mut().zip(&self.sizes) {
            spec.size = Some(*size);
        }
        self
    }

    /// The files as a server with or without TLS names them.
    fn specs(&self, tls: bool) -> Vec<FileSpec> {
        let mut specs = self.specs.clone();
        if tls {
            for spec in &mut specs {
                // Both schemes are special ones (URL Standard section 4.2): the change can't fail.
                let _ = spec.url.set_scheme("https");
            }
        }
        specs
    }

    fn origin(&self, tls: bool) -> Origin {
        let (scheme, port) = if tls { (Scheme::Https, 443) } else { (Scheme::Http, 80) };
        Origin { scheme, port, ..self.origin.clone() }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.sizes.iter().sum())
    }
}

/// Everything that a run depends on, but for the policy.
#[derive(Debug, Clone)]
pub struct Scenario<'a> {
    /// The link.
    pub link: &'a LinkSpec,
    /// The server.
    pub origin: OriginConfig,
    /// What is fetched.
    pub files: &'a FileList,
    /// What the client's kernel lets one connection have in flight.
    pub receive_window: Bytes,
    /// Settings of the engine.
    pub engine: EngineConfig,
    /// The client's device.
    pub power: ModelledConfig,
    /// Decides which packets are lost and how retries are spread.
    pub seed: u64,
    /// Whether [`Ending::samples`] are taken.
    pub traced: bool,
}

impl<'a> Scenario<'a> {
    /// Defaults but for what has none.
    pub fn new(link: &'a LinkSpec, origin: OriginConfig, files: &'a FileList, seed: u64) -> Self {
        Self {
            link,
            origin,
            files,
            receive_window: crate::link::LINUX_WINDOW,
            engine: EngineConfig { seed, ..EngineConfig::default() },
            power: ModelledConfig::default(),
            seed,
            traced: false,
        }
    }

    /// Runs it to its end.
    pub fn run(&self, policy: Box<dyn Policy>) -> Ending {
        let engine = Engine::new(self.engine, policy);
        world::World::new(self, engine).run(self)
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// Whether every file arrived.
    pub is_complete: bool,
    /// How long it took, from the list to the last byte.
    pub seconds: f64,
    /// Body bytes that were kept.
    pub bytes: Bytes,
    /// Bytes that the client's connections read, heads and TLS handshakes included.
    pub received: Bytes,
    /// Joules of the device, radio tail included; modelled.
    pub energy: Joules,
    /// Connections opened.
    pub connections: u64,
    /// Requests made.
    pub requests: u64,
    /// Requests made again after a failure.
    pub retries: u64,
    /// Data segments that the server sent.
    pub segments: u64,
    /// Those of them that were lost.
    pub lost_segments: u64,
    /// Decisions with their moments.
    pub decisions: Vec<(Timestamp, Decision)>,
    /// The run over time, ten times a second, where it was asked for.
    pub samples: Vec<Sample>,
}

impl Ending {
    /// Throughput / energy over the whole transfer, in (bit/s) / J: equation 1 of papers/001.
    pub fn throughput_per_joule(&self) -> f64 {
        let rate = self.bytes.as_f64() * 8.0 / self.seconds.max(1e-9);
        rate / self.energy.get().max(1e-9)
    }
}

#[cfg(test)]
mod tests;
