//! papers/004's Table 5: visits to three sites over HTTP/1.1 and HTTP/2, as near as they were and 300 ms
//! farther away. Its traffic comes from Tables 6 and 7 and runs in the simulator; none of its joules is
//! used. Nothing is lost on the link: the losses of Table 3 are of the paper's first part, and with its
//! 4.7 % (Yahoo) one connection would need longer for the pages than the visit lasts.

use std::time::Duration;

use pelton_algos::policy::{Fixed, FixedConfig};
use pelton_algos::units::{BitRate, Watts};
use pelton_core::connection::Protocol;
use pelton_power::radio::wifi;
use pelton_power::{ModelledConfig, Radio};

use super::Row;
use crate::content::VirtualFile;
use crate::model::LinkSpec;
use crate::sim::{FileList, OriginConfig, Scenario};

/// "Launching and running Firefox increases the base power draw to the vicinity of 1.65W" (section 1.4).
const BROWSER_OPEN_WATTS: f64 = 1.65;

/// The link's rate is not stated: 802.11n, as the link `wifi-near` of `cells.toml` has it.
const MBPS: f64 = 90.0;

/// "HL denotes high latency conditions of +300ms RTT" (Table 5).
const FARTHER: Duration = Duration::from_millis(300);

/// What Firefox opens to one server: 6 connections over HTTP/1.1, or one with 100 requests at once.
const CONNECTIONS: u32 = 6;
const STREAMS: u32 = 100;

/// "Increase of test run count to 10" (section 2).
const RUNS: u64 = 10;

/// A site with both protocols' numbers, HTTP/1.1 first.
struct Site {
    name: &'static str,
    /// Table 7: the first page and its subpages, and seconds of a visit.
    pages: u64,
    seconds: f64,
    /// Table 6.
    kilobytes: [u64; 2],
    requests: [u64; 2],
    rtt_ms: f64,
    /// Table 5, joules of the whole phone; and far away.
    near: [f64; 2],
    far: Option<[f64; 2]>,
}

/// Flickr's far row repeats Instagram's numbers for HTTP/1.1 to the last digit: a copy. It is left out.
const SITES: [Site; 3] = [
    Site {
        name: "Flickr",
        pages: 6,
        seconds: 170.0,
        kilobytes: [63_669, 64_853],
        requests: [587, 606],
        rtt_ms: 131.6,
        near: [519.7, 520.1],
        far: None,
    },
    Site {
        name: "Instagram",
        pages: 7,
        seconds: 200.0,
        kilobytes: [33_210, 32_664],
        requests: [469, 464],
        rtt_ms: 112.7,
        near: [631.4, 646.2],
        far: Some([659.8, 670.0]),
    },
    Site {
        name: "Yahoo",
        pages: 5,
        seconds: 150.0,
        kilobytes: [19_833, 20_491],
        requests: [511, 509],
        rtt_ms: 133.3,
        near: [417.4, 413.9],
        far: Some([447.6, 446.6]),
    },
];

const NAMES: [&str; 2] = ["HTTP/1.1", "HTTP/2"];

/// What a visit is found to draw.
#[derive(Debug, Clone, Copy)]
struct Visit {
    joules: f64,
    /// Of it the radio and the CPU's work for bytes: what is not the phone with its browser.
    traffic: f64,
    /// Seconds in which pages load.
    loading: f64,
}

/// Table 5's rows: joules of each visit, then what HTTP/2 takes over HTTP/1.1, and what being far costs.
///
/// # Errors
/// A transfer that did not end.
pub fn papers_004() -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    for site in &SITES {
        let near = site.visits(Duration::ZERO)?;
        rows.extend(site.condition("", site.near, near));
        let Some(paper) = site.far else { continue };
        let far = site.visits(FARTHER)?;
        rows.extend(site.condition(", +300 ms", paper, far));
        for (index, name) in NAMES.iter().enumerate() {
            rows.push(Row {
                what: format!("{}, {name}: what 300 ms more take", site.name),
                paper: 100.0 * paper[index] / site.near[index],
                model: 100.0 * far[index].joules / near[index].joules,
                unit: "%",
                given: "the joules above".to_owned(),
                why: String::new(),
            });
        }
    }
    Ok(rows)
}

impl Site {
    fn condition(&self, suffix: &str, paper: [f64; 2], found: [Visit; 2]) -> Vec<Row> {
        let of_protocol = |index: usize| Row {
            what: format!("{}{suffix}, {}", self.name, NAMES[index]),
            paper: paper[index],
            model: found[index].joules,
            unit: "J",
            given: self.given(index, suffix, found[index]),
            why: self.why(paper[index], found[index]),
        };
        let ratio = Row {
            what: format!("{}{suffix}: HTTP/2 over HTTP/1.1", self.name),
            paper: 100.0 * paper[1] / paper[0],
            model: 100.0 * found[1].joules / found[0].joules,
            unit: "%",
            given: "the joules above".to_owned(),
            why: String::new(),
        };
        vec![of_protocol(0), of_protocol(1), ratio]
    }

