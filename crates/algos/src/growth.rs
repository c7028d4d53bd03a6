//! How far lanes may grow beyond what the formulas ask for.

mod samples;

use std::time::Duration;

use self::samples::{Mean, Noise};
use crate::time::Timestamp;
use crate::units::BitRate;

/// Lets lanes grow beyond what the formulas ask for while that pays.
///
/// The formulas count one round trip a file: `BDP / avg` files in flight fill the path. A file
/// that also needs a handshake, slow start or a server's time needs more of them, and a link that
/// was measured with too few lanes seems to be as slow as they are. `maxCC` "is assigned based on
/// resource capacities of mobile users and fairness concerns" (papers/001 section IV), which names
/// no rule either. Here there are two:
///
/// - Responses that come as fast as the path allows show that nothing queues anywhere: the lanes
///   are the limit. They double, and may again when the new ones have shown themselves.
/// - Else, once the rate has stopped growing by itself, they double for a trial and stay if that
///   brought at least 5 % more throughput, and more than chance does; if not, they return to the number before and rest, for
///   longer each time: a full link stays full. Where it brought nearly twice as much they double again at once.
///   A handshake that had to queue shows at once that it is full.
///   Where fewer of them then bring much less than they had brought before, there is another trial at once.
#[derive(Debug, Clone)]
pub struct LaneGrowth {
    factor: u32,
    /// It was set before the size of any file was known.
    is_guess: bool,
    trial: Option<Trial>,
    /// Growth did not pay: not tried again before then, and after longer each time.
    resting_until: Timestamp,
    rest: Duration,
    /// Where they bring less than that it is tried all the same: the path has become longer since.
    rests_from: BitRate,
    /// What the present lanes bring.
    lately: Mean,
    noise: Noise,
    /// What more lanes brought, and when they ended.
    missed: Option<(Mean, Timestamp)>,
    /// Lanes doubled because nothing queued: not again before then.
    doubled_until: Timestamp,
    /// The last response that had queued somewhere.
    queued_at: Option<Timestamp>,
    /// The last handshake that had queued.
    full_at: Option<Timestamp>,
    /// The first moment at which the present lanes had all work.
    busy_since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    before: u32,
    rate_before: Mean,
    rate: Mean,
    samples: u32,
    /// Its rate counts from here on.
    judged_at: Timestamp,
}

/// What the goodput was, and what it was reached with.
#[derive(Debug, Clone, Copy)]
pub struct LaneUse {
    /// Goodput over the last sample.
    pub rate: BitRate,
    /// Every lane had work, and there is more of it.
    pub all_busy: bool,
    /// How many times the planned lanes are in use: more than was asked for where fewer were planned since.
    pub times_used: u32,
    /// Twice the lanes, or nearly, would still be within the budgets, and may bring more than the path was seen to carry.
    pub may_double: bool,
    /// The rate still grows by itself: nothing can be told from it yet.
    pub is_filling: bool,
    /// How long a change takes to show: a few round trips.
    pub settle: Duration,
}

impl LaneUse {
    /// Twice of what is in use: as much as is there anyway would bring nothing.
    fn doubled(&self, factor: u32) -> u32 {
        factor.max(self.times_used).saturating_mul(2)
    }
}

/// How long a response took to begin.
#[derive(Debug, Clone, Copy)]
pub struct Response {
    /// From the request on.
    pub took: Duration,
    /// What it takes where nothing queues, handshakes included where the connection was new.
    pub at_least: Duration,
}

impl Response {
    /// A quarter more than the least, and what timers and schedulers add.
    pub fn has_queued(&self) -> bool {
        self.took > self.at_least.mul_f64(1.25) + JITTER
    }

    /// Hardly more than the least: a path that is asked for a quarter more than it holds has a longer queue.
    pub(crate) fn is_prompt(&self) -> bool {
        self.took <= self.at_least.mul_f64(1.1) + JITTER
    }
}

