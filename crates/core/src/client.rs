//! What an application holds: a client with its settings, and downloads that it starts.

mod builder;

use std::future::{Future, IntoFuture};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes, Joules};
use pelton_power::{CpuClock, ProcessCpu};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use url::Url;

pub use builder::ClientBuilder;
use builder::Settings;

use crate::catalog::{FileSpec, WalkOptions, Walked};
use crate::connection::Http;
use crate::driver::{Driver, Mailbox};
use crate::engine::Event;
use crate::events::{FileReport, Summary};
use crate::job::{Command, Job};
use crate::metering::traffic;
use crate::occupied::{Cancelled, Occupied};
use crate::panics;
use crate::report::{self, Recorder};
use crate::sink::{self, Allocation, DirectoryOptions, DirectorySink, Sink, StreamSink};
use crate::{Error, ErrorKind, Report, Result, RunEvent};

/// Downloads with one set of settings. Cheap to clone.
///
/// Each download runs on a thread of its own, so that it does not depend on the caller's runtime
/// and never blocks it.
#[derive(Clone)]
pub struct Client {
    settings: Arc<Settings>,
}

/// Something to download: a URL or a [`FileSpec`]. A URL whose path ends in `/` is a directory
/// listing and means its files. URLs that end in the same give names with what tells them apart, their queries or more of
/// their paths; a [`FileSpec`] keeps its name.
#[derive(Debug, Clone)]
pub enum Input {
    /// A URL as text, parsed when the download starts.
    Text(String),
    /// A URL.
    Url(Url),
    /// A file with what is known of it.
    File(FileSpec),
}

impl From<&str> for Input {
    fn from(url: &str) -> Self {
        Self::Text(url.to_owned())
    }
}

impl From<&String> for Input {
    fn from(url: &String) -> Self {
        Self::Text(url.clone())
    }
}

impl From<String> for Input {
    fn from(url: String) -> Self {
        Self::Text(url)
    }
}

impl From<Url> for Input {
    fn from(url: Url) -> Self {
        Self::Url(url)
    }
}

impl From<FileSpec> for Input {
    fn from(spec: FileSpec) -> Self {
        Self::File(spec)
    }
}

impl Client {
    /// A client with other settings than the defaults.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// From now on the bodies of all downloads of this client and its clones come no faster than `rate`
    /// together, however many there are; `None` is no limit. Their files share it evenly. What each
    /// download may take besides is in [`UserLimits`](crate::engine::UserLimits).
    pub fn set_max_rate(&self, rate: Option<BitRate>) {
        self.settings.rate.set_rate(rate);
    }

    /// A download of `inputs` into the current directory, to be started with
    /// [`start`](Download::start) or by awaiting it.
    pub fn download<I: Into<Input>>(&self, inputs: impl IntoIterator<Item = I>) -> Download {
        Download {
            settings: Arc::clone(&self.settings),
            inputs: inputs.into_iter().map(Into::into).collect(),
            target: Target::Directory(PathBuf::from(".")),
            options: DirectoryOptions::default(),
            walk: WalkOptions::default(),
        }
    }
}

enum Target {
    Directory(PathBuf),
    Writer(Box<dyn Write + Send>),
    Sink(Box<dyn Sink>),
}

/// A download that has not started.
#[must_use = "a download does nothing until it is started or awaited"]
pub struct Download {
    settings: Arc<Settings>,
    inputs: Vec<Input>,
    target: Target,
    options: DirectoryOptions,
    walk: WalkOptions,
}

/// What would be downloaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    /// Files that are there.
    pub files: Vec<FileSpec>,
    /// Files that are not there, and listings that can't be read, which have no name: each with its
    /// error.
    pub failed: Vec<FileReport>,
}

impl Catalog {
    /// The exit code of a command that shows it: 0 when nothing failed.
    pub fn exit_code(&self) -> u8 {
        let errors = self.failed.iter().filter_map(|file| file.error.as_ref());
        report::common_code(errors.map(|error| error.code))
    }
}

