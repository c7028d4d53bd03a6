//! The energy figures: papers/000, 003 and 004.

use anyhow::{Result, anyhow};
use pelton_lab::reproduce::{self, Row, Saved, timers};

use super::ReproduceArgs;

pub(super) fn papers_000() {
    outln!("papers/000, radios of its section 3.2 (pelton_power::radio::n9_wlan, n9_3g)");
    show(&reproduce::papers_000());
    outln!("Fig 23: what bundling saves, by timers (the paper's bars are pictures: they fall)");
    outln!(
        "    given: the traffic of Fig 12, with the tail, whose length is what timers change most"
    );
    for Saved { timers: (t1, t2), with_tail, download } in timers() {
        let (with_tail, download) = (with_tail * 100.0, download * 100.0);
        outln!(
            "    T1 {t1} s, T2 {t2} s: {with_tail:.1} % in the model (without the tail {download:.1} %)"
        );
    }
}

pub(super) fn papers_004() -> Result<()> {
    outln!(
        "papers/004 Table 5, in the simulator, ten runs each; radio wifi (Huang et al., MobiSys 2012), a phone \
         with an open browser 1.65 W (section 1.4), HTTP/1.1 with 6 connections, HTTP/2 with one and up \
         to 100 requests, all with TLS to one server; joules are modelled"
    );
    show(&reproduce::papers_004().map_err(|error| anyhow!("{error}"))?);
    outln!("Flickr's far row is left out: it repeats Instagram's numbers.");
    Ok(())
}

fn show(rows: &[Row]) {
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
    for row in rows {
        outln!(
            "{:<width$}  paper {:>6.2} {unit}  model {:>6.2} {unit}  {:>+6.1} %",
            row.what,
            row.paper,
            row.model,
            row.difference() * 100.0,
            unit = row.unit,
        );
        outln!("    given: {}", row.given);
        if row.is_far() {
            outln!("    why: {}", row.why);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn papers_003(_args: &ReproduceArgs) -> Result<()> {
    anyhow::bail!("real packets need network namespaces: run it on Linux")
}

#[cfg(target_os = "linux")]
pub(super) use recorded::papers_003;

#[cfg(target_os = "linux")]
mod recorded {
    use std::fs::{self, File};
    use std::path::Path;

    use anyhow::{Context, Result};
    use pelton_lab::bench::Workspace;
    use pelton_lab::capture;
    use pelton_lab::cells::Cells;
    use pelton_lab::emulator::{Emulator, EmulatorConfig, become_able, probe};
    use pelton_lab::reproduce::{self, FILE, LINKS, Recording, SOCKET_BUFFER};
    use pelton_power::sleep::{Card, SleepPolicy};

    use super::{ReproduceArgs, show};
    use crate::commands::energy::in_words;
    use crate::commands::table::table;

    /// Records a download on each link, and says what a card draws for it.
    pub(in super::super) fn papers_003(args: &ReproduceArgs) -> Result<()> {
        become_able()?;
        let kept = args.lab.packets();
        let workspace = Workspace::create(&std::env::temp_dir())?;
        let dir = kept.unwrap_or(workspace.path());
        fs::create_dir_all(dir).with_context(|| format!("--packets {}", dir.display()))?;
        let cells = Cells::built_in()?;
        let record = |link| truest(&cells, link, args, dir);
        let recorded = LINKS.into_iter().map(record).collect::<Result<Vec<_>>>()?;
        let (recordings, late): (Vec<_>, Vec<_>) = recorded.into_iter().unzip();
        outln!(
            "papers/003: {FILE} over one connection with a socket buffer of {SOCKET_BUFFER}, recorded on \
             emulated links, CUBIC, seed {}; of {} each the one with the fewest late packets; {}; joules are \
             modelled",
            args.seed,
            args.repeats,
            in_words(&Card::wavelan()),
        );
        policies(&recordings, &late);
        show(&reproduce::papers_003(&recordings));
        Ok(())
    }

    /// Of all repeats the recording in which the machine had the most time for the emulator, and the
    /// share of its packets that were delivered late.
    fn truest(
        cells: &Cells,
        link: &'static str,
        args: &ReproduceArgs,
        dir: &Path,
    ) -> Result<(Recording, f64)> {
        let seeds = args.seed..args.seed + u64::from(args.repeats);
        let repeats = seeds.map(|seed| record(cells, link, seed, dir));
        let repeats = repeats.collect::<Result<Vec<_>>>()?;
        let truest = repeats.into_iter().min_by(|(_, a), (_, b)| a.total_cmp(b));
        truest.context("--repeats 0 measures nothing")
    }

    fn record(
        cells: &Cells,
        link: &'static str,
        seed: u64,
        dir: &Path,
    ) -> Result<(Recording, f64)> {
        let log = dir.join(format!("papers-003-{link}-{seed}.pcap"));
        let mut config = EmulatorConfig::new(cells.link(link)?.spec.clone(), seed);
        config.packet_log = Some(log.clone());
        let emulator = Emulator::start(config)?;
        probe::download(&emulator, FILE, SOCKET_BUFFER)?;
        let late = emulator.stop()?.late_share;
        let named = || log.display().to_string();
        let capture = capture::read(File::open(&log).with_context(named)?, &[]);
        Ok((Recording { link, packets: capture.with_context(named)?.packets }, late))
    }

    /// Joules, seconds and mean power under every policy; one column a recording.
    fn policies(recordings: &[Recording], late: &[f64]) {
        let mut header = vec!["policy"];
        header.extend(LINKS);
        let mut table = table(&header, 1);
        for policy in SleepPolicy::ALL {
            let cell = |recording: &Recording| {
                let outcome = recording.outcome(policy);
                let (joules, seconds) = (outcome.energy().get(), outcome.duration.as_secs_f64());
                format!("{joules:.2} J, {seconds:.1} s, {:.2} W", joules / seconds.max(1e-9))
            };
            let cells = recordings.iter().map(cell);
            table.add_row(std::iter::once(policy.name()).chain(cells));
        }
        let missed = |recording: &Recording| {
            let outcome = recording.outcome(SleepPolicy::ClientCentered);
            format!("{} of {}", outcome.missed, recording.packets.len())
        };
        let missed = recordings.iter().map(missed);
        table.add_row(std::iter::once("missed".to_owned()).chain(missed));
        let late = late.iter().map(|share| format!("{:.1} %", 100.0 * share));
        table.add_row(std::iter::once("late packets".to_owned()).chain(late));
        outln!("{}\n", table.trim_fmt());
    }
}
