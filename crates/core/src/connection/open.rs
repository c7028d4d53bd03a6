//! Opens one HTTP connection: connector, proxy, TLS, HTTP handshake.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio_rustls::TlsConnector;

use super::config::{HttpConfig, ProtocolChoice};
use super::connector::Connector;
use super::http1::{Duplex, Http1, Http1Body};
use super::origin::{Origin, Scheme};
use super::proxy::{self, Route, Router};
use super::socks;
use super::telemetry::{Protocol, Telemetry};
use super::tls;
use super::wire::Wire;
use crate::{Error, ErrorKind, Result};

/// Most bytes that TLS takes from the socket at once: rustls by itself reads 4 KiB a system call.
const TLS_READ_BUFFER: usize = 64 * 1024;
/// What one HTTP/2 stream may have in flight: the bandwidth-delay product of 1 Gbit/s at 33 ms.
const HTTP2_STREAM_WINDOW: u32 = 4 * 1024 * 1024;
/// What all streams of a connection may have in flight: eight full ones, so that an idle reader of
/// one does not starve the others.
const HTTP2_CONNECTION_WINDOW: u32 = 32 * 1024 * 1024;
/// Largest frame a server may send. Each frame costs a fixed effort, and 16 KiB frames make HTTP/2
/// cost a multiple of HTTP/1.1; servers that choose larger frames save it.
const HTTP2_FRAME: u32 = 256 * 1024;
/// Streams that are assumed to be allowed until the server says so: the least that RFC 9113,
/// section 6.5.2 recommends.
const HTTP2_INITIAL_STREAMS: usize = 100;

/// The request body: none.
pub(super) type NoBody = Empty<Bytes>;

/// Sends requests over one connection.
pub(super) enum Sender {
    Http1(Rc<Http1>),
    Http2(http2::SendRequest<NoBody>),
}

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendFailure {
    #[error(transparent)]
    Http1(#[from] io::Error),
    #[error(transparent)]
    Http2(#[from] hyper::Error),
}

/// The body of a response.
pub(super) enum Body {
    Http1(Http1Body),
    Http2(Incoming),
}

pub(super) type Sent = std::result::Result<(Response<()>, Body), SendFailure>;

impl Sender {
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_ready(),
            Self::Http2(sender) => sender.is_ready(),
        }
    }

    pub(super) fn send(&mut self, request: Request<NoBody>) -> LocalBoxFuture<'static, Sent> {
        match self {
            Self::Http1(connection) => {
                let sent = connection.send(request);
                Box::pin(async move {
                    let (head, body) = sent.await?;
                    Ok((head, Body::Http1(body)))
                })
            }
            Self::Http2(sender) => {
                let sent = sender.send_request(request);
                Box::pin(async move {
                    let (head, body) = sent.await?.into_parts();
                    Ok((Response::from_parts(head, ()), Body::Http2(body)))
                })
            }
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // hyper ends a connection without senders by itself.
        if let Self::Http1(connection) = self {
            connection.close();
        }
    }
}

/// A connection that is ready for requests.
pub(super) struct Established {
    pub(super) protocol: Protocol,
    pub(super) sender: Sender,
    /// How many requests it takes at a time, kept up to date by `driver`.
    pub(super) capacity: Rc<Cell<usize>>,
    /// Must be polled for anything to happen; ends with the connection.
    pub(super) driver: LocalBoxFuture<'static, ()>,
    pub(super) rtt: Option<Duration>,
    pub(super) handshake: Duration,
}

/// Opens connections.
pub(super) struct Opener {
    connector: Arc<dyn Connector>,
    config: Rc<HttpConfig>,
    router: Router,
    tls: OnceCell<Arc<ClientConfig>>,
    telemetry: Rc<Telemetry>,
}

impl Opener {
    /// # Errors
    /// `Usage` for TLS files and proxies that cannot be used.
    pub(super) fn new(
        connector: Arc<dyn Connector>,
        config: Rc<HttpConfig>,
        telemetry: Rc<Telemetry>,
    ) -> Result<Self> {
        let router = Router::new(&config.proxies)?;
        let opener = Self { connector, config, router, tls: OnceCell::new(), telemetry };
        // Loading the platform's authorities takes time that a run over http need not spend; a file
        // that the user named is checked before anything else happens.
        if opener.config.tls.extra_ca.is_some() || opener.config.tls.client_certificate.is_some() {
            opener.tls_config()?;
        }
        Ok(opener)
    }

    pub(super) fn telemetry(&self) -> &Rc<Telemetry> {
        &self.telemetry
    }

    pub(super) fn route(&self, origin: &Origin) -> Route {
        self.router.route(origin)
    }

    /// Whether requests to `origin` are sent to an HTTP proxy that forwards them. Everything that is
    /// not plain HTTP/1.1 goes through a tunnel instead.
    pub(super) fn is_forwarded(&self, origin: &Origin, route: &Route) -> bool {
        matches!(route, Route::Http { .. })
            && origin.scheme == Scheme::Http
            && self.config.protocol != ProtocolChoice::Http2PriorKnowledge
    }