const PAYS: f64 = 1.05;
/// With so much more each of the lanes has what it had before: something else than the path limits it, and more of them pay, too.
const NEARLY_TWICE: f64 = 1.6;
/// A trial that has brought more by chance only, for so many samples, has brought nothing.
const MOST_SAMPLES: u32 = 16;
/// Fewer lanes that bring so much less than more of them did were too few: their windows did not fill the path alone.
const MISSED: f64 = 1.25;
const REST: Duration = Duration::from_secs(20);
const REST_AFTER_REFUSAL: Duration = Duration::from_secs(2);
/// A path that was seen to be full is taken to stay so for so many times what a change takes to show.
const FULL_FOR: u32 = 4;
const JITTER: Duration = Duration::from_millis(1);
/// Round trips until new lanes have shown themselves: a connection's, or what it takes until others
/// meet what the new ones have asked for.
const SHOWS_AFTER: u32 = 2;
/// On a short path a queue takes longer to build than a round trip.
const SHOWS_AFTER_AT_LEAST: Duration = Duration::from_millis(30);

impl Default for LaneGrowth {
    fn default() -> Self {
        Self {
            factor: 1,
            is_guess: false,
            trial: None,
            resting_until: Timestamp::START,
            rest: REST,
            rests_from: BitRate::ZERO,
            lately: Mean::default(),
            noise: Noise::default(),
            missed: None,
            doubled_until: Timestamp::START,
            queued_at: None,
            full_at: None,
            busy_since: None,
        }
    }
}

impl LaneGrowth {
    /// How many times the planned lanes are used at present.
    pub const fn factor(&self) -> u32 {
        self.factor
    }

    /// Whether growth did not pay of late.
    pub fn rests(&self, now: Timestamp) -> bool {
        now < self.resting_until
    }

    /// Whether more lanes are on trial.
    pub const fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Whether handshakes have had to queue of late, where a change takes `settle` to show.
    pub fn is_full(&self, now: Timestamp, settle: Duration) -> bool {
        self.full_at.is_some_and(|at| now.saturating_since(at) < settle * FULL_FOR)
    }

    /// A server refused or was overloaded: back to the planned lanes, for a while. How many it bears is known elsewhere.
    pub fn on_refusal(&mut self, now: Timestamp) {
        let until = now + REST_AFTER_REFUSAL;
        *self = Self { resting_until: until, doubled_until: until, ..Self::default() };
    }

    /// The path has become longer: as long as lanes bring less than it was seen to carry, more of them may pay that did not.
    pub fn on_longer_path(&mut self) {
        let in_vain = self.missed.map_or(BitRate::ZERO, |(rate, _)| rate.rate());
        (self.rests_from, self.rest) = (in_vain * (1.0 / PAYS), REST);
        (self.full_at, self.queued_at) = (None, None);
    }

    /// The first answers have shown that it takes so many times the planned lanes to fill the link.
    pub fn widen(&mut self, now: Timestamp, rtt: Duration, factor: u32) {
        self.is_guess = false;
        if factor > self.factor {
            self.begin_samples(Mean::default());
            self.factor = factor;
        }
        self.doubled_until = now + shows_after(rtt);
    }

    /// The same while no file's size is known, as files may be short: as long as [that may be](Self::end_guess).
    pub fn widen_by_guess(&mut self, now: Timestamp, rtt: Duration, factor: u32) {
        let was_guess = self.is_guess || self.factor == 1;
        self.widen(now, rtt, factor);
        self.is_guess = was_guess;
    }

    /// Files are not short.
    pub fn end_guess(&mut self) {
        if std::mem::take(&mut self.is_guess) {
            self.factor = 1;
        }
    }

