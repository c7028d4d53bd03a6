//! How many connections there are where losses or the server, and not the path, limit each of them.

use std::time::Duration;

use crate::growth::{LaneUse, Response};
use crate::time::Timestamp;
use crate::units::BitRate;

/// What one doubling must bring: where connections are the limit, twice as many bring nearly twice as
/// much, and less than this may be chance.
const PAYS: f64 = 1.2;
/// With so much more the path is not full yet.
const NEARLY_TWICE: f64 = 1.6;
/// Samples of goodput that tell a rate.
const TELLING: u32 = 3;
/// A handshake that takes so many times what a change takes to show has queued, or there is none.
const PATIENCE: u32 = 10;
/// So many times as long as a change takes to show it takes new connections.
const TRIAL_SETTLES: u32 = 2;
/// A path that was full stays so for a while; after each such finding for longer.
const REST: Duration = Duration::from_secs(5);

/// Doubles connections, and what goes over them, while that pays.
///
/// Requests that share a few connections share their windows, and each loss halves one of them; a server may hold
/// each connection down. What the path holds can't be told from the rate then: it is what those few connections bring. A handshake tells
/// it. One more connection is opened; where its handshake does not queue, the path is not full. Then
/// connections are doubled for a trial, which is judged by what they bring.
#[derive(Debug, Clone)]
pub struct Spread {
    times: u32,
    phase: Phase,
    least_rtt: Option<Duration>,
    goodput: Mean,
    resting_until: Timestamp,
    rest: Duration,
    settle: Duration,
    further: Further,
    has_found: bool,
    has_queued: bool,
}

/// What one connection more could be of use for, where its handshake does not queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Further {
    /// Nothing.
    Nothing,
    /// More connections were opened early than are shared on a path that loses nothing: it tells whether
    /// they are of use.
    Proof,
    /// There may be twice as many.
    Doubling,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Steady,
    Probing {
        since: Timestamp,
    },
    /// Its rate counts from here on.
    Trying {
        before: BitRate,
        from: Timestamp,
    },
}

/// A mean of the last samples.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    bps: f64,
    samples: u32,
}

impl Mean {
    fn add(&mut self, rate: BitRate) {
        self.samples = (self.samples + 1).min(TELLING);
        self.bps += (rate.bps() - self.bps) / f64::from(self.samples);
    }

    fn rate(self) -> Option<BitRate> {
        (self.samples == TELLING).then(|| BitRate::from_bps(self.bps))
    }
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            times: 1,
            phase: Phase::Steady,
            least_rtt: None,
            goodput: Mean::default(),
            resting_until: Timestamp::START,
            rest: REST,
            settle: Duration::ZERO,
            further: Further::Nothing,
            has_found: false,
            has_queued: false,
        }
    }
}

impl Spread {
    /// How many times the planned connections are used.
    pub const fn times(&self) -> u32 {
        self.times
    }

    /// Whether one connection more is wanted, to see how its handshake does.
    pub fn probes(&self) -> bool {
        matches!(self.phase, Phase::Probing { .. })
    }

