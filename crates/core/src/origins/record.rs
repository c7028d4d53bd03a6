//! The records of the origin memory. Pure.
//!
//! A record is a line: the CRC-32C of its text, a space, the text (JSON), a line end. One that is broken,
//! impossible or too old is passed over; of several of one origin the last counts.

use std::collections::HashMap;
use std::time::Duration;

use pelton_algos::units::BitRate;
use url::Url;

use crate::connection::Origin;
use crate::engine::Learnt;
use crate::journal::{checked, sealed};

/// Origins that are remembered: those that were used last.
const MOST: usize = 1_000;
/// More bytes than so many records need are not read.
pub(super) const LONGEST: u64 = 1 << 20;
/// Servers and paths change: what is older says nothing.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// Clocks differ by so much.
const SKEW: Duration = Duration::from_secs(24 * 3600);
const MOST_CONNECTIONS: u32 = 100_000;
const LONGEST_RTT: Duration = Duration::from_secs(60);
/// From 1 kbit/s to 10 Tbit/s.
const BANDWIDTHS: std::ops::RangeInclusive<f64> = 1e3..=1e13;

/// What the memory holds: for each origin what was learnt, and when, in time since 1970.
pub(crate) type Remembered = HashMap<Origin, (Learnt, Duration)>;

/// One line.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    origin: String,
    /// Seconds since 1970.
    at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth_bps: Option<f64>,
}

/// What `memory` says at `now`.
pub(crate) fn read(memory: &[u8], now: Duration) -> Remembered {
    let lines = memory.split_inclusive(|byte| *byte == b'\n');
    let records = lines.filter_map(|line| {
        let record: Record = checked(std::str::from_utf8(line).ok()?)?;
        record.remembered(now)
    });
    records.collect()
}

/// The memory's text, the latest first, as many as are kept.
pub(crate) fn written(remembered: &Remembered) -> String {
    let mut all: Vec<_> = remembered.iter().collect();
    all.sort_by_cached_key(|(origin, (_, at))| (std::cmp::Reverse(*at), origin.to_string()));
    let lines = all.into_iter().take(MOST).map(|(origin, (learnt, at))| {
        sealed(&Record {
            origin: origin.to_string(),
            at: at.as_secs(),
            connections: learnt.connections,
            rtt_us: learnt.rtt.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)),
            bandwidth_bps: learnt.bandwidth.map(|rate| rate.bps().round()),
        })
    });
    lines.collect()
}

/// Adds what a run has learnt at `now`. What it could not measure stays as it was.
pub(crate) fn add(remembered: &mut Remembered, learnt: Vec<(Origin, Learnt)>, now: Duration) {
    for (origin, new) in learnt {
        let old = remembered.get(&origin).map(|(old, _)| *old).unwrap_or_default();
        let learnt = Learnt {
            // None were too many.
            connections: new.connections,
            rtt: new.rtt.or(old.rtt),
            bandwidth: new.bandwidth.or(old.bandwidth),
        };
        remembered.insert(origin, (learnt, now));
    }
}

