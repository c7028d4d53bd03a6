//! `pelton-lab reproduce`: the papers' figures beside ours.

mod energy;
mod flags;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
#[cfg(target_os = "linux")]
use pelton_lab::bench::clients::Client;
#[cfg(target_os = "linux")]
use pelton_lab::bench::plan::Plan;
use pelton_lab::cells::Cells;
use pelton_lab::reproduce::{
    COMPARED_SETS, Claim, PLACES, Point, SETS, combined, comparison, comparison_page, simulate,
    single, sweep_page, sweeps_combined, sweeps_single,
};

#[cfg(target_os = "linux")]
use super::lab_args::{LabArgs, Measured};
use super::table::table;

/// The clients of Fig 4. HTTP/1.1 is what browsers do, six connections; HTTP/2 is one connection.
#[cfg(target_os = "linux")]
const COMPARED: [&str; 7] =
    ["pelton-lowe", "pelton-hat", "pelton-eht", "wget", "curl", "curl-six", "curl-parallel-h2"];

/// Make the papers' figures again; joules are modelled.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    // First, for each field takes its own from what was parsed.
    #[command(flatten)]
    given: flags::Given,
    /// Which.
    #[arg(value_enum, default_value_t = Figure::Papers000)]
    figure: Figure,
    /// Sweep on real packets instead of in the simulator: fig2 and fig3. fig4 and papers-003 always
    /// do.
    #[arg(long)]
    real: bool,
    /// How often each transfer is made, but for papers-000 and papers-004. The paper made each five
    /// to ten times.
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: u32,
    /// Seed of the files and of the first repeat's link; each further repeat has the next. Not for
    /// papers-000 and papers-004.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a page with charts: of fig2, fig3 and fig4.
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    #[cfg(target_os = "linux")]
    #[command(
        flatten,
        next_help_heading = "How to measure (fig4, fig2 and fig3 with --real; papers-003 has --packets)"
    )]
    lab: LabArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// papers/000, Figs 11, 12, 14 and 23: a page over Wi-Fi and 3G, from the radio models.
    #[value(name = "papers-000")]
    Papers000,
    /// papers/001, Fig 2: concurrency 1 to 32, and parallelism 1 to 8, alone.
    Fig2,
    /// papers/001, Fig 3: both together.
    Fig3,
    /// papers/001, Fig 4: the schedulers against wget, curl, HTTP/1.1 and HTTP/2, on real packets.
    Fig4,
    /// papers/003: sleep policies over downloads recorded on real packets, and Table I.
    #[value(name = "papers-003")]
    Papers003,
    /// papers/004, Table 5: visits over HTTP/1.1 and HTTP/2, in the simulator.
    #[value(name = "papers-004")]
    Papers004,
}

impl Figure {
    const fn title(self) -> &'static str {
        match self {
            Self::Papers000 => "papers/000",
            Self::Fig2 => "papers/001 Fig 2: concurrency and parallelism alone",
            Self::Fig3 => "papers/001 Fig 3: concurrency and parallelism together",
            Self::Fig4 => "papers/001 Fig 4: the schedulers against other programs",
            Self::Papers003 => "papers/003",
            Self::Papers004 => "papers/004 Table 5",
        }
    }

    fn claims(self, points: &[Point]) -> Vec<Claim> {
        match self {
            Self::Papers000 | Self::Papers003 | Self::Papers004 => Vec::new(),
            Self::Fig2 => sweeps_single(points),
            Self::Fig3 => sweeps_combined(points),
            Self::Fig4 => comparison(points),
        }
    }
}