impl Download {
    /// Puts files below `directory`, which is made when it is missing.
    pub fn into_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.target = Target::Directory(directory.as_ref().to_owned());
        self
    }

    /// Passes the bytes of the one file on to `writer`, in order. More than one file is an error.
    pub fn to_writer(mut self, writer: Box<dyn Write + Send>) -> Self {
        self.target = Target::Writer(writer);
        self
    }

    /// Hands the bytes to an own sink.
    pub fn to_sink(mut self, sink: Box<dyn Sink>) -> Self {
        self.target = Target::Sink(sink);
        self
    }

    /// How directory listings are followed.
    pub fn walk(mut self, walk: WalkOptions) -> Self {
        self.walk = walk;
        self
    }

    /// Whether parts of an earlier run are continued and parts are kept for a later one. Default:
    /// they are.
    pub const fn resume(mut self, resume: bool) -> Self {
        self.options.resume = resume;
        self
    }

    /// How space for files is set aside. Default: not at all.
    pub const fn allocation(mut self, allocation: Allocation) -> Self {
        self.options.allocation = allocation;
        self
    }

    /// Whether data and names are on the disk before a file counts as complete. Default: no.
    pub const fn fsync(mut self, fsync: bool) -> Self {
        self.options.fsync = fsync;
        self
    }

    /// Starts the download on its own thread.
    ///
    /// # Errors
    /// No thread can be started. What else may be wrong shows in [`Job::report`].
    pub fn start(self) -> Result<Job> {
        let (commands, commands_in) = mpsc::unbounded_channel();
        let (events_out, events) = mpsc::unbounded_channel();
        let (report_out, report) = oneshot::channel();
        let cancelled = Cancelled::default();
        let is_cancelled = cancelled.clone();
        on_own_thread(move || async move {
            let run = self.run(is_cancelled, commands_in, events_out);
            let _ = report_out.send(panics::caught(|| "the download".to_owned(), run).await);
        })?;
        Ok(Job { commands, events: Some(events), report, cancelled })
    }

    /// What would be downloaded: listings followed, and sizes asked for where nothing states them.
    ///
    /// # Errors
    /// A malformed URL, a listing that can't be read, names that collide. What else can't be had is
    /// in [`Catalog::failed`].
    pub async fn catalog(self) -> Result<Catalog> {
        Box::pin(aside(move || async move {
            let http = self.http(&Rc::default())?;
            Ok(self.look(&http).await?.0)
        }))
        .await
    }

    /// What the policy would decide at the start, as the report of a run that fetched no file: its
    /// plan, and what can't be had. Sizes are asked for; no body is fetched.
    ///
    /// # Errors
    /// As for [`catalog`](Self::catalog).
    pub async fn plan(self) -> Result<Report> {
        Box::pin(aside(move || async move { self.plan_on_this_thread().await })).await
    }

    /// What is to be had, and how many bytes have told so: a run reads as much, and asks for no sizes.
    async fn look(self, http: &Http) -> Result<(Catalog, Bytes)> {
        let reader = self.settings.reader(http);
        let found = reader.resolve(self.inputs, &self.walk).await?;
        let listed = traffic(http).received;
        let (files, missing) = reader.ask_sizes(found.files).await;
        let listings = found.failed.into_iter().map(|(url, error)| (String::new(), url, error));
        let missing = missing.into_iter().map(|(spec, error)| (spec.name, spec.url, error));
        let failed = listings
            .chain(missing)
            .map(|(name, url, error)| report::not_begun(0.0, name, &url, error.into()));
        Ok((Catalog { files, failed: failed.collect() }, listed))
    }

    async fn plan_on_this_thread(self) -> Result<Report> {
        let started = Instant::now();
        let mailbox = Rc::new(Mailbox::default());
        let settings = Arc::clone(&self.settings);
        let http = self.http(&mailbox)?;
        let (catalog, listed) = self.look(&http).await?;
        let exit_code = catalog.exit_code();
        let mut engine = settings.engine(settings.engine, &catalog.files).with_just_come(listed);
        // Who names an RTT asks about that link, not about the one to this server.
        let named = settings.engine.link.rtt_hint.is_some();
        let mailbox = if named { Rc::default() } else { mailbox };
        let metering = (settings.meter)();
        if metering.serves_policies() {
            mailbox.put(Event::Energy(Joules::ZERO));
        }
        let (files, failed) = (catalog.files.len(), catalog.failed.len());
        let plan =
            crate::driver::plan(&mut engine, &mailbox, catalog.files, started, metering.label());
        let summary = Summary {
            files: (files + failed) as u64,
            files_failed: failed as u64,
            seconds: started.elapsed().as_secs_f64(),
            exit_code,
            ..Summary::of_nothing(engine.policy_name())
        };
        let (decisions, failed) = Default::default();
        Ok(Report { plan, summary, files: catalog.failed, decisions, failed })
    }

    fn http(&self, mailbox: &Rc<Mailbox>) -> Result<Http> {
        let mailbox = Rc::clone(mailbox);
        let observer = Rc::new(move |event| mailbox.put_connection_event(&event));
        let connector = Arc::clone(&self.settings.connector);
        let above = Arc::clone(&self.settings.rate);
        let http = Http::below(above, self.settings.http.clone(), connector, observer)?;
        let limits = self.settings.engine.limits;
        http.set_memory(limits.max_memory, limits.max_connections);
        Ok(http)
    }

    async fn run(
        self,
        is_cancelled: Cancelled,
        mut commands: mpsc::UnboundedReceiver<Command>,
        events: mpsc::UnboundedSender<Vec<RunEvent>>,
    ) -> Result<Report> {
        let started = Instant::now();
        let mailbox = Rc::new(Mailbox::default());
        let http = self.http(&mailbox)?;
        let (cpu_at_start, mut metering) = (ProcessCpu.cpu_time(), (self.settings.meter)());
        let reader = self.settings.reader(&http);
        let mut early = Vec::new();
        let found = tokio::select! {
            biased;
            never = metering.watch(started, &http) => match never {},
            found = reader.resolve(self.inputs, &self.walk) => found?,
            () = cancelled(&mut commands, &mut early) => {
                early.push(Command::Cancel);
                Walked::default()
            }
        };
        let mut occupied = None;
        let sink: Box<dyn Sink> = match self.target {
            Target::Directory(directory) => {
                // The process may have another current directory before the end.
                let directory = std::path::absolute(&directory).unwrap_or(directory);
                tokio::select! {
                    entered = Occupied::enter(&directory, is_cancelled) => occupied = Some(entered),
                    () = cancelled(&mut commands, &mut early) => early.push(Command::Cancel),
                }
                let overwrite = self.settings.engine.overwrite;
                let options = DirectoryOptions { overwrite, ..self.options };
                Box::new(DirectorySink::new(directory, options))
            }
            Target::Writer(_) if found.files.len() > 1 => {
                let message =
                    format!("{} files can't go into one stream: name one", found.files.len());
                return Err(Error::new(ErrorKind::Usage, message));
            }
            Target::Writer(writer) => Box::new(StreamSink::new(writer)),
            Target::Sink(sink) => sink,
        };
        let mut config = self.settings.engine;
        config.limits = sink::bounded(config.limits, &*sink);
        if !sink.takes_any_order() {
            // A stream has taken an unknown part of what it could not take.
            config.disk_patience = Duration::ZERO;
        }
        let listed = traffic(&http).received;
        let engine = self.settings.engine(config, &found.files).with_just_come(listed);
        let origins = self.settings.origins.clone();
        // Nobody may be listening.
        let tell = Box::new(move |told| drop(events.send(told)));
        let recorder = Recorder::new(metering.label().to_owned(), tell);
        let driver = Driver {
            engine,
            origins,
            http,
            sink,
            metering,
            recorder,
            mailbox,
            commands,
            started,
            cpu_at_start,
        };
        let report = driver.run(found, early).await;
        drop(occupied);
        Ok(report)
    }
}

