//! Opens one HTTP connection: connector, proxy, TLS, HTTP handshake.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{Request, Response};
use pelton_algos::memory::Http2Buffers;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

use super::config::{HttpConfig, ProtocolChoice};
use super::connector::{Connected, Connector};
use super::handshakes::Handshakes;
use super::http1::{Duplex, Http1, Http1Body};
use super::http2::{self, Http2, Http2Body};
use super::memory::{Memory, Room};
use super::origin::{Origin, Scheme};
use super::pace::Pace;
use super::proxy::{self, Route, Router, through};
use super::socks;
use super::telemetry::{ConnectionEvent, Protocol, Telemetry};
use super::tls;
use super::tls_stream::TlsStream;
use super::wire::Wire;
use crate::{Error, ErrorKind, Result};

/// Sends requests over one connection.
pub(super) enum Sender {
    Http1(Rc<Http1>),
    Http2(Http2),
}

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendFailure {
    #[error(transparent)]
    Http1(#[from] io::Error),
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

/// The body of a response.
pub(super) enum Body {
    Http1(Http1Body),
    Http2(Http2Body),
    /// It was read already.
    Read(Bytes),
}

pub(super) type Sent = std::result::Result<(Response<()>, Body), SendFailure>;

impl Sender {
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_closed(),
            Self::Http2(connection) => connection.is_closed(),
        }
    }

    /// Sends a request behind that whose answer is being read, where the protocol has an order and
    /// nothing else is to be answered.
    pub(super) fn send_behind(
        &self,
        request: Request<()>,
    ) -> Option<LocalBoxFuture<'static, Sent>> {
        match self {
            Self::Http1(connection) if connection.may_be_followed() => {
                let sent = connection.send_behind(request);
                Some(Box::pin(async move {
                    let (head, body) = sent.await?;
                    Ok(begun(head, Body::Http1(body)).await)
                }))
            }
            _ => None,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_ready(),
            Self::Http2(connection) => !connection.is_closed(),
        }
    }

    /// Whether nothing has come that was not asked for. HTTP/2 tells whose it is.
    pub(super) fn is_quiet(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_quiet(),
            Self::Http2(_) => true,
        }
    }

    /// A request will be sent, or [`ends`](Self::end_wait) the wait for it: where requests follow each other, those of
    /// one moment go out in one piece.
    pub(super) fn begin_wait(&self) {
        if let Self::Http1(connection) = self {
            connection.begin_wait();
        }
    }

    /// The request that was waited for is there, or will not come.
    pub(super) fn end_wait(&self) {
        if let Self::Http1(connection) = self {
            connection.end_wait();
        }
    }

    pub(super) fn send(&self, request: Request<()>) -> LocalBoxFuture<'static, Sent> {
        match self {
            Self::Http1(connection) => {
                let sent = connection.send(request);
                Box::pin(async move {
                    let (head, body) = sent.await?;
                    Ok(begun(head, Body::Http1(body)).await)
                })
            }
            Self::Http2(connection) => {
                let sent = connection.send(request);
                Box::pin(async move {
                    let (head, body) = sent.await?;
                    Ok(begun(head, Body::Http2(body)).await)
                })
            }
        }
    }
}

/// An answer is there when what was asked for begins to come: some servers send its head first and then think.
async fn begun(head: Response<()>, mut body: Body) -> (Response<()>, Body) {
    if head.status().is_success() {
        match &mut body {
            Body::Http1(body) => body.begin().await,
            Body::Http2(body) => body.begin().await,
            Body::Read(_) => {}
        }
    }
    (head, body)
}

impl Drop for Sender {
    fn drop(&mut self) {
        // One of HTTP/2 ends by itself.
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
    /// Bytes that are still to come of what was asked for over it, as those who read them say.
    pub(super) to_come: Rc<Cell<u64>>,
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
    /// The same, and HTTP/1.1 is all that is offered.
    tls_http1: OnceCell<Arc<ClientConfig>>,
    telemetry: Rc<Telemetry>,
    pace: Pace,
    memory: Memory,
    handshakes: Handshakes,
}

impl Opener {
    /// # Errors
    /// `Usage` for TLS files and proxies that cannot be used.
    pub(super) fn new(
        connector: Arc<dyn Connector>,
        config: Rc<HttpConfig>,
        telemetry: Rc<Telemetry>,
        pace: Pace,
    ) -> Result<Self> {
        let router = Router::new(&config.proxies)?;
        let (tls, tls_http1, memory, handshakes) = Default::default();
        let opener =
            Self { connector, config, router, tls, tls_http1, telemetry, pace, memory, handshakes };
        // Loading the platform's authorities takes time that a run over http need not spend; a file
        // that the user named is checked before anything else happens.
        if opener.config.tls.extra_ca.is_some() || opener.config.tls.client_certificate.is_some() {
            opener.tls_config(false)?;
        }
        Ok(opener)
    }

