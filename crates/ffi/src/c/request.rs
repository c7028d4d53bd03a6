//! What a download is told: which files, and where to.

use std::ffi::{c_char, c_void};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pelton::core::catalog;
use pelton::core::connection::shown_text;
use pelton::{Allocation, Client, Download, FileSpec, Input, WalkOptions};

use super::dispatcher::OnEvent;
use super::error::Failure;
use super::event::PeltonEvent;
use super::job::PeltonJob;
use super::options::known_flags;
use super::pointer::{self, Versioned, array, null, text, texts};

/// A flag of pelton_job_options: starts over instead of continuing parts, and keeps none.
pub const PELTON_JOB_NO_RESUME: u32 = 1;
/// A flag of pelton_job_options: a file is complete only when it is on the disk.
pub const PELTON_JOB_FSYNC: u32 = 2;
/// A flag of pelton_job_options: reserves the blocks of a file at once, so that a full disk shows at
/// the start.
pub const PELTON_JOB_RESERVE: u32 = 4;
/// A flag of pelton_job_options: follows sub-directories of listings.
pub const PELTON_JOB_RECURSIVE: u32 = 8;

/// What a download is told. Zero is each field's default.
///
/// Set it to zeros, then `struct_size`, then what is needed: `urls` or `list`, and `directory` or
/// `descriptors`. pelton copies it: it and what it points to may go after pelton_job_start. Texts are
/// UTF-8.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeltonJobOptions {
    /// sizeof(struct pelton_job_options).
    pub struct_size: usize,
    /// `url_count` URLs. One that ends in `/` is a directory listing and means its files.
    pub urls: *const *const c_char,
    /// How many `urls` there are.
    pub url_count: usize,
    /// The text of a list, besides the URLs or instead: a JSON manifest, URLs with aria2's options, or
    /// a list of checksums. See docs/command.md. NULL: none.
    pub list: *const c_char,
    /// What names in a list of checksums and relative URLs in a manifest are relative to. NULL: none.
    pub base_url: *const c_char,
    /// Files go below this directory, which is made if it is missing.
    pub directory: *const c_char,
    /// Instead of a directory: file descriptors, open for writing, one a file in the order of the
    /// URLs and then of the list; no listings. Each is emptied and filled from its start, whatever its
    /// position; for a digest to be checked it has to be open for reading too. A file that fails
    /// leaves what has arrived; nothing is resumed. A single file may go to something else, such as a
    /// pipe: then it comes in order over one stream, as fast as its reader takes it. A reader that
    /// goes away is a PELTON_CODE_FILE_IO; SIGPIPE does not come. pelton duplicates them, so that the caller may
    /// close its own after pelton_job_start.
    pub descriptors: *const i32,
    /// How many `descriptors` there are.
    pub descriptor_count: usize,
    /// Takes the events instead of pelton_next_event. NULL: events wait for that.
    ///
    /// It is called on the client's dispatcher thread, for one event after the other, those of all
    /// jobs of the client. While it runs, nothing is told of the other jobs either: no callback, no
    /// event, and no end to pelton_job_wait. So it must return soon, and must not wait for a thread
    /// that waits for one of these. The event belongs to pelton and ends with the call. It may call every function of pelton, pelton_job_free too, but
    /// none that waits for this client. It must not throw.
    pub on_event: Option<
        unsafe extern "C" fn(
            job: *mut PeltonJob,
            event: *const PeltonEvent,
            user_data: *mut c_void,
        ),
    >,
    /// Handed to `on_event`.
    pub user_data: *mut c_void,
    /// PELTON_JOB_... joined by `|`.
    pub flags: u32,
    /// How many levels of sub-directories are followed. 0: all.
    pub depth: u32,
}

// SAFETY: `repr(C)`, `struct_size` is first, and zeros are NULLs, `None` and numbers.
unsafe impl Versioned for PeltonJobOptions {
    const NAME: &str = "pelton_job_options";
}

/// A [`PeltonJobOptions`] that was read.
pub(super) struct Request {
    inputs: Vec<Input>,
    target: Target,
    callback: Option<(OnEvent, *mut c_void)>,
    flags: u32,
    depth: u32,
}

enum Target {
    Directory(String),
    Descriptors(Vec<i32>),
}

