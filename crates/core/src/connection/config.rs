//! What the HTTP client is told once for a run.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::cookies::Cookies;
use super::netrc::Netrc;
use super::proxy::Proxies;

/// curl's `--max-redirs` default.
const MAX_REDIRECTS: usize = 50;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Which HTTP version is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtocolChoice {
    /// Over TLS what the server picks of HTTP/2 and HTTP/1.1 (ALPN, RFC 7301), else HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// Over TLS HTTP/2 only: a server without it is an error. In cleartext HTTP/1.1.
    Http2,
    /// HTTP/2 without asking, in cleartext too (RFC 9113, section 3.3).
    Http2PriorKnowledge,
}

/// Whom to trust and as whom to appear.
#[derive(Debug, Clone, Default)]
pub struct TlsOptions {
    /// PEM file with authorities that are trusted besides the platform's.
    pub extra_ca: Option<PathBuf>,
    /// Accept every certificate.
    pub insecure: bool,
    /// PEM files with the client's certificate chain and its private key; they may be one file.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

/// What the HTTP client is told once for a run.
#[derive(Clone)]
pub struct HttpConfig {
    /// Value of `User-Agent`.
    pub user_agent: HeaderValue,
    /// Sent with every request. `Authorization` and `Cookie` stay with the origin of the requested
    /// URL when a redirect leads elsewhere.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// User name and password, for Basic authentication (RFC 7617) at the origin of each requested
    /// URL.
    pub user: Option<(String, String)>,
    /// User names and passwords by host, where neither the URL nor `user` gives any.
    pub netrc: Netrc,
    /// Cookies, each for its own domain. Those that redirects set join them for a run, each for its host alone.
    pub cookies: Cookies,
    /// Which proxies are used.
    pub proxies: Proxies,
    /// TLS.
    pub tls: TlsOptions,
    /// Which HTTP version is spoken.
    pub protocol: ProtocolChoice,
    /// How many redirects one request follows.
    pub max_redirects: usize,
    /// Follow redirects from https to http.
    pub allow_downgrade: bool,
    /// How long opening a connection may take: name resolution, TCP, proxy, TLS together.
    pub connect_timeout: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            user_agent: HeaderValue::from_static(concat!("pelton/", env!("CARGO_PKG_VERSION"))),
            headers: Vec::new(),
            user: None,
            netrc: Netrc::default(),
            cookies: Cookies::default(),
            proxies: Proxies::default(),
            tls: TlsOptions::default(),
            protocol: ProtocolChoice::default(),
            max_redirects: MAX_REDIRECTS,
            allow_downgrade: false,
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}