    fn given(&self, index: usize, suffix: &str, found: Visit) -> String {
        format!(
            "{} s with {} pages of {} requests, {} kB in all (Tables 6, 7), {MBPS} Mbit/s (assumed) x {} \
             ms{suffix}, none lost; pages load for {:.0} s",
            self.seconds,
            self.pages,
            self.requests[index] / self.pages,
            self.kilobytes[index],
            self.rtt_ms,
            found.loading,
        )
    }

    fn why(&self, paper: f64, found: Visit) -> String {
        let open = BROWSER_OPEN_WATTS * self.seconds;
        let rest = paper - found.joules;
        let always = wifi().active.get() * self.seconds;
        format!(
            "an open browser takes {open:.0} J and traffic {:.0} J here, to which a radio active all the time \
             would add {always:.0} J at most; {rest:.0} J ({:.2} W) are left, inferred to be the browser loading \
             and drawing pages, which the paper names (layout, section 1.4) and states no power of",
            found.traffic,
            rest / self.seconds,
        )
    }

    fn visits(&self, farther: Duration) -> Result<[Visit; 2], Box<dyn std::error::Error>> {
        Ok([self.visit(0, farther)?, self.visit(1, farther)?])
    }

    /// The mean of ten visits.
    fn visit(&self, index: usize, farther: Duration) -> Result<Visit, Box<dyn std::error::Error>> {
        let rtt = Duration::from_secs_f64(self.rtt_ms / 1e3) + farther;
        let link = LinkSpec::plain(BitRate::from_mbps(MBPS), rtt)?;
        let (count, bytes) = (self.requests[index] / self.pages, self.kilobytes[index] * 1_000);
        let size = bytes / self.pages / count;
        let files: Vec<_> =
            (0..count).map(|n| VirtualFile::new(format!("/object-{n}"), size, 0)).collect();
        let files = FileList::new(&files)?;
        let (protocol, numbers) = protocol(index);
        let origin = OriginConfig::plain(protocol, true);
        let (mut joules, mut loading) = (0.0, 0.0);
        for seed in 1..=RUNS {
            let mut scenario = Scenario::new(&link, origin, &files, seed);
            let radio = Radio::Wifi.profile();
            scenario.power =
                ModelledConfig { radio, base: Watts::new(BROWSER_OPEN_WATTS), ..scenario.power };
            scenario.engine.limits.max_connections_per_origin = numbers.concurrency;
            scenario.engine.limits.max_connections = numbers.concurrency;
            let ending = scenario.run(Box::new(Fixed::new(numbers)));
            if !ending.is_complete {
                return Err(format!("{}, {}: a page did not end", self.name, NAMES[index]).into());
            }
            joules += ending.energy.get();
            loading += ending.seconds;
        }
        let pages = self.pages as f64 / RUNS as f64;
        let (joules, loading) = (joules * pages, loading * pages);
        let traffic = joules - BROWSER_OPEN_WATTS * loading;
        let quiet = (self.seconds - loading).max(0.0) * wifi().idle.mean_power().get();
        let traffic = traffic + quiet;
        Ok(Visit { joules: traffic + BROWSER_OPEN_WATTS * self.seconds, traffic, loading })
    }
}

fn protocol(index: usize) -> (Protocol, FixedConfig) {
    let numbers = FixedConfig { concurrency: CONNECTIONS, parallelism: 1, pipelining: 1 };
    if index == 0 {
        (Protocol::Http11, numbers)
    } else {
        (Protocol::Http2, FixedConfig { concurrency: 1, pipelining: STREAMS, ..numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_told_and_what_differs_is_explained() {
        let rows = papers_004().unwrap();
        // Five conditions of three rows, and two of them are compared over both protocols.
        assert_eq!(rows.len(), 5 * 3 + 2 * 2);
        for row in &rows {
            assert!(row.model.is_finite() && row.model > 0.0, "{row:?}");
            assert!(!row.is_far() || !row.why.is_empty(), "{row:?}");
            // Which protocol and how far away decides little, as in the paper.
            assert!(row.unit != "%" || !row.is_far(), "{row:?}");
        }
    }

    #[test]
    fn three_hundred_milliseconds_make_pages_load_longer() {
        let yahoo = &SITES[2];
        let [near, far] = [Duration::ZERO, FARTHER].map(|by| yahoo.visit(0, by).unwrap());
        assert!(far.loading > near.loading * 1.5, "{near:?} {far:?}");
        assert!(far.loading < yahoo.seconds, "{far:?}");
    }
}
