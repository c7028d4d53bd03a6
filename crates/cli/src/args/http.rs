//! The flags about HTTP. Their names and meanings are curl's.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use http::{HeaderName, HeaderValue};
use pelton_core::connection::ConnectTo;

use crate::values;

#[derive(Debug, Args)]
#[command(next_help_heading = "HTTP")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that people type")]
pub(crate) struct HttpArgs {
    /// Send `NAME: VALUE` with every request; may be given several times.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = values::header)]
    pub(crate) header: Vec<(HeaderName, HeaderValue)>,
    /// Log in with Basic authentication.
    #[arg(short, long, value_name = "USER:PASSWORD", value_parser = values::user)]
    pub(crate) user: Option<(String, String)>,
    /// Send this as `User-Agent`.
    #[arg(short = 'A', long, value_name = "NAME", value_parser = values::header_value)]
    pub(crate) user_agent: Option<HeaderValue>,
    /// Send the cookies of FILE, which has the Netscape format.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cookie_file: Option<PathBuf>,
    /// Take user names and passwords from FILE, or from `~/.netrc` without `=FILE`.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(value_hint = ValueHint::FilePath)]
    #[expect(clippy::option_option, reason = "clap's form of a flag whose value may be missing")]
    pub(crate) netrc: Option<Option<PathBuf>>,
    /// Use this proxy, an http, socks5 or socks5h URL, instead of `http_proxy` and the like.
    ///
    /// An empty value means no proxy.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) proxy: Option<String>,
    /// Hosts to reach without a proxy, separated by commas, instead of `no_proxy`; `*` = all.
    #[arg(long, value_name = "HOSTS")]
    pub(crate) noproxy: Option<String>,
    /// Trust the authorities in FILE (PEM) too.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Option<PathBuf>,
    /// Accept every certificate: whoever sits between can read and change everything.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Show this client certificate (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of `--cert` (PEM), if it is in another file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Use IPv4 only.
    #[arg(short = '4', long)]
    pub(crate) ipv4: bool,
    /// Use IPv6 only.
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Speak HTTP/1.1 only.
    #[arg(long = "http1.1")]
    pub(crate) http1: bool,
    /// Speak HTTP/2 over TLS; in cleartext HTTP/1.1.
    #[arg(long)]
    pub(crate) http2: bool,
    /// Speak HTTP/2 without asking, in cleartext too.
    #[arg(long)]
    pub(crate) http2_prior_knowledge: bool,
    /// Connect to ADDR:PORT2 for requests to HOST:PORT; may be given several times.
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT2", value_parser = values::connect_to)]
    pub(crate) connect_to: Vec<ConnectTo>,
    /// Follow redirects from https to http: whoever sits between can read and change everything.
    #[arg(long)]
    pub(crate) allow_downgrade: bool,
    /// Follow at most N redirects of one request.
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) max_redirs: usize,
}
