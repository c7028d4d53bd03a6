//! Clients and their downloads.
//!
//! Java holds them by number and never by address: a number that is no longer valid finds nothing,
//! whoever uses it and when.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use futures_util::stream::{BoxStream, SelectAll, StreamExt, unfold};
use pelton::events::{FileReport, Progress};
use pelton::power::meters::Sample;
use pelton::{Download, Error, ErrorKind, Events, Job, Report, Result, RunEvent};
use tokio::sync::mpsc;

use super::sample::LastSample;

static CLIENTS: LazyLock<Mutex<HashMap<i64, Arc<Client>>>> = LazyLock::new(Mutex::default);

/// Something that a download tells Java.
#[derive(Debug)]
pub(super) enum Told {
    Progress(Progress),
    File(FileReport),
    Over(Box<Result<Report>>),
}

type EventStream = BoxStream<'static, (i64, Option<RunEvent>)>;

/// One client, its downloads under way and what they tell.
pub(super) struct Client {
    settings: pelton::Client,
    sample: Arc<LastSample>,
    jobs: Mutex<HashMap<i64, Job>>,
    /// Nothing once the client is closed.
    started: Mutex<Option<mpsc::UnboundedSender<EventStream>>>,
    inbox: Mutex<Inbox>,
}

/// What is told, for the one thread that asks.
struct Inbox {
    runtime: tokio::runtime::Runtime,
    started: mpsc::UnboundedReceiver<EventStream>,
    is_open: bool,
    telling: SelectAll<EventStream>,
}

impl Client {
    /// Keeps `client` under a new number.
    pub(super) fn open(client: pelton::Client, sample: Arc<LastSample>) -> Result<i64> {
        static NEXT: AtomicI64 = AtomicI64::new(1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| {
            Error::new(ErrorKind::Internal, "no runtime could be built").with_source(error)
        })?;
        let (started, started_in) = mpsc::unbounded_channel();
        let inbox =
            Inbox { runtime, started: started_in, is_open: true, telling: SelectAll::new() };
        let client = Self {
            settings: client,
            sample,
            jobs: Mutex::default(),
            started: Mutex::new(Some(started)),
            inbox: Mutex::new(inbox),
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        lock(&CLIENTS).insert(number, Arc::new(client));
        Ok(number)
    }

    /// The client of this number, unless it is closed and silent.
    pub(super) fn find(number: i64) -> Option<Arc<Self>> {
        lock(&CLIENTS).get(&number).cloned()
    }

    /// Starts what `prepare` makes as the download of this number.
    pub(super) fn start(
        &self,
        number: i64,
        prepare: impl FnOnce(&pelton::Client) -> Result<Download>,
    ) -> Result<()> {
        let started = lock(&self.started).clone().ok_or_else(closed)?;
        let mut job = prepare(&self.settings)?.start()?;
        let events = told(number, job.events());
        lock(&self.jobs).insert(number, job);
        // Closed in between: the inbox is told nothing of it.
        started.send(events).map_err(|_| {
            lock(&self.jobs).remove(&number);
            closed()
        })
    }

    /// Does something to the download of this number, if it is under way.
    pub(super) fn with_job(&self, number: i64, act: impl FnOnce(&Job)) {
        if let Some(job) = lock(&self.jobs).get(&number) {
            act(job);
        }
    }

    /// What the meter in Java shows now.
    pub(super) fn set_sample(&self, sample: Option<Sample>) {
        self.sample.set(sample);
    }

    /// Cancels what is under way and takes no more.
    pub(super) fn close(&self) {
        drop(lock(&self.started).take());
        lock(&self.jobs).values().for_each(Job::cancel);
    }

    /// Waits for what is told next, and by which download; `None` once the client is closed and all
    /// of its downloads are over, whose number then is no longer valid.
    pub(super) fn next(&self, number: i64) -> Option<(i64, Told)> {
        let mut inbox = lock(&self.inbox);
        let Inbox { runtime, started, is_open, telling } = &mut *inbox;
        loop {
            let event = runtime.block_on(async {
                loop {
                    tokio::select! {
                        biased;
                        events = started.recv(), if *is_open => match events {
                            Some(events) => telling.push(events),
                            None => *is_open = false,
                        },
                        Some(event) = telling.next(), if !telling.is_empty() => return Some(event),
                        else => return None,
                    }
                }
            });
            let Some((download, event)) = event else {
                lock(&CLIENTS).remove(&number);
                return None;
            };
            let told = match event {
                Some(RunEvent::Progress(now)) => Some(Told::Progress(now)),
                Some(RunEvent::File(file)) => Some(Told::File(file)),
                Some(_) => None,
                // Its events have ended, so the report is there or about to be.
                None => {
                    let job = lock(&self.jobs).remove(&download);
                    job.map(|job| Told::Over(Box::new(job.blocking_report())))
                }
            };
            if let Some(told) = told {
                return Some((download, told));
            }
        }
    }
}

/// The events of download `number`, and nothing as a sign that they have ended.
fn told(number: i64, events: Events) -> EventStream {
    unfold(Some(events), move |events| async move {
        let mut events = events?;
        let event = events.next().await;
        let more = event.is_some().then_some(events);
        Some(((number, event), more))
    })
    .boxed()
}

fn closed() -> Error {
    Error::new(ErrorKind::Usage, "the client is closed")
}

/// What a thread that panicked has left is whole: each lock guards single insertions and removals.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
