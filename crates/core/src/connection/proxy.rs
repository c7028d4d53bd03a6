//! Which proxy a connection takes, and tunnels through HTTP proxies (RFC 9110, section 9.3.6).

use std::env;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::origin::{Origin, host_and_port};
use crate::{Error, ErrorKind, Result};

/// The port of a proxy whose URL names none: curl's.
const DEFAULT_PORT: u16 = 1080;
/// Most bytes of a proxy's answer to CONNECT.
const LONGEST_ANSWER: usize = 8 * 1024;

/// Which proxies are used.
#[derive(Clone)]
pub enum Proxies {
    /// Those of the environment: `http_proxy`, `https_proxy`, `HTTPS_PROXY`, `all_proxy`,
    /// `ALL_PROXY`, and `no_proxy` or `NO_PROXY` for the exceptions. `HTTP_PROXY` is not read: a CGI
    /// program's environment has it from the client.
    Environment {
        /// Hosts that are reached directly instead of those in `no_proxy`; `None` = those.
        except: Option<String>,
    },
    /// None.
    Direct,
    /// One for everything.
    Explicit {
        /// `http://`, `socks5://` (names are resolved here) or `socks5h://` (the proxy resolves
        /// them), with user name and password if it wants them; without a scheme it is http.
        url: String,
        /// Hosts that are reached directly, as in `no_proxy`; `None` = those of the environment.
        except: Option<String>,
    },
}

impl Default for Proxies {
    /// Those of the environment with its exceptions.
    fn default() -> Self {
        Self::Environment { except: None }
    }
}

/// How an origin is reached.
#[derive(Clone)]
pub(super) enum Route {
    Direct,
    Http {
        host: String,
        port: u16,
        /// The value of `Proxy-Authorization`.
        authorization: Option<HeaderValue>,
    },
    Socks5 {
        host: String,
        port: u16,
        user: Option<(String, String)>,
        /// Whether the proxy resolves names.
        resolves: bool,
    },
}

impl Route {
    /// The proxy on it, as messages name it: without user name and password.
    pub(super) fn proxy(&self) -> Option<String> {
        match self {
            Self::Direct => None,
            Self::Http { host, port, .. } | Self::Socks5 { host, port, .. } => {
                Some(host_and_port(host, *port))
            }
        }
    }
}

/// What a message about silence says of the `proxy` on its way: it may be the proxy's.
pub(crate) fn through(proxy: Option<&str>) -> String {
    proxy.map(|proxy| format!(" through the proxy {proxy}")).unwrap_or_default()
}

impl Proxies {
    /// # Errors
    /// `Usage` for the URL of one that is malformed or of a kind that is not spoken. What variables say is read later.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Explicit { url, .. } => check("the proxy", url),
            Self::Direct | Self::Environment { .. } => Ok(()),
        }
    }
}

/// Finds the route to each origin.
pub(super) struct Router(Option<Matcher>);

impl Router {
    /// # Errors
    /// `Usage` for a proxy URL that is malformed or of a kind that is not spoken.
    pub(super) fn new(proxies: &Proxies) -> Result<Self> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Self::with_environment(proxies, variable)
    }

    fn with_environment(
        proxies: &Proxies,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|name| variable(name).map(|value| (*name, value)))
        };
        let exceptions = |except: &Option<String>| {
            let variable = || first(&["no_proxy", "NO_PROXY"]).map(|(_, value)| value);
            except.clone().or_else(variable).unwrap_or_default()
        };
        let builder = match proxies {
            Proxies::Direct => return Ok(Self(None)),
            Proxies::Explicit { url, except } => {
                proxies.check()?;
                Matcher::builder().all(url.clone()).no(exceptions(except))
            }
            Proxies::Environment { except } => {
                let proxy = |names: &[&'static str]| match first(names) {
                    Some((name, url)) => check(name, &url).map(|()| url),
                    None => Ok(String::new()),
                };
                Matcher::builder()
                    .http(proxy(&["http_proxy"])?)
                    .https(proxy(&["https_proxy", "HTTPS_PROXY"])?)
                    .all(proxy(&["all_proxy", "ALL_PROXY"])?)
                    .no(exceptions(except))
            }
        };
        Ok(Self(Some(builder.build())))
    }

    pub(super) fn route(&self, origin: &Origin) -> Route {
        // An origin without a URI has a host that no proxy rule can name.
        origin
            .to_string()
            .parse()
            .ok()
            .and_then(|uri| route(self.0.as_ref()?, &uri))
            .unwrap_or(Route::Direct)
    }
}

