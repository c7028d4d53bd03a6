//! What a status that brings no file means, and what to do.

use std::io;
use std::time::{Duration, SystemTime};

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};
use url::Url;

use super::fields::retry_after;
use super::judge::NoFile;
use crate::connection::shown;
use crate::engine::Failure;
use crate::{Error, ErrorKind};

/// The error that `status` is, with what to do.
pub(crate) fn status_error(url: &Url, status: StatusCode, headers: &HeaderMap) -> Error {
    let pause = retry_after(headers, SystemTime::now());
    let kind = ErrorKind::of_status(status, pause.is_some());
    let wanted = if status == StatusCode::UNAUTHORIZED { unspoken_scheme(headers) } else { None };
    let unspoken = wanted.map(|scheme| {
        format!(
            "; it wants credentials by the scheme {scheme}, and only Basic is spoken with `user`: \
             `header` or `cookie-file` may do"
        )
    });
    let advice = match kind {
        ErrorKind::NotFound => "; check the URL",
        ErrorKind::Auth if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            "; give the proxy's user name and password in its URL"
        }
        ErrorKind::Auth if status == StatusCode::FORBIDDEN && url.path().ends_with('/') => {
            "; if it is a directory, its server may list none: name its files"
        }
        // Its source says it.
        ErrorKind::Auth if status == StatusCode::FORBIDDEN => "",
        ErrorKind::Auth => unspoken
            .as_deref()
            .unwrap_or("; give credentials with `user`, `netrc` or `cookie-file`, or check those that were given"),
        ErrorKind::Overloaded => "; wait, or ask for less at once with `polite`",
        _ if status == StatusCode::MISDIRECTED_REQUEST => {
            "; whoever was reached does not serve this name: try again later"
        }
        ErrorKind::ServerError => "; the failure is the server's: try again later",
        _ if status == StatusCode::BAD_REQUEST && url.scheme() == "http" => {
            "; if the server speaks TLS there, ask for https://, else check the URL and the headers"
        }
        // nginx says so to who shows none.
        _ if status == StatusCode::BAD_REQUEST => {
            "; if the server wants a certificate of its client, give `cert` and `key`, else check the URL and the headers"
        }
        _ => "; this is no answer that holds a file: check the URL and the headers",
    };
    let reason = status.canonical_reason().unwrap_or("");
    let message = format!("{}: HTTP {} {reason}{advice}", shown(url), status.as_u16());
    let error = Error::new(kind, message);
    if kind == ErrorKind::Auth && status == StatusCode::FORBIDDEN {
        return error.with_source(Forbidden);
    }
    match pause.filter(|_| kind.is_refusal()) {
        Some(pause) => {
            error.with_source(RetryAfter { pause, is_of_rate: !status.is_server_error() })
        }
        None => error,
    }
}

/// No scheme that is registered has a name as long as this.
const LONGEST_SCHEME: usize = 24;

/// The scheme that a server wants credentials by (RFC 9110 section 11.6.1), where it does not take Basic.
fn unspoken_scheme(headers: &HeaderMap) -> Option<&str> {
    let mut wanted = None;
    for challenge in headers.get_all(WWW_AUTHENTICATE) {
        // Several may be in one line: their parameters follow the scheme after a space.
        for part in challenge.to_str().ok()?.split(',') {
            let first = part.split_whitespace().next().unwrap_or("");
            if first.eq_ignore_ascii_case("basic") {
                return None;
            }
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
            if !first.is_empty() && first.len() <= LONGEST_SCHEME && first.chars().all(is_name) {
                wanted.get_or_insert(first);
            }
        }
    }
    wanted
}

/// Whether a server that says this to a range may well have something else to say to a request for
/// the whole: it judged the request, and not who asks, nor its own state.
pub(super) fn may_be_about_the_range(status: StatusCode) -> bool {
    let code = status.as_u16();
    let is_other = matches!(code, 401 | 404 | 407 | 408 | 410 | 425 | 429);
    (400..500).contains(&code) && !is_other || code == 501
}

/// Carries `Retry-After` inside an error.
#[derive(Debug, thiserror::Error)]
#[error("the server asks to wait {}", length(*.pause))]
struct RetryAfter {
    pause: Duration,
    /// It is of all requests (429, or 403), and not of a service that is away.
    is_of_rate: bool,
}

