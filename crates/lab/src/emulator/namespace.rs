//! A network namespace, and a thread that lives in it.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, unshare};

use super::EmulatorError;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace. What [`run`](Self::run) runs is inside, with the processes it starts.
///
/// Its thread lives as long as it does, which is what a child needs that asks for a signal when its
/// parent thread ends (`PR_SET_PDEATHSIG`).
pub struct Namespace {
    name: &'static str,
    /// Some until dropped.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    /// A new namespace with nothing but its loopback device. `name` is for messages.
    pub(super) fn new(name: &'static str) -> Result<Self, EmulatorError> {
        let (jobs, queue) = channel::<Job>();
        let (made, outcome) = channel();
        let thread = thread::Builder::new()
            .name(format!("{name}-netns"))
            .spawn(move || {
                let result = unshare(CloneFlags::CLONE_NEWNET);
                let failed = result.is_err();
                // The other side waits for it.
                let _ = made.send(result);
                if !failed {
                    for job in queue {
                        job();
                    }
                }
            })
            .map_err(EmulatorError::io("start a thread"))?;
        match outcome.recv() {
            Ok(Ok(())) => Ok(Self { name, jobs: Some(jobs), thread: Some(thread) }),
            Ok(Err(errno)) => Err(EmulatorError::NoNamespace(errno.into())),
            Err(_) => Err(gone(name)),
        }
    }

    /// Runs `job` inside and waits for it. Threads that it starts are inside, too.
    ///
    /// # Errors
    /// When the job panicked, now or earlier.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EmulatorError> {
        let (done, result) = channel();
        let job = Box::new(move || {
            // Nobody waits for it only if the caller has ended.
            let _ = done.send(job());
        });
        let jobs = self.jobs.as_ref().ok_or_else(|| gone(self.name))?;
        jobs.send(job).map_err(|_| gone(self.name))?;
        result.recv().map_err(|_| gone(self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It has panicked, which has been reported.
            let _ = thread.join();
        }
    }
}

fn gone(name: &str) -> EmulatorError {
    EmulatorError::Io {
        doing: format!("work in the {name} namespace"),
        error: io::Error::other("its thread has ended"),
    }
}
