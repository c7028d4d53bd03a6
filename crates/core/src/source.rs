//! From what a caller names to a list of files: URLs parsed, listings followed, sizes asked for.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use pelton_algos::limits::{Jitter, RetryConfig};
use url::Url;

use crate::catalog::{self, FileSpec, ListingPage, WalkOptions, Walked};
use crate::client::Input;
use crate::connection::{GetRequest, Http, shown};
use crate::{Error, ErrorKind, Result, fetch};

/// Listings above this are not read further: a page for people is never that long.
const LONGEST_LISTING: usize = 64 * 1024 * 1024;

/// HEAD requests in flight while sizes are asked for.
const SIZE_REQUESTS: usize = 16;

/// Reads what is read before the engine knows any file.
pub(crate) struct Reader<'a> {
    pub(crate) http: &'a Http,
    /// Pages are asked for again as files are.
    pub(crate) retry: RetryConfig,
    /// A page that brings nothing for this long has failed.
    pub(crate) stall_timeout: Duration,
}

impl Reader<'_> {
    /// The files that `inputs` mean, each once, with names that do not collide.
    /// What cannot be listed is no reason to leave the rest: it fails alone, unless nothing is left.
    pub(crate) async fn resolve(&self, inputs: Vec<Input>, walk: &WalkOptions) -> Result<Walked> {
        let mut found = Walked { files: Vec::with_capacity(inputs.len()), failed: Vec::new() };
        for input in inputs {
            match input {
                Input::Text(text) => self.add_url(parse(&text)?, walk, &mut found).await?,
                Input::Url(url) => self.add_url(url, walk, &mut found).await?,
                Input::File(spec) => found.files.push(*spec),
            }
        }
        found.files = catalog::collapse(found.files)?;
        if found.files.is_empty() && !found.failed.is_empty() {
            return Err(found.failed.remove(0).1);
        }
        Ok(found)
    }

    async fn add_url(&self, url: Url, walk: &WalkOptions, found: &mut Walked) -> Result<()> {
        if url.path().ends_with('/') {
            let jitter = RefCell::new(Jitter::new(0));
            let root = url.clone();
            match catalog::walk(url, walk, async |page| self.page(page, &jitter).await).await {
                Ok(listed) => {
                    found.files.extend(listed.files);
                    found.failed.extend(listed.failed);
                }
                Err(error) => found.failed.push((root, error)),
            }
        } else {
            found.files.push(FileSpec::from_url(url)?);
        }
        Ok(())
    }

    async fn page(&self, url: Url, jitter: &RefCell<Jitter>) -> Result<ListingPage> {
        let mut failures = 0;
        loop {
            let error = match self.try_page(&url).await {
                Ok(page) => return Ok(page),
                Err(error) => error,
            };
            failures += 1;
            let asked = fetch::asked_pause(&error).unwrap_or_default();
            if !error.kind().is_retryable()
                || failures >= self.retry.attempts
                || asked > self.retry.longest_retry_after
            {
                return Err(error);
            }
            let pause = self.retry.delay(failures, &mut jitter.borrow_mut()).max(asked);
            tokio::time::sleep(pause).await;
        }
    }

    async fn try_page(&self, url: &Url) -> Result<ListingPage> {
        let request = GetRequest::new(url.clone());
        let mut response = self.in_time(url, self.http.get(&request)).await?;
        if !response.status.is_success() {
            return Err(fetch::status_error(url, response.status, &response.headers));
        }
        let content_type =
            response.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let mut body = Vec::new();
        loop {
            let piece = response.piece(|bytes| body.extend_from_slice(bytes));
            if self.in_time(url, piece).await?.is_none() {
                break;
            }
            if body.len() > LONGEST_LISTING {
                let message = format!("{}: longer than any directory listing", shown(url));
                return Err(Error::new(ErrorKind::Listing, message));
            }
        }
        Ok(ListingPage { url: response.final_url.clone(), content_type, body: body.into() })
    }

    /// Asks for the size of each file that nothing tells. A server that does not answer leaves it
    /// unknown: what is wrong shows when the file is fetched.
    pub(crate) async fn ask_sizes(&self, files: Vec<FileSpec>) -> Vec<FileSpec> {
        let asked = files.into_iter().map(|mut spec| async move {
            if spec.size.is_none() {
                spec.size_hint = self.ask_size(&spec).await.or(spec.size_hint);
            }
            spec
        });
        futures_util::stream::iter(asked).buffered(SIZE_REQUESTS).collect().await
    }

    async fn ask_size(&self, spec: &FileSpec) -> Option<u64> {
        let mut request = GetRequest::new(spec.url.clone());
        request.headers = fetch::headers(spec);
        let response = self.in_time(&spec.url, self.http.head(&request)).await.ok()?;
        if !response.status.is_success() {
            return None;
        }
        response.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    async fn in_time<T>(&self, url: &Url, arrives: impl Future<Output = Result<T>>) -> Result<T> {
        let limit = self.stall_timeout;
        tokio::time::timeout(limit, arrives).await.unwrap_or_else(|_| {
            let message = format!("{}: nothing arrived for {} s", shown(url), limit.as_secs_f64());
            Err(Error::new(ErrorKind::Timeout, message))
        })
    }
}

fn parse(text: &str) -> Result<Url> {
    Url::parse(text.trim()).map_err(|error| {
        let message = format!("{text:?} is no URL ({error}); write it as https://host/path");
        Error::new(ErrorKind::Usage, message)
    })
}
