//! What pelton, as a client of `pelton-lab run`, is in virtual time.

use pelton_algos::policy::{Fixed, FixedConfig, Policy};
use pelton_core::connection::Protocol;
use pelton_core::engine::UserLimits;

use super::regret::Adaptive;
use super::{Ending, FileList, OriginConfig, Scenario};
use crate::bench::clients::{self, Client, Kind};
use crate::model::LinkSpec;

/// A client whose run can be simulated: pelton, with one of its policies.
#[derive(Debug, Clone, Copy)]
pub struct StandIn {
    decides: Decides,
    origin: OriginConfig,
}

#[derive(Debug, Clone, Copy)]
enum Decides {
    Adaptive(Adaptive),
    Fixed(FixedConfig),
}

impl StandIn {
    /// The stand-in of `client`; none for other programs than pelton.
    pub fn of(client: &Client) -> Option<Self> {
        let decides = match client.kind {
            Kind::Pelton(name) => Decides::Adaptive(Adaptive::named(name)?),
            Kind::Fixed { pipelining, parallelism, concurrency } => {
                Decides::Fixed(FixedConfig { concurrency, parallelism, pipelining })
            }
            _ => return None,
        };
        let origin = match client.protocol {
            clients::Protocol::Http1 => OriginConfig::plain(Protocol::Http11, false),
            clients::Protocol::Http1Tls => OriginConfig::plain(Protocol::Http11, true),
            clients::Protocol::Http2 => OriginConfig::plain(Protocol::Http2, true),
        };
        Some(Self { decides, origin })
    }

    fn policy(&self) -> Box<dyn Policy> {
        match self.decides {
            Decides::Adaptive(adaptive) => adaptive.policy(),
            Decides::Fixed(config) => Box::new(Fixed::new(config)),
        }
    }

    /// Fetches `files` over `link`.
    pub fn run(&self, link: &LinkSpec, files: &FileList, seed: u64) -> Ending {
        let mut scenario = Scenario::new(link, self.origin, files, seed);
        if let Decides::Fixed(config) = self.decides {
            // As the command line of the client says.
            let connections = config.concurrency.saturating_mul(config.parallelism);
            scenario.engine.limits = UserLimits {
                max_streams_per_file: Some(config.parallelism),
                max_connections_per_origin: connections,
                max_connections: connections,
                ..scenario.engine.limits
            };
        }
        scenario.run(self.policy())
    }
}