    /// Takes note of a response over a path of `rtt`. Returns whether the factor changed.
    pub fn on_response(
        &mut self,
        now: Timestamp,
        response: Response,
        rtt: Duration,
        lanes: LaneUse,
    ) -> bool {
        if response.has_queued() {
            self.queued_at = Some(now);
            return false;
        }
        let free = self.queued_at.is_none_or(|at| now.saturating_since(at) > rtt * 2);
        let ready = free && lanes.all_busy && lanes.may_double && now >= self.doubled_until;
        if ready {
            (self.trial, self.is_guess) = (None, false);
            self.begin_samples(Mean::default());
            self.factor = lanes.doubled(self.factor);
            self.doubled_until = now + shows_after(rtt);
        }
        ready
    }

    /// Takes note of a handshake that took `took` over a path of `rtt`, while goodput was `rate`. Where
    /// it had to queue the path is full, and more lanes would only make the queue longer: there is no
    /// trial for a while, and one that has begun and has not brought more is over. Returns whether the
    /// factor changed.
    pub fn on_handshake(
        &mut self,
        now: Timestamp,
        took: Duration,
        rtt: Duration,
        rate: BitRate,
    ) -> bool {
        if !(Response { took, at_least: rtt }).has_queued() {
            return false;
        }
        self.full_at = Some(now);
        let in_vain = |trial: &Trial| rate.bps() < trial.rate_before.rate().bps() * PAYS;
        let Some(mut trial) = self.trial.filter(in_vain) else { return false };
        trial.rate.add(rate);
        self.end(now, trial);
        true
    }

    /// A trial did not pay.
    fn end(&mut self, now: Timestamp, trial: Trial) {
        self.trial = None;
        self.missed = Some((trial.rate, now));
        self.begin_samples(Mean::default());
        self.factor = trial.before;
        (self.resting_until, self.rests_from) = (now + self.rest, BitRate::ZERO);
        self.rest = self.rest.saturating_mul(2);
    }

    fn judge(&self, now: Timestamp, mut trial: Trial, rate: BitRate) -> Verdict {
        if rate.bps() >= trial.rate_before.rate().bps() * NEARLY_TWICE {
            let mut brings = Mean::default();
            brings.add(rate);
            return Verdict::NearlyTwice(brings);
        }
        if now < trial.judged_at {
            return Verdict::Open(trial);
        }
        trial.rate.add(rate);
        trial.samples += 1;
        let gain = trial.rate.rate().bps() / trial.rate_before.rate().bps();
        let beyond_chance = 1.0 + self.noise.between(&trial.rate, &trial.rate_before);
        if gain < PAYS || (gain < beyond_chance && trial.samples >= MOST_SAMPLES) {
            Verdict::InVain(trial)
        } else if gain < beyond_chance {
            Verdict::Open(trial)
        } else {
            Verdict::Pays(trial.rate)
        }
    }

    /// Other lanes are in use from now on, of which so much is known.
    fn begin_samples(&mut self, known: Mean) {
        self.lately = known;
        self.noise.restart();
    }