/// The route of `uri`; `None` when it takes no proxy, or one of a kind that is not spoken.
fn route(matcher: &Matcher, uri: &Uri) -> Option<Route> {
    let proxy = matcher.intercept(uri)?;
    let host = proxy.uri().host()?.trim_matches(['[', ']']).to_owned();
    let port = port(proxy.uri())?;
    match proxy.uri().scheme_str()? {
        "http" => Some(Route::Http { host, port, authorization: proxy.basic_auth().cloned() }),
        scheme @ ("socks5" | "socks5h") => {
            let user = proxy.raw_auth().map(|(user, password)| (user.into(), password.into()));
            Some(Route::Socks5 { host, port, user, resolves: scheme == "socks5h" })
        }
        _ => None,
    }
}

/// The port in the URL of a proxy; `None` where it is none.
fn port(url: &Uri) -> Option<u16> {
    let authority = url.authority()?;
    let (_, host_and_port) =
        authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
    match host_and_port.strip_prefix(authority.host())?.strip_prefix(':') {
        None | Some("") => Some(DEFAULT_PORT),
        Some(port) if port.starts_with('+') => None,
        Some(port) => port.parse().ok().filter(|port| *port != 0),
    }
}

/// Checks a proxy URL. The message does not show it: it may hold a password.
fn check(source: &str, url: &str) -> Result<()> {
    let matcher = Matcher::builder().all(url).build();
    match route(&matcher, &Uri::from_static("http://checked.invalid/")) {
        Some(_) => Ok(()),
        None => Err(Error::new(
            ErrorKind::Usage,
            format!(
                "{source}: is not the URL of a proxy: use http://HOST:PORT, socks5://HOST:PORT or \
                 socks5h://HOST:PORT"
            ),
        )),
    }
}

