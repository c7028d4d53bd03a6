//! `pelton-lab run`: a matrix of links, sets and clients on real packets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use pelton_algos::units::{BitRate, Bytes};
use pelton_lab::bench::clients::Client;
use pelton_lab::bench::results::{CellResult, ClientInfo, Results, SCHEMA};
use pelton_lab::bench::{Failure, PreparedSet, Runner, Workspace, find_pelton, floor};
use pelton_lab::cells::{Cells, FileSet, NamedLink};
use pelton_lab::emulator::{CongestionControl, become_able, probe};
use pelton_lab::model::LinkSpec;

use super::cells::CellsSource;
use super::matrix;

/// Above this rate it is measured first whether the machine can carry a link.
const SURELY_CARRIED: f64 = 100e6;

/// As of shells: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// Measure clients on emulated links: real nginx, real packets.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Two links, two sets, pelton against curl and aria2, once: within two minutes.
    #[arg(long, conflicts_with_all = ["links", "sets", "clients", "repeats", "sweep"])]
    quick: bool,
    /// The links, separated by commas: see `pelton-lab cells`.
    #[arg(long, value_delimiter = ',', default_value = "lte,wifi-near,50x200")]
    links: Vec<String>,
    /// The sets, separated by commas; `pages` = the 40 pages of papers/002.
    #[arg(long, value_delimiter = ',', default_value = "small,medium,mixed")]
    sets: Vec<String>,
    /// The clients, separated by commas; `all`; `fixed:PP,P,CC` = pelton with these numbers.
    #[arg(
        long,
        default_value = "pelton-lowe,pelton-hat,pelton-eht,pelton-eht-h2,curl,curl-parallel,curl-parallel-h2,wget,wget2,aria2,aria2-tuned,axel,lftp"
    )]
    clients: String,
    /// Add every static cell, to find the best: fixed:PP,P,CC for CC 1 to 32 and P 1 to 8.
    #[arg(long)]
    sweep: bool,
    /// How often each client runs in each cell.
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: u32,
    /// Seed of the first repeat's losses and jitter; each further repeat has the next.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What the server's TCP follows.
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    congestion_control: Control,
    /// End a client that takes longer than this many seconds; by default what the cell deserves.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Write the results to FILE, as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write each run's packets to a file in DIR, in pcap's format.
    #[arg(long, value_name = "DIR")]
    packets: Option<PathBuf>,
    /// Where files lie while they are served and fetched; by default in memory, if there is room.
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// The program pelton; by default the one beside this program, else that on the path.
    #[arg(long, value_name = "FILE")]
    pelton: Option<PathBuf>,
    #[command(flatten)]
    source: CellsSource,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Control {
    Cubic,
    Bbr,
}