pub(crate) fn run(args: &ReproduceArgs) -> Result<ExitCode> {
    flags::refuse_meaningless(args)?;
    if args.repeats == 0 {
        bail!("--repeats 0 measures nothing");
    }
    let pairs = match args.figure {
        Figure::Papers000 => {
            energy::papers_000();
            return Ok(ExitCode::SUCCESS);
        }
        Figure::Papers003 => {
            energy::papers_003(args)?;
            return Ok(ExitCode::SUCCESS);
        }
        Figure::Papers004 => {
            energy::papers_004()?;
            return Ok(ExitCode::SUCCESS);
        }
        Figure::Fig4 => return real(args, None),
        Figure::Fig2 => single(),
        Figure::Fig3 => combined(),
    };
    if args.real {
        return real(args, Some(&pairs));
    }
    let points = simulate(&Cells::built_in()?, &pairs, (args.repeats, args.seed))?;
    show(args, &points, "simulated, HTTP/1.1 in the clear")?;
    Ok(ExitCode::SUCCESS)
}

/// On real packets: pelton with the numbers `pairs`, or without them the clients of Fig 4.
#[cfg(target_os = "linux")]
fn real(args: &ReproduceArgs, pairs: Option<&[(u32, u32)]>) -> Result<ExitCode> {
    let (names, sets) = match pairs {
        Some(pairs) => (pelton_lab::reproduce::pairs_of(pairs), SETS.map(|(_, set)| set).to_vec()),
        None => (COMPARED.map(str::to_owned).to_vec(), COMPARED_SETS.to_vec()),
    };
    let clients = Client::parse_list(&names.join(","))?;
    let links = PLACES.map(|place| place.link.to_owned());
    let sets: Vec<String> = sets.into_iter().map(str::to_owned).collect();
    let of = (args.repeats, args.seed);
    let plan = Plan::of_names(&Cells::built_in()?, &links, &sets, &clients, of)?;
    let measured: Measured = args.lab.measure(plan)?;
    let points: Vec<Point> = measured.results.cells.iter().filter_map(Point::of_cell).collect();
    show(args, &points, "real packets, HTTP/1.1 in the clear but for -h2")?;
    for cell in &measured.results.cells {
        for why in &cell.failures {
            outln!("{}, {}, {}: failed: {why}", cell.link, cell.set, cell.client);
        }
    }
    measured.code()
}

#[cfg(not(target_os = "linux"))]
fn real(_args: &ReproduceArgs, _pairs: Option<&[(u32, u32)]>) -> Result<ExitCode> {
    bail!("real packets need network namespaces: run it on Linux")
}

/// Prints points and claims, and writes the page where it was asked for.
fn show(args: &ReproduceArgs, points: &[Point], how: &str) -> Result<()> {
    let (title, claims) = (args.figure.title(), args.figure.claims(points));
    outln!("{title}; {how}; seed {}, {} repeats; joules are modelled", args.seed, args.repeats);
    outln!(
        "the paper's Table I is lost; sets that stand for its own: HTML small, image medium, video large\n"
    );
    let mut table = table(
        &["link", "set", "client", "s", "95 %", "Mbit/s", "J", "J per 100 MB", "kbit/s/J"],
        3,
    );
    for point in points {
        let seconds = point.seconds;
        table.add_row([
            point.link.clone(),
            point.set.clone(),
            point.way.clone(),
            format!("{:.2}", seconds.median),
            format!("{:.2}-{:.2}", seconds.low, seconds.high),
            format!("{:.2}", point.mbps()),
            format!("{:.1}", point.joules.median),
            format!("{:.1}", point.per_100_mb()),
            format!("{:.1}", point.efficiency.median / 1e3),
        ]);
    }
    outln!("{}\n", table.trim_fmt());
    for claim in &claims {
        outln!("{claim}");
    }
    let Some(file) = &args.page else { return Ok(()) };
    let mut command: Vec<String> = std::env::args().skip(1).collect();
    command.insert(0, "pelton-lab".to_owned());
    let command = command.join(" ");
    let page = match args.figure {
        Figure::Fig4 => comparison_page(title, points, &claims, &command),
        _ => sweep_page(title, points, &claims, &command),
    };
    fs::write(file, page).with_context(|| format!("can't write {}", file.display()))
}
