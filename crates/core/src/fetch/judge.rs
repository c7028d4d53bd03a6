//! Decides from the head of a response whether its body may be kept.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use http::header::{ACCEPT_RANGES, CONTENT_TYPE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};
use url::Url;

use super::digests;
use super::fields::{
    content_length, content_range, encoded, is_compressed_by_name, modified, same_version, text,
    unsatisfied_total, validator,
};
use super::status::{may_be_about_the_range, status_error};
use crate::connection::{GetResponse, shown};
use crate::engine::{Fetch, Head, Outcome, Ranges, Validator};
use crate::{Error, ErrorKind, Result};

pub(super) enum Verdict {
    /// The body is kept; it ends at this offset in the file, where that is known.
    Keep(Box<Head>, Option<u64>),
    Stop(Outcome),
}

/// Judges the answer to a request for `asked`, which is a part of what `fetch` is for.
pub(super) fn judge(
    fetch: &Fetch,
    asked: Option<&Range<u64>>,
    response: &GetResponse,
) -> Result<Verdict> {
    let (status, headers) = (response.status, &response.headers);
    let judged = match asked {
        None if fetch.parts.is_some() && says_part(status, headers) => {
            let why = "the server gave a part as if it were the whole";
            Err(Outcome::RangeRefused(wrong(fetch, why).into()))
        }
        None => whole(fetch, status, headers).map(Ok)?,
        Some(range) => part(fetch, range, status, headers)?,
    };
    let Part { total, end } = match judged {
        Ok(part) => part,
        Err(outcome) => return Ok(Verdict::Stop(outcome)),
    };
    let says_so = text(headers, &ACCEPT_RANGES).is_some_and(|units| units.trim() == "bytes");
    let (partial, validator) =
        (status == StatusCode::PARTIAL_CONTENT, validator(headers, SystemTime::now()));
    let head = Head {
        total,
        ranges: match (partial || says_so, headers.contains_key(ACCEPT_RANGES)) {
            _ if encoded(headers) => Ranges::None,
            (true, _) => Ranges::Given,
            // RFC 9110, section 14.3: a client may ask for them all the same.
            (false, false) if validator.is_strong() => Ranges::Unsaid,
            (false, _) => Ranges::None,
        },
        partial,
        compressed: encoded(headers) && !is_compressed_by_name(&fetch.url),
        modified: modified(headers),
        validator,
        digest: fetch.wants_digest.then(|| digests::promised(status, headers)).flatten(),
        url: response.final_url.clone(),
        origin: response.origin.clone(),
        protocol: response.protocol,
        connection: response.connection,
        response_time: response.response_time,
        waited_before: response.waited_before,
    };
    Ok(Verdict::Keep(Box::new(head), end))
}

/// What a body is of its file.
struct Part {
    /// The size of the file.
    total: Option<u64>,
    /// Where the body ends.
    end: Option<u64>,
}

/// Whether a body that is said to be the whole is a part by its Content-Range, which has no meaning there (RFC 9110,
/// section 14.4): some servers give the part that they were asked for, and another status.
fn says_part(status: StatusCode, headers: &HeaderMap) -> bool {
    let is_part = |(start, end, total): (u64, u64, Option<u64>)| {
        start > 0 || total.is_some_and(|total| end < total)
    };
    status == StatusCode::OK && content_range(headers).is_some_and(is_part)
}

/// The answer to a request for the whole file.
fn whole(fetch: &Fetch, status: StatusCode, headers: &HeaderMap) -> Result<Part> {
    match status {
        StatusCode::OK => {
            let total = content_length(headers);
            Ok(Part { total, end: total })
        }
        // Some caches answer each request as if it were for a range. Its bytes are as good, and
        // what is missing is asked for.
        StatusCode::PARTIAL_CONTENT => match content_range(headers) {
            Some((0, end, Some(total))) if !encoded(headers) && has_length(headers, end) => {
                Ok(Part { total: Some(total), end: Some(end) })
            }
            _ => Err(wrong(fetch, "the server sent a part and was asked for the whole")),
        },
        status => Err(status_error(&fetch.url, status, headers)),
    }
}

/// Whether a body is as long as its range says. Who waits for what is missing waits for ever, and what is there too much
/// would be taken for the next answer.
fn has_length(headers: &HeaderMap, range: u64) -> bool {
    content_length(headers).is_none_or(|length| length == range)
}

