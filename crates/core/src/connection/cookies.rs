//! Cookies from a file in the Netscape format that browsers export and curl reads, and those that redirects set, matched
//! to requests as in RFC 6265.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::{Error, ErrorKind, Result};

/// No more than so many are taken from servers.
const MOST: usize = 3_000;

/// The cookies of a file.
#[derive(Clone, Default)]
pub struct Cookies(Vec<Cookie>);

#[derive(Clone)]
struct Cookie {
    /// In lower case, without a leading dot.
    domain: String,
    subdomains: bool,
    path: String,
    secure: bool,
    /// Seconds since 1970; 0 = as long as the session.
    expires: u64,
    /// `name=value`.
    pair: String,
}

impl Cookies {
    /// Reads `text`, which came from the file `source`: per line the seven fields domain, whether
    /// subdomains too, path, whether only over TLS, expiry, name and value, with TABs between.
    ///
    /// # Errors
    /// `Usage` with the number of the line that is malformed.
    pub fn parse(text: &str, source: &str) -> Result<Self> {
        let mut cookies = Vec::new();
        for (index, line) in text.lines().enumerate() {
            // curl and browsers mark cookies that scripts may not see in this way.
            let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let cookie = Cookie::parse(line).map_err(|why| {
                Error::new(ErrorKind::Usage, format!("{source}:{}: {why}", index + 1))
            })?;
            cookies.push(cookie);
        }
        Ok(Self(cookies))
    }

    /// The value of `Cookie` for a request of `url` at the time `now`, if any cookie fits.
    pub fn header(&self, url: &Url, now: SystemTime) -> Option<HeaderValue> {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut fitting: Vec<_> = self.0.iter().filter(|cookie| cookie.fits(url, now)).collect();
        // "Cookies with longer paths are listed before cookies with shorter paths" (RFC 6265,
        // section 5.4).
        fitting.sort_by_key(|cookie| Reverse(cookie.path.len()));
        let pairs: Vec<_> = fitting.iter().map(|cookie| cookie.pair.as_str()).collect();
        if pairs.is_empty() {
            return None;
        }
        let mut value = HeaderValue::try_from(pairs.join("; ")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Takes what the answer of `url` sets (RFC 6265, section 5.2), for its host alone.
    pub(super) fn take(&mut self, url: &Url, headers: &HeaderMap, now: SystemTime) {
        for value in headers.get_all(SET_COOKIE) {
            let Some(cookie) = value.to_str().ok().and_then(|it| Cookie::set(it, url, now)) else {
                continue;
            };
            self.0.retain(|it| !it.is_replaced_by(&cookie));
            if self.0.len() < MOST {
                self.0.push(cookie);
            }
        }
    }
}

impl Cookie {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let fields: Vec<_> = line.split('\t').collect();
        let [domain, subdomains, path, secure, expires, name, value @ ..] = &fields[..] else {
            return Err("expected seven fields with TABs between");
        };
        // An empty value at the end of a line loses its TAB easily.
        let value = match value {
            [] => "",
            [value] => value,
            _ => return Err("expected seven fields with TABs between"),
        };
        let pair = format!("{name}={value}");
        if HeaderValue::try_from(&pair).is_err() {
            return Err("name and value hold characters that a header cannot have");
        }
        let domain = domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase();
        if domain.is_empty() {
            return Err("the domain is empty");
        }
        Ok(Self {
            domain,
            subdomains: flag(subdomains)?,
            path: (*path).to_owned(),
            secure: flag(secure)?,
            expires: expires.parse().map_err(|_| "the expiry is not a number of seconds")?,
            pair,
        })
    }

    /// What a `Set-Cookie` of `url` says. Nothing where it is not valid.
    fn set(text: &str, url: &Url, now: SystemTime) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (name, value) = parts.next()?.split_once('=')?;
        let pair = format!("{}={}", name.trim(), value.trim());
        let valid = !name.trim().is_empty() && HeaderValue::try_from(&pair).is_ok();
        let default_path = url.path().rsplit_once('/').map_or("", |(before, _)| before);
        let mut cookie = Self {
            domain: url.host_str().filter(|_| valid)?.to_owned(),
            subdomains: false,
            path: if default_path.is_empty() { "/".to_owned() } else { default_path.to_owned() },
            secure: false,
            expires: 0,
            pair,
        };
        let seconds = |time: SystemTime| {
            time.duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs().max(1))
        };
        let mut max_age = None;
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "secure" => cookie.secure = true,
                "path" if value.trim().starts_with('/') => {
                    value.trim().clone_into(&mut cookie.path);
                }
                "max-age" => max_age = value.trim().parse::<i64>().ok(),
                "expires" => {
                    let until = httpdate::parse_http_date(value.trim()).ok();
                    cookie.expires = until.map_or(cookie.expires, seconds);
                }
                _ => {}
            }
        }
        // It "has precedence" (section 5.3).
        if let Some(age) = max_age {
            cookie.expires = seconds(now).saturating_add_signed(age.max(-1));
        }
        Some(cookie)
    }

    /// Whether `other` has the same name, host and path (RFC 6265, section 5.3).
    fn is_replaced_by(&self, other: &Self) -> bool {
        let name = |it: &Self| it.pair.split_once('=').map(|(name, _)| name.to_owned());
        self.domain == other.domain && self.path == other.path && name(self) == name(other)
    }

    fn fits(&self, url: &Url, now: u64) -> bool {
        url.host_str().is_some_and(|host| self.fits_host(host))
            && self.fits_path(url.path())
            && (!self.secure || url.scheme() == "https")
            && (self.expires == 0 || self.expires > now)
    }

    /// RFC 6265, section 5.1.3.
    fn fits_host(&self, host: &str) -> bool {
        let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
        host == self.domain
            || self.subdomains
                && !is_address
                && host.strip_suffix(&self.domain).is_some_and(|rest| rest.ends_with('.'))
    }

    /// RFC 6265, section 5.1.4.
    fn fits_path(&self, path: &str) -> bool {
        path.strip_prefix(self.path.as_str()).is_some_and(|rest| {
            rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/')
        })
    }
}

