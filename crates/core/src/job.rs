//! A download under way.

use tokio::sync::{mpsc, oneshot};

use crate::engine::UserLimits;
use crate::occupied::Cancelled;
use crate::{Error, ErrorKind, Report, Result, RunEvent};

/// What a caller may ask of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Command {
    Pause,
    Resume,
    SetLimits(UserLimits),
    Cancel,
}

/// A download under way. Dropping it cancels the download. One into the same directory that begins after that waits until
/// what it goes on from is kept.
#[derive(Debug)]
pub struct Job {
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) events: Option<mpsc::UnboundedReceiver<Vec<RunEvent>>>,
    pub(crate) report: oneshot::Receiver<Result<Report>>,
    pub(crate) cancelled: Cancelled,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.cancelled.set();
    }
}

impl Job {
    /// What the run tells. The first caller gets all events; who asks again gets none. Without a
    /// caller before [`report`](Self::report) events are thrown away. Those of ten milliseconds come
    /// together.
    pub fn events(&mut self) -> Events {
        Events { incoming: self.events.take(), told: Vec::new().into_iter() }
    }

    /// Stops all streams; what has arrived is kept. No effect once the run is over.
    pub fn pause(&self) {
        self.send(Command::Pause);
    }

    /// Goes on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.send(Command::Resume);
    }

    /// Other ceilings from now on.
    pub fn set_limits(&self, limits: UserLimits) {
        self.send(Command::SetLimits(limits));
    }

    /// Stops for good and keeps what a later download into the same directory needs to go on. The
    /// report then has the exit code 130, unless everything was there already.
    pub fn cancel(&self) {
        self.canceller().cancel();
    }

    /// A handle that cancels this download from elsewhere, such as a signal handler.
    pub fn canceller(&self) -> Canceller {
        Canceller { commands: self.commands.clone(), cancelled: self.cancelled.clone() }
    }

    /// Waits for the end. A file that failed is no error here: see [`Report::files`].
    ///
    /// # Errors
    /// What kept the run from starting: a listing that can't be read, names that collide,
    /// certificate files that can't be used.
    pub async fn report(mut self) -> Result<Report> {
        self.events = None;
        (&mut self.report).await.unwrap_or_else(|_| Err(vanished()))
    }

    /// [`report`](Self::report) for callers without an async runtime. It blocks the thread.
    ///
    /// # Errors
    /// As for [`report`](Self::report).
    ///
    /// # Panics
    /// Within an async task of tokio, whose thread it would block: await [`report`](Self::report) there.
    pub fn blocking_report(mut self) -> Result<Report> {
        self.events = None;
        let (_, never) = oneshot::channel();
        let report = std::mem::replace(&mut self.report, never);
        report.blocking_recv().unwrap_or_else(|_| Err(vanished()))
    }

    /// A run that is over takes no commands: that is no error.
    fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }
}

fn vanished() -> Error {
    Error::new(ErrorKind::Internal, "the download's thread ended without a report")
}

/// Cancels a [`Job`] from elsewhere.
#[derive(Debug, Clone)]
pub struct Canceller {
    commands: mpsc::UnboundedSender<Command>,
    cancelled: Cancelled,
}

impl Canceller {
    /// See [`Job::cancel`].
    pub fn cancel(&self) {
        self.cancelled.set();
        let _ = self.commands.send(Command::Cancel);
    }
}

/// The events of a [`Job`], in order. They end with [`RunEvent::Summary`].
#[derive(Debug)]
pub struct Events {
    incoming: Option<mpsc::UnboundedReceiver<Vec<RunEvent>>>,
    told: std::vec::IntoIter<RunEvent>,
}

impl Events {
    /// The next event, or `None` after the last.
    pub async fn next(&mut self) -> Option<RunEvent> {
        if self.told.len() == 0 {
            self.told = self.incoming.as_mut()?.recv().await?.into_iter();
        }
        self.told.next()
    }

    /// [`next`](Self::next) for callers without an async runtime. It blocks the thread.
    ///
    /// # Panics
    /// Within an async task of tokio, whose thread it would block: await [`next`](Self::next) there.
    pub fn blocking_next(&mut self) -> Option<RunEvent> {
        if self.told.len() == 0 {
            self.told = self.incoming.as_mut()?.blocking_recv()?.into_iter();
        }
        self.told.next()
    }
}
