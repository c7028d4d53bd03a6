//! Sends GET requests and follows redirects.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::COOKIE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pelton_algos::ranges::StreamId;
use pelton_algos::units::{BitRate, Bytes};
use url::Url;

use super::config::HttpConfig;
use super::connector::Connector;
use super::cookies::Cookies;
use super::credentials;
use super::exchange::{self, Asked};
use super::memory::Page;
use super::open::Opener;
use super::origin::{Origin, shown, without_userinfo};
use super::pace::{ClientRate, Pace};
use super::pool::OriginSet;
use super::redirect::Redirects;
use super::response::GetResponse;
use super::scratch::Scratch;
use super::telemetry::{ConnectionId, Counters, Observer, Telemetry};
use crate::{Error, ErrorKind, Result};

/// Connections an origin gets until it is told otherwise: what browsers open.
const DEFAULT_LIMIT: usize = 6;
/// A GET request.
#[derive(Debug, Clone)]
pub struct GetRequest {
    /// What to get. A user name and password in it become Basic authentication.
    pub url: Url,
    /// The URL that was asked for, where `url` may be what a redirect of it led to: secrets are
    /// meant for its origin, and what it says of user and password counts there.
    pub home: Option<Url>,
    /// First and last byte, both inclusive; no last = to the end (RFC 9110, section 14.2).
    pub range: Option<(u64, Option<u64>)>,
    /// Further headers. They stay with the origin of `home`, which is `url` where it is not given, but
    /// for a few that can be no secret (`Accept`, `User-Agent` and the like).
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The range is asked for over HTTP/1.1 alone, and over HTTP/2 the whole, which can be cut short there.
    pub is_part_of_http1: bool,
    /// About so many bytes are expected, where anything tells: no other request waits behind a long answer
    /// over HTTP/1.1.
    pub expected: Option<u64>,
}

impl GetRequest {
    /// A request for the whole of `url`.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            home: None,
            range: None,
            headers: Vec::new(),
            is_part_of_http1: false,
            expected: None,
        }
    }
}

/// The HTTP client of a run. Clones share its connections. It belongs to one thread and works
/// inside a [`tokio::task::LocalSet`].
#[derive(Clone)]
pub struct Http {
    shared: Rc<Shared>,
}

struct Shared {
    config: Rc<HttpConfig>,
    opener: Rc<Opener>,
    sets: RefCell<HashMap<Origin, Rc<OriginSet>>>,
    scratch: Scratch,
    pace: Pace,
    /// Those of the configuration, and what redirects have set.
    cookies: RefCell<Cookies>,
}

impl Http {
    /// A client that opens its byte streams with `connector` and tells `observer` of connections.
    ///
    /// # Errors
    /// `Usage` for certificate files and proxies that cannot be used.
    pub fn new(
        config: HttpConfig,
        connector: Arc<dyn Connector>,
        observer: Observer,
    ) -> Result<Self> {
        Self::below(Arc::default(), config, connector, observer)
    }

    /// The same below a limit on the rate that it shares with others.
    pub(crate) fn below(
        above: Arc<ClientRate>,
        config: HttpConfig,
        connector: Arc<dyn Connector>,
        observer: Observer,
    ) -> Result<Self> {
        let config = Rc::new(config);
        let telemetry = Rc::new(Telemetry::new(observer));
        let pace = Pace::below(above);
        let opener = Opener::new(connector, Rc::clone(&config), telemetry, pace.clone())?;
        let (sets, scratch) = (RefCell::default(), Scratch::default());
        let cookies = RefCell::new(config.cookies.clone());
        let shared = Shared { config, opener: Rc::new(opener), sets, scratch, pace, cookies };
        Ok(Self { shared: Rc::new(shared) })
    }

    /// Gets a URL: waits for a connection, sends the request, follows redirects. Every status that
    /// is no redirect is returned.
    ///
    /// # Errors
    /// `Usage` for a URL that is not http or https; `Resolve`, `Connect`, `Tls`, `Timeout` while
    /// connecting; `ShortBody` and `Protocol` when no response comes; `Redirect` for circles, long
    /// chains and downgrades.
    pub async fn get(&self, request: &GetRequest) -> Result<GetResponse> {
        self.send(&Method::GET, request, &|_| ()).await
    }

    /// The same. `over` is told which connection is about to bear the request, and each further one that
    /// redirects lead to.
    pub(crate) async fn get_over(
        &self,
        request: &GetRequest,
        over: &dyn Fn(ConnectionId),
    ) -> Result<GetResponse> {
        self.send(&Method::GET, request, over).await
    }

    /// Asks for the head of a URL alone (RFC 9110, section 9.3.2), otherwise as [`get`](Self::get).
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub async fn head(&self, request: &GetRequest) -> Result<GetResponse> {
        self.send(&Method::HEAD, request, &|_| ()).await
    }

