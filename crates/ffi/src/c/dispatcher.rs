//! The one thread that follows the downloads of a client, and on which its callbacks run.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pelton::{Events, Job};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::code::PeltonCode;
use super::error::Failure;
use super::event::{PeltonEvent, Told};
use super::job::PeltonJob;
use super::outcome::Outcome;
use super::queue::Queue;

/// An application's function that takes events.
pub(super) type OnEvent =
    unsafe extern "C" fn(job: *mut PeltonJob, event: *const PeltonEvent, user_data: *mut c_void);

/// A job as its handle and the dispatcher see it.
pub(super) struct Followed {
    /// Nothing once the run is over.
    job: Mutex<Option<Job>>,
    policy: &'static str,
    pub(super) queue: Queue,
    callback: Option<Callback>,
    /// Told to what waits for the reader of a pipe, and hears nothing else meanwhile.
    cancelled: Arc<AtomicBool>,
}

struct Callback {
    call: OnEvent,
    user_data: *mut c_void,
    handle: AtomicPtr<PeltonJob>,
    state: Mutex<CallState>,
    returned: Condvar,
}

// SAFETY: the header says that the function is called on the dispatcher thread.
unsafe impl Send for Callback {}
// SAFETY: as above; what changes is behind a lock.
unsafe impl Sync for Callback {}

#[derive(Default)]
struct CallState {
    /// The thread on which it is being called.
    running_on: Option<ThreadId>,
    is_closed: bool,
}

impl Followed {
    pub(super) fn new(
        job: Job,
        policy: &'static str,
        callback: Option<(OnEvent, *mut c_void)>,
        cancelled: Arc<AtomicBool>,
    ) -> Self {
        let callback = callback.map(|(call, user_data)| Callback {
            call,
            user_data,
            handle: AtomicPtr::new(ptr::null_mut()),
            state: Mutex::default(),
            returned: Condvar::new(),
        });
        Self { job: Mutex::new(Some(job)), policy, queue: Queue::default(), callback, cancelled }
    }

    /// What the callback is called with.
    pub(super) fn set_handle(&self, handle: *mut PeltonJob) {
        if let Some(callback) = &self.callback {
            callback.handle.store(handle, Ordering::Release);
        }
    }

    pub(super) const fn has_callback(&self) -> bool {
        self.callback.is_some()
    }

    /// Ends the run, unless it is over.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.with_job(Job::cancel);
    }

    /// Does something with the job, unless it is over.
    pub(super) fn with_job(&self, ask: impl FnOnce(&Job)) {
        if let Some(job) = &*self.lock() {
            ask(job);
        }
    }

    /// From the return on the callback is not called and does not run, unless this is called by it.
    pub(super) fn close(&self) {
        let Some(callback) = &self.callback else { return };
        let mut state = callback.lock();
        state.is_closed = true;
        let this = thread::current().id();
        while state.running_on.is_some_and(|thread| thread != this) {
            state = callback.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Passes on what the job tells, to its end.
    async fn follow(&self, mut events: Events) {
        while let Some(event) = events.next().await {
            self.tell(Told::Run(Box::new(event)));
        }
        let job = self.lock().take();
        if let Some(job) = job {
            let outcome = Outcome::new(self.policy, job.report().await);
            self.queue.end(outcome.clone());
            self.tell(Told::End(outcome));
        }
        self.queue.complete();
    }

    fn tell(&self, told: Told) {
        let event = PeltonEvent::new(told);
        match &self.callback {
            Some(callback) => callback.call(&event),
            None => self.queue.put(event),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Job>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Callback {
    fn call(&self, event: &PeltonEvent) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        state.running_on = Some(thread::current().id());
        drop(state);
        let handle = self.handle.load(Ordering::Acquire);
        // SAFETY: the application's function with its own data. The handle is not freed: that would
        // have closed this first.
        unsafe { (self.call)(handle, event, self.user_data) };
        self.lock().running_on = None;
        self.returned.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle of the thread, which ends when this is gone and its jobs are over.
pub(super) struct Dispatcher {
    jobs: mpsc::UnboundedSender<(Events, Arc<Followed>)>,
    thread: ThreadId,
}

impl Dispatcher {
    pub(super) fn start() -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| {
            Failure::new(PeltonCode::Internal, format!("{what} could not be started: {error}"))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| failed("a runtime", error))?;
        let (jobs, mut started) = mpsc::unbounded_channel::<(Events, Arc<Followed>)>();
        let thread = thread::Builder::new().name("pelton-events".to_owned()).spawn(move || {
            let tasks = LocalSet::new();
            tasks.spawn_local(async move {
                while let Some((events, job)) = started.recv().await {
                    tokio::task::spawn_local(async move { job.follow(events).await });
                }
            });
            // Ends with the last task.
            runtime.block_on(tasks);
        });
        let thread = thread.map_err(|error| failed("the dispatcher thread", error))?;
        Ok(Self { jobs, thread: thread.thread().id() })
    }

    /// Follows `job`, whose `events` nobody has taken yet.
    pub(super) fn follow(&self, events: Events, job: Arc<Followed>) -> Result<(), Failure> {
        self.jobs.send((events, job)).map_err(|_| {
            Failure::new(PeltonCode::Internal, "the dispatcher thread of this client has ended")
        })
    }

    /// Whether this is the dispatcher thread itself.
    pub(super) fn is_here(&self) -> bool {
        thread::current().id() == self.thread
    }
}