/// The answer to a request for `range`, or what it is instead.
fn part(
    fetch: &Fetch,
    range: &Range<u64>,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Result<Part, Outcome>> {
    let refused = |why: &str| Ok(Err(Outcome::RangeRefused(wrong(fetch, why).into())));
    let changed = |how: &str| {
        let message = format!("{}: the server's file {how} than before", shown(&fetch.url));
        Ok(Err(Outcome::Changed(message)))
    };
    match status {
        StatusCode::PARTIAL_CONTENT => {}
        StatusCode::OK => {
            if let Some(what) = something_else(fetch, headers) {
                return Err(wrong(fetch, &what).with_source(NoFile));
            }
            let is_version = |known| same_version(known, &validator(headers, SystemTime::now()));
            // RFC 9110, section 13.1.5: so it is where the file is another one than `If-Range` names.
            if fetch.validator.as_ref().and_then(is_version) == Some(false) {
                return changed("is another one");
            }
            return refused("the server answered a range with the whole file");
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let differs = |total: u64| fetch.total.is_some_and(|known| known != total);
            return match unsatisfied_total(headers) {
                Some(total) if differs(total) => changed("has another size"),
                _ => refused("the server says that a range of the file lies outside of it"),
            };
        }
        status if may_be_about_the_range(status) => {
            let refusal = status_error(&fetch.url, status, headers);
            return Ok(Err(Outcome::RangeRefused(refusal.into())));
        }
        status => return Err(status_error(&fetch.url, status, headers)),
    }
    if encoded(headers) {
        return refused("the server compressed a range");
    }
    let Some((start, end, total)) = content_range(headers) else {
        return refused("a part came without a usable Content-Range");
    };
    if !has_length(headers, end - start) {
        return refused("a part came whose Content-Length is not that of its Content-Range");
    }
    if total.is_some() && fetch.total.is_some() && total != fetch.total {
        return changed("has another size");
    }
    if let Some(known) = &fetch.validator {
        match same_version(known, &validator(headers, SystemTime::now())) {
            Some(false) => return changed("is another one"),
            None if known.is_strong() => {
                return refused("a part came without the ETag of its file");
            }
            // Without any, what is asked for in parts has a digest, or is taken to stay as it is.
            Some(true) | None => {}
        }
    }
    if start != range.start || end > range.end {
        let (came, asked) = (end - 1, range.end - 1);
        return refused(&format!(
            "bytes {start}-{came} came and {}-{asked} were asked for",
            range.start
        ));
    }
    // RFC 9110, section 15.3.7: it may be less than was asked for.
    Ok(Ok(Part { total: total.or(fetch.total), end: Some(end) }))
}

/// Marks an answer that is no file at all.
#[derive(Debug, thiserror::Error)]
#[error("does it, or the network, want a sign-in?")]
pub(super) struct NoFile;

/// What came for the whole file is none, of which a part has told that it has `total` bytes. Asked for once more, nothing
/// would tell.
pub(super) fn no_file(fetch: &Fetch, total: u64, headers: &HeaderMap) -> Option<Error> {
    let known = Fetch { total: Some(total), ..fetch.clone() };
    let what = something_else(&known, headers)?;
    let message = format!("{}: {what}", shown(&fetch.url));
    Some(Error::new(ErrorKind::HttpStatus, message).with_source(NoFile))
}

/// What an answer to a request for a range is that can't be its file: of another size, and nothing tells a version of it, as its
/// file had, or it is a page and the file has the name of something else. Networks that want a sign-in and servers that are
/// asked too much answer with pages, and such pages pass.
fn something_else(fetch: &Fetch, headers: &HeaderMap) -> Option<String> {
    let kind =
        text(headers, &CONTENT_TYPE).map(|kind| kind.split(';').next().unwrap_or(kind).trim());
    let is_page = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("text/html"));
    let had_version = fetch.validator.as_ref().is_some_and(|it| *it != Validator::default());
    let tells_version = headers.contains_key(ETAG) || headers.contains_key(LAST_MODIFIED);
    let is_none = had_version && !tells_version || is_page && !may_be_page(&fetch.url);
    let total = fetch.total.filter(|_| is_none && !encoded(headers))?;
    let size = match content_length(headers) {
        Some(length) if length != total => format!("{length} bytes"),
        None if is_page => "something".to_owned(),
        _ => return None,
    };
    let kind = kind.map(|kind| format!(" of {kind}")).unwrap_or_default();
    Some(format!("the server answered with {size}{kind}, and the file has {total} bytes"))
}

/// Whether a page may have this name: it says that it is one, or nothing.
fn may_be_page(url: &Url) -> bool {
    let name =
        url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
    let suffix = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
    let says_nothing =
        suffix.is_empty() || !suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let kinds = ["html", "htm", "xhtml", "php", "asp", "aspx", "jsp", "cgi"];
    says_nothing || kinds.iter().any(|kind| suffix.eq_ignore_ascii_case(kind))
}

fn wrong(fetch: &Fetch, what: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("{}: {what}", shown(&fetch.url)))
}