impl Record {
    /// What it says, unless that is impossible or too old.
    fn remembered(self, now: Duration) -> Option<(Origin, (Learnt, Duration))> {
        let origin = Origin::of(&Url::parse(&self.origin).ok()?).ok()?;
        let at = Duration::from_secs(self.at);
        let is_of_use = at.checked_add(LIFETIME)? >= now && at <= now.checked_add(SKEW)?;
        let rtt = self.rtt_us.map(Duration::from_micros);
        let is_possible = self.connections.is_none_or(|n| (1..=MOST_CONNECTIONS).contains(&n))
            && rtt.is_none_or(|rtt| !rtt.is_zero() && rtt <= LONGEST_RTT)
            && self.bandwidth_bps.is_none_or(|bps| BANDWIDTHS.contains(&bps));
        // An origin and nothing else: no path, no user.
        let is_bare = origin.to_string() == self.origin;
        let bandwidth = self.bandwidth_bps.map(BitRate::from_bps);
        let learnt = Learnt { connections: self.connections, rtt, bandwidth };
        (is_of_use && is_possible && is_bare).then_some((origin, (learnt, at)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn origin(text: &str) -> Origin {
        Origin::of(&Url::parse(text).unwrap()).unwrap()
    }

    fn learnt(connections: u32) -> Learnt {
        Learnt {
            connections: Some(connections),
            rtt: Some(Duration::from_millis(30)),
            bandwidth: Some(BitRate::from_mbps(50.0)),
        }
    }

    fn line(json: &str) -> String {
        sealed(&serde_json::from_str::<serde_json::Value>(json).unwrap())
    }

    #[test]
    fn what_is_written_is_read_and_names_no_more_than_origins() {
        let mut memory = Remembered::new();
        let secret = origin("https://me:pw@h.example:444/path/x?token=1");
        add(&mut memory, vec![(secret, learnt(7)), (origin("http://[::1]/"), learnt(9))], NOW);
        let text = written(&memory);
        assert_eq!(read(text.as_bytes(), NOW), memory);
        assert!(text.contains("\"https://h.example:444\""), "{text}");
        assert!(
            ["me:", "pw", "path", "token"].iter().all(|secret| !text.contains(secret)),
            "{text}"
        );
    }

    #[test]
    fn a_broken_line_loses_itself_alone() {
        let mut memory = Remembered::new();
        let origins: Vec<Origin> = (0..3).map(|i| origin(&format!("http://h{i}/"))).collect();
        add(&mut memory, origins.iter().cloned().map(|o| (o, learnt(3))).collect(), NOW);
        let text = written(&memory);
        let middle = text.lines().nth(1).unwrap().to_owned();
        for broken in
            [middle.replace(":3,", ":64,"), String::new(), "\u{0}x".into(), middle[..20].into()]
        {
            let left = read(text.replace(&middle, &broken).as_bytes(), NOW);
            assert_eq!(left.len(), 2, "{broken}");
        }
        assert_eq!(read(&text.as_bytes()[..text.len() - 4], NOW).len(), 2, "torn");
    }

    #[test]
    fn what_is_impossible_old_or_from_the_future_is_passed_over() {
        let at = NOW.as_secs();
        let good = format!("{{\"origin\":\"http://h\",\"at\":{at},\"connections\":4}}");
        assert_eq!(read(line(&good).as_bytes(), NOW).len(), 1);
        for bad in [
            good.replace(":4}", ":0}"),
            good.replace(":4}", ":4,\"rtt_us\":0}"),
            good.replace(":4}", ":4,\"rtt_us\":70000000}"),
            good.replace(":4}", ":4,\"bandwidth_bps\":-1}"),
            good.replace(":4}", ":4,\"bandwidth_bps\":1e300}"),
            good.replace(":4}", ":4,\"more\":1}"),
            good.replace("http://h", "http://h/path"),
            good.replace("http://h", "http://u:p@h"),
            good.replace("http://h", "ftp://h"),
            good.replace("http://h", "h"),
            good.replace(&at.to_string(), &(at - 31 * 24 * 3600).to_string()),
            good.replace(&at.to_string(), &(at + 2 * 24 * 3600).to_string()),
            good.replace(&at.to_string(), &u64::MAX.to_string()),
        ] {
            assert_eq!(read(line(&bad).as_bytes(), NOW).len(), 0, "{bad}");
        }
    }

    #[test]
    fn the_oldest_of_too_many_are_forgotten_and_a_run_forgets_only_what_it_saw() {
        let mut memory = Remembered::new();
        for i in 0..2_000 {
            let now = NOW + Duration::from_secs(i);
            add(&mut memory, vec![(origin(&format!("http://h{i}/")), learnt(2))], now);
        }
        let text = written(&memory);
        assert!(text.len() as u64 <= LONGEST);
        let mut kept = read(text.as_bytes(), NOW);
        assert_eq!(kept.len(), MOST);
        assert!(kept.contains_key(&origin("http://h1999/")));
        let unmeasured = Learnt { connections: None, rtt: None, bandwidth: None };
        add(&mut kept, vec![(origin("http://h1999/"), unmeasured)], NOW);
        let (left, _) = kept[&origin("http://h1999/")];
        assert_eq!(left, Learnt { connections: None, ..learnt(2) });
    }

    proptest! {
        #[test]
        fn whatever_lies_there_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), lines in "(.*\n){0,5}") {
            for memory in [bytes, lines.into_bytes()] {
                let found = read(&memory, NOW);
                prop_assert_eq!(read(written(&found).as_bytes(), NOW), found);
            }
        }
    }
}
