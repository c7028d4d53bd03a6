//! Named cases in which the three schedulers reach what they are for: each is one transfer in virtual
//! time, the same for all three, and the same each time.

use std::time::Duration;

use pelton_algos::policy::{Eht, Hat, LowE, Policy};
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
    },
    Case {
        name: "pages over a slow, long Wi-Fi path",
        why: "many first windows at once overflow the queue and are sent again",
        radio: Radio::Wifi,
        mbps: 1.0,
        rtt_millis: 400,
        files: (40, 12_000),
    },
    Case {
        name: "thumbnails over slow, far LTE",
        why: "all channels are dealt evenly from the start",
        radio: Radio::Lte,
        mbps: 10.0,
        rtt_millis: 150,
        files: (100, 40_000),
    },
    Case {
        name: "pages over slow LTE",
        why: "fewer connections overflow the queue less often",
        radio: Radio::Lte,
        mbps: 5.0,
        rtt_millis: 30,
        files: (400, 12_000),
    },
];

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
        let rate = BitRate::from_mbps(self.mbps);
        let rtt = Duration::from_millis(self.rtt_millis);
        let link = LinkSpec::plain(rate, rtt)?;
        let (count, size) = self.files;
        let files: Vec<_> =
            (0..count).map(|n| VirtualFile::new(format!("/file-{n}"), size, 0)).collect();
        let files = FileList::new(&files)?.with_sizes();
        let origin = OriginConfig::plain(Protocol::Http11, false);
        let mut scenario = Scenario::new(&link, origin, &files, 1);
        scenario.power = ModelledConfig { radio: self.radio.profile(), ..scenario.power };
        scenario.engine.link.bandwidth_hint = Some(rate);
        scenario.engine.link.rtt_hint = Some(rtt);
        let run = |policy: Box<dyn Policy>| scenario.run(policy);
        Ok(Outcomes {
            lowe: run(Box::<LowE>::default()),
            hat: run(Box::new(Hat)),
            eht: run(Box::<Eht>::default()),
        })
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
}
