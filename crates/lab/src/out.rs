//! Standard output, which may be closed: whoever reads the first lines alone wants no more.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _};
use std::process::exit;

/// Writes `text`. Nothing is done for a reader who has gone, or who can't be written to.
pub(crate) fn write(text: Arguments<'_>) {
    match io::stdout().write_fmt(text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(error) => {
            note(format_args!("pelton-lab: standard output can't be written: {error}"));
            exit(1);
        }
    }
}

/// Writes a line on standard error. If it can't be written there is nobody to tell.
pub(crate) fn note(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

macro_rules! note {
    ($($text:tt)*) => { $crate::out::note(format_args!($($text)*)) };
}

macro_rules! out {
    ($($text:tt)*) => { $crate::out::write(format_args!($($text)*)) };
}

macro_rules! outln {
    ($($text:tt)*) => { $crate::out::write(format_args!("{}\n", format_args!($($text)*))) };
}