/// What is to be measured, all names understood.
struct Plan<'a> {
    links: Vec<(&'a str, &'a NamedLink)>,
    sets: Vec<(&'a str, &'a FileSet)>,
    clients: Vec<Client>,
    repeats: u32,
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let cells = args.source.load()?;
    let mut plan = plan(args, &cells)?;
    let pelton = find_pelton(args.pelton.as_deref())?;
    let (clients, skipped) = leave_out_missing(&mut plan, &pelton)?;
    let server = Runner::server_version()?;

    become_able()?;
    let workspace = Workspace::create(&place(args, &plan)?)?;
    let mut runner = Runner::new(workspace, pelton)?;
    runner.congestion_control = match args.congestion_control {
        Control::Cubic => CongestionControl::Cubic,
        Control::Bbr => CongestionControl::Bbr,
    };
    if let Some(dir) = &args.packets {
        std::fs::create_dir_all(dir).with_context(|| format!("--packets {}", dir.display()))?;
        runner.packet_logs = Some(dir.clone());
    }
    let interrupted = runner.interrupted.clone();
    ctrlc::set_handler(move || interrupted.store(true, Ordering::Relaxed))?;
    refuse_what_is_too_fast(&plan)?;

    let mut results = Results {
        schema: SCHEMA,
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        seed: args.seed,
        lab: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine(),
        server,
        congestion_control: runner.congestion_control.name().to_owned(),
        clients,
        skipped,
        cells: Vec::new(),
    };
    let outcome = measure_all(args, &plan, &runner, &mut results);
    println!("{}", matrix::show(&results));
    if let Some(file) = &args.out {
        let text = serde_json::to_string_pretty(&results)?;
        std::fs::write(file, text).with_context(|| format!("can't write {}", file.display()))?;
    }
    if runner.interrupted.load(Ordering::Relaxed) {
        eprintln!("pelton-lab: interrupted; what was measured until then is above");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    outcome?;
    let failed = results.cells.iter().any(|cell| !cell.failures.is_empty());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn plan<'a>(args: &'a RunArgs, cells: &'a Cells) -> Result<Plan<'a>> {
    let (links, sets, clients, repeats) = if args.quick {
        let names = |list: [&str; 2]| list.map(str::to_owned).to_vec();
        let clients = "pelton-eht,pelton-hat,curl,aria2";
        (names(["40x60", "wifi-near"]), names(["page-100-10240", "medium"]), clients, 1)
    } else {
        (args.links.clone(), args.sets.clone(), args.clients.as_str(), args.repeats)
    };
    let mut clients = Client::parse_list(clients)?;
    if args.sweep {
        clients.extend(Client::sweep());
    }
    let mut all_sets = Vec::new();
    for name in &sets {
        all_sets.extend(cells.sets(name)?);
    }
    let links = links
        .iter()
        .map(|name| {
            let link = cells.link(name)?;
            let (name, _) = cells.links.get_key_value(name).unzip();
            Ok((name.map(String::as_str).unwrap_or_default(), link))
        })
        .collect::<Result<_>>()?;
    if repeats == 0 {
        bail!("--repeats 0 measures nothing");
    }
    Ok(Plan { links, sets: all_sets, clients, repeats })
}

/// Removes the clients whose program is not installed, and says so.
fn leave_out_missing(
    plan: &mut Plan<'_>,
    pelton: &Path,
) -> Result<(BTreeMap<String, ClientInfo>, BTreeMap<String, String>)> {
    let (mut present, mut missing) = (BTreeMap::new(), BTreeMap::new());
    plan.clients.retain(|client| match client.version(pelton) {
        Ok(version) => {
            present.insert(client.name.clone(), ClientInfo { version, command: Vec::new() });
            true
        }
        Err(error) => {
            let (program, remedy) = client.program(pelton);
            let why = format!("{}: {error}; {remedy}", program.display());
            eprintln!("pelton-lab: {client} is left out: {why}");
            missing.insert(client.name.clone(), why);
            false
        }
    });
    if plan.clients.is_empty() {
        bail!("no client of the matrix is installed");
    }
    Ok((present, missing))
}

/// A directory with room for the largest set twice: served and fetched.
fn place(args: &RunArgs, plan: &Plan<'_>) -> Result<PathBuf> {
    let size = |link: &NamedLink, set: &FileSet| -> Bytes {
        let files = set.files(args.seed, link.spec.down.peak_rate());
        files.iter().map(|file| Bytes(file.size)).sum()
    };
    let largest = plan
        .links
        .iter()
        .flat_map(|(_, link)| plan.sets.iter().map(|(_, set)| size(link, set)))
        .max()
        .unwrap_or(Bytes::ZERO);
    let free = |dir: &Path| {
        let stat = rustix::fs::statvfs(dir);
        stat.map_or(Bytes::ZERO, |stat| Bytes(stat.f_bavail * stat.f_frsize))
    };
    let needed = largest + largest;
    if let Some(dir) = &args.work {
        if free(dir) < needed {
            bail!("--work {} has {} free, and {needed} are needed", dir.display(), free(dir));
        }
        return Ok(dir.clone());
    }
    let (memory, disk) = (PathBuf::from("/dev/shm"), std::env::temp_dir());
    // Half of what is free in memory is left to others.
    if free(&memory) >= needed + needed {
        Ok(memory)
    } else if free(&disk) >= needed {
        Ok(disk)
    } else {
        bail!(
            "{needed} are needed for files, more than {} has free; say where with --work",
            disk.display()
        )
    }
}

fn refuse_what_is_too_fast(plan: &Plan<'_>) -> Result<()> {
    let rate = |link: &NamedLink| {
        let LinkSpec { down, up } = &link.spec;
        down.peak_rate().bps().max(up.peak_rate().bps())
    };
    let fastest = plan.links.iter().max_by(|(_, a), (_, b)| rate(a).total_cmp(&rate(b)));
    let Some((name, link)) = fastest.filter(|(_, link)| rate(link) > SURELY_CARRIED) else {
        return Ok(());
    };
    let capacity = probe::capacity()?;
    let wanted = BitRate::from_bps(rate(link));
    if wanted > capacity {
        bail!(
            "{name} has {wanted}, and the emulator carries {capacity} on this machine now; leave it out, or run when the machine is idle"
        );
    }
    Ok(())
}

/// Goes through the matrix. What has been measured is in `results` when it fails, too.
fn measure_all(
    args: &RunArgs,
    plan: &Plan<'_>,
    runner: &Runner,
    results: &mut Results,
) -> Result<()> {
    let total = plan.links.len() * plan.sets.len() * plan.clients.len() * plan.repeats as usize;
    let mut done = 0;
    for (link_name, link) in &plan.links {
        for (set_name, set) in &plan.sets {
            let files = set.files(args.seed, link.spec.down.peak_rate());
            let set = runner.workspace.prepare(set_name, files)?;
            let first = results.cells.len();
            let empty = plan.clients.iter().map(|client| cell(link_name, link, &set, client));
            results.cells.extend(empty);
            // Interleaved: what the machine does meanwhile meets every client alike.
            for repeat in 0..plan.repeats {
                for (index, client) in plan.clients.iter().enumerate() {
                    done += 1;
                    eprintln!("{done}/{total}: {link_name}, {set_name}, {client}");
                    let cell = &mut results.cells[first + index];
                    let timeout =
                        args.timeout.map_or_else(|| patience(link, cell), Duration::from_secs);
                    let seed = args.seed + u64::from(repeat);
                    match runner.run((link_name, &link.spec), &set, client, seed, timeout) {
                        Ok((run, command)) => {
                            cell.runs.push(run);
                            if let Some(info) = results.clients.get_mut(&client.name) {
                                info.command = command;
                            }
                        }
                        Err(Failure::Client(why)) => {
                            eprintln!("pelton-lab: {client} failed: {why}");
                            cell.failures.push(why);
                        }
                        Err(Failure::Lab(error)) => return Err(error),
                    }
                }
            }
            std::fs::remove_dir_all(&set.root)?;
        }
    }
    Ok(())
}

fn cell(link_name: &str, link: &NamedLink, set: &PreparedSet, client: &Client) -> CellResult {
    let floor = floor(&link.spec, client.protocol, set.files.len(), set.bytes());
    CellResult {
        link: link_name.to_owned(),
        set: set.name.clone(),
        client: client.name.clone(),
        files: set.files.len(),
        bytes: set.bytes().0,
        floor_s: floor.as_secs_f64(),
        runs: Vec::new(),
        failures: Vec::new(),
    }
}

/// What a client may take that opens a connection for each file and uses a tenth of the link.
fn patience(link: &NamedLink, cell: &CellResult) -> Duration {
    let round_trips = link.spec.rtt() * 4 * cell.files as u32;
    Duration::from_secs(60) + round_trips + Duration::from_secs_f64(10.0 * cell.floor_s)
}

fn machine() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("Linux {}, {} cores", kernel.trim(), cores)
}
