//! Where pelton's own log goes.

use std::fs::File;
use std::io::{self, Write};

use indicatif::MultiProgress;
use pelton_core::Result;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::args::TextArgs;
use crate::exit;

/// What `--log` gets: decisions and files as `-v` says them, and what happens on the wire.
const FILE_FILTER: &str = "off,pelton=debug,pelton_core=debug,pelton_power=debug,pelton_lab=debug";
/// What `-vv` adds to `-v`, which says decisions and files itself.
const TEXT_FILTER: &str = "off,pelton_core=debug,pelton_power=debug,pelton_lab=debug";

/// Starts the log that `text` asks for. `lines` are the progress bars it must not tear.
pub(crate) fn start(text: &TextArgs, lines: Option<MultiProgress>) -> Result<()> {
    let to_file = match &text.log {
        None => None,
        Some(path) => {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|error| exit::io(path.display(), error))?;
            let layer = fmt::layer().with_ansi(false).with_writer(file);
            Some(layer.with_filter(EnvFilter::new(FILE_FILTER)))
        }
    };
    let to_terminal = (text.verbose > 1 && !text.quiet).then(|| {
        let layer = fmt::layer().with_ansi(false).without_time();
        let layer = layer.with_writer(move || Beside(lines.clone()));
        layer.with_filter(EnvFilter::new(TEXT_FILTER))
    });
    tracing_subscriber::registry().with(to_file).with(to_terminal).init();
    Ok(())
}

/// Standard error, beside the progress bars.
struct Beside(Option<MultiProgress>);

impl Write for Beside {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let write = || io::stderr().write(text);
        self.0.as_ref().map_or_else(write, |lines| lines.suspend(write))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
