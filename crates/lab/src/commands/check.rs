//! `pelton-lab check`: whether the emulator does what the model says, on this machine and now.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;
use pelton_lab::emulator::probe::{self, PAYLOAD};
use pelton_lab::emulator::{Emulator, EmulatorConfig, become_able};
use pelton_lab::model::{Cause, LinkModel, LinkSpec, Verdict};

use super::cells::CellsSource;
use super::table::table;

/// Connections of the bulk flow: enough to fill every preset with the windows of Linux.
const STREAMS: usize = 4;

/// Of the emulated links.
const SEED: u64 = 1;

/// Datagrams of which the lost ones are counted.
const DATAGRAMS: u32 = 100_000;

/// Measure rate, delay and loss of emulated links, and the fastest link that this machine can carry.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The links to check, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "20x60,50x200,lossy")]
    links: Vec<String>,
    #[command(flatten)]
    source: CellsSource,
}

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    let cells = args.source.load()?;
    let links: Vec<_> = args.links.iter().map(|name| cells.link(name)).collect::<Result<_, _>>()?;
    become_able()?;
    let capacity = probe::capacity()?;
    outln!("capacity: {capacity} of full IP packets\n");
    let mut table = table(&["link", "what", "measured", "expected", "error %"], 2);
    for (name, link) in args.links.iter().zip(links) {
        let rate = link.spec.down.peak_rate();
        if rate > capacity {
            bail!("{name} has {rate}, and this machine carries {capacity} now");
        }
        let mut row = |what: &str, measured: f64, expected: f64| {
            let error = 100.0 * (measured / expected - 1.0);
            table.add_row([
                name.clone(),
                what.to_owned(),
                format!("{measured:.3}"),
                format!("{expected:.3}"),
                format!("{error:+.2}"),
            ]);
        };
        let start = || Emulator::start(EmulatorConfig::new(link.spec.clone(), SEED));
        let pings = probe::pings(&start()?, 21)?;
        row(
            "RTT, ms",
            pings[pings.len() / 2].as_secs_f64() * 1e3,
            link.spec.mean_rtt().as_secs_f64() * 1e3,
        );
        let loss = link.spec.down.loss.share();
        if loss > 0.0 {
            let expected = loss_of_model(&link.spec, DATAGRAMS);
            row("loss, %", 100.0 * probe::loss(&start()?, DATAGRAMS)?, 100.0 * expected);
        } else {
            // Under loss it is TCP that is measured, not the link.
            let flow =
                probe::flow(&start()?, STREAMS, Duration::from_secs(4), Duration::from_secs(4))?;
            row("payload, Mbit/s", flow.mbps(), rate.mbps() * PAYLOAD as f64 / 1500.0);
        }
    }
    outln!("{table}");
    Ok(ExitCode::SUCCESS)
}

/// The share that the model loses of the first `count` packets. Bursts make it differ by several
/// percent from the share in the long run.
fn loss_of_model(link: &LinkSpec, count: u32) -> f64 {
    let mut model = LinkModel::new(link, SEED);
    let lost = (0..count).filter(|&index| {
        let at = Timestamp::from_millis(u64::from(index));
        model.down.offer(at, Bytes(60)) == Verdict::Dropped(Cause::Lost)
    });
    lost.count() as f64 / f64::from(count)
}
