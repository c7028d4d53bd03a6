//! Connections: an own connector, HTTP/1.1 of its own, and HTTP/2 over the frames of `h2`.
//!
//! Everything here runs on one thread, inside a [`tokio::task::LocalSet`].

mod client;
mod config;
mod connector;
mod cookies;
mod credentials;
mod exchange;
mod failure;
mod further;
mod handshakes;
mod happy_eyeballs;
mod http1;
mod http2;
mod memory;
mod netrc;
mod open;
mod origin;
mod pace;
mod pool;
mod proxy;
mod redirect;
mod response;
mod scratch;
mod socks;
mod tcp;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tcp_info;
mod telemetry;
#[cfg(test)]
mod tests;
mod tls;
mod tls_stream;
mod wire;

#[cfg(fuzzing)]
pub(crate) use http1::fuzz_head;

pub use client::{GetRequest, Http};
pub use config::{HttpConfig, ProtocolChoice, TlsOptions};
pub use connector::{Connected, Connector, Io, Segments};
pub use cookies::Cookies;
pub(crate) use further::Further;
pub use netrc::Netrc;
pub(crate) use origin::without_userinfo;
pub use origin::{Origin, Scheme, shown, shown_text};
pub(crate) use pace::ClientRate;
pub use proxy::Proxies;
pub(crate) use proxy::through;
pub use response::GetResponse;
pub(crate) use scratch::Piece;
pub use tcp::{AddressFamily, ConnectTo, TcpConnector};
pub use telemetry::{ConnectionEvent, ConnectionId, Counters, Observer, Protocol};
