//! What the command exits with, and how it says that it failed.

use std::process::ExitCode;

use pelton_core::{Error, ErrorKind};

use crate::output;

/// The codes, for the help and the manual page.
pub(crate) const CODES: &str = "\
Exit codes:
    0  every file is there and verified
    1  another failure
    2  usage
    3  not found (404, 410), or nothing in a listing matches
    6  network, time-out, TLS, or a body that ended early
    7  unfinished: some files failed, each in its own way; run it again to go on
    8  what is there can't be continued
    9  disk full
   13  a file exists and differs
   17  a file could not be read or written
   22  HTTP status, or a redirect loop
   24  authentication
   29  the server is overloaded
   32  checksum mismatch
  130  interrupted, or nobody reads the output any more";

/// The code of a run that was interrupted.
pub(crate) const INTERRUPTED: u8 = ErrorKind::Cancelled.exit_code();

/// Says what failed and gives the code of its kind.
pub(crate) fn fail(error: &Error) -> ExitCode {
    say(error);
    ExitCode::from(error.kind().exit_code())
}

/// Says what failed.
pub(crate) fn say(error: &Error) {
    output::tell(&format!("pelton: {}", error.message()));
}

/// A failure to read or write `what` on this machine.
pub(crate) fn io(what: impl std::fmt::Display, error: std::io::Error) -> Error {
    Error::of_system(ErrorKind::FileIo, what.to_string(), error)
}

/// Something that was asked for makes no sense.
pub(crate) fn usage(line: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_that_a_failure_gives_is_explained() {
        let explained: Vec<u8> = CODES
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
            .collect();
        for kind in [
            ErrorKind::Usage,
            ErrorKind::NotFound,
            ErrorKind::Resolve,
            ErrorKind::CannotResume,
            ErrorKind::DiskFull,
            ErrorKind::Exists,
            ErrorKind::FileIo,
            ErrorKind::HttpStatus,
            ErrorKind::Auth,
            ErrorKind::Overloaded,
            ErrorKind::Checksum,
            ErrorKind::Listing,
            ErrorKind::Cancelled,
        ] {
            assert!(explained.contains(&kind.exit_code()), "{}", kind.name());
        }
    }
}