    async fn send(
        &self,
        method: &Method,
        request: &GetRequest,
        over: &dyn Fn(ConnectionId),
    ) -> Result<GetResponse> {
        let config = &self.shared.config;
        let mut url = request.url.clone();
        url.set_fragment(None);
        let mut redirects =
            Redirects::new(url.clone(), config.max_redirects, config.allow_downgrade);
        let mut waited_before = Duration::ZERO;
        loop {
            let origin = Origin::of(&url).map_err(|error| {
                if url == request.url {
                    return error;
                }
                let message = format!("{}: redirects to what is not fetched", shown(&request.url));
                Error::new(ErrorKind::Redirect, message).with_source(error)
            })?;
            let headers = credentials::headers(config, &self.cookies(), request, &url, &origin)?;
            let bare = without_userinfo(&url);
            let GetRequest { is_part_of_http1, expected, .. } = *request;
            let asked = Asked { method, url: bare, headers: &headers, is_part_of_http1, expected };
            let (choice, scratch) = (config.protocol, self.shared.scratch.clone());
            let response =
                exchange::exchange(&self.set(&origin), choice, asked, over, scratch).await;
            let mut response = response.map_err(|error| {
                if redirects.has_led() { error.behind_redirect(&origin) } else { error }
            })?;
            let has_new_cookies = response.status.is_redirection() && {
                self.take_cookies(&url, &response.headers);
                // Another request may have brought them meanwhile.
                let now = credentials::headers(config, &self.cookies(), request, &url, &origin)?;
                now.get(COOKIE) != headers.get(COOKIE)
            };
            let next = redirects.next(response.status, &response.headers, has_new_cookies)?;
            match next {
                None => {
                    response.waited_before += waited_before;
                    self.shared.opener.telemetry().answered();
                    return Ok(response);
                }
                Some(next) => {
                    waited_before += response.waited_before + response.response_time;
                    self.shared.opener.telemetry().redirected();
                    let status = response.status.as_u16();
                    tracing::debug!(url = %shown(&url), status, to = %shown(&next), "redirected");
                    response.drain().await;
                    url = next;
                }
            }
        }
    }

    /// What a redirect sets goes with later requests. Other answers set nothing: servers answer those of one session one
    /// after the other.
    fn take_cookies(&self, url: &Url, headers: &HeaderMap) {
        self.shared.cookies.borrow_mut().take(url, headers, SystemTime::now());
    }

    pub(super) fn cookies(&self) -> Ref<'_, Cookies> {
        self.shared.cookies.borrow()
    }

    /// Sets how many connections `origin` may have.
    pub fn set_limit(&self, origin: &Origin, max_connections: usize) {
        self.set(origin).set_limit(max_connections);
    }

    /// Lets each connection to `origin` bear so many requests at a time over HTTP/1.1 (RFC 9112, section
    /// 9.3.2) once the origin was seen to answer in order, which is then found out; with 0 that is all that is
    /// done.
    pub fn set_pipelined(&self, origin: &Origin, pipelined: u32) {
        self.set(origin).set_pipelined(pipelined);
    }

    /// Opens connections in the background until `count` exist or the limit is reached.
    pub fn open_early(&self, origin: &Origin, count: usize) {
        self.set(origin).open_early(count);
    }

    /// Lets so many TLS connections to `origin` be there or be opened, or any number. Those that have reached it wait for
    /// that, and close where there are more than those `wanted` by then.
    pub fn set_handshakes(&self, origin: &Origin, handshakes: Option<usize>, wanted: usize) {
        self.set(origin).set_handshakes(handshakes, wanted);
    }

    /// Closes the connections of `origin` that serve no request.
    pub fn close_idle(&self, origin: &Origin) {
        if let Some(set) = self.shared.sets.borrow().get(origin) {
            set.close_idle();
        }
    }

    /// From now on bodies come no faster than `all` together, and those of each origin no faster than
    /// `per_origin`; `None` is no limit. It binds those of files, not listings.
    pub fn set_rates(&self, all: Option<BitRate>, per_origin: Option<BitRate>) {
        self.shared.pace.set_rates(all, per_origin);
    }

    /// The limit that is shared with others, and whether that is what holds bodies up.
    pub(crate) fn look_above(&self) -> (Option<BitRate>, bool) {
        self.shared.pace.look_above()
    }

    /// Buffers and windows of connections, and pages that are read as a whole, hold no more than `limit`
    /// together, of at most `connections` connections over all origins. Connections that are open go on as they are.
    pub fn set_memory(&self, limit: Bytes, connections: u32) {
        self.shared.opener.memory().set(limit, connections);
    }

    /// A page that is to be read as a whole, within that limit.
    pub(crate) fn page(&self) -> Page {
        self.shared.opener.memory().page()
    }

    /// `connection` crawls: it takes further requests only where there can be no other.
    pub(crate) fn shun(&self, connection: ConnectionId) {
        self.shared.sets.borrow().values().for_each(|set| set.shun(connection));
    }

    /// Lets the body of `response` share the limits, as that of `stream` of the file of this number:
    /// files have equal parts, and in each its streams.
    pub(crate) fn share(&self, response: &mut GetResponse, file: u64, stream: StreamId) {
        response.paced(self.shared.pace.share(&response.origin, file, stream));
    }

    /// The proxy that `url` is asked for through, `host:port`.
    pub(crate) fn proxy_of(&self, url: &Url) -> Option<String> {
        self.shared.opener.route(&Origin::of(url).ok()?).proxy()
    }

    /// What all connections did so far.
    pub fn counters(&self) -> Counters {
        self.shared.opener.telemetry().counters()
    }

    pub(super) fn config(&self) -> &HttpConfig {
        &self.shared.config
    }

    pub(super) fn set(&self, origin: &Origin) -> Rc<OriginSet> {
        let mut sets = self.shared.sets.borrow_mut();
        let set = sets.entry(origin.clone()).or_insert_with(|| {
            OriginSet::new(origin.clone(), Rc::clone(&self.shared.opener), DEFAULT_LIMIT)
        });
        Rc::clone(set)
    }
}
