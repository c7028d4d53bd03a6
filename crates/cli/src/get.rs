//! `pelton get`.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use pelton_core::sink::Allocation;
use pelton_core::{Client, Download, Job, Report, Result};

use crate::args::{FileAllocation, GetArgs, TargetArgs};
use crate::exit::usage;
use crate::output::Output;
use crate::{energy, exit, logging, output, resolve, stop};

/// Downloads what `args` name.
pub(crate) fn run(args: &GetArgs) -> Result<ExitCode> {
    if args.text.json && args.target.out.as_deref().is_some_and(resolve::is_standard) {
        return Err(usage("--json and -o - would both write to standard output"));
    }
    let download = download(args)?;
    if args.run.dry_run {
        logging::start(&args.text, None)?;
        return dry_run(args, download);
    }
    let mut output = Output::new(&args.text);
    logging::start(&args.text, output.display().map(crate::progress::Display::lines))?;
    let report = stop::runtime()?.block_on(follow(download.start()?, &mut output))?;
    output.finish(&report);
    if let Some(path) = &args.run.report {
        let text = serde_json::to_vec_pretty(&report).map_err(io::Error::other);
        let written = text.and_then(|text| std::fs::write(path, text));
        written.map_err(|error| exit::io(path.display(), error))?;
    }
    Ok(ExitCode::from(report.summary.exit_code))
}

fn download(args: &GetArgs) -> Result<Download> {
    let builder = Client::builder()
        .connector(Arc::new(resolve::connector(&args.http, &args.retry)))
        .http(resolve::http(&args.http, &args.retry)?)
        .engine(resolve::engine(&args.tuning, &args.retry, args.target.overwrite));
    let builder = resolve::policy(builder, &args.tuning);
    let client = energy::apply(builder, &args.energy)?.build()?;
    let walk = resolve::walk(&args.walk)?;
    let inputs = resolve::inputs(&args.inputs)?;
    let target = &args.target;
    let download = match (&target.out, &target.checksum) {
        (None, None) => client.download(inputs).into_dir(&target.dir),
        (out, checksum) => {
            let flag = if out.is_some() { "-o" } else { "--checksum" };
            let mut spec = resolve::only_file(inputs, flag)?;
            spec.digest = checksum.clone().or(spec.digest);
            match out {
                Some(out) if resolve::is_standard(out) => {
                    client.download([spec]).to_writer(Box::new(io::stdout()))
                }
                Some(out) => {
                    let (dir, name) = resolve::directory_and_name(&target.dir.join(out))?;
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

fn dry_run(args: &GetArgs, download: Download) -> Result<ExitCode> {
    let plan = stop::runtime()?.block_on(download.plan())?;
    if args.text.json {
        output::json_line(&pelton_core::RunEvent::Plan(plan))?;
    } else {
        output::print(output::plan(&plan).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what `job` tells until it is over. Signals stop it.
async fn follow(mut job: Job, output: &mut Output) -> Result<Report> {
    let canceller = job.canceller();
    let interrupt = stop::Interrupt::listen(canceller.clone())?;
    let mut events = job.events();
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(event) => output.event(&event).inspect_err(|_| canceller.cancel())?,
                None => return job.report().await,
            },
            () = interrupt.noticed() => {
                output.say("stopping; what has arrived is kept (once more stops at once)");
            }
        }
    }
}