    /// Whether something is being found out: nothing else is to be tried meanwhile.
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Steady
    }

    /// Whether doubling has come to an end once.
    pub const fn has_found(&self) -> bool {
        self.has_found
    }

    /// Whether a handshake had to queue: a path that is full needs no more windows.
    pub const fn has_queued(&self) -> bool {
        self.has_queued
    }

    /// A server refused, was overloaded or can't be reached: back to the planned connections, for a while. That is a longer one
    /// each time, unless there were no more of them anyway: each of many retries of a server that is away fails.
    pub fn on_refusal(&mut self, now: Timestamp) {
        let had_more = self.times > 1 || self.is_busy();
        self.times = 1;
        if had_more {
            self.rest_from(now);
        } else {
            self.goodput = Mean::default();
            self.resting_until = self.resting_until.max(now + REST);
        }
    }

    /// The path has become longer, and a handshake takes so long at least: it was not full, and more connections may pay that did
    /// not.
    pub fn on_longer_path(&mut self, now: Timestamp, rtt: Duration) {
        (self.least_rtt, self.has_queued) = (Some(rtt), false);
        (self.resting_until, self.rest) = (now, REST);
    }

    /// A handshake took so long. Returns whether something has changed.
    pub fn on_handshake(&mut self, now: Timestamp, took: Duration) -> bool {
        let at_least = self.least_rtt.map_or(took, |least| least.min(took));
        self.least_rtt = Some(at_least);
        let (Phase::Probing { .. }, Some(before)) = (self.phase, self.goodput.rate()) else {
            return false;
        };
        self.has_queued = Response { took, at_least }.has_queued();
        match self.further {
            Further::Doubling if !self.has_queued => self.double(now, before),
            _ => self.rest_from(now),
        }
        true
    }

    /// A sample of goodput, and what one connection more could be of use for. Returns whether something
    /// has changed.
    pub fn on_rate(&mut self, now: Timestamp, lanes: LaneUse, further: Further) -> bool {
        self.settle = lanes.settle;
        self.further = further;
        // What the first windows brought before they met losses is more than what they bring.
        let is_telling = match self.phase {
            Phase::Trying { from, .. } => lanes.all_busy && now >= from,
            Phase::Steady | Phase::Probing { .. } => {
                lanes.all_busy && further != Further::Nothing && !lanes.is_filling
            }
        };
        if is_telling {
            self.goodput.add(lanes.rate);
        } else {
            self.goodput = Mean::default();
        }
        match self.phase {
            Phase::Trying { before, .. } => self.judge(now, before),
            Phase::Probing { .. } if !is_telling => {
                self.phase = Phase::Steady;
                true
            }
            Phase::Probing { since } => {
                let is_over = now.saturating_since(since) > lanes.settle * PATIENCE;
                if is_over {
                    self.rest_from(now);
                }
                is_over
            }
            Phase::Steady => {
                if now >= self.resting_until && self.goodput.rate().is_some() {
                    self.phase = Phase::Probing { since: now };
                }
                self.probes()
            }
        }
    }

    /// Whether it has turned out what a trial brings.
    fn judge(&mut self, now: Timestamp, before: BitRate) -> bool {
        let Some(rate) = self.goodput.rate() else { return false };
        self.phase = Phase::Steady;
        if rate.bps() < before.bps() * PAYS {
            self.times /= 2;
            self.rest_from(now);
        } else if rate.bps() >= before.bps() * NEARLY_TWICE && self.further == Further::Doubling {
            self.double(now, rate);
        }
        true
    }

    fn double(&mut self, now: Timestamp, before: BitRate) {
        self.times = self.times.saturating_mul(2);
        // A handshake of its own comes before the first byte of each, and slow start after it.
        self.phase = Phase::Trying { before, from: now + self.settle * TRIAL_SETTLES };
        self.goodput = Mean::default();
    }

    fn rest_from(&mut self, now: Timestamp) {
        self.has_found = true;
        self.phase = Phase::Steady;
        self.goodput = Mean::default();
        self.resting_until = now + self.rest;
        self.rest = self.rest.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn lanes(mbps: f64) -> LaneUse {
        LaneUse {
            rate: BitRate::from_mbps(mbps),
            all_busy: true,
            times_used: 1,
            may_double: false,
            is_filling: false,
            settle: RTT * 3,
        }
    }

    /// Samples of `mbps` every 200 ms from `from` on until something changes. Returns when it did.
    fn until_change(spread: &mut Spread, from: u64, mbps: f64) -> Option<u64> {
        let mut times = (from..from + 4_000).step_by(200);
        times.find(|millis| spread.on_rate(at(*millis), lanes(mbps), Further::Doubling))
    }

    /// One connection more has been asked for: its first handshake took 100 ms.
    fn probing() -> Spread {
        let mut spread = Spread::default();
        assert!(!spread.on_handshake(at(0), RTT), "nobody asked");
        assert_eq!(until_change(&mut spread, 1_000, 10.0), Some(1_400), "three samples");
        assert!(spread.probes());
        spread
    }

    #[test]
    fn connections_double_while_handshakes_are_prompt_and_more_comes() {
        let mut spread = probing();
        assert!(spread.on_handshake(at(1_500), RTT));
        assert_eq!((spread.times(), spread.probes(), spread.is_busy()), (2, false, true));
        assert_eq!(until_change(&mut spread, 1_600, 19.0), Some(2_600), "those of 2.1 s on count");
        assert_eq!(spread.times(), 4, "nearly twice as much: the path is not full");
        assert_eq!(until_change(&mut spread, 2_700, 25.0), Some(3_700));
        assert_eq!((spread.times(), spread.is_busy()), (4, false), "it paid, and that is all");
        assert_eq!(until_change(&mut spread, 3_800, 25.0), Some(3_800));
        assert!(spread.probes() && !spread.has_found());
    }

    #[test]
    fn a_handshake_that_queues_ends_it_before_it_has_begun() {
        let mut spread = probing();
        assert!(spread.on_handshake(at(1_500), RTT * 2));
        assert_eq!((spread.times(), spread.is_busy(), spread.has_found()), (1, false, true));
        assert_eq!(until_change(&mut spread, 2_000, 10.0), None, "it rests");
        assert_eq!(until_change(&mut spread, 6_500, 10.0), Some(6_500));
        assert!(spread.on_handshake(at(7_000), RTT * 2));
        assert_eq!(until_change(&mut spread, 8_000, 10.0), None, "for longer");
    }

    #[test]
    fn the_least_round_trip_ever_tells_what_a_queue_is() {
        let mut spread = Spread::default();
        assert!(!spread.on_handshake(at(0), RTT));
        // A minute later, behind a queue that is always there: no estimate remembers a path without it.
        assert_eq!(until_change(&mut spread, 60_000, 10.0), Some(60_400));
        assert!(spread.on_handshake(at(61_000), RTT * 5));
        assert_eq!(spread.times(), 1);
    }

    #[test]
    fn handshakes_over_a_path_that_has_become_longer_are_no_queue() {
        let mut spread = probing();
        assert!(spread.on_handshake(at(1_500), RTT * 3) && spread.has_queued());
        spread.on_longer_path(at(1_600), RTT * 3);
        assert!(!spread.has_queued());
        assert_eq!(until_change(&mut spread, 1_700, 5.0), Some(2_100), "it need not rest");
        assert!(spread.on_handshake(at(2_500), RTT * 3));
        assert_eq!(spread.times(), 2);
    }

    #[test]
    fn a_handshake_that_never_comes_is_not_waited_for() {
        let mut spread = probing();
        assert!(!spread.on_rate(at(4_400), lanes(10.0), Further::Doubling));
        assert!(
            spread.on_rate(at(4_500), lanes(10.0), Further::Doubling),
            "ten times what a change takes"
        );
        assert_eq!((spread.times(), spread.is_busy(), spread.has_found()), (1, false, true));
    }

    #[test]
    fn what_does_not_pay_is_taken_back() {
        let mut spread = probing();
        assert!(spread.on_handshake(at(1_500), RTT));
        assert_eq!(until_change(&mut spread, 1_600, 11.5), Some(2_600));
        assert_eq!((spread.times(), spread.has_found()), (1, true));
    }

    #[test]
    fn idle_lanes_a_growing_rate_and_a_full_budget_begin_nothing() {
        for (lanes, further) in [
            (LaneUse { all_busy: false, ..lanes(10.0) }, Further::Doubling),
            (LaneUse { is_filling: true, ..lanes(10.0) }, Further::Doubling),
            (lanes(10.0), Further::Nothing),
        ] {
            let mut spread = Spread::default();
            let mut times = (0..4_000).step_by(200);
            assert!(!times.any(|millis| spread.on_rate(at(millis), lanes, further)));
            let mut spread = probing();
            assert!(spread.on_rate(at(1_600), lanes, further));
            assert!(!spread.probes(), "no connection more");
        }
    }

    #[test]
    fn a_proof_changes_nothing_but_what_is_known() {
        for (took, has_queued) in [(RTT, false), (RTT * 2, true)] {
            let mut spread = probing();
            assert!(!spread.on_rate(at(1_450), lanes(10.0), Further::Proof));
            assert!(spread.on_handshake(at(1_500), took));
            assert_eq!((spread.times(), spread.is_busy(), spread.has_found()), (1, false, true));
            assert_eq!(spread.has_queued(), has_queued);
        }
    }

    #[test]
    fn a_refusal_leads_back_for_a_while() {
        let mut spread = probing();
        assert!(spread.on_handshake(at(1_500), RTT));
        spread.on_refusal(at(1_600));
        assert_eq!((spread.times(), spread.is_busy()), (1, false));
        assert_eq!(until_change(&mut spread, 2_000, 10.0), None);
    }

    #[test]
    fn many_retries_of_a_server_that_is_away_are_one_refusal() {
        let mut spread = Spread::default();
        (0..8).for_each(|index| spread.on_refusal(at(index * 10)));
        assert_eq!(until_change(&mut spread, 1_000, 10.0), None);
        assert_eq!(until_change(&mut spread, 5_000, 10.0), Some(5_200));
    }
}
