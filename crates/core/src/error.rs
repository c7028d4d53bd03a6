//! What failed, on which URL or file, why, and what to do. What can be set is named in backquotes, as the flags of the
//! command and the keys of its configuration have it: the library has the same under docs/library.md, "What errors name".

use std::error::Error as StdError;
use std::{fmt, io};

use http::StatusCode;

use crate::connection::Origin;

/// What sort of failure it was. It decides the exit code and whether the engine tries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is malformed or contradicts itself. Not retried.
    Usage,
    /// 404 or 410. Not retried.
    NotFound,
    /// The host name has no address. Retried: a resolver may be down for a moment.
    Resolve,
    /// No connection: refused, unreachable, reset while connecting. Retried.
    Connect,
    /// The TLS handshake failed: expired, wrong name, unknown authority. Not retried.
    Tls,
    /// Nothing arrived for too long. Retried.
    Timeout,
    /// The peer reset the connection: servers and firewalls do that to who asks for too much. Retried
    /// from where it ended, with fewer connections.
    Reset,
    /// The connection ended before the body did. Retried from where it ended.
    ShortBody,
    /// The peer broke HTTP: a malformed response or a Content-Range that was not asked for. Retried.
    Protocol,
    /// What is there can't be continued.
    CannotResume,
    /// The file system is full, or the quota is used up. Not retried.
    DiskFull,
    /// The target exists and differs. Not retried.
    Exists,
    /// A file could not be created, written or renamed. Not retried.
    FileIo,
    /// This process may open no more sockets and files. Retried, with fewer at once.
    Descriptors,
    /// A status that says the request was wrong. Not retried.
    HttpStatus,
    /// A status of the 5xx family that may pass. Retried.
    ServerError,
    /// Redirects led in a circle, were too many, or led from https to http. Not retried.
    Redirect,
    /// 401, 403 or 407. Not retried.
    Auth,
    /// 429, 503, or 403 with `Retry-After`. Retried as the server says, with fewer connections.
    Overloaded,
    /// The bytes are not those that the digest promised. Not retried.
    Checksum,
    /// A URL that should be a directory listing is none. Not retried.
    Listing,
    /// The caller cancelled, or pressed Ctrl-C.
    Cancelled,
    /// A fault of pelton itself.
    Internal,
}

impl ErrorKind {
    /// What a status means that brings no file. Some servers say 403 to who asks too often, and `asks_to_wait`
    /// tells that from a refusal of who asks.
    pub(crate) fn of_status(status: StatusCode, asks_to_wait: bool) -> Self {
        match status.as_u16() {
            404 | 410 => Self::NotFound,
            403 if asks_to_wait => Self::Overloaded,
            401 | 403 | 407 => Self::Auth,
            429 | 503 => Self::Overloaded,
            // Misdirected: over another connection it may be answered (RFC 9110 section 15.5.20). Too early (RFC 8470
            // section 5.2): a further one is not.
            408 | 421 | 425 | 500..=599 => Self::ServerError,
            _ => Self::HttpStatus,
        }
    }

    /// Whether another run may succeed where nothing else has changed: what [may be asked for again](Self::is_retryable), and
    /// what was cancelled.
    pub const fn may_succeed_later(self) -> bool {
        self.is_retryable() || matches!(self, Self::Cancelled)
    }

    /// Whether the same request may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Resolve
                | Self::Connect
                | Self::Timeout
                | Self::Reset
                | Self::ShortBody
                | Self::Protocol
                | Self::Descriptors
                | Self::ServerError
                | Self::Overloaded
        )
    }

    /// Whether it says that the origin has more load than it takes.
    pub const fn is_overload(self) -> bool {
        matches!(self, Self::Connect | Self::Timeout | Self::Reset | Self::Overloaded)
    }

    /// Whether it is a status that says that the server, or what is behind it, does not serve this at present: it may be
    /// asked for too much, be away, or have a fault that concerns one file.
    pub(crate) const fn is_refusal(self) -> bool {
        matches!(self, Self::Overloaded | Self::ServerError)
    }

    /// Whether a server has answered, and otherwise than it was asked to.
    pub(crate) const fn is_answer(self) -> bool {
        matches!(
            self,
            Self::NotFound
                | Self::Auth
                | Self::HttpStatus
                | Self::ServerError
                | Self::Overloaded
                | Self::ShortBody
                | Self::Protocol
        )
    }

    /// The process exit code for a run whose only failures are of this kind.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Resolve
            | Self::Connect
            | Self::Tls
            | Self::Timeout
            | Self::Reset
            | Self::ShortBody
            | Self::Protocol => 6,
            Self::CannotResume => 8,
            Self::DiskFull => 9,
            Self::Exists => 13,
            Self::FileIo | Self::Descriptors => 17,
            Self::HttpStatus | Self::ServerError | Self::Redirect => 22,
            Self::Auth => 24,
            Self::Overloaded => 29,
            Self::Checksum => 32,
            Self::Cancelled => 130,
            Self::Listing | Self::Internal => 1,
        }
    }

    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::ShortBody => "short_body",
            Self::Protocol => "protocol",
            Self::CannotResume => "cannot_resume",
            Self::DiskFull => "disk_full",
            Self::Exists => "exists",
            Self::FileIo => "file_io",
            Self::Descriptors => "descriptors",
            Self::HttpStatus => "http_status",
            Self::ServerError => "server_error",
            Self::Redirect => "redirect",
            Self::Auth => "auth",
            Self::Overloaded => "overloaded",
            Self::Checksum => "checksum",
            Self::Listing => "listing",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}

/// A failure: its kind, its subject (a URL or a file) and what to do, and its cause.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    context: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// Where a redirect had led to.
    led_to: Option<Box<Origin>>,
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failure of `kind`; `context` is one line that names the URL or file and what to do.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), source: None, led_to: None }
    }

    /// What the operating system refused: a failure of `kind`, or `Descriptors` where there is none left.
    pub fn of_system(kind: ErrorKind, context: impl Into<String>, error: io::Error) -> Self {
        let mut context = context.into();
        if !is_out_of_descriptors(&error) {
            return Self::new(kind, context).with_source(error);
        }
        context.push_str(
            ": too many files and connections are open: raise `ulimit -n`, or have fewer at once \
             with `max-connection-per-server` or `max-concurrent-downloads`",
        );
        Self::new(ErrorKind::Descriptors, context).with_source(error)
    }

    /// The same failure with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same failure with `prefix: ` before its context.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        self.context = format!("{prefix}: {}", self.context);
        self
    }

    /// The same failure of `origin`, where a redirect has led to.
    #[must_use]
    pub(crate) fn behind_redirect(mut self, origin: &Origin) -> Self {
        self.led_to = Some(Box::new(origin.clone()));
        self
    }

    /// Where a redirect has led to, if it failed there.
    pub(crate) fn led_to(&self) -> Option<&Origin> {
        self.led_to.as_deref()
    }

    /// What sort of failure it was.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// One line for people, with the causes.
    pub fn message(&self) -> String {
        let mut line = self.context.clone();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !line.contains(&text) {
                line.push_str(": ");
                line.push_str(&text);
            }
            cause = error.source();
        }
        line
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Whether this process, or the whole system, may open nothing more.
#[cfg(unix)]
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| code == Some(errno.raw_os_error()))
}

#[cfg(not(unix))]
pub(crate) fn is_out_of_descriptors(_error: &io::Error) -> bool {
    false
}
