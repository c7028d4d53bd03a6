//! papers/003's sleep policies over recorded downloads, and its Table I as a check.
//!
//! The card is `pelton_power::sleep::Card::wavelan`, whose numbers the paper states; none is fitted.

use pelton_algos::units::Bytes;
use pelton_power::sleep::{Card, Outcome, SleepPolicy, evaluate};
use pelton_power::trace::{Packet, round_trip};

use super::Row;

/// "The script downloaded a file between 4 MB and 5 MB"; "the entire 5MB file" (section IV-F).
pub const FILE: Bytes = Bytes(5_000_000);

/// "For a 64KB TCP socket buffer" (section IV-A).
pub const SOCKET_BUFFER: Bytes = Bytes::kib(64);

/// Table I, the wired columns: round trip in ms, seconds and joules of a client that shapes traffic
/// into bursts, in ns-2.
const TABLE_I: [(u64, f64, f64); 5] =
    [(30, 6.1, 5.5), (45, 6.9, 5.8), (60, 7.9, 6.0), (90, 9.7, 6.5), (120, 11.5, 7.1)];

/// The links of `cells.toml` with the round trips of Table I.
pub const LINKS: [&str; 5] = ["20x30", "20x45", "20x60", "20x90", "20x120"];

/// A download that was recorded on one of [`LINKS`].
#[derive(Debug, Clone)]
pub struct Recording {
    /// The link.
    pub link: &'static str,
    /// Its packets, in the order of time.
    pub packets: Vec<Packet>,
}

impl Recording {
    /// What the card draws for it under `policy`.
    pub fn outcome(&self, policy: SleepPolicy) -> Outcome {
        let rtt = round_trip(&self.packets).unwrap_or_default();
        evaluate(&self.packets, &Card::wavelan(), policy, rtt)
    }
}

/// What Table I, PSM and bounded slowdown are said to do, beside what they do over `recordings`, which
/// are those of [`LINKS`].
pub fn papers_003(recordings: &[Recording]) -> Vec<Row> {
    let of_traces = TABLE_I.iter().zip(recordings).map(|(point, trace)| mean_power(*point, trace));
    let mut rows: Vec<Row> = of_traces.chain(from_own_seconds()).collect();
    if let Some(farthest) = recordings.last() {
        rows.push(psm(farthest));
        rows.push(bounded_slowdown(recordings));
    }
    rows
}

fn mean_power((millis, seconds, joules): (u64, f64, f64), trace: &Recording) -> Row {
    let tracked = trace.outcome(SleepPolicy::ClientCentered);
    let oracle = trace.outcome(SleepPolicy::Oracle);
    let paper = joules / seconds;
    Row {
        what: format!("Table I: mean power of a download, {millis} ms, client-centered"),
        paper,
        model: power(&tracked),
        unit: "W",
        given: format!("{FILE} over {}, recorded; connection tracking without shaping", trace.link),
        why: why(paper, &tracked, &oracle),
    }
}

/// The paper's client shapes its traffic into bursts, the recorded one does not: what that leaves to
/// sleep in, and what tracking finds of it.
fn why(paper: f64, tracked: &Outcome, oracle: &Outcome) -> String {
    let card = Card::wavelan();
    let share = |outcome: &Outcome| {
        100.0 * outcome.sleep.duration.as_secs_f64() / outcome.duration.as_secs_f64().max(1e-9)
    };
    // Awake it draws idle power at least, so that this much must be sleep.
    let least = 100.0 * (card.idle.get() - paper) / (card.idle.get() - card.sleep.get());
    let (gaps, found, power) = (share(oracle), share(tracked), power(oracle));
    let slept = format!("by Table I's own joules its card slept at least {least:.0} % of the time");
    if gaps < least {
        return format!(
            "{slept}, which shaping made room for; in these packets, as TCP sends them, gaps that pay are \
             {gaps:.0} %: even the oracle draws {power:.2} W"
        );
    }
    format!(
        "{slept}; in these packets, as TCP sends them, gaps that pay are {gaps:.0} % ({power:.2} W with the \
         oracle), but tracking, which shaping would tell where a window ends, finds {found:.0} %"
    )
}

fn power(outcome: &Outcome) -> f64 {
    outcome.energy().get() / outcome.duration.as_secs_f64().max(1e-9)
}

/// Table I's joules from its seconds: in each round of a shaped download the card is awake for a
/// burst and asleep for a round trip, so the seconds lie on a line over the round trip. Its slope is
/// the number of rounds, and where it begins is the time awake.
fn from_own_seconds() -> impl Iterator<Item = Row> {
    let (rounds, awake) = line(TABLE_I.map(|(millis, seconds, _)| (millis as f64 / 1e3, seconds)));
    let card = Card::wavelan();
    TABLE_I.into_iter().map(move |(millis, _, joules)| {
        let wake = card.wake.as_secs_f64();
        let asleep = rounds * (millis as f64 / 1e3 - wake);
        let awake_or_waking = awake + rounds * wake;
        Row {
            what: format!("Table I: joules of a shaped download, {millis} ms, from its seconds"),
            paper: joules,
            model: card.idle.get() * awake_or_waking + card.sleep.get() * asleep,
            unit: "J",
            given: format!(
                "{rounds:.0} rounds and {awake:.2} s awake, the line through Table I's seconds; idle \
                 power while awake"
            ),
            why: String::new(),
        }
    })
}

