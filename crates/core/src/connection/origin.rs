//! Where connections lead: scheme, host and port (RFC 6454, section 4).

use std::fmt;
use std::sync::Arc;

use url::{Host, Url};

use crate::{Error, ErrorKind, Result};

/// The two schemes that are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Cleartext.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The port that a URL of this scheme means when it names none.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// As it is written in a URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Scheme, host and port. Connections and credentials belong to one origin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The scheme.
    pub scheme: Scheme,
    /// A name or an address, IPv6 without brackets.
    pub host: Arc<str>,
    /// The port, explicit or the scheme's own.
    pub port: u16,
}

impl Origin {
    /// The origin of `url`.
    ///
    /// # Errors
    /// `Usage` when `url` is not an http or https URL with a host.
    pub fn of(url: &Url) -> Result<Self> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(unusable(url, &format!("{other}: is not http: or https:"))),
        };
        let host = match url.host() {
            Some(Host::Domain(name)) => Arc::from(name),
            Some(Host::Ipv4(address)) => Arc::from(address.to_string()),
            Some(Host::Ipv6(address)) => Arc::from(address.to_string()),
            None => return Err(unusable(url, "it names no host")),
        };
        let port = url.port().unwrap_or(scheme.default_port());
        Ok(Self { scheme, host, port })
    }

    /// `host:port`, with brackets around an IPv6 address.
    pub fn host_and_port(&self) -> String {
        host_and_port(&self.host, self.port)
    }

    /// `host`, or `host:port` where the port is not the scheme's own: the value of a `Host` header.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.to_string() }
        } else {
            self.host_and_port()
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub(super) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// What is behind a field of a query. Some append a query to a URL that has one.
const FIELD_ENDS: [char; 2] = ['&', '?'];

/// `url` as messages, reports and journals show it: without user name, password and fragment, and
/// without the values of what in its query looks like a secret (signatures, tokens, keys).
pub fn shown(url: &Url) -> String {
    let mut bare = without_userinfo(url);
    let Some(query) = url.query().filter(|query| query.split(FIELD_ENDS).any(is_secret)) else {
        return bare.into();
    };
    let hide = |field: &str| match field.split_once('=') {
        Some((name, value)) if is_secret(field) => {
            let end = value.rfind(FIELD_ENDS).map_or("", |at| &value[at..]);
            format!("{name}=***{end}")
        }
        _ => field.to_owned(),
    };
    bare.set_query(Some(&query.split_inclusive(FIELD_ENDS).map(hide).collect::<String>()));
    bare.into()
}

/// The same for `text` that is no URL, as far as can be told of such a one.
pub fn shown_text(text: &str) -> String {
    let (start, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let scheme = if start.is_empty() { String::new() } else { format!("{start}://") };
    let bare = rest.rsplit_once('@').map_or(rest.to_owned(), |(_, host)| format!("***@{host}"));
    let bare = match bare.split_once('?') {
        Some((path, query)) if query.split(FIELD_ENDS).any(is_secret) => format!("{path}?***"),
        _ => bare,
    };
    scheme + &bare
}

/// Whether a field of a query, `name=value`, holds a secret, as far as its name tells.
fn is_secret(field: &str) -> bool {
    const NAMES: [&str; 14] = [
        "sig", "pwd", "pw", "pass", "hmac", "code", "otp", "pin", "sid", "sas", // and CDNs':
        "qak", "hdnea", "hdntl", "hdnts",
    ];
    const PARTS: [&str; 17] = [
        "token",
        "tkn",
        "jwt",
        "assertion",
        "secret",
        "passw",
        "passphrase",
        "passcode",
        "signature",
        "credential",
        "apikey",
        "accesskey",
        "accessid",
        "session",
        "authoriz",
        "bearer",
        "ticket",
    ];
    const ENDS: [&str; 3] = ["key", "auth", "tok"];
    let name = field.split_once('=').map_or("", |(name, _)| name);
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    NAMES.contains(&name.as_str())
        || PARTS.iter().any(|part| name.contains(part))
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// `url` without user name, password and fragment.
pub(crate) fn without_userinfo(url: &Url) -> Url {
    let mut bare = url.clone();
    // Both fail only for URLs that cannot have a user name in the first place.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.set_fragment(None);
    bare
}

fn unusable(url: &Url, why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("{}: {why}", shown(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Origin {
        Origin::of(&Url::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn default_ports_are_the_same_origin() {
        assert_eq!(origin("http://a.test/x"), origin("http://A.test:80/y"));
        assert_ne!(origin("http://a.test/"), origin("https://a.test/"));
        assert_ne!(origin("http://a.test/"), origin("http://a.test:81/"));
    }

    #[test]
    fn shows_as_url_prefix() {
        assert_eq!(origin("https://a.test/x").to_string(), "https://a.test");
        assert_eq!(origin("http://[::1]:8080/").to_string(), "http://[::1]:8080");
        assert_eq!(&*origin("http://[::1]/").host, "::1");
        assert_eq!(origin("http://[::1]/").authority(), "[::1]");
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = |text: &str| super::shown(&Url::parse(text).unwrap());
        assert_eq!(shown("https://me:hunter2@a.test/x?y=1#z"), "https://a.test/x?y=1");
        let signed = "https://a.test/x?X-Amz-Credential=a%2Fb&X-Amz-Signature=ab&part=2&api_key=k";
        let hidden = "https://a.test/x?X-Amz-Credential=***&X-Amz-Signature=***&part=2&api_key=***";
        assert_eq!(shown(signed), hidden);
        assert_eq!(
            shown("https://a.test/?sig=a=b&token&sigma=1"),
            "https://a.test/?sig=***&token&sigma=1"
        );
        assert_eq!(shown("https://a.test/?x=1?sig=a&y=2?"), "https://a.test/?x=1?sig=***&y=2?");
        assert_eq!(shown("https://a.test/?sig=a?key=b"), "https://a.test/?sig=***?key=***");
    }

    #[test]
    fn secrets_are_known_by_the_names_that_clouds_and_protocols_have_for_them() {
        for name in [
            "code",
            "key",
            "api-key",
            "apikey",
            "rlkey",
            "resourcekey",
            "auth",
            "oauth",
            "tempauth",
            "auth_key",
            "Authorization",
            "access_token",
            "id_token",
            "X-Amz-Security-Token",
            "client_secret",
            "pass",
            "password",
            "passphrase",
            "session",
            "sessionid",
            "PHPSESSION",
            "sid",
            "sig",
            "Signature",
            "x-oss-signature",
            "q-signature",
            "AWSAccessKeyId",
            "OSSAccessKeyId",
            "GoogleAccessId",
            "X-Goog-Credential",
            "ticket",
            "otp",
            "tok",
            "auth_tok",
            "tkn",
            "id_jwt",
            "client_assertion",
        ] {
            assert!(is_secret(&format!("{name}=1")), "{name}");
        }
        for name in
            ["encoding", "codec", "author", "keyword", "pinned", "page", "expires", "side", "stock"]
        {
            assert!(!is_secret(&format!("{name}=1")), "{name}");
        }
    }

    #[test]
    fn secrets_are_not_shown_of_what_is_no_url() {
        for (text, shown) in [
            ("http://me:hunter2@ a/x", "http://***@ a/x"),
            ("me:hunter2@a/x", "***@a/x"),
            ("http://a b/?token=hunter2", "http://a b/?***"),
            ("example.org/x?y=1", "example.org/x?y=1"),
        ] {
            assert_eq!(shown_text(text), shown);
        }
    }

    #[test]
    fn other_schemes_are_refused_without_showing_the_password() {
        let error = Origin::of(&Url::parse("ftp://me:hunter2@a.test/").unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.message(), "ftp://a.test/: ftp: is not http: or https:");
    }
}