/// Reads what C says; nothing for NULL.
///
/// # Safety
/// `pointer` is as [`pointer::read`] wants it, and what it holds as the header says.
pub(super) unsafe fn read(pointer: *const PeltonJobOptions) -> Result<Option<Request>, Failure> {
    // SAFETY: the caller's promise, here and below.
    let Some(options) = (unsafe { pointer::read(pointer) })? else { return Ok(None) };
    let known = PELTON_JOB_NO_RESUME | PELTON_JOB_FSYNC | PELTON_JOB_RESERVE | PELTON_JOB_RECURSIVE;
    known_flags("pelton_job_options.flags", options.flags, known)?;
    let urls = unsafe { texts(options.urls, options.url_count, "urls") }?;
    let mut inputs: Vec<Input> = urls.into_iter().map(parse).collect::<Result<_, _>>()?;
    let base = unsafe { text(options.base_url, "base_url") }?.map(parse_url).transpose()?;
    if let Some(list) = unsafe { text(options.list, "list") }? {
        let files =
            catalog::parse_list(list, base.as_ref()).map_err(|error| error.prefixed("list"))?;
        inputs.extend(files.into_iter().map(Input::from));
    }
    let directory = unsafe { text(options.directory, "directory") }?;
    let count = options.descriptor_count;
    let descriptors = unsafe { array(options.descriptors, count, "descriptors") }?;
    let target = match (directory, descriptors) {
        (Some(_), [_, ..]) => {
            return Err(Failure::usage("both a directory and descriptors are given: choose one"));
        }
        (Some(""), []) => return Err(Failure::usage("directory is empty; write . for this one")),
        (Some(directory), []) => Target::Directory(directory.to_owned()),
        (None, []) => return Err(null("directory")),
        (None, descriptors) => Target::Descriptors(descriptors.to_vec()),
    };
    let callback = options.on_event.map(|call| (call, options.user_data));
    Ok(Some(Request { inputs, target, callback, flags: options.flags, depth: options.depth }))
}

fn parse(url: &str) -> Result<Input, Failure> {
    parse_url(url).map(Input::from)
}

fn parse_url(text: &str) -> Result<url::Url, Failure> {
    url::Url::parse(text)
        .map_err(|error| Failure::usage(format!("{:?} is no URL: {error}", shown_text(text))))
}

/// What takes events.
type Callback = Option<(OnEvent, *mut c_void)>;

impl Request {
    /// The download that was asked for, and what takes its events.
    /// `cancelled` ends what would wait for the reader of a pipe.
    pub(super) fn download(
        self,
        client: &Client,
        cancelled: Arc<AtomicBool>,
    ) -> Result<(Download, Callback), Failure> {
        let has = |flag| self.flags & flag != 0;
        let (no_resume, fsync) = (has(PELTON_JOB_NO_RESUME), has(PELTON_JOB_FSYNC));
        let (reserve, recursive) = (has(PELTON_JOB_RESERVE), has(PELTON_JOB_RECURSIVE));
        let download = match self.target {
            Target::Directory(directory) => client.download(self.inputs).into_dir(directory),
            Target::Descriptors(descriptors) => {
                into_descriptors(client, files(self.inputs)?, &descriptors, cancelled)?
            }
        };
        let depth = NonZeroU32::new(self.depth);
        let download = download
            .resume(!no_resume)
            .fsync(fsync)
            .allocation(if reserve { Allocation::Reserve } else { Allocation::None })
            .walk(WalkOptions { recursive, depth, ..WalkOptions::default() });
        Ok((download, self.callback))
    }
}

/// The files of `inputs`, none of which may be a listing.
fn files(inputs: Vec<Input>) -> Result<Vec<FileSpec>, Failure> {
    let file = |input| match input {
        Input::File(spec) => Ok(spec),
        Input::Text(text) => Ok(FileSpec::from_url(parse_url(&text)?)?),
        Input::Url(url) if url.path().ends_with('/') => {
            let why = format!("{url} is a listing: descriptors are for files that are named");
            Err(Failure::usage(why))
        }
        Input::Url(url) => Ok(FileSpec::from_url(url)?),
    };
    inputs.into_iter().map(file).collect()
}

#[cfg(unix)]
fn into_descriptors(
    client: &Client,
    files: Vec<FileSpec>,
    descriptors: &[i32],
    cancelled: Arc<AtomicBool>,
) -> Result<Download, Failure> {
    use super::descriptors::{Target, open};

    Ok(match open(&files, descriptors, cancelled)? {
        Target::Stream(stream) => client.download(files).to_writer(Box::new(stream)),
        Target::Files(sink) => client.download(files).to_sink(Box::new(sink)),
    })
}

#[cfg(not(unix))]
fn into_descriptors(
    _: &Client,
    _: Vec<FileSpec>,
    _: &[i32],
    _: Arc<AtomicBool>,
) -> Result<Download, Failure> {
    let why = "file descriptors work on Unix only; use a directory";
    Err(Failure::new(super::code::PeltonCode::Unsupported, why))
}