    /// Takes note of a sample of goodput. Returns whether the factor changed.
    pub fn on_rate(&mut self, now: Timestamp, lanes: LaneUse) -> bool {
        if !lanes.all_busy {
            // What is measured with idle lanes tells nothing about more of them.
            self.trial = None;
            self.busy_since = None;
            self.begin_samples(Mean::default());
            return false;
        }
        let busy_since = *self.busy_since.get_or_insert(now);
        let mut is_far_from_full = false;
        if let Some(trial) = self.trial {
            let verdict = self.judge(now, trial, lanes.rate);
            match verdict {
                Verdict::Open(trial) => {
                    self.trial = Some(trial);
                    return false;
                }
                Verdict::InVain(trial) => {
                    self.end(now, trial);
                    return true;
                }
                Verdict::Pays(rate) | Verdict::NearlyTwice(rate) => {
                    is_far_from_full = matches!(verdict, Verdict::NearlyTwice(_));
                    self.trial = None;
                    self.begin_samples(rate);
                }
            }
        } else {
            self.lately.add(lanes.rate);
            self.noise.add(lanes.rate);
        }
        let is_full = self.is_full(now, lanes.settle);
        let settled = !lanes.is_filling
            && !is_full
            && now >= self.doubled_until
            && now.saturating_since(busy_since) >= lanes.settle;
        let has_missed = self.missed.is_some_and(|(rate, at)| {
            let missed = MISSED.max(1.0 + self.noise.between(&rate, &self.lately));
            now.saturating_since(at) >= lanes.settle * 3 / 2
                && self.lately.rate().bps() * missed < rate.rate().bps()
        });
        // Windows that have just grown to it have brought less before.
        let best = self.lately.rate().max(lanes.rate);
        let rests = now < self.resting_until && best >= self.rests_from;
        let ready = is_far_from_full && !is_full || settled && (!rests || has_missed);
        if !ready || !lanes.may_double || lanes.rate == BitRate::ZERO {
            return false;
        }
        self.missed = None;
        self.trial = Some(Trial {
            before: self.factor,
            rate_before: self.lately,
            rate: Mean::default(),
            samples: 0,
            judged_at: now + lanes.settle * 3 / 2,
        });
        self.is_guess = false;
        self.factor = lanes.doubled(self.factor);
        true
    }
}

/// What is known of a trial.
enum Verdict {
    Open(Trial),
    InVain(Trial),
    /// It brings so much.
    Pays(Mean),
    /// It brings so much, as much more as there are more lanes.
    NearlyTwice(Mean),
}

