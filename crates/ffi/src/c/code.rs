//! The numbers of the C ABI, which never change their meaning.

use std::ffi::{CStr, c_char};

use pelton::ErrorKind;

/// What a function did, or why a file or a run failed.
///
/// The numbers are stable: none is ever given another meaning, and new ones are added at the end of
/// their group. A program must bear numbers that it does not know. 1 to 99 are failures of a
/// download, 100 to 199 mistakes in a call, and from 200 on nothing failed.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeltonCode {
    /// It is done; of a run: every file is there.
    Ok = 0,
    /// The input is malformed or contradicts itself.
    Usage = 1,
    /// HTTP 404 or 410.
    NotFound = 2,
    /// The host name has no address. Tried again.
    Resolve = 3,
    /// No connection: refused, unreachable, reset while connecting. Tried again.
    Connect = 4,
    /// The TLS handshake failed: expired, wrong name, unknown authority.
    Tls = 5,
    /// Nothing arrived for too long. Tried again.
    Timeout = 6,
    /// The connection ended before the body did. Tried again from there.
    ShortBody = 7,
    /// The server broke HTTP. Tried again.
    Protocol = 8,
    /// The server reset the connection. Tried again, with fewer connections.
    Reset = 9,
    /// What is there can't be continued.
    CannotResume = 10,
    /// The file system is full, or the quota is used up.
    DiskFull = 11,
    /// The target exists and differs; see PELTON_CLIENT_OVERWRITE.
    Exists = 12,
    /// A file could not be created, written or renamed.
    FileIo = 13,
    /// A status that says that the request was wrong.
    HttpStatus = 14,
    /// A status of the 5xx family that may pass. Tried again.
    ServerError = 15,
    /// Redirects led in a circle, were too many, or led from https to http.
    Redirect = 16,
    /// HTTP 401, 403 or 407.
    Auth = 17,
    /// HTTP 429 or 503. Tried again as the server says, with fewer connections.
    Overloaded = 18,
    /// The bytes are not those that the digest promised.
    Checksum = 19,
    /// A URL that ends in `/` is no directory listing.
    Listing = 20,
    /// pelton_job_cancel or pelton_job_free ended it.
    Cancelled = 21,
    /// A fault of pelton itself.
    Internal = 22,
    /// Of a run: files failed, and not all for the same reason.
    Unfinished = 23,
    /// A failure that has no number yet; its message says what it is.
    Other = 24,
    /// No more files and sockets may be open. Tried again with fewer at once.
    Descriptors = 25,
    /// A pointer is NULL where one is needed.
    NullArgument = 100,
    /// A `struct_size` is too small, or a field that this library does not know is not zero.
    StructSize = 101,
    /// A text is not UTF-8.
    NotUtf8 = 102,
    /// The dispatcher thread, which runs the callbacks, would wait for itself.
    WrongThread = 103,
    /// This system can't do that.
    Unsupported = 104,
    /// pelton panicked: a fault of pelton. The handles of the call should only be freed.
    Panic = 105,
    /// Not yet: nothing happened within the time-out.
    Again = 200,
    /// There are no further events.
    End = 201,
}

/// Every code with its name; those of failed downloads are the names in JSON.
const NAMES: [(PeltonCode, &CStr); 34] = [
    (PeltonCode::Ok, c"ok"),
    (PeltonCode::Usage, c"usage"),
    (PeltonCode::NotFound, c"not_found"),
    (PeltonCode::Resolve, c"resolve"),
    (PeltonCode::Connect, c"connect"),
    (PeltonCode::Tls, c"tls"),
    (PeltonCode::Timeout, c"timeout"),
    (PeltonCode::ShortBody, c"short_body"),
    (PeltonCode::Protocol, c"protocol"),
    (PeltonCode::Reset, c"reset"),
    (PeltonCode::CannotResume, c"cannot_resume"),
    (PeltonCode::DiskFull, c"disk_full"),
    (PeltonCode::Exists, c"exists"),
    (PeltonCode::FileIo, c"file_io"),
    (PeltonCode::HttpStatus, c"http_status"),
    (PeltonCode::ServerError, c"server_error"),
    (PeltonCode::Redirect, c"redirect"),
    (PeltonCode::Auth, c"auth"),
    (PeltonCode::Overloaded, c"overloaded"),
    (PeltonCode::Checksum, c"checksum"),
    (PeltonCode::Listing, c"listing"),
    (PeltonCode::Cancelled, c"cancelled"),
    (PeltonCode::Internal, c"internal"),
    (PeltonCode::Unfinished, c"unfinished"),
    (PeltonCode::Other, c"other"),
    (PeltonCode::Descriptors, c"descriptors"),
    (PeltonCode::NullArgument, c"null_argument"),
    (PeltonCode::StructSize, c"struct_size"),
    (PeltonCode::NotUtf8, c"not_utf8"),
    (PeltonCode::WrongThread, c"wrong_thread"),
    (PeltonCode::Unsupported, c"unsupported"),
    (PeltonCode::Panic, c"panic"),
    (PeltonCode::Again, c"again"),
    (PeltonCode::End, c"end"),
];

impl PeltonCode {
    /// The code of a kind by its name in JSON.
    pub(super) fn of_kind(name: &str) -> Self {
        let known = NAMES.iter().find(|(_, known)| known.to_bytes() == name.as_bytes());
        known.map_or(Self::Other, |(code, _)| *code)
    }
}

impl From<ErrorKind> for PeltonCode {
    fn from(kind: ErrorKind) -> Self {
        Self::of_kind(kind.name())
    }
}

/// The name of a code, such as `not_found`: what the JSON of events and reports calls it.
///
/// Ownership: a constant, never freed. Threads: any. Errors: a number that is no code gives
/// `"unknown"`.
#[unsafe(no_mangle)]
pub extern "C" fn pelton_code_name(code: i32) -> *const c_char {
    let known = NAMES.iter().find(|(known, _)| *known as i32 == code);
    known.map_or(c"unknown", |(_, name)| name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_own_codes() {
        for (kind, code) in [
            (ErrorKind::Usage, 1),
            (ErrorKind::NotFound, 2),
            (ErrorKind::Resolve, 3),
            (ErrorKind::Connect, 4),
            (ErrorKind::Tls, 5),
            (ErrorKind::Timeout, 6),
            (ErrorKind::ShortBody, 7),
            (ErrorKind::Protocol, 8),
            (ErrorKind::Reset, 9),
            (ErrorKind::CannotResume, 10),
            (ErrorKind::DiskFull, 11),
            (ErrorKind::Exists, 12),
            (ErrorKind::FileIo, 13),
            (ErrorKind::HttpStatus, 14),
            (ErrorKind::ServerError, 15),
            (ErrorKind::Redirect, 16),
            (ErrorKind::Auth, 17),
            (ErrorKind::Overloaded, 18),
            (ErrorKind::Checksum, 19),
            (ErrorKind::Listing, 20),
            (ErrorKind::Cancelled, 21),
            (ErrorKind::Internal, 22),
            (ErrorKind::Descriptors, 25),
        ] {
            assert_eq!(PeltonCode::from(kind) as i32, code, "{}", kind.name());
        }
        assert_eq!(PeltonCode::of_kind("a kind of tomorrow"), PeltonCode::Other);
    }

    #[test]
    fn no_two_codes_share_a_number_or_a_name() {
        for (index, (code, name)) in NAMES.iter().enumerate() {
            for (other, other_name) in &NAMES[..index] {
                assert!(*code as i32 != *other as i32 && name != other_name, "{code:?}");
            }
        }
    }
}