    pub(super) fn telemetry(&self) -> &Rc<Telemetry> {
        &self.telemetry
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
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

    /// Opens a connection to `origin`, which holds no more than there is `room` for, and speaks HTTP/1.1
    /// where it `wants_http1`. `None` where it `may_begin_tls` no more when it has reached its host.
    pub(super) async fn open(
        &self,
        origin: &Origin,
        route: &Route,
        room: &Room,
        wants_http1: bool,
        may_begin_tls: impl AsyncFnOnce() -> bool,
    ) -> Result<Option<Established>> {
        let limit = self.config.connect_timeout;
        let opened = self.open_untimed(origin, route, room, wants_http1, may_begin_tls);
        tokio::time::timeout(limit, opened).await.unwrap_or_else(|_| {
            let (limit, through) = (limit.as_secs_f64(), through(route.proxy().as_deref()));
            let message = format!("{origin}: no connection within {limit} s{through}");
            Err(Error::new(ErrorKind::Timeout, message))
        })
    }

    async fn open_untimed(
        &self,
        origin: &Origin,
        route: &Route,
        room: &Room,
        wants_http1: bool,
        may_begin_tls: impl AsyncFnOnce() -> bool,
    ) -> Result<Option<Established>> {
        let start = Instant::now();
        let (wire, rtt) = self.reach(origin, route).await?;
        if let Some(rtt) = rtt {
            self.telemetry.tell(ConnectionEvent::Reached { origin: origin.clone(), rtt });
        }
        let (is_open, to_come) = (wire.is_open(), wire.to_come());
        let (protocol, sender, capacity, driver) = match origin.scheme {
            Scheme::Https => {
                if !may_begin_tls().await {
                    return Ok(None);
                }
                let tls = self.tls_config(wants_http1)?;
                self.over_tls(tls, wire, origin, route, rtt, room).await?
            }
            Scheme::Http if self.config.protocol == ProtocolChoice::Http2PriorKnowledge => {
                let buffers = room.http2();
                // By itself HTTP/2 makes a system call for 8 KiB.
                let buffered = BufReader::with_capacity(buffers.read as usize, wire);
                let limit = self.pace.window(rtt);
                http2(buffered, origin, end_to_end(route, rtt), buffers, limit).await?
            }
            Scheme::Http => http1(wire),
        };
        is_open.set(true);
        let handshake = start.elapsed();
        Ok(Some(Established { protocol, sender, capacity, to_come, driver, rtt, handshake }))
    }

    /// Opens a byte stream to `origin`, or to the proxy that forwards.
    async fn reach(&self, origin: &Origin, route: &Route) -> Result<(Wire, Option<Duration>)> {
        let connected = match route {
            Route::Direct => {
                let (host, port) = (&origin.host, origin.port);
                self.handshakes.with(host, port, || self.connect(host, port)).await?
            }
            Route::Http { host, port, .. } | Route::Socks5 { host, port, .. } => self
                .handshakes
                .with(host, *port, || self.connector.connect(host, *port))
                .await
                .map_err(|error| error.prefixed(&format!("{origin}: proxy")))?,
        };
        let Connected { io, rtt } = connected;
        let mut wire = Wire::new(io, rtt, origin.clone(), Rc::clone(&self.telemetry));
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

    /// Opens a byte stream whose receive buffer a limit on the rate keeps small, where that holds
    /// nothing up.
    async fn connect(&self, host: &str, port: u16) -> Result<Connected> {
        if let Some(buffer) = self.pace.buffer() {
            let connected = self.connector.connect_narrow(host, port, buffer).await?;
            self.pace.on_rtt(connected.rtt);
            if self.pace.buffer() == Some(buffer) {
                return Ok(connected);
            }
            // The path is longer than those before, or the limit another one: this buffer can't grow.
        }
        self.connector.connect(host, port).await
    }

    async fn over_tls(
        &self,
        tls: Arc<ClientConfig>,
        wire: Wire,
        origin: &Origin,
        route: &Route,
        rtt: Option<Duration>,
        room: &Room,
    ) -> Result<Handshaken> {
        let name = ServerName::try_from(origin.host.to_string()).map_err(|error| {
            let message = format!("{origin}: the host is no name that a certificate can have");
            Error::new(ErrorKind::Tls, message).with_source(error)
        })?;
        let stream = TlsStream::connect(tls, name, wire)
            .await
            .map_err(|error| tls::handshake_failure(origin, error))?;
        let (window, rtt) = (self.pace.window(rtt), end_to_end(route, rtt));
        let picked_http2 = stream.alpn_protocol() == Some(tls::ALPN_HTTP2);
        match self.config.protocol {
            ProtocolChoice::Http2 if !picked_http2 => {
                let message = format!("{origin}: the server does not offer HTTP/2");
                Err(Error::new(ErrorKind::Tls, message))
            }
            ProtocolChoice::Http2PriorKnowledge => {
                http2(stream, origin, rtt, room.http2(), window).await
            }
            _ if picked_http2 => http2(stream, origin, rtt, room.http2(), window).await,
            _ => Ok(http1(stream)),
        }
    }

    fn tls_config(&self, wants_http1: bool) -> Result<Arc<ClientConfig>> {
        if wants_http1 {
            let config = self.tls_config(false)?;
            return Ok(Arc::clone(self.tls_http1.get_or_init(|| tls::for_http1(&config))));
        }
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

/// The round trip to the origin, where opening the byte stream showed it.
fn end_to_end(route: &Route, rtt: Option<Duration>) -> Option<Duration> {
    rtt.filter(|_| matches!(route, Route::Direct))
}

async fn http2<S>(
    stream: S,
    origin: &Origin,
    rtt: Option<Duration>,
    buffers: Http2Buffers,
    window: Option<u64>,
) -> Result<Handshaken>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let connected = http2::connect(stream, rtt, buffers, window).await;
    let (sender, capacity, driver) = connected.map_err(|error| handshake_failure(origin, error))?;
    Ok((Protocol::Http2, Sender::Http2(sender), capacity, Box::pin(driver)))
}

fn handshake_failure(origin: &Origin, error: h2::Error) -> Error {
    let message = format!("{origin}: the connection ended during the HTTP handshake");
    Error::new(ErrorKind::Connect, message).with_source(error)
}
