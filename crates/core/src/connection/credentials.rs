//! Which request headers go to which origin.

use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, COOKIE, PRAGMA, RANGE,
    USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use url::Url;

use super::client::GetRequest;
use super::config::HttpConfig;
use super::cookies::Cookies;
use super::origin::Origin;
use crate::Result;
use crate::fetch::digests::WANT_REPR_DIGEST;

/// The headers of one hop of `request`, which has led to `url` at `origin`. Secrets that were given
/// for the requested origin go nowhere else.
pub(super) fn headers(
    config: &HttpConfig,
    cookies: &Cookies,
    request: &GetRequest,
    url: &Url,
    origin: &Origin,
) -> Result<HeaderMap> {
    let home = request.home.as_ref().unwrap_or(&request.url);
    let at_home = Origin::of(home)? == *origin;
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(USER_AGENT, config.user_agent.clone());
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    for (name, value) in config.headers.iter().chain(&request.headers) {
        if at_home || says_nothing_of_the_caller(name) {
            let mut value = value.clone();
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    // A compressed representation has other byte offsets (RFC 9110, section 14.1.2).
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(range) = request.range {
        headers.insert(RANGE, range_value(range));
    }
    if !headers.contains_key(AUTHORIZATION)
        && let Some((user, password)) =
            user_and_password(config, url, Some(home).filter(|_| at_home))
    {
        headers.insert(AUTHORIZATION, basic(&user, &password));
    }
    if !headers.contains_key(COOKIE)
        && let Some(value) = cookies.header(url, SystemTime::now())
    {
        headers.insert(COOKIE, value);
    }
    Ok(headers)
}

/// The value of `Authorization` for Basic authentication (RFC 7617).
fn basic(user: &str, password: &str) -> HeaderValue {
    let text = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
    // Base64 has only characters that a header may have.
    let mut value = HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("Basic"));
    value.set_sensitive(true);
    value
}

/// Whom to be at `url`: what the URL says, then what `home` says and what was given for its origin,
/// where this is that origin, then what netrc has for the host, which also knows the password of a user whom the URL only names.
fn user_and_password(
    config: &HttpConfig,
    url: &Url,
    home: Option<&Url>,
) -> Option<(String, String)> {
    let names_somebody = |url: &Url| !url.username().is_empty() || url.password().is_some();
    let url = home.filter(|home| !names_somebody(url) && names_somebody(home)).unwrap_or(url);
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let login = Some(decoded(url.username())).filter(|login| !login.is_empty());
    let from_netrc = || config.netrc.find(url.host_str()?, login.as_deref());
    match (&login, url.password()) {
        (_, Some(password)) => Some((login.unwrap_or_default(), decoded(password))),
        (Some(name), None) => from_netrc().or_else(|| Some((name.clone(), String::new()))),
        (None, None) => config.user.clone().filter(|_| home.is_some()).or_else(from_netrc),
    }
}

/// Whether a header may go to any origin. All others may be credentials under a name of their own.
fn says_nothing_of_the_caller(name: &HeaderName) -> bool {
    [ACCEPT, ACCEPT_LANGUAGE, CACHE_CONTROL, PRAGMA, USER_AGENT].contains(name)
        || *name == WANT_REPR_DIGEST
}

fn range_value((first, last): (u64, Option<u64>)) -> HeaderValue {
    let text = match last {
        Some(last) => format!("bytes={first}-{last}"),
        None => format!("bytes={first}-"),
    };
    // Digits are valid in a header.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("bytes=0-"))
}
