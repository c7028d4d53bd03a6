//! Named cases in which the three schedulers reach what they are for: each is one transfer in virtual
//! time, the same for all three, and the same each time.

use std::time::Duration;

use pelton_algos::policy::{Eht, EhtConfig, Hat, LowE, Policy};
use pelton_algos::units::BitRate;
use pelton_core::connection::Protocol;
use pelton_power::{ModelledConfig, Radio};

use super::{Ending, FileList, OriginConfig, Scenario};
use crate::content::VirtualFile;
use crate::model::LinkSpec;

/// A link, a radio and a set of files whose sizes the list tells. The client has been told the link's
/// bandwidth and round-trip time.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What decides it.
    pub why: &'static str,
    radio: Radio,
    mbps: f64,
    rtt_millis: u64,
    files: (usize, u64),
    /// What the server sends over one connection at most.
    connection_mbps: Option<f64>,
}

/// Ordered by who wins: `LowE` twice, HAT, EHT.
pub const CASES: [Case; 4] = [
    Case {
        name: "status files over 3G",
        why: "one connection leaves the radio on the shared channel (FACH)",
        radio: Radio::N93g,
        mbps: 4.0,
        rtt_millis: 150,
        files: (20, 100),
        connection_mbps: None,
    },
    Case {
        name: "pages over a slow, long Wi-Fi path",
        why: "many first windows at once overflow the queue and are sent again",
        radio: Radio::Wifi,
        mbps: 1.0,
        rtt_millis: 400,
        files: (40, 12_000),
        connection_mbps: None,
    },
    Case {
        name: "thumbnails over slow, far LTE",
        why: "all channels are dealt evenly from the start",
        radio: Radio::Lte,
        mbps: 10.0,
        rtt_millis: 150,
        files: (60, 60_000),
        connection_mbps: None,
    },
    Case {
        name: "pictures over near LTE",
        why: "fewer connections overflow the queue less often",
        radio: Radio::Lte,
        mbps: 80.0,
        rtt_millis: 30,
        files: (40, 200_000),
        connection_mbps: None,
    },
];

/// Long enough for EHT's search, and with what its model can't know: the link is told and one connection
/// would fill it, but the server gives each a twentieth of it.
pub const SEARCH_PAYS: Case = Case {
    name: "archives from a server that holds each connection down",
    why: "the model takes a connection to be as fast as the link lets it be; the search measures",
    radio: Radio::Lte,
    mbps: 10.0,
    rtt_millis: 60,
    files: (400, 500_000),
    connection_mbps: Some(0.5),
};

/// What the three schedulers made of a case.
#[derive(Debug, Clone)]
pub struct Outcomes {
    /// Least energy.
    pub lowe: Ending,
    /// Most throughput.
    pub hat: Ending,
    /// Most throughput per joule.
    pub eht: Ending,
}

impl Case {
    /// Runs it three times.
    ///
    /// # Errors
    /// None: the numbers above make valid links and URLs.
    pub fn run(&self) -> Result<Outcomes, Box<dyn std::error::Error>> {
        Ok(Outcomes {
            lowe: self.run_with(Box::<LowE>::default())?,
            hat: self.run_with(Box::new(Hat))?,
            eht: self.run_with(Box::<Eht>::default())?,
        })
    }

    /// Runs it with EHT as it is, and with an EHT that never searches.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn run_search(&self) -> Result<[Ending; 2], Box<dyn std::error::Error>> {
        let unsearching = EhtConfig { search_share: 0.0, ..EhtConfig::default() };
        Ok([self.run_with(Box::<Eht>::default())?, self.run_with(Box::new(Eht::new(unsearching)))?])
    }

    fn run_with(&self, policy: Box<dyn Policy>) -> Result<Ending, Box<dyn std::error::Error>> {
        let rate = BitRate::from_mbps(self.mbps);
        let rtt = Duration::from_millis(self.rtt_millis);
        let link = LinkSpec::plain(rate, rtt)?;
        let (count, size) = self.files;
        let files: Vec<_> =
            (0..count).map(|n| VirtualFile::new(format!("/file-{n}"), size, 0)).collect();
        let files = FileList::new(&files)?.with_sizes();
        let connection_rate = self.connection_mbps.map(BitRate::from_mbps);
        let origin =
            OriginConfig { connection_rate, ..OriginConfig::plain(Protocol::Http11, false) };
        let mut scenario = Scenario::new(&link, origin, &files, 1);
        scenario.power = ModelledConfig { radio: self.radio.profile(), ..scenario.power };
        scenario.engine.link.bandwidth_hint = Some(rate);
        scenario.engine.link.rtt_hint = Some(rtt);
        scenario.traced = true;
        Ok(scenario.run(policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(index: usize) -> Outcomes {
        let outcomes = CASES[index].run().unwrap();
        for ending in [&outcomes.lowe, &outcomes.hat, &outcomes.eht] {
            assert!(ending.is_complete);
        }
        outcomes
    }

    #[test]
    fn lowe_stays_on_the_shared_channel_and_says_so() {
        let Outcomes { lowe, hat, eht } = run(0);
        let least = hat.energy.get().min(eht.energy.get());
        assert!(lowe.energy.get() < 0.7 * least, "{} against {least} J", lowe.energy.get());
        assert_eq!(lowe.connections, 1);
        let reason = &lowe.decisions[0].1.reason;
        assert!(reason.contains("by model 1 connection"), "{reason}");
        assert!(reason.contains("the radio stays on FACH"), "{reason}");
        assert!(reason.contains("of it the tail"), "{reason}");
    }

    #[test]
    fn lowe_does_not_flood_a_slow_path() {
        let Outcomes { lowe, hat, .. } = run(1);
        let (lowe, hat) = (lowe.energy.get(), hat.energy.get());
        assert!(lowe < 0.9 * hat, "{lowe} against HAT's {hat} J");
    }

    #[test]
    fn hat_is_the_fastest() {
        let Outcomes { lowe, hat, eht } = run(2);
        let next = lowe.seconds.min(eht.seconds);
        assert!(hat.seconds < 0.97 * next, "{} against {next} s", hat.seconds);
    }

    #[test]
    fn eht_has_the_most_throughput_per_joule() {
        let Outcomes { lowe, hat, eht } = run(3);
        let next = lowe.throughput_per_joule().max(hat.throughput_per_joule());
        let most = eht.throughput_per_joule();
        assert!(most > 1.02 * next, "{most} against {next}");
    }

    #[test]
    fn the_search_runs_and_pays() {
        let [searched, unsearched] = SEARCH_PAYS.run_search().unwrap();
        assert!(searched.is_complete && unsearched.is_complete);
        assert!(searched.seconds > 120.0, "{} s", searched.seconds);
        let reasons = |ending: &Ending, part: &str| {
            ending.decisions.iter().any(|(_, decision)| decision.reason.contains(part))
        };
        assert!(reasons(&searched, "trying 4 channels") && reasons(&searched, "searched, best"));
        assert!(!reasons(&unsearched, "trying") && !reasons(&unsearched, "searched"));
        assert!(searched.energy < unsearched.energy && searched.seconds < unsearched.seconds);
        let (with, without) = (searched.throughput_per_joule(), unsearched.throughput_per_joule());
        assert!(with > 1.2 * without, "{with} against {without}");
    }
}
