//! An HTTP server on the loopback: HTTP/1.1 and HTTP/2 (by prior knowledge or ALPN), with knobs
//! for everything that servers do wrong.
//!
//! ```
//! use pelton_lab::content::VirtualFile;
//! use pelton_lab::origin::{Origin, OriginConfig};
//!
//! let origin = Origin::start(OriginConfig {
//!     files: vec![VirtualFile::new("/data/a.bin", 1_000_000, 1)],
//!     ..OriginConfig::default()
//! })?;
//! assert!(origin.url("/data/a.bin").starts_with("http://127.0.0.1:"));
//! assert_eq!(origin.requests(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```

mod behaviour;
mod body;
pub mod hostile;
pub mod hostile2;
mod listing;
mod loopback;
mod ranges;
mod respond;
pub mod scripted;
mod server;
mod state;
mod tls;
pub mod trickle;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Method, StatusCode, Version};
use percent_encoding::utf8_percent_encode;

pub use behaviour::{OriginBehaviour, Storm};

use crate::content::VirtualFile;
use loopback::Loopback;
use server::Server;
use state::State;

/// What an origin serves, and how.
#[derive(Debug, Clone)]
pub struct OriginConfig {
    /// The files. Their directories have listings.
    pub files: Vec<VirtualFile>,
    /// How every path behaves that `behaviour_by_path` does not name.
    pub behaviour: OriginBehaviour,
    /// How these paths (decoded, with their leading `/`) behave instead. They need not be files.
    pub behaviour_by_path: Vec<(String, OriginBehaviour)>,
    /// Speak TLS, with a fresh certificate.
    pub tls: bool,
    /// Speak HTTP/2 to those who ask for it: by its preface, and with TLS by ALPN.
    pub http2: bool,
    /// Connections open at once; one more is reset as soon as it is accepted.
    pub max_connections: Option<u64>,
}

impl Default for OriginConfig {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            behaviour: OriginBehaviour::default(),
            behaviour_by_path: Vec::new(),
            tls: false,
            http2: true,
            max_connections: None,
        }
    }
}

/// A request and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The request's method.
    pub method: Method,
    /// The request's path, decoded.
    pub path: String,
    /// The request's protocol version.
    pub version: Version,
    /// The request's `Range` field.
    pub range: Option<String>,
    /// The response's status.
    pub status: StatusCode,
}

/// A running origin, on its own thread. Dropping it closes its connections and ends the thread.
pub struct Origin {
    server: Loopback,
    certificate_pem: Option<String>,
    state: Arc<State>,
}

impl Origin {
    /// Starts an origin on a free port of 127.0.0.1. Works inside and outside of a runtime.
    ///
    /// # Errors
    /// No port, thread or certificate could be had.
    pub fn start(config: OriginConfig) -> io::Result<Self> {
        let (tls, certificate_pem) = if config.tls {
            let (tls, pem) = tls::acceptor(config.http2)?;
            (Some(tls), Some(pem))
        } else {
            (None, None)
        };
        let state = Arc::new(State::new(config.files, config.behaviour, config.behaviour_by_path));
        let server = Server {
            state: Arc::clone(&state),
            tls,
            http2: config.http2,
            max_connections: config.max_connections,
        };
        let server = Loopback::start(|listener| server.run(listener))?;
        Ok(Self { server, certificate_pem, state })
    }

    /// Adds a file, or replaces the one at its path.
    pub fn put(&self, file: VirtualFile) {
        self.state.put(file);
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL of `path`, which begins with `/` and is percent-encoded here.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.certificate_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.address(), utf8_percent_encode(path, listing::PATH))
    }

    /// The certificate to trust, where it speaks TLS.
    pub fn certificate_pem(&self) -> Option<&str> {
        self.certificate_pem.as_deref()
    }

    /// Every request so far, in the order of their answers.
    pub fn log(&self) -> Vec<LogEntry> {
        self.state.entries().clone()
    }

    /// Requests answered so far.
    pub fn requests(&self) -> u64 {
        self.state.entries().len() as u64
    }

    /// Requests for `path` (decoded) answered so far.
    pub fn hits(&self, path: &str) -> u64 {
        self.state.entries().iter().filter(|entry| entry.path == path).count() as u64
    }

    /// Bytes of files handed to connections so far.
    pub fn bytes_sent(&self) -> u64 {
        self.state.sent()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.state.connections().accepted
    }

    /// The most connections that were open at once.
    pub fn peak_connections(&self) -> u64 {
        self.state.connections().peak
    }

    /// Connections reset because too many were open.
    pub fn refused_connections(&self) -> u64 {
        self.state.connections().refused
    }
}