fn shows_after(rtt: Duration) -> Duration {
    (rtt * SHOWS_AFTER).max(SHOWS_AFTER_AT_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn sample(mbps: f64, all_busy: bool) -> LaneUse {
        LaneUse {
            rate: BitRate::from_mbps(mbps),
            all_busy,
            times_used: 1,
            may_double: true,
            is_filling: false,
            settle: Duration::from_millis(400),
        }
    }

    #[test]
    fn lanes_that_bring_much_less_than_more_of_them_did_get_another_trial() {
        let after_an_end = |mbps| {
            let mut growth = LaneGrowth::default();
            growth.on_rate(at(100), sample(10.0, true));
            assert!(growth.on_rate(at(500), sample(10.0, true)));
            assert!(growth.on_rate(at(1_100), sample(10.2, true)), "it did not pay");
            assert!(!growth.on_rate(at(1_500), sample(mbps, true)), "too early to tell");
            growth.on_rate(at(1_700), sample(mbps, true)).then(|| growth.factor())
        };
        assert_eq!(after_an_end(5.0), Some(2));
        assert_eq!(after_an_end(9.0), None, "it rests");
    }

    #[test]
    fn over_a_longer_path_there_is_another_trial_where_less_comes_than_it_carries() {
        let after_it_became_longer = |mbps: [f64; 2]| {
            let mut growth = LaneGrowth::default();
            growth.on_rate(at(100), sample(10.0, true));
            growth.on_rate(at(500), sample(10.0, true));
            assert!(growth.on_rate(at(1_100), sample(10.2, true)), "it did not pay");
            growth.on_longer_path();
            let filling = LaneUse { is_filling: true, ..sample(mbps[0], true) };
            assert!(!growth.on_rate(at(1_200), filling), "too early to tell");
            growth.on_rate(at(1_500), sample(mbps[1], true)).then(|| growth.factor())
        };
        assert_eq!(after_it_became_longer([9.0, 9.0]), Some(2));
        assert_eq!(after_it_became_longer([10.0, 10.0]), None, "it is full");
        assert_eq!(after_it_became_longer([2.0, 10.0]), None, "it is full again");
    }

    #[test]
    fn lanes_double_while_it_pays_and_return_when_it_does_not() {
        let mut growth = LaneGrowth::default();
        assert!(!growth.on_rate(at(100), sample(5.0, true)), "not settled");
        assert!(growth.on_rate(at(500), sample(10.0, true)));
        assert_eq!(growth.factor(), 2);
        assert!(!growth.on_rate(at(900), sample(11.5, true)), "too early to judge");
        assert!(growth.on_rate(at(1_100), sample(11.5, true)), "it paid, so the next doubling");
        assert_eq!(growth.factor(), 4);
        assert!(growth.on_rate(at(1_700), sample(11.6, true)), "it did not");
        assert_eq!(growth.factor(), 2);
        assert!(!growth.on_rate(at(4_000), sample(11.6, true)), "it rests");
        assert!(growth.on_rate(at(21_700), sample(11.6, true)), "it has rested for 20 s");
        assert!(growth.on_rate(at(22_300), sample(11.6, true)));
        assert!(!growth.on_rate(at(50_000), sample(11.6, true)), "the second rest is longer");
        assert!(growth.on_rate(at(62_300), sample(11.6, true)));
    }

    #[test]
    fn what_brings_nearly_twice_is_doubled_at_once() {
        let mut growth = LaneGrowth::default();
        assert!(!growth.on_rate(at(100), sample(10.0, true)), "not settled");
        assert!(growth.on_rate(at(500), sample(10.0, true)));
        let grows = LaneUse { is_filling: true, ..sample(18.0, true) };
        assert!(growth.on_rate(at(600), grows), "something else than the path limits each lane");
        assert_eq!(growth.factor(), 4);
        let grows = LaneUse { is_filling: true, ..sample(30.0, true) };
        assert!(growth.on_rate(at(700), grows));
        assert_eq!(growth.factor(), 8);
        assert!(!growth.on_rate(at(800), sample(31.0, true)), "too early to judge");
        assert!(growth.on_rate(at(1_400), sample(30.0, true)), "it did not pay");
        assert_eq!(growth.factor(), 4);
    }

    #[test]
    fn a_trial_has_more_lanes_than_are_in_use() {
        let mut growth = LaneGrowth::default();
        let left_over = LaneUse { times_used: 2, ..sample(10.0, true) };
        assert!(!growth.on_rate(at(100), left_over));
        assert!(growth.on_rate(at(500), left_over));
        assert_eq!(growth.factor(), 4);
        assert!(growth.on_rate(at(1_100), left_over), "it did not pay");
        assert_eq!(growth.factor(), 1);
    }

    #[test]
    fn what_was_widened_for_short_files_is_planned_anew_where_they_are_not() {
        let rtt = Duration::from_millis(100);
        let guessed = || {
            let mut growth = LaneGrowth::default();
            growth.widen_by_guess(at(0), rtt, 4);
            growth.widen_by_guess(at(10), rtt, 8);
            growth
        };
        let mut growth = guessed();
        assert_eq!(growth.factor(), 8);
        growth.end_guess();
        assert_eq!(growth.factor(), 1);
        let mut known = guessed();
        known.widen(at(20), rtt, 4);
        known.end_guess();
        assert_eq!(known.factor(), 8, "files are short");
        let mut lost = LaneGrowth::default();
        lost.widen(at(0), rtt, 4);
        lost.widen_by_guess(at(10), rtt, 8);
        lost.end_guess();
        assert_eq!(lost.factor(), 8);
    }

    #[test]
    fn idle_lanes_and_full_budgets_do_not_grow() {
        let mut growth = LaneGrowth::default();
        assert!(!growth.on_rate(at(0), sample(10.0, false)));
        assert!(!growth.on_rate(at(9_000), sample(10.0, false)));
        let full = LaneUse { may_double: false, ..sample(10.0, true) };
        assert!(!growth.on_rate(at(10_000), full));
        assert!(!growth.on_rate(at(20_000), full));
    }

    #[test]
    fn a_rate_that_grows_by_itself_starts_no_trial() {
        let mut growth = LaneGrowth::default();
        let filling = LaneUse { is_filling: true, ..sample(10.0, true) };
        assert!(!growth.on_rate(at(0), filling));
        assert!(!growth.on_rate(at(2_000), filling));
        assert!(growth.on_rate(at(2_500), sample(10.0, true)));
    }

    #[test]
    fn a_handshake_that_queues_keeps_from_trials_for_a_while() {
        let rtt = Duration::from_millis(100);
        let mbps = BitRate::from_mbps;
        let millis = Duration::from_millis;
        let mut growth = LaneGrowth::default();
        assert!(!growth.on_rate(at(100), sample(5.0, true)), "not settled");
        assert!(!growth.on_handshake(at(450), millis(110), rtt, mbps(5.0)));
        assert!(growth.on_rate(at(500), sample(10.0, true)), "there was no queue");
        assert!(!growth.on_handshake(at(1_000), millis(180), rtt, mbps(19.0)), "it brought more");
        assert!(
            !growth.on_rate(at(1_100), sample(20.0, true)),
            "it has brought twice, and the path is full"
        );
        assert_eq!(growth.factor(), 2);
        assert!(!growth.on_rate(at(2_500), sample(20.0, true)));
        assert!(growth.on_rate(at(2_600), sample(20.0, true)), "that was some time ago");
        assert_eq!(growth.factor(), 4);
        assert!(growth.on_handshake(at(2_700), millis(180), rtt, mbps(20.5)), "full before it");
        assert_eq!(growth.factor(), 2);
        assert!(!growth.on_rate(at(3_200), sample(30.0, true)), "it is over");
    }

    #[test]
    fn lanes_that_the_first_answers_ask_for_come_at_once_and_are_waited_for() {
        let rtt = Duration::from_millis(100);
        let prompt = Response { took: rtt, at_least: rtt };
        let mut growth = LaneGrowth::default();
        growth.widen(at(200), rtt, 3);
        assert_eq!(growth.factor(), 3);
        assert!(!growth.on_response(at(300), prompt, rtt, sample(1.0, true)), "too early");
        growth.widen(at(320), rtt, 2);
        assert_eq!(growth.factor(), 3, "it does not narrow");
        assert!(growth.on_response(at(520), prompt, rtt, sample(1.0, true)));
        assert_eq!(growth.factor(), 6);
    }

    #[test]
    fn a_refusal_ends_growth_for_a_while() {
        let rtt = Duration::from_millis(100);
        let prompt = Response { took: rtt, at_least: rtt };
        let mut growth = LaneGrowth::default();
        assert!(growth.on_response(at(300), prompt, rtt, sample(1.0, true)));
        growth.on_refusal(at(400));
        assert_eq!(growth.factor(), 1);
        assert!(!growth.on_response(at(2_000), prompt, rtt, sample(1.0, true)));
        assert!(!growth.on_rate(at(2_300), sample(1.0, true)));
        assert!(growth.on_response(at(2_400), prompt, rtt, sample(1.0, true)));
    }

    #[test]
    fn prompt_responses_double_lanes_and_late_ones_stop_that() {
        let rtt = Duration::from_millis(100);
        let after = |millis| Response { took: Duration::from_millis(millis), at_least: rtt };
        let mut growth = LaneGrowth::default();
        assert!(growth.on_response(at(300), after(101), rtt, sample(1.0, true)));
        assert!(!growth.on_response(at(350), after(101), rtt, sample(1.0, true)), "too early");
        assert!(growth.on_response(at(500), after(110), rtt, sample(2.0, true)));
        assert_eq!(growth.factor(), 4);
        assert!(!growth.on_response(at(900), after(180), rtt, sample(4.0, true)), "it queued");
        assert!(!growth.on_response(at(950), after(101), rtt, sample(4.0, true)), "just before");
        assert!(!growth.on_response(at(2_000), after(101), rtt, sample(4.0, false)), "no work");
        assert_eq!(growth.factor(), 4);
    }
}
