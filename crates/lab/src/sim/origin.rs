//! What a simulated server is like.

use std::time::Duration;

use pelton_algos::units::BitRate;
use pelton_core::connection::Protocol;

/// A server and its manners.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OriginConfig {
    /// What it speaks.
    pub protocol: Protocol,
    /// Over TLS 1.3: one more round trip before the first request.
    pub tls: bool,
    /// From a request to the first byte of its response.
    pub latency: Duration,
    /// What it sends over all connections at most.
    pub rate: Option<BitRate>,
    /// What it sends over one connection at most.
    pub connection_rate: Option<BitRate>,
    /// What it sends over the connection of this number, in the order in which they were opened, from
    /// zero: a server behind it that crawls.
    pub crawling_connection: Option<(u32, BitRate)>,
    /// When it refuses requests.
    pub overload: Option<Overload>,
}

/// A server that refuses what is too much for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overload {
    /// Requests under way that it bears; further ones are answered with 429 or 503, which pelton
    /// takes alike.
    pub bears: u32,
    /// What it says in `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl OriginConfig {
    /// A server that answers at once and sets no limits.
    pub const fn plain(protocol: Protocol, tls: bool) -> Self {
        Self {
            protocol,
            tls,
            latency: Duration::ZERO,
            rate: None,
            connection_rate: None,
            crawling_connection: None,
            overload: None,
        }
    }

    /// The name of what it speaks: `h1`, `h2`, `h1-tls` or `h2-tls`.
    pub const fn name(&self) -> &'static str {
        match (self.protocol, self.tls) {
            (Protocol::Http11, false) => "h1",
            (Protocol::Http11, true) => "h1-tls",
            (Protocol::Http2, false) => "h2",
            (Protocol::Http2, true) => "h2-tls",
        }
    }
}

/// Bytes that messages take on a connection, TLS records included. Rounded from what nginx and
/// pelton exchange.
pub(super) mod sizes {
    /// `ClientHello`: RFC 8446 section 4.1.2 with a key share, names and ALPN.
    pub(in crate::sim) const CLIENT_HELLO: u64 = 320;
    /// `ServerHello` to Finished with a chain of two certificates.
    pub(in crate::sim) const SERVER_HANDSHAKE: u64 = 3_200;
    /// A GET over HTTP/1.1, and the client's Finished where it goes along.
    pub(in crate::sim) const REQUEST: u64 = 220;
    /// A compressed one over HTTP/2 (RFC 7541).
    pub(in crate::sim) const REQUEST_HTTP2: u64 = 70;
    /// The head of a response over HTTP/1.1.
    pub(in crate::sim) const HEAD: u64 = 280;
    /// The same over HTTP/2.
    pub(in crate::sim) const HEAD_HTTP2: u64 = 110;
    /// The page that says no: nginx's default one.
    pub(in crate::sim) const REFUSAL_BODY: u64 = 190;
}