/// Marks an error that is a 403, which tells little.
#[derive(Debug, thiserror::Error)]
#[error(
    "if it takes credentials, give them with `user`, `netrc` or `cookie-file`; if it limits how much is asked \
     for, try again later with `polite`"
)]
struct Forbidden;

/// A year and more is no number that tells anybody anything.
fn length(pause: Duration) -> String {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    if pause > YEAR {
        "for longer than a year".to_owned()
    } else {
        format!("{} s", pause.as_secs())
    }
}

/// How long the server asked to wait, where `error` came with that.
pub(crate) fn asked_pause(error: &Error) -> Option<Duration> {
    retry_after_of(error).map(|asked| asked.pause)
}

fn retry_after_of(error: &Error) -> Option<&RetryAfter> {
    std::error::Error::source(error)?.downcast_ref()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let asked = retry_after_of(&error);
        let (retry_after, is_of_rate) =
            (asked.map(|asked| asked.pause), asked.is_some_and(|asked| asked.is_of_rate));
        let source = std::error::Error::source(&error);
        let is_quota = source
            .and_then(|source| source.downcast_ref::<io::Error>())
            .is_some_and(|cause| cause.kind() == io::ErrorKind::QuotaExceeded);
        let is_forbidden = source.is_some_and(<dyn std::error::Error>::is::<Forbidden>);
        Self {
            kind: error.kind(),
            message: error.message(),
            retry_after,
            is_of_rate,
            is_quota,
            is_forbidden,
            is_no_file: source.is_some_and(<dyn std::error::Error>::is::<NoFile>),
            led_to: error.led_to().cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_credentials_are_missing_is_said() {
        let url: Url = "http://host/file".parse().unwrap();
        let advice = |status| status_error(&url, status, &HeaderMap::new()).message();
        assert!(
            advice(StatusCode::PROXY_AUTHENTICATION_REQUIRED).contains("the proxy's user name")
        );
        assert!(advice(StatusCode::UNAUTHORIZED).contains("`user`"));
        assert!(advice(StatusCode::BAD_REQUEST).contains("https://"), "to a port of TLS");
    }

    #[test]
    fn a_scheme_that_is_not_spoken_is_named() {
        let url: Url = "http://host/file".parse().unwrap();
        let said = |challenges: &[&str]| {
            let mut headers = HeaderMap::new();
            for challenge in challenges {
                headers.append(WWW_AUTHENTICATE, challenge.parse().unwrap());
            }
            status_error(&url, StatusCode::UNAUTHORIZED, &headers).message()
        };
        let digest = r#"Digest realm="a, b", nonce="x=""#;
        assert!(said(&[digest]).contains("the scheme Digest"), "{}", said(&[digest]));
        for basic in [&["basic realm=x", digest][..], &[r#"Digest realm="r", Basic realm="r""#]] {
            assert!(said(basic).contains("give credentials with `user`"), "{}", said(basic));
        }
        assert!(said(&["<b>"]).contains("give credentials with `user`"));
    }

    #[test]
    fn who_forbids_and_asks_to_wait_is_overloaded() {
        let url: Url = "http://host/file".parse().unwrap();
        let wait = HeaderMap::from_iter([(http::header::RETRY_AFTER, "3".parse().unwrap())]);
        let error = status_error(&url, StatusCode::FORBIDDEN, &wait);
        assert_eq!(error.kind(), ErrorKind::Overloaded);
        assert_eq!(asked_pause(&error), Some(Duration::from_secs(3)));
        let error = status_error(&url, StatusCode::FORBIDDEN, &HeaderMap::new());
        assert_eq!(error.kind(), ErrorKind::Auth);
        assert!(error.message().contains("`user`") && error.message().contains("`polite`"));
        assert!(!error.message().contains("directory"));
        let listing = status_error(
            &"http://host/files/".parse().unwrap(),
            StatusCode::FORBIDDEN,
            &HeaderMap::new(),
        );
        assert!(listing.message().contains("name its files"));
    }

    #[test]
    fn a_wait_is_said_in_words_where_its_number_tells_nothing() {
        for (asked, said) in [("7", "to wait 7 s"), ("99999999999999999999", "longer than a year")]
        {
            let headers =
                HeaderMap::from_iter([(http::header::RETRY_AFTER, asked.parse().unwrap())]);
            let url = Url::parse("http://a.test/").unwrap();
            let message = status_error(&url, StatusCode::TOO_MANY_REQUESTS, &headers).message();
            assert!(message.ends_with(said), "{message}");
        }
    }
}