impl IntoFuture for Download {
    type Output = Result<Report>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.start()?.report().await })
    }
}

/// Ends when the caller cancels or is gone. What else it says is put into `early`.
async fn cancelled(commands: &mut mpsc::UnboundedReceiver<Command>, early: &mut Vec<Command>) {
    while let Some(command) = commands.recv().await {
        if matches!(command, Command::Cancel) {
            return;
        }
        early.push(command);
    }
}

/// Runs a task on a thread of its own and waits for its result. Who stops waiting ends it.
async fn aside<T, F, Fut>(task: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = Result<T>>,
{
    let (mut out, result) = oneshot::channel();
    on_own_thread(move || async move {
        let told = tokio::select! {
            told = panics::caught(|| "the download".to_owned(), task()) => told,
            () = out.closed() => return,
        };
        let _ = out.send(told);
    })?;
    result.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "the thread ended early")))
}

/// Runs a task on a new thread with a runtime of its own.
fn on_own_thread<F, Fut>(task: F) -> Result<()>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Error::of_system(ErrorKind::Internal, "no runtime could be built", error)
    })?;
    std::thread::Builder::new()
        .name("pelton".to_owned())
        .spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, task());
        })
        .map_err(|error| {
            Error::of_system(ErrorKind::Internal, "no thread could be started", error)
        })?;
    Ok(())
}
