//! Builds a client.

use std::path::PathBuf;
use std::sync::Arc;

use pelton_algos::energy::EnergyModel;
use pelton_algos::policy::{Eht, Policy};
use pelton_power::{Choice, ModelledConfig, NetworkEnergyModel, PowerMeter};

use super::Client;
use crate::Result;
use crate::catalog::FileSpec;
use crate::connection::{ClientRate, Connector, Http, HttpConfig, Origin, TcpConnector};
use crate::engine::{Engine, EngineConfig};
use crate::metering::Metering;
use crate::origins::OriginMemory;
use crate::source::Reader;

type PolicyMaker = Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>;
type MeterMaker = Arc<dyn Fn() -> Metering + Send + Sync>;
type ModelMaker = Arc<dyn Fn() -> Box<dyn EnergyModel + Send> + Send + Sync>;

/// What a client was built with.
pub(super) struct Settings {
    pub(super) policy: PolicyMaker,
    pub(super) meter: MeterMaker,
    pub(super) model: ModelMaker,
    pub(super) connector: Arc<dyn Connector>,
    pub(super) http: HttpConfig,
    pub(super) engine: EngineConfig,
    pub(super) origins: Option<OriginMemory>,
    pub(super) rate: Arc<ClientRate>,
}

impl Settings {
    /// The engine of a run of `files` with `config`.
    pub(super) fn engine(&self, config: EngineConfig, files: &[FileSpec]) -> Engine {
        let known = self.origins.as_ref().map(OriginMemory::known).unwrap_or_default();
        let mut origins = files.iter().filter_map(|file| Origin::of(&file.url).ok());
        let first = origins.find_map(|origin| known.get(&origin));
        let config = config.starting_at(&first.copied().unwrap_or_default());
        Engine::new(config, (self.policy)()).with_energy_model((self.model)()).with_known(known)
    }

    pub(super) fn reader<'a>(&self, http: &'a Http) -> Reader<'a> {
        let EngineConfig { retry, stall_timeout, verify, .. } = self.engine;
        Reader { http, retry, stall_timeout, verify }
    }
}

/// Builds a [`Client`].
pub struct ClientBuilder {
    policy: PolicyMaker,
    meter: MeterMaker,
    model: ModelMaker,
    connector: Option<Arc<dyn Connector>>,
    http: HttpConfig,
    engine: EngineConfig,
    origins: Option<OriginMemory>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        let power = ModelledConfig::default();
        Self {
            policy: Arc::new(|| Box::new(Eht::default())),
            meter: Arc::new({
                let power = power.clone();
                move || Metering::new(pelton_power::auto(power.clone()))
            }),
            model: Arc::new(move || Box::new(NetworkEnergyModel::new(power.clone()))),
            connector: None,
            http: HttpConfig::default(),
            engine: EngineConfig::default(),
            origins: None,
        }
    }
}

impl ClientBuilder {
    /// The scheduling policy; each download starts with a clone of it. Default: EHT.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy + Clone + Sync + 'static) -> Self {
        self.policy = Arc::new(move || Box::new(policy.clone()));
        self
    }

    /// The power meter; each download starts with a clone of it. Default: the best that is
    /// readable, else a model.
    #[must_use]
    pub fn meter(self, meter: impl PowerMeter + Clone + Sync + 'static) -> Self {
        self.meter_from(move || {
            let meter: Box<dyn PowerMeter> = Box::new(meter.clone());
            let reason = meter.source().to_string();
            Choice { meter, reason, stand_in: None }
        })
    }

    /// Each download asks `choose` for its meter, as [`pelton_power::auto`] is one.
    #[must_use]
    pub fn meter_from(mut self, choose: impl Fn() -> Choice + Send + Sync + 'static) -> Self {
        self.meter = Arc::new(move || Metering::new(choose()));
        self
    }

    /// No meter: no joules are reported, and EHT decides by its model alone.
    #[must_use]
    pub fn no_meter(mut self) -> Self {
        self.meter = Arc::new(|| Metering::none("none: no meter was asked for"));
        self
    }

    /// What policies predict joules with. Default: the network model of pelton-power.
    #[must_use]
    pub fn energy_model(mut self, model: impl EnergyModel + Clone + Send + Sync + 'static) -> Self {
        self.model = Arc::new(move || Box::new(model.clone()));
        self
    }

    /// Opens byte streams. Default: TCP.
    #[must_use]
    pub fn connector(mut self, connector: Arc<dyn Connector>) -> Self {
        self.connector = Some(connector);
        self
    }

    /// HTTP settings: headers, credentials, TLS, proxies, redirects.
    #[must_use]
    pub fn http(mut self, http: HttpConfig) -> Self {
        self.http = http;
        self
    }

    /// Ceilings, link hints, retries and time-outs.
    #[must_use]
    pub const fn engine(mut self, engine: EngineConfig) -> Self {
        self.engine = engine;
        self
    }

    /// Remembers in the file at `path` what downloads learn of origins (how many connections they bear,
    /// round-trip time, bandwidth), and starts from what is there. It holds scheme, host and port, and
    /// nothing else of URLs; it is made when it is missing, and clients of several processes may share
    /// it. Default: nothing is remembered.
    #[must_use]
    pub fn origin_memory(mut self, path: impl Into<PathBuf>) -> Self {
        self.origins = Some(OriginMemory(path.into()));
        self
    }

    /// The client.
    ///
    /// # Errors
    /// `Usage`: a proxy's URL that is none. Files that settings name are read when a download starts.
    pub fn build(self) -> Result<Client> {
        self.http.proxies.check()?;
        let connector = self.connector.unwrap_or_else(|| Arc::new(TcpConnector::default()));
        Ok(Client {
            settings: Arc::new(Settings {
                policy: self.policy,
                meter: self.meter,
                model: self.model,
                connector,
                http: self.http,
                engine: self.engine,
                origins: self.origins,
                rate: Arc::default(),
            }),
        })
    }
}
