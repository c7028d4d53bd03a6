//! From what a caller names to a list of files: URLs parsed, listings followed, sizes asked for.

use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use url::Url;

use crate::catalog::{self, FileSpec, ListingPage, WalkOptions};
use crate::client::Input;
use crate::connection::{GetRequest, Http, shown};
use crate::{Error, ErrorKind, Result, fetch};

/// Listings above this are not read further: a page for people is never that long.
const LONGEST_LISTING: usize = 64 * 1024 * 1024;

/// HEAD requests in flight while sizes are asked for.
const SIZE_REQUESTS: usize = 16;

/// The files that `inputs` mean, each once, with names that do not collide.
pub(crate) async fn resolve(
    http: &Http,
    inputs: Vec<Input>,
    walk: &WalkOptions,
) -> Result<Vec<FileSpec>> {
    let mut files = Vec::with_capacity(inputs.len());
    for input in inputs {
        match input {
            Input::Text(text) => add_url(http, parse(&text)?, walk, &mut files).await?,
            Input::Url(url) => add_url(http, url, walk, &mut files).await?,
            Input::File(spec) => files.push(*spec),
        }
    }
    catalog::collapse(files)
}

fn parse(text: &str) -> Result<Url> {
    Url::parse(text.trim()).map_err(|error| {
        let message = format!("{text:?} is no URL ({error}); write it as https://host/path");
        Error::new(ErrorKind::Usage, message)
    })
}

async fn add_url(
    http: &Http,
    url: Url,
    walk: &WalkOptions,
    files: &mut Vec<FileSpec>,
) -> Result<()> {
    if url.path().ends_with('/') {
        let listed = catalog::walk(url, walk, async |page| read_listing(http, page).await).await?;
        files.extend(listed);
    } else {
        files.push(FileSpec::from_url(url)?);
    }
    Ok(())
}

async fn read_listing(http: &Http, url: Url) -> Result<ListingPage> {
    let mut response = http.get(&GetRequest::new(url.clone())).await?;
    if !response.status.is_success() {
        let reason = response.status.canonical_reason().unwrap_or("");
        let message = format!("{}: HTTP {} {reason}", shown(&url), response.status.as_u16());
        return Err(Error::new(fetch::status_kind(response.status), message));
    }
    let content_type =
        response.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST_LISTING {
            let message = format!("{}: longer than any directory listing", shown(&url));
            return Err(Error::new(ErrorKind::Listing, message));
        }
    }
    Ok(ListingPage { url: response.final_url.clone(), content_type, body: body.into() })
}

/// Asks for the size of each file that nothing tells. A server that does not answer leaves it
/// unknown: what is wrong shows when the file is fetched.
pub(crate) async fn ask_sizes(http: &Http, files: Vec<FileSpec>) -> Vec<FileSpec> {
    let asked = files.into_iter().map(|mut spec| async move {
        if spec.size.is_none() {
            spec.size_hint = ask_size(http, &spec).await.or(spec.size_hint);
        }
        spec
    });
    futures_util::stream::iter(asked).buffered(SIZE_REQUESTS).collect().await
}

async fn ask_size(http: &Http, spec: &FileSpec) -> Option<u64> {
    let response = http.head(&GetRequest::new(spec.url.clone())).await.ok()?;
    if !response.status.is_success() {
        return None;
    }
    response.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
