//! EHT with its search against EHT without, over transfers of two to three minutes in virtual time.
//!
//! `cargo run --release -p pelton-lab --example search_cases` prints the table of docs/schedulers.md.

use std::error::Error;
use std::time::Duration;

use pelton_algos::policy::{Eht, EhtConfig};
use pelton_algos::units::BitRate;
use pelton_core::connection::Protocol;
use pelton_lab::content::VirtualFile;
use pelton_lab::model::{LinkSpec, Loss};
use pelton_lab::sim::{Ending, FileList, OriginConfig, Scenario};
use pelton_power::{ModelledConfig, Radio};

/// A transfer over LTE; rates are Mbit/s.
#[derive(Clone, Copy)]
struct Transfer {
    mbps: f64,
    rtt_millis: u64,
    files: (usize, u64),
    /// What the server gives each connection, and all of them.
    connection_mbps: Option<f64>,
    server_mbps: Option<f64>,
    answer_millis: u64,
    lost: f64,
    is_told: bool,
}

const PLAIN: Transfer = Transfer {
    mbps: 10.0,
    rtt_millis: 60,
    files: (400, 500_000),
    connection_mbps: None,
    server_mbps: None,
    answer_millis: 0,
    lost: 0.0,
    is_told: false,
};

const TRANSFERS: [Transfer; 9] = [
    Transfer { connection_mbps: Some(0.5), is_told: true, ..PLAIN },
    Transfer { connection_mbps: Some(0.5), ..PLAIN },
    Transfer { answer_millis: 300, files: (8_000, 25_000), is_told: true, ..PLAIN },
    Transfer { answer_millis: 300, files: (8_000, 25_000), ..PLAIN },
    Transfer { mbps: 5.0, rtt_millis: 30, files: (2_000, 40_000), ..PLAIN },
    Transfer { mbps: 5.0, rtt_millis: 100, files: (8_000, 12_000), ..PLAIN },
    Transfer { connection_mbps: Some(2.0), files: (40, 5_000_000), ..PLAIN },
    Transfer { lost: 0.01, ..PLAIN },
    Transfer { mbps: 20.0, server_mbps: Some(4.0), files: (200, 500_000), is_told: true, ..PLAIN },
];

impl Transfer {
    fn run(&self, config: EhtConfig) -> Result<Ending, Box<dyn Error>> {
        let rate = BitRate::from_mbps(self.mbps);
        let rtt = Duration::from_millis(self.rtt_millis);
        let mut link = LinkSpec::plain(rate, rtt)?;
        link.down.loss = Loss { random: self.lost, ..Loss::default() };
        let (count, size) = self.files;
        let files: Vec<_> =
            (0..count).map(|n| VirtualFile::new(format!("/file-{n}"), size, 0)).collect();
        let files = FileList::new(&files)?.with_sizes();
        let origin = OriginConfig {
            connection_rate: self.connection_mbps.map(BitRate::from_mbps),
            rate: self.server_mbps.map(BitRate::from_mbps),
            latency: Duration::from_millis(self.answer_millis),
            ..OriginConfig::plain(Protocol::Http11, false)
        };
        let mut scenario = Scenario::new(&link, origin, &files, 1);
        scenario.power = ModelledConfig { radio: Radio::Lte.profile(), ..scenario.power };
        if self.is_told {
            scenario.engine.link.bandwidth_hint = Some(rate);
            scenario.engine.link.rtt_hint = Some(rtt);
        }
        Ok(scenario.run(Box::new(Eht::new(config))))
    }

    fn name(&self) -> String {
        let mut parts = vec![format!("{} Mbit/s x {} ms", self.mbps, self.rtt_millis)];
        parts.extend(self.connection_mbps.map(|mbps| format!("{mbps} Mbit/s a connection")));
        parts.extend(self.server_mbps.map(|mbps| format!("{mbps} Mbit/s in all")));
        if self.answer_millis > 0 {
            parts.push(format!("{} ms to answer", self.answer_millis));
        }
        if self.lost > 0.0 {
            parts.push(format!("{} % lost", self.lost * 100.0));
        }
        parts.push(format!("{} x {} kB", self.files.0, self.files.1 / 1_000));
        parts.join(", ")
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| link, server, files | hint | with | without | throughput/energy |");
    println!("|---|---|---|---|---|");
    for transfer in TRANSFERS {
        let with = transfer.run(EhtConfig::default())?;
        let without = transfer.run(EhtConfig { search_share: 0.0, ..EhtConfig::default() })?;
        let cost =
            |ending: &Ending| format!("{:.0} s, {:.0} J", ending.seconds, ending.energy.get());
        println!(
            "| {} | {} | {} | {} | {:+.1} % |",
            transfer.name(),
            if transfer.is_told { "yes" } else { "no" },
            cost(&with),
            cost(&without),
            (with.throughput_per_joule() / without.throughput_per_joule() - 1.0) * 100.0,
        );
    }
    Ok(())
}