/// Asks the HTTP proxy at the other end of `stream` for a tunnel to `origin`.
///
/// # Errors
/// `Auth` when the proxy wants a user name and password, `HttpStatus` when it refuses, `Connect`
/// when it cannot reach `origin` or hangs up.
pub(super) async fn tunnel(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    authorization: Option<&HeaderValue>,
) -> Result<()> {
    let target = origin.host_and_port();
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(value) = authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(value.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    let lost = |error| {
        let message = format!("{origin}: the proxy ended the connection");
        Error::new(ErrorKind::Connect, message).with_source(error)
    };
    stream.write_all(&request).await.map_err(lost)?;
    stream.flush().await.map_err(lost)?;

    let mut answer = Vec::with_capacity(256);
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < LONGEST_ANSWER {
        // Byte by byte: what follows the head belongs to the tunnel.
        answer.push(stream.read_u8().await.map_err(lost)?);
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    accept(origin, &String::from_utf8_lossy(line))
}

/// Judges the status line of the answer to CONNECT.
fn accept(origin: &Origin, line: &str) -> Result<()> {
    let status: u16 = match line.split_once(' ') {
        Some((version, rest)) if version.starts_with("HTTP/1.") => {
            rest.split(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
        }
        _ => 0,
    };
    let (kind, why) = match status {
        200..300 => return Ok(()),
        407 => (ErrorKind::Auth, "wants another user name and password: give them in its URL"),
        300..500 => (ErrorKind::HttpStatus, "refuses a tunnel"),
        500..600 => (ErrorKind::Connect, "cannot open a tunnel"),
        _ => (ErrorKind::Protocol, "does not answer in HTTP/1.1"),
    };
    Err(Error::new(kind, format!("{origin}: the proxy {why} ({line})")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    fn origin(url: &str) -> Origin {
        Origin::of(&Url::parse(url).unwrap()).unwrap()
    }

    fn shown(router: &Router, url: &str) -> String {
        match router.route(&origin(url)) {
            Route::Direct => "direct".into(),
            Route::Http { host, port, authorization } => {
                format!("http {} {authorization:?}", host_and_port(&host, port))
            }
            Route::Socks5 { host, port, user, resolves } => {
                format!("socks {} {user:?} {resolves}", host_and_port(&host, port))
            }
        }
    }

    fn environment(variables: &[(&str, &str)]) -> Result<Router> {
        environment_except(None, variables)
    }

    fn environment_except(except: Option<&str>, variables: &[(&str, &str)]) -> Result<Router> {
        let proxies = Proxies::Environment { except: except.map(str::to_owned) };
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Router::with_environment(&proxies, move |wanted| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.clone())
        })
    }

    #[test]
    fn own_exceptions_replace_those_of_the_environment() {
        let variables = [("http_proxy", "one:3128"), ("no_proxy", "a.test")];
        let router = environment_except(Some("b.test"), &variables).unwrap();
        assert_eq!(shown(&router, "http://a.test/"), "http one:3128 None");
        assert_eq!(shown(&router, "http://b.test/"), "direct");
    }

    #[test]
    fn the_environment_is_read_as_curl_reads_it() {
        let router = environment(&[
            ("http_proxy", "one:3128"),
            ("HTTP_PROXY", "evil:1"),
            ("HTTPS_PROXY", "http://[::1]:8080/"),
            ("no_proxy", "inner.test, 10.0.0.0/8"),
        ])
        .unwrap();
        assert_eq!(shown(&router, "http://a.test/"), "http one:3128 None");
        assert_eq!(shown(&router, "https://a.test/"), "http [::1]:8080 None");
        assert_eq!(shown(&router, "http://x.inner.test/"), "direct");
        assert_eq!(shown(&router, "http://10.1.2.3/"), "direct");
        assert_eq!(
            shown(&environment(&[("HTTP_PROXY", "x:1")]).unwrap(), "http://a.test/"),
            "direct"
        );
        let all = environment(&[("ALL_PROXY", "socks5h://me:pass%20word@s.test")]).unwrap();
        let expected = "socks s.test:1080 Some((\"me\", \"pass word\")) true";
        assert_eq!(shown(&all, "http://a.test/"), expected);
        assert_eq!(shown(&all, "https://[::1]/"), expected);
    }

    #[test]
    fn an_explicit_proxy_has_its_exceptions() {
        let variable = |name: &str| (name == "no_proxy").then(|| "a.test".to_owned());
        let explicit = |except: Option<&str>| {
            let (url, except) = ("socks5://s.test:9".to_owned(), except.map(str::to_owned));
            Router::with_environment(&Proxies::Explicit { url, except }, variable).unwrap()
        };
        assert_eq!(shown(&explicit(None), "http://a.test/"), "direct");
        assert_eq!(shown(&explicit(Some("b.test")), "http://a.test/"), "socks s.test:9 None false");
        assert_eq!(shown(&explicit(Some("*")), "http://b.test/"), "direct");
        let direct = Router::with_environment(&Proxies::Direct, |_| Some("x:1".into())).unwrap();
        assert_eq!(shown(&direct, "http://a.test/"), "direct");
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_showing_it() {
        for bad in [
            "ftp://u:secret@a.test",
            "https://secret.test",
            "socks4://secret",
            "http://",
            "http://u:secret@a.test:99999",
            "http://a.test:secret",
            "socks5://u:secret@a.test:70000",
            "http://u:secret@[::1]:0",
            "a.test:18080x",
        ] {
            let error = environment(&[("all_proxy", bad)]).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Usage, "{bad}");
            assert!(error.message().starts_with("all_proxy: "), "{}", error.message());
            assert!(!error.message().contains("secret"), "{}", error.message());
        }
    }

    #[test]
    fn answers_to_connect_are_told_apart() {
        let judged = |line: &str| accept(&origin("https://a.test/"), line).map_err(|e| e.kind());
        assert_eq!(judged("HTTP/1.1 200 Connection established"), Ok(()));
        assert_eq!(judged("HTTP/1.0 204"), Ok(()));
        assert_eq!(judged("HTTP/1.1 407 Who are you"), Err(ErrorKind::Auth));
        assert_eq!(judged("HTTP/1.1 403 No"), Err(ErrorKind::HttpStatus));
        assert_eq!(judged("HTTP/1.1 502 Bad Gateway"), Err(ErrorKind::Connect));
        for line in ["SSH-2.0-x", "HTTP/1.1 99999 x", "HTTP/1.1", ""] {
            assert_eq!(judged(line), Err(ErrorKind::Protocol), "{line}");
        }
    }
}
