//! From what a caller names to a list of files: URLs parsed, listings followed, sizes asked for.

mod side_files;

use std::cell::RefCell;
use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap};
use pelton_algos::retries::{Jitter, RetryConfig};
use pelton_algos::units::Bytes;
use url::Url;

use crate::catalog::{self, FileSpec, ListingPage, WalkOptions, Walked};
use crate::client::Input;
use crate::connection::{GetRequest, Http, Origin, shown, shown_text, through};
use crate::{Error, ErrorKind, Result, fetch};

/// HEAD requests in flight while sizes are asked for.
const SIZE_REQUESTS: usize = 16;

/// Reads what is read before the engine knows any file.
pub(crate) struct Reader<'a> {
    pub(crate) http: &'a Http,
    /// Pages are asked for again as files are.
    pub(crate) retry: RetryConfig,
    /// A page that brings nothing for this long has failed.
    pub(crate) stall_timeout: Duration,
    /// Digests that lie beside the files count.
    pub(crate) verify: bool,
}

impl Reader<'_> {
    /// The files that `inputs` mean, each once, with names that do not collide.
    /// What cannot be listed is no reason to leave the rest: it fails alone, unless nothing is left.
    pub(crate) async fn resolve(&self, inputs: Vec<Input>, walk: &WalkOptions) -> Result<Walked> {
        let mut found = Walked::default();
        let mut by_url = Vec::new();
        for input in inputs {
            let url = match input {
                Input::Text(text) => parse(&text)?,
                Input::Url(url) => url,
                Input::File(spec) => {
                    found.files.push(spec.checked()?);
                    continue;
                }
            };
            by_url.extend(self.add_url(url, walk, &mut found).await?);
        }
        catalog::tell_apart(&mut found.files, &by_url);
        found.files = catalog::collapse(found.files)?;
        if self.verify {
            self.read_side_files(&mut found).await;
        }
        match (found.files.is_empty(), found.failed.len()) {
            (true, 0) => nothing_in(&found).map_or(Ok(found), Err),
            // Nothing is left that could go on.
            (true, 1) => Err(found.failed.remove(0).1),
            _ => Ok(found),
        }
    }

    /// Adds what `url` means. Returns the place of a file that is named by it.
    async fn add_url(
        &self,
        mut url: Url,
        walk: &WalkOptions,
        found: &mut Walked,
    ) -> Result<Option<usize>> {
        if walk.recursive && self.is_directory(&url).await {
            url.set_path(&format!("{}/", url.path()));
        }
        if !url.path().ends_with('/') {
            found.files.push(FileSpec::from_url(url)?);
            return Ok(Some(found.files.len() - 1));
        }
        let jitter = RefCell::new(Jitter::new(0));
        let root = url.clone();
        let listed = async {
            catalog::check_scheme(&url)?;
            catalog::walk(url, walk, async |page| self.page(GetRequest::new(page), &jitter).await)
                .await
        };
        match listed.await {
            Ok(listed) => found.append(listed),
            Err(error) => found.failed.push((root, error)),
        }
        Ok(None)
    }

    /// Whether the server adds the `/` that `url` lacks, as servers do for directories alone.
    async fn is_directory(&self, url: &Url) -> bool {
        if url.path().ends_with('/') || catalog::check_scheme(url).is_err() {
            return false;
        }
        let request = GetRequest::new(url.clone());
        let answer = self.in_time(url, self.http.head(&request)).await;
        // Who does not answer is asked again for the file, and what is wrong is said of that.
        answer.is_ok_and(|response| response.final_url.path().strip_suffix('/') == Some(url.path()))
    }

    async fn page(&self, request: GetRequest, jitter: &RefCell<Jitter>) -> Result<ListingPage> {
        self.patiently(self.retry.attempts, jitter, async || self.try_page(&request).await).await
    }

    /// Asks until there is an answer, or no point in asking again.
    async fn patiently<T>(
        &self,
        attempts: u32,
        jitter: &RefCell<Jitter>,
        ask: impl AsyncFn() -> Result<T>,
    ) -> Result<T> {
        let mut failures = 0;
        loop {
            let error = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let asked = fetch::asked_pause(&error).unwrap_or_default();
            if !error.kind().is_retryable()
                || failures >= attempts
                || asked > self.retry.longest_retry_after
            {
                return Err(error);
            }
            let pause = self.retry.delay(failures, &mut jitter.borrow_mut()).max(asked);
            tokio::time::sleep(pause).await;
        }
    }

    async fn try_page(&self, request: &GetRequest) -> Result<ListingPage> {
        let url = &request.url;
        let mut response = self.in_time(url, self.http.get(request)).await?;
        if !response.status.is_success() {
            return Err(fetch::status_error(url, response.status, &response.headers));
        }
        let content_type =
            response.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let mut page = self.http.page();
        loop {
            let piece = response.piece(|bytes| page.append(bytes));
            match self.in_time(url, piece).await? {
                None => break,
                Some(true) => {}
                Some(false) => return Err(too_long(url, page.as_ref().len())),
            }
        }
        let body = bytes::Bytes::from_owner(page);
        Ok(ListingPage { url: response.final_url.clone(), content_type, body })
    }

    /// Asks for the size of each file that nothing states exactly. What can't be had is apart.
    pub(crate) async fn ask_sizes(
        &self,
        files: Vec<FileSpec>,
    ) -> (Vec<FileSpec>, Vec<(FileSpec, Error)>) {
        let jitter = RefCell::new(Jitter::new(0));
        let unreachable = RefCell::new(HashSet::new());
        let asked = files.into_iter().map(async |mut spec| {
            if spec.size.is_some() {
                return Ok(spec);
            }
            match self.size_of(&spec, &jitter, &unreachable).await {
                Ok(size) => spec.size_hint = size.or(spec.size_hint),
                Err(error) => return Err((spec, error)),
            }
            Ok(spec)
        });
        let answers: Vec<_> =
            futures_util::stream::iter(asked).buffered(SIZE_REQUESTS).collect().await;
        let (mut there, mut failed) = (Vec::with_capacity(answers.len()), Vec::new());
        for answer in answers {
            match answer {
                Ok(spec) => there.push(spec),
                Err(failure) => failed.push(failure),
            }
        }
        (there, failed)
    }

    /// The size of a file where it is first found. An origin that can't be reached is waited for
    /// once, not for each file.
    async fn size_of(
        &self,
        spec: &FileSpec,
        jitter: &RefCell<Jitter>,
        unreachable: &RefCell<HashSet<Origin>>,
    ) -> Result<Option<u64>> {
        let mut answer = Ok(None);
        for url in std::iter::once(&spec.url).chain(&spec.mirrors) {
            let origin = Origin::of(url)?;
            let attempts =
                if unreachable.borrow().contains(&origin) { 1 } else { self.retry.attempts };
            let ask = async || self.ask_size(url, spec).await;
            answer = self.patiently(attempts, jitter, ask).await;
            match &answer {
                Ok(_) => break,
                Err(error) if error.kind().is_overload() || error.kind() == ErrorKind::Resolve => {
                    unreachable.borrow_mut().insert(origin);
                }
                Err(_) => {}
            }
        }
        answer
    }

    async fn ask_size(&self, url: &Url, spec: &FileSpec) -> Result<Option<u64>> {
        let mut request = GetRequest::new(url.clone());
        request.home = Some(spec.url.clone());
        request.headers = fetch::headers(spec);
        let response = self.in_time(url, self.http.head(&request)).await?;
        if response.status.is_success() {
            return Ok(content_length(&response.headers));
        }
        // Some servers, and URLs that are signed for GET, refuse HEAD alone.
        request.range = Some((0, Some(0)));
        let response = self.in_time(url, self.http.get(&request)).await?;
        match response.status {
            StatusCode::OK => Ok(content_length(&response.headers)),
            // An empty file has no first byte: both name the whole size after the slash.
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                let range = response.headers.get(CONTENT_RANGE).and_then(|v| v.to_str().ok());
                Ok(range.and_then(|range| range.rsplit_once('/')?.1.trim().parse().ok()))
            }
            status => Err(fetch::status_error(url, status, &response.headers)),
        }
    }

    async fn in_time<T>(&self, url: &Url, arrives: impl Future<Output = Result<T>>) -> Result<T> {
        let limit = self.stall_timeout;
        tokio::time::timeout(limit, arrives).await.unwrap_or_else(|_| {
            let (url, through) = (shown(url), through(self.http.proxy_of(url).as_deref()));
            let limit = limit.as_secs_f64();
            let message = format!("{url}: no whole answer arrived for {limit} s{through}");
            Err(Error::new(ErrorKind::Timeout, message))
        })
    }
}

fn too_long(url: &Url, length: usize) -> Error {
    let message = format!(
        "{}: more than {}, with what else is read, has no room in memory; if it is a listing, raise \
         `memory-limit`",
        shown(url),
        Bytes(length as u64)
    );
    Error::new(ErrorKind::Listing, message)
}

/// Why listings that could be read hold nothing to fetch, unless they are just empty.
fn nothing_in(found: &Walked) -> Option<Error> {
    let (files, directories) = (found.left_out, found.not_entered);
    let message = match (&found.root, files, directories) {
        (Some(root), 1.., _) => {
            format!("{}: nothing matches: all of its files are left out", shown(root))
        }
        (Some(root), 0, 1..) => {
            format!("{}: no file, only directories: `recursive` goes into them", shown(root))
        }
        _ => return None,
    };
    Some(Error::new(ErrorKind::NotFound, message))
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn parse(text: &str) -> Result<Url> {
    Url::parse(text.trim()).map_err(|error| {
        let text = shown_text(text);
        let message = format!("{text:?} is no URL ({error}); write it as https://host/path");
        Error::new(ErrorKind::Usage, message)
    })
}