/// Slope and beginning of the line with the least squares.
fn line<const N: usize>(points: [(f64, f64); N]) -> (f64, f64) {
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / N as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = both / spread;
    (slope, y - slope * x)
}

/// "For inria.fr, which has a 120 ms RTT, the effective RTT becomes 200 ms, which adds 61 % overhead".
fn psm(trace: &Recording) -> Row {
    let seconds = |policy| trace.outcome(policy).duration.as_secs_f64();
    let (late, awake) = (seconds(SleepPolicy::Psm), seconds(SleepPolicy::AlwaysAwake));
    Row {
        what: "IV-F: PSM, what a download takes longer at 120 ms".to_owned(),
        paper: 61.0,
        model: 100.0 * (late / awake - 1.0),
        unit: "%",
        given: format!("{FILE} over {}, recorded; packets handed over at beacons", trace.link),
        why: String::new(),
    }
}

/// "BSD-10, BSD-20, and BSD-50 could never save energy during downloads".
fn bounded_slowdown(recordings: &[Recording]) -> Row {
    let shares = recordings.iter().flat_map(|trace| {
        let awake = trace.outcome(SleepPolicy::AlwaysAwake).energy();
        [0.1, 0.2, 0.5].map(|share| {
            let bounded = trace.outcome(SleepPolicy::BoundedSlowdown(share)).energy();
            100.0 * bounded.get() / awake.get().max(1e-9)
        })
    });
    Row {
        what: "IV-B: BSD-10, -20, -50 in a download, joules over always awake".to_owned(),
        paper: 100.0,
        model: shares.fold(f64::INFINITY, f64::min),
        unit: "%",
        given: "all five recordings; the least of all".to_owned(),
        why: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pelton_algos::time::Timestamp;
    use pelton_power::trace::{Direction, Tcp};

    use super::*;

    /// Forty windows of 43 packets, each a round trip after the one before.
    fn windows(link: &'static str, rtt: u64) -> Recording {
        let packet = |at: u64, direction, bytes, tcp| Packet {
            at: Timestamp::new(Duration::from_micros(at)),
            direction,
            bytes: Bytes(bytes),
            tcp: Some(tcp),
        };
        let stamped = |echo: u64| Tcp {
            flow: 1,
            site: 1,
            payload: 1_448,
            timestamps: Some((0, echo as u32)),
            ..Tcp::default()
        };
        let sent =
            |at: u64, payload| Tcp { payload, timestamps: Some((at as u32, 0)), ..stamped(0) };
        let opening = Tcp { syn: true, payload: 0, timestamps: None, ..stamped(0) };
        let mut packets = vec![
            packet(0, Direction::Sent, 60, opening),
            packet(rtt * 1_000, Direction::Received, 60, opening),
            packet(rtt * 1_000, Direction::Sent, 152, sent(rtt * 1_000, 100)),
        ];
        for round in 2..42_u64 {
            for number in 0..43_u64 {
                // 0.6 ms of airtime each.
                let at = round * rtt * 1_000 + number * 600;
                packets.push(packet(at, Direction::Received, 1_500, stamped(at - rtt * 1_000)));
                packets.push(packet(at, Direction::Sent, 52, sent(at, 0)));
            }
        }
        Recording { link, packets }
    }

    #[test]
    fn the_line_through_table_i_tells_rounds_and_time_awake() {
        let (rounds, awake) = line([(0.03, 4.0 + 60.0 * 0.03), (0.12, 4.0 + 60.0 * 0.12)]);
        assert!((rounds - 60.0).abs() < 1e-9 && (awake - 4.0).abs() < 1e-9, "{rounds} {awake}");
        for row in from_own_seconds() {
            assert!(!row.is_far(), "{row:?}");
        }
    }

    #[test]
    fn a_long_round_trip_leaves_more_to_sleep_in_and_psm_rounds_it_up() {
        let rtts = [30, 45, 60, 90, 120];
        let recordings: Vec<_> = LINKS.into_iter().zip(rtts).map(|(l, r)| windows(l, r)).collect();
        let rows = papers_003(&recordings);
        assert_eq!(rows.len(), 12);
        assert!((rows[0].paper - 0.9016).abs() < 1e-3 && (rows[4].paper - 0.6174).abs() < 1e-3);
        // Of 30 ms 26 are airtime, of 120 ms too: what is left is slept through.
        assert!(rows[0].model > 1.2 && rows[4].model < 0.7, "{} {}", rows[0].model, rows[4].model);
        let psm = &rows[10];
        assert!((60.0..72.0).contains(&psm.model), "{psm:?}");
        assert!((rows[11].model - 100.0).abs() < 1.0, "{:?}", rows[11]);
        for row in &rows {
            assert!(!row.is_far() || !row.why.is_empty(), "{row:?}");
        }
    }
}
