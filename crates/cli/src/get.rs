//! `pelton get`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pelton_core::catalog::input_file;
use pelton_core::sink::Allocation;
use pelton_core::{Client, Download, Job, Report, Result, RunEvent};

use crate::args::{FileAllocation, GetArgs, PolicyName, TargetArgs};
use crate::exit::usage;
use crate::output::{Output, Passing};
use crate::{energy, exit, logging, output, resolve, stop};

/// Downloads what `args` name.
pub(crate) fn run(args: &GetArgs) -> Result<ExitCode> {
    if args.text.json && args.target.out.as_deref().is_some_and(resolve::is_standard) {
        return Err(usage("--json and -o - would both write to standard output"));
    }
    if args.tuning.pipelining.is_some() && args.tuning.policy != PolicyName::Fixed {
        return Err(usage("--pipelining is a number of --policy fixed: the others decide it"));
    }
    match attempt(args) {
        Ok((report, said)) => {
            said?;
            Ok(ExitCode::from(report.summary.exit_code))
        }
        Err(error) => {
            exit::say(&error);
            let report = Report::not_begun(policy_name(args), &error);
            if args.text.json {
                output::json_line(&RunEvent::Summary(report.summary.clone()))?;
            }
            if let Some(path) = &args.run.report
                && let Err(further) = ReportFile::open(path).and_then(|file| file.write(&report))
                && further.to_string() != error.to_string()
            {
                exit::say(&further);
            }
            Ok(ExitCode::from(report.summary.exit_code))
        }
    }
}

/// The run's report, and whether everything that it was asked to say could be said. Whatever can be
/// known to be wrong is found before the first byte.
///
/// # Errors
/// The run could not begin.
fn attempt(args: &GetArgs) -> Result<(Report, Result<()>)> {
    let reader_gone = Arc::default();
    let download = download(args, &reader_gone)?;
    let mut output = Output::new(&args.text, !args.run.dry_run);
    logging::start(&args.text, output.display().map(crate::progress::Display::lines))?;
    let file = args.run.report.as_deref().map(ReportFile::open).transpose()?;
    let failed = args.run.failed_list.as_deref().map(ReportFile::open_own).transpose()?;
    let runtime = stop::runtime()?;
    let (report, said) = if args.run.dry_run {
        let report = runtime.block_on(download.plan())?;
        let said = output.planned(&report);
        (report, said)
    } else {
        let mut report = runtime.block_on(follow(download.start()?, &mut output))?;
        if reader_gone.load(Ordering::Relaxed) {
            output.reader_is_gone();
            report.summary.exit_code = exit::INTERRUPTED;
        }
        let said = output.finish(&report);
        (report, said)
    };
    let written = file.map_or(Ok(()), |file| file.write(&report));
    let listed = failed.map_or(Ok(()), |file| file.write_list(&report));
    Ok((report, said.and(written).and(listed)))
}

fn policy_name(args: &GetArgs) -> &'static str {
    match args.tuning.policy {
        PolicyName::Lowe => "lowe",
        PolicyName::Hat => "hat",
        PolicyName::Eht => "eht",
        PolicyName::Fixed => "fixed",
    }
}

/// The file of `--report` or `--failed-list`. What was there stays until the report is written.
struct ReportFile<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> ReportFile<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        Self::open_with(path, File::options().write(true).create(true).truncate(false))
    }

    /// One that its owner alone may read: signatures of URLs are in it.
    fn open_own(path: &'a Path) -> Result<Self> {
        let mut options = File::options();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::open_with(path, options.write(true).create(true).truncate(false))
    }

    fn open_with(path: &'a Path, options: &OpenOptions) -> Result<Self> {
        let file = options.open(path).map_err(|error| exit::io(path.display(), error))?;
        Ok(Self { path, file })
    }

    fn write(self, report: &Report) -> Result<()> {
        let text = serde_json::to_vec_pretty(report).map_err(io::Error::other);
        let text = text.map_err(|error| exit::io(self.path.display(), error))?;
        self.replace(&text)
    }

    /// Writes what failed, for `-i`.
    fn write_list(self, report: &Report) -> Result<()> {
        self.replace(input_file::write(&report.failed).as_bytes())
    }

    fn replace(mut self, text: &[u8]) -> Result<()> {
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text));
        written.map_err(|error| exit::io(self.path.display(), error))
    }
}

/// What `args` ask for. `reader_gone` becomes true when nobody reads the file on standard output.
fn download(args: &GetArgs, reader_gone: &Arc<AtomicBool>) -> Result<Download> {
    let others = energy::Others::watch();
    let builder = Client::builder()
        .connector(Arc::new(resolve::connector(&args.http, &args.retry)))
        .http(resolve::http(&args.http, &args.retry)?)
        .engine(resolve::engine(&args.tuning, &args.retry, &args.target));
    let builder = resolve::policy(builder, &args.tuning);
    let builder = resolve::origin_memory(builder, &args.tuning)?;
    let walk = resolve::walk(&args.walk)?;
    let inputs = resolve::inputs(&args.inputs)?;
    let client = energy::apply(builder, &args.energy, others, args.run.dry_run)?.build()?;
    let target = &args.target;
    let download = match (&target.out, &target.checksum) {
        (None, None) => client.download(inputs).into_dir(&target.dir),
        (out, checksum) => {
            let flag = if out.is_some() { "-o" } else { "--checksum" };
            let mut spec = resolve::only_file(inputs, flag, out.is_some())?;
            spec.digest = checksum.clone().or(spec.digest);
            match out {
                Some(out) if resolve::is_standard(out) => {
                    client.download([spec]).to_writer(Box::new(Passing::new(reader_gone)))
                }
                Some(out) => {
                    let (dir, name) = resolve::directory_and_name(&target.dir, out)?;
                    spec.name = name;
                    client.download([spec]).into_dir(dir)
                }
                None => client.download([spec]).into_dir(&target.dir),
            }
        }
    };
    Ok(with_options(download.walk(walk), target))
}

fn with_options(download: Download, target: &TargetArgs) -> Download {
    let allocation = match target.file_allocation {
        FileAllocation::None => Allocation::None,
        FileAllocation::Trunc => Allocation::Truncate,
        FileAllocation::Falloc => Allocation::Reserve,
    };
    download.resume(target.resume || !target.no_continue).allocation(allocation).fsync(target.fsync)
}

/// Says what `job` tells until it is over. Signals stop it.
async fn follow(mut job: Job, output: &mut Output) -> Result<Report> {
    let canceller = job.canceller();
    let interrupt = stop::Interrupt::listen(canceller.clone())?;
    let mut events = job.events();
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(event) if output.event(&event) => {}
                // What has arrived is kept as after a signal.
                Some(_) => canceller.cancel(),
                None => return job.report().await,
            },
            () = interrupt.noticed() => {
                output.say("stopping; what can be gone on with is kept (once more stops at once)");
            }
        }
    }
}
