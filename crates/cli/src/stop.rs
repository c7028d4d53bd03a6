//! The runtime of the command, and the signals that stop it.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;

use pelton_core::{Canceller, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::exit;

/// A runtime to wait in: the work is done on a thread of pelton-core's.
pub(crate) fn runtime() -> Result<Runtime> {
    let runtime = has_room().and_then(|()| Builder::new_current_thread().enable_all().build());
    let runtime = runtime.map_err(|error| exit::io("the runtime can't start", error))?;
    survive_file_limit(&runtime).map_err(|error| exit::io("signals can't be caught", error))?;
    Ok(runtime)
}

/// A file that grows larger than it may (`ulimit -f`) is from now on a write that fails, and not the end
/// of the process.
#[cfg(unix)]
fn survive_file_limit(runtime: &Runtime) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it has the form of the one for unix")]
fn survive_file_limit(_runtime: &Runtime) -> io::Result<()> {
    Ok(())
}

/// Whether what a runtime opens for itself can be opened. It panics where that for signals can't be.
#[cfg(unix)]
fn has_room() -> io::Result<()> {
    use std::os::unix::net::UnixStream;
    (0..4).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>().map(drop)
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it has the form of the one for unix")]
fn has_room() -> io::Result<()> {
    Ok(())
}

/// What ends when a signal asks to stop. From now on signals no longer end the process by themselves.
pub(crate) fn asked() -> Result<impl Future<Output = ()>> {
    let signals = Signals::new();
    let mut signals = signals.map_err(|error| exit::io("signals can't be caught", error))?;
    Ok(async move { signals.next().await })
}

/// Listens for the signals that ask to stop, until it is dropped: the first cancels the run, the
/// second ends the process at once. It does so on a thread of its own, as a reader that does not read may hold up
/// who writes.
pub(crate) struct Interrupt {
    noticed: Arc<Notify>,
    dropped: Arc<Notify>,
}

impl Interrupt {
    /// Cancels with `canceller`.
    pub(crate) fn listen(canceller: Canceller) -> Result<Self> {
        let failed = |error| exit::io("signals can't be caught", error);
        let (noticed, dropped) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let (notify, until) = (Arc::clone(&noticed), Arc::clone(&dropped));
        let (tell, told) = mpsc::channel();
        let watch = move || {
            let listening =
                Builder::new_current_thread().enable_all().build().and_then(|runtime| {
                    let inside = runtime.enter();
                    let signals = Signals::new()?;
                    drop(inside);
                    Ok((runtime, signals))
                });
            match listening {
                Err(error) => drop(tell.send(Err(error))),
                Ok((runtime, signals)) => {
                    drop(tell.send(Ok(())));
                    runtime.block_on(async {
                        tokio::select! {
                            () = until.notified() => {}
                            () = obey(signals, &canceller, &notify) => {}
                        }
                    });
                }
            }
        };
        thread::Builder::new().name("pelton-signals".to_owned()).spawn(watch).map_err(failed)?;
        told.recv().unwrap_or_else(|gone| Err(io::Error::other(gone))).map_err(failed)?;
        Ok(Self { noticed, dropped })
    }

    /// Ends once when the first signal has come.
    pub(crate) async fn noticed(&self) {
        self.noticed.notified().await;
    }
}

async fn obey(mut signals: Signals, canceller: &Canceller, noticed: &Notify) {
    signals.next().await;
    canceller.cancel();
    noticed.notify_one();
    signals.next().await;
    std::process::exit(i32::from(exit::INTERRUPTED));
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.dropped.notify_one();
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { interrupt, terminate })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "it has the form of the one for unix")]
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Without a handler the signal ends the process, which is what is wanted then.
        let _ = tokio::signal::ctrl_c().await;
    }
}