    /// Opens a connection to `origin`.
    pub(super) async fn open(&self, origin: &Origin, route: &Route) -> Result<Established> {
        let limit = self.config.connect_timeout;
        match tokio::time::timeout(limit, self.open_untimed(origin, route)).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(
                ErrorKind::Timeout,
                format!("{origin}: no connection within {} s", limit.as_secs_f64()),
            )),
        }
    }

    async fn open_untimed(&self, origin: &Origin, route: &Route) -> Result<Established> {
        let start = Instant::now();
        let (wire, rtt) = self.reach(origin, route).await?;
        let (protocol, sender, capacity, driver) = match origin.scheme {
            Scheme::Https => self.over_tls(wire, origin).await?,
            Scheme::Http if self.config.protocol == ProtocolChoice::Http2PriorKnowledge => {
                http2(wire, origin).await?
            }
            Scheme::Http => http1(wire),
        };
        Ok(Established { protocol, sender, capacity, driver, rtt, handshake: start.elapsed() })
    }

    /// Opens a byte stream to `origin`, or to the proxy that forwards.
    async fn reach(&self, origin: &Origin, route: &Route) -> Result<(Wire, Option<Duration>)> {
        let connected = match route {
            Route::Direct => self.connector.connect(&origin.host, origin.port).await?,
            Route::Http { host, port, .. } | Route::Socks5 { host, port, .. } => self
                .connector
                .connect(host, *port)
                .await
                .map_err(|error| error.prefixed(&format!("{origin}: proxy")))?,
        };
        let rtt = connected.rtt;
        let mut wire = Wire::new(connected.io, rtt, origin.clone(), Rc::clone(&self.telemetry));
        match route {
            Route::Http { authorization, .. } if !self.is_forwarded(origin, route) => {
                proxy::tunnel(&mut wire, origin, authorization.as_ref()).await?;
            }
            Route::Socks5 { user, resolves, .. } => {
                socks::connect(&mut wire, origin, user.as_ref(), *resolves).await?;
            }
            Route::Direct | Route::Http { .. } => {}
        }
        Ok((wire, rtt))
    }

    async fn over_tls(&self, wire: Wire, origin: &Origin) -> Result<Handshaken> {
        let name = ServerName::try_from(origin.host.to_string()).map_err(|error| {
            let message = format!("{origin}: the host is no name that a certificate can have");
            Error::new(ErrorKind::Tls, message).with_source(error)
        })?;
        let stream = TlsConnector::from(self.tls_config()?)
            .connect(name, BufReader::with_capacity(TLS_READ_BUFFER, wire))
            .await
            .map_err(|error| tls::handshake_failure(origin, error))?;
        let picked_http2 = stream.get_ref().1.alpn_protocol() == Some(tls::ALPN_HTTP2);
        match self.config.protocol {
            ProtocolChoice::Http2 if !picked_http2 => {
                let message = format!("{origin}: the server does not offer HTTP/2");
                Err(Error::new(ErrorKind::Tls, message))
            }
            ProtocolChoice::Http2PriorKnowledge => http2(stream, origin).await,
            _ if picked_http2 => http2(stream, origin).await,
            _ => Ok(http1(stream)),
        }
    }

    fn tls_config(&self) -> Result<Arc<ClientConfig>> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let config = tls::client_config(&self.config.tls, self.config.protocol)?;
        Ok(Arc::clone(self.tls.get_or_init(|| config)))
    }
}

type Handshaken = (Protocol, Sender, Rc<Cell<usize>>, LocalBoxFuture<'static, ()>);

fn http1(stream: impl Duplex + 'static) -> Handshaken {
    let connection = Rc::new(Http1::new(stream));
    let watched = Rc::clone(&connection);
    let driver = Box::pin(poll_fn(move |cx| watched.poll_watch(cx)));
    (Protocol::Http11, Sender::Http1(connection), Rc::new(Cell::new(1)), driver)
}

async fn http2<S>(stream: S, origin: &Origin) -> Result<Handshaken>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (sender, mut connection) = http2::Builder::new(LocalExecutor)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .max_frame_size(HTTP2_FRAME)
        .initial_max_send_streams(HTTP2_INITIAL_STREAMS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| handshake_failure(origin, error))?;
    let capacity = Rc::new(Cell::new(HTTP2_INITIAL_STREAMS));
    let known = Rc::clone(&capacity);
    let driver = Box::pin(async move {
        let ended = poll_fn(|cx| {
            known.set(connection.current_max_send_streams());
            Pin::new(&mut connection).poll(cx)
        });
        if let Err(error) = ended.await {
            tracing::debug!(%error, "HTTP/2 connection ended");
        }
    });
    Ok((Protocol::Http2, Sender::Http2(sender), capacity, driver))
}

fn handshake_failure(origin: &Origin, error: hyper::Error) -> Error {
    let message = format!("{origin}: the connection ended during the HTTP handshake");
    Error::new(ErrorKind::Connect, message).with_source(error)
}

/// Runs hyper's HTTP/2 tasks on this thread.
#[derive(Clone)]
struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future<Output: 'static> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
