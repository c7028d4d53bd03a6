//! Where a response sends the client (RFC 9110, section 15.4).

use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use url::Url;

use super::origin::shown;
use crate::{Error, ErrorKind, Result};

/// The redirects of one request.
pub(super) struct Redirects {
    visited: Vec<Url>,
    most: usize,
    allow_downgrade: bool,
}

impl Redirects {
    /// Begins at `url` and follows `most` redirects.
    pub(super) fn new(url: Url, most: usize, allow_downgrade: bool) -> Self {
        Self { visited: vec![url], most, allow_downgrade }
    }

    /// Whether the present URL is where one has led to.
    pub(super) const fn has_led(&self) -> bool {
        self.visited.len() > 1
    }

    /// Where to go after a response of the present URL; `None` when it is no redirect. Who `has_new_cookies` since may come
    /// back to where it was.
    ///
    /// # Errors
    /// `Redirect` for a target that is no URL, was visited before, comes after too many, or gives up
    /// TLS.
    pub(super) fn next(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        has_new_cookies: bool,
    ) -> Result<Option<Url>> {
        let Some(location) = headers.get(LOCATION).filter(|_| is_redirect(status)) else {
            return Ok(None);
        };
        let from = &self.visited[self.visited.len() - 1];
        let target = String::from_utf8_lossy(location.as_bytes());
        let target = from.join(&target).map_err(|error| {
            let message = format!("{}: redirects to what is no URL", shown(from));
            Error::new(ErrorKind::Redirect, message).with_source(error)
        })?;
        let refused = |why: &str| {
            let message = format!("{}: redirects to {} {why}", shown(from), shown(&target));
            Err(Error::new(ErrorKind::Redirect, message))
        };
        if from.scheme() == "https" && target.scheme() == "http" && !self.allow_downgrade {
            return refused("without TLS: `allow-downgrade` follows it all the same");
        }
        if self.visited.contains(&target) && !has_new_cookies {
            let wants_cookie = headers.contains_key(SET_COOKIE);
            return refused(if wants_cookie {
                "in a circle, with a cookie that it had back: give it another one with `cookie-file`"
            } else {
                "in a circle"
            });
        }
        if self.visited.len() > self.most {
            return refused(&format!("after {} redirects: more are not followed", self.most));
        }
        self.visited.push(target.clone());
        Ok(Some(target))
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(redirects: &mut Redirects, location: &str) -> Result<Option<Url>> {
        let headers = HeaderMap::from_iter([(LOCATION, location.parse().unwrap())]);
        redirects.next(StatusCode::FOUND, &headers, false)
    }

    fn redirects(url: &str) -> Redirects {
        Redirects::new(Url::parse(url).unwrap(), 3, false)
    }

    #[test]
    fn relative_targets_build_on_the_present_url() {
        let mut redirects = redirects("http://a.test/x/y?q");
        let url = next(&mut redirects, "../z").unwrap().unwrap();
        assert_eq!(url.as_str(), "http://a.test/z");
        let url = next(&mut redirects, "//b.test/").unwrap().unwrap();
        assert_eq!(url.as_str(), "http://b.test/");
        let url = next(&mut redirects, "w").unwrap().unwrap();
        assert_eq!(url.as_str(), "http://b.test/w");
    }

    #[test]
    fn only_redirects_redirect() {
        let headers = HeaderMap::from_iter([(LOCATION, "/x".parse().unwrap())]);
        let mut redirects = redirects("http://a.test/");
        for status in [200, 201, 206, 300, 304, 305, 404] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(redirects.next(status, &headers, false).unwrap(), None);
        }
        assert_eq!(redirects.next(StatusCode::FOUND, &HeaderMap::new(), false).unwrap(), None);
    }

    #[test]
    fn circles_and_endless_chains_are_errors() {
        let mut circle = redirects("http://a.test/1");
        next(&mut circle, "/2").unwrap();
        let error = next(&mut circle, "/1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Redirect);
        let message = "http://a.test/2: redirects to http://a.test/1 in a circle";
        assert_eq!(error.message(), message);
        let headers = [(LOCATION, "/1"), (SET_COOKIE, "a=b")];
        let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
        let headers = HeaderMap::from_iter(headers);
        let error = circle.next(StatusCode::FOUND, &headers, false).unwrap_err();
        assert!(error.message().contains("`cookie-file`"), "{}", error.message());
        let mut back = |has_new_cookies| circle.next(StatusCode::FOUND, &headers, has_new_cookies);
        assert!(back(true).unwrap().is_some() && back(true).unwrap().is_some());
        assert!(back(true).unwrap_err().message().contains("after 3 redirects"));

        let mut chain = redirects("http://a.test/1");
        for location in ["/2", "/3", "/4"] {
            next(&mut chain, location).unwrap();
        }
        let error = next(&mut chain, "/5").unwrap_err();
        assert!(error.message().contains("http://a.test/5 after 3 redirects"));
    }

    #[test]
    fn tls_is_not_given_up() {
        let mut strict = redirects("https://a.test/");
        let error = next(&mut strict, "http://u:secret@a.test/").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Redirect);
        assert!(!error.message().contains("secret"));
        let mut lax = Redirects::new(Url::parse("https://a.test/").unwrap(), 3, true);
        assert!(next(&mut lax, "http://a.test/").unwrap().is_some());
        assert!(next(&mut redirects("http://a.test/"), "https://a.test/").unwrap().is_some());
    }
}