fn flag(field: &str) -> Result<bool, &'static str> {
    match field {
        "TRUE" => Ok(true),
        "FALSE" => Ok(false),
        _ => Err("the second and the fourth field must be TRUE or FALSE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const FILE: &str = "# Netscape HTTP Cookie File\n\n\
        .a.test\tTRUE\t/\tFALSE\t0\twide\t1\n\
        a.test\tFALSE\t/deep\tFALSE\t0\tdeep\t2\n\
        #HttpOnly_a.test\tFALSE\t/\tTRUE\t0\tsecure\t3\n\
        a.test\tFALSE\t/\tFALSE\t1000\told\t4\n\
        1.2.3.4\tTRUE\t/\tFALSE\t0\tip\t\n\
        a.test\tFALSE\t/dir/\tFALSE\t0\tdir\n";

    fn header(url: &str, now: u64) -> Option<String> {
        let cookies = Cookies::parse(FILE, "cookies.txt").unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(now);
        let value = cookies.header(&Url::parse(url).unwrap(), now)?;
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn domain_path_transport_and_expiry_must_fit() {
        assert_eq!(header("http://a.test/", 2000).as_deref(), Some("wide=1"));
        assert_eq!(header("http://A.test/deep/x", 2000).as_deref(), Some("deep=2; wide=1"));
        assert_eq!(header("http://a.test/deeper", 2000).as_deref(), Some("wide=1"));
        assert_eq!(header("https://a.test/", 999).as_deref(), Some("wide=1; secure=3; old=4"));
        assert_eq!(header("https://a.test/", 1000).as_deref(), Some("wide=1; secure=3"));
        assert_eq!(header("https://x.a.test/deep", 0).as_deref(), Some("wide=1"));
        assert_eq!(header("http://a.test/dir/x", 2000).as_deref(), Some("dir=; wide=1"));
        assert_eq!(header("http://1.2.3.4/", 0).as_deref(), Some("ip="));
        for other in ["http://ba.test/", "http://test/", "http://9.1.2.3.4.test/"] {
            assert_eq!(header(other, 0), None, "{other}");
        }
    }

    #[test]
    fn what_an_answer_sets_goes_back_to_its_host_alone() {
        let mut cookies = Cookies::parse(FILE, "cookies.txt").unwrap();
        let url = |url: &str| Url::parse(url).unwrap();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let set = |cookies: &mut Cookies, values: &[&str]| {
            let values = values.iter().map(|value| (SET_COOKIE, value.parse().unwrap()));
            cookies.take(&url("http://b.test/in/door"), &values.collect(), at(2_000));
        };
        let header = |cookies: &Cookies, at_url: &str, seconds| {
            let value = cookies.header(&url(at_url), at(seconds))?;
            Some(value.to_str().unwrap().to_owned())
        };
        set(&mut cookies, &["key=1; Domain=test; HttpOnly", "=x", "none", "all=2; Path=/"]);
        let come_back = Some("key=1; all=2".to_owned());
        assert_eq!(header(&cookies, "http://b.test/in/house", 2_000), come_back);
        assert_eq!(header(&cookies, "http://b.test/", 2_000).as_deref(), Some("all=2"));
        assert_eq!(header(&cookies, "http://x.b.test/in/", 2_000), None);
        set(&mut cookies, &["key=1"]);
        set(&mut cookies, &["key=3; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:09 GMT"]);
        assert_eq!(header(&cookies, "http://b.test/in/", 2_059).as_deref(), Some("key=3; all=2"));
        assert_eq!(header(&cookies, "http://b.test/in/", 2_060).as_deref(), Some("all=2"));
        set(
            &mut cookies,
            &["all=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "key=; max-age=0"],
        );
        assert_eq!(header(&cookies, "http://b.test/in/", 2_000), None);
        set(&mut cookies, &["safe=1; Secure"]);
        assert_eq!(header(&cookies, "https://b.test/in/x", 2_000).as_deref(), Some("safe=1"));
    }

    #[test]
    fn malformed_lines_are_named_and_values_are_not() {
        for (line, why) in [
            ("a.test TRUE / FALSE 0 name secret", "expected seven fields with TABs between"),
            ("a\tTRUE\t/\tFALSE\t0\tn\tsecret\tx", "expected seven fields with TABs between"),
            (
                "a\tyes\t/\tFALSE\t0\tn\tsecret",
                "the second and the fourth field must be TRUE or FALSE",
            ),
            ("a\tTRUE\t/\tFALSE\tsoon\tn\tsecret", "the expiry is not a number of seconds"),
            (".\tTRUE\t/\tFALSE\t0\tn\tsecret", "the domain is empty"),
            (
                "a\tTRUE\t/\tFALSE\t0\tn\tsecr\u{7f}et",
                "name and value hold characters that a header cannot have",
            ),
        ] {
            let error = Cookies::parse(&format!("# x\n{line}\n"), "jar").err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert_eq!(error.message(), format!("jar:2: {why}"));
        }
    }

    proptest! {
        #[test]
        fn what_servers_set_never_panics(text in "(a|=|;|path|max-age|expires|/|-|9| |é){0,40}") {
            let value = HeaderValue::from_bytes(text.as_bytes()).unwrap();
            let headers = HeaderMap::from_iter([(SET_COOKIE, value)]);
            let url = Url::parse("http://a/b/c").unwrap();
            let mut cookies = Cookies::default();
            cookies.take(&url, &headers, UNIX_EPOCH);
            cookies.header(&url, UNIX_EPOCH);
        }

        #[test]
        fn never_panics(text in "(a|\\.|\t|TRUE|FALSE|/|0|9|\n|#|é){0,60}") {
            if let Ok(cookies) = Cookies::parse(&text, "jar") {
                cookies.header(&Url::parse("http://a/").unwrap(), UNIX_EPOCH);
            }
        }
    }
}
