//! The pace of requests to an origin that answers so many in a time and refuses all others, however few are under way.

use std::time::Duration;

use crate::time::Timestamp;

/// So many refusals of requests that were under way alone, and so many answers between them, tell of a limit: who bears
/// few at once answers one, and who is down answers none.
const TELLING_REFUSALS: u32 = 3;
const TELLING_ANSWERS: u32 = 2;

/// So many answers in a row tell that there is no limit, or none any more.
const TELLING_OTHERWISE: u32 = 32;

/// The first interval between requests, in that of the answers so far: a limit without any burst refuses each second
/// request of who is hardly too quick.
const FIRST_INTERVAL: f64 = 1.25;

/// An answer shortens the interval to this, as long as no request was refused for its pace: the first answers were
/// seen from behind pauses.
const SEARCH: f64 = 0.7;

/// The same from then on, at most; a refusal makes it longer.
const SHORTER: f64 = 0.02;
const LONGER: f64 = 1.25;

/// After a refusal the next request may follow in this part of the interval: it has waited for most of its own
/// already, and a limit without any burst lets it pass.
const SOON: f64 = 0.25;

/// So many refusals at a pace slower by this than one at which others were answered are not for the pace.
const CONTRADICTIONS: u32 = 3;
const CONTRADICTORY: f64 = 1.5;

/// Where so many in a row are refused, what was answered before came in one burst: its pace says nothing.
const BURST: u32 = 3;
const MOST_BURSTS: u32 = 2;

/// So many refusals in a row are no limit: nothing is answered at all.
const DOWN: u32 = 6;

/// Requests need not wait for less.
const NO_INTERVAL: Duration = Duration::from_millis(1);

/// What becomes of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is known of a limit.
    Unknown,
    /// The pace was to blame, as is known from now on or from before: no request until then.
    Pace { begins: bool, until: Timestamp },
    /// Neither the pace nor the number of requests is: some are refused whatever is done.
    Chance,
}

/// Finds out whether there is a limit, and keeps the pace of requests below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestRate {
    /// Since the first refusal of a request that was under way alone: its time, how many more there were, and how many
    /// answers, of which so many came in a row.
    since: Option<Timestamp>,
    refused_alone: u32,
    /// There was an answer between them.
    alternates: bool,
    answered: u32,
    in_a_row: u32,
    pace: Option<Pace>,
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    interval: f64,
    /// The interval of what was answered before there was a pace.
    answered: f64,
    /// Since a request was refused for its pace the limit is known, and what a refusal costs.
    cost: Option<f64>,
    changed: Timestamp,
    refused_in_a_row: u32,
    contradictions: u32,
    bursts: u32,
}

impl RequestRate {
    /// How long after a request that is made now another one may follow.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.pace.map(|pace| seconds(pace.interval))
    }

    /// A request that `began` then was answered.
    pub(crate) fn on_answer(&mut self, began: Timestamp) {
        self.in_a_row += 1;
        self.answered += u32::from(self.since.is_some());
        if let Some(pace) = &mut self.pace {
            pace.on_answer(began);
            if self.in_a_row >= TELLING_OTHERWISE {
                pace.contradictions = 0;
            }
            if seconds(pace.interval) < NO_INTERVAL {
                self.pace = None;
            }
        }
        if self.pace.is_none() && self.in_a_row >= TELLING_OTHERWISE {
            *self = Self::default();
        }
    }

    /// A request that `began` then was refused, `alone` where no other was under way. `asked_for` is the pause that the
    /// server asked for.
    pub(crate) fn on_refusal(
        &mut self,
        now: Timestamp,
        began: Timestamp,
        alone: bool,
        asked_for: Option<Duration>,
    ) -> Verdict {
        let follows_answer = std::mem::take(&mut self.in_a_row) > 0;
        let begins = self.pace.is_none();
        if begins && !(alone && self.begins(now, follows_answer)) {
            return Verdict::Unknown;
        }
        let Some(pace) = &mut self.pace else { return Verdict::Unknown };
        if !begins && began >= pace.changed {
            let answered = mean_interval(self.since, now, self.answered);
            pace.on_refusal(now, asked_for, answered);
        }
        if pace.contradictions >= CONTRADICTIONS {
            *self = Self::default();
            return Verdict::Chance;
        }
        if pace.refused_in_a_row > DOWN {
            *self = Self::default();
            return Verdict::Unknown;
        }
        let part = if begins { 1.0 } else { SOON };
        let until = now + seconds(pace.interval * part).max(asked_for.unwrap_or_default());
        Verdict::Pace { begins, until }
    }

    /// Whether a further refusal of a lone request tells that there is a limit: then there is a pace. There have to be
    /// answers between refusals: who is away for a while refuses all.
    fn begins(&mut self, now: Timestamp, follows_answer: bool) -> bool {
        self.refused_alone += 1;
        self.alternates |= follows_answer && self.since.is_some();
        self.since.get_or_insert(now);
        let is_told = self.refused_alone >= TELLING_REFUSALS && self.answered >= TELLING_ANSWERS;
        if !is_told || !self.alternates {
            return false;
        }
        self.pace = Some(Pace::new(now, mean_interval(self.since, now, self.answered)));
        true
    }

    /// Neither their number nor anything else explains why requests are refused, of which one was answered in each
    /// `interval`: this may be for their pace, and what follows tells. Returns when the next one may be made.
    pub(crate) fn try_pace(&mut self, now: Timestamp, interval: Duration) -> Option<Timestamp> {
        let mut pace = Pace::new(now, interval.as_secs_f64());
        // What was answered beside those that were refused is all that a limit lets pass: nothing quicker is searched for,
        // and there was a burst before.
        (pace.cost, pace.bursts) = (Some(pace.interval * SOON), 1);
        let next = seconds(pace.interval);
        (next >= NO_INTERVAL).then(|| {
            *self = Self { since: Some(now), pace: Some(pace), ..Self::default() };
            now + next
        })
    }
}

impl Pace {
    /// One request was answered in each so many seconds.
    fn new(now: Timestamp, answered: f64) -> Self {
        Self {
            interval: answered * FIRST_INTERVAL,
            answered,
            cost: None,
            changed: now,
            refused_in_a_row: 0,
            contradictions: 0,
            bursts: 0,
        }
    }

    fn on_answer(&mut self, began: Timestamp) {
        self.refused_in_a_row = 0;
        if began < self.changed {
            return;
        }
        self.interval *= match self.cost {
            None => SEARCH,
            // What costs long pauses is tried rarely.
            Some(cost) => 1.0 - SHORTER * (self.interval / cost).min(1.0),
        };
    }

    /// `answered` is the interval of all answers so far.
    fn on_refusal(&mut self, now: Timestamp, asked_for: Option<Duration>, answered: f64) {
        self.refused_in_a_row += 1;
        self.changed = now;
        if self.refused_in_a_row >= BURST && self.bursts < MOST_BURSTS {
            (self.answered, self.contradictions) = (self.answered.max(answered), 0);
            self.bursts += u32::from(self.refused_in_a_row == BURST);
        } else {
            self.contradictions += u32::from(self.interval > self.answered * CONTRADICTORY);
        }
        let longer = if self.cost.is_none() { 1.0 / SEARCH } else { LONGER };
        // Several refusals may be for one burst.
        let most = self.interval.max(answered * LONGER);
        self.interval = (self.interval * longer).min(most);
        let pause = asked_for.map_or(0.0, |pause| pause.as_secs_f64());
        self.cost = Some(pause.max(self.interval * SOON));
    }
}

/// The seconds between so many that were `answered`.
fn mean_interval(since: Option<Timestamp>, now: Timestamp, answered: u32) -> f64 {
    let time = since.map_or(Duration::ZERO, |since| now.saturating_since(since));
    time.as_secs_f64() / f64::from(answered.max(1))
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers one request in each `interval`, and lets up to `burst` of them save up.
    struct Server {
        interval: f64,
        burst: f64,
        tokens: f64,
        at: f64,
        asked_for: Option<Duration>,
    }

    impl Server {
        fn new(rate: f64, burst: f64, asked_for: Option<u64>) -> Self {
            let asked_for = asked_for.map(Duration::from_secs);
            Self { interval: 1.0 / rate, burst, tokens: burst, at: 0.0, asked_for }
        }

        fn answers(&mut self, now: f64) -> bool {
            let gained = (now - self.at) / self.interval;
            self.tokens = (self.tokens + gained).min(self.burst);
            self.at = now;
            let does = self.tokens >= 1.0;
            self.tokens -= f64::from(u8::from(does));
            does
        }
    }

    /// The seconds that a client takes which asks one after the other, `rtt` seconds each, for so many answers, how many
    /// were refused, and whether it came to think that it was by chance.
    fn run(
        wanted: u32,
        rtt: f64,
        mut answers: impl FnMut(f64) -> Result<(), Option<Duration>>,
    ) -> (f64, u32, bool) {
        let mut rate = RequestRate::default();
        let at = |seconds: f64| Timestamp::START + Duration::from_secs_f64(seconds);
        let (mut now, mut answered, mut refused, mut is_chance) = (0.0, 0, 0, false);
        while answered < wanted {
            let began = now;
            let verdict = answers(now);
            now += rtt;
            let next = began + rate.interval().map_or(0.0, |interval| interval.as_secs_f64());
            match verdict {
                Ok(()) => {
                    answered += 1;
                    rate.on_answer(at(began));
                    now = now.max(next);
                }
                Err(asked_for) => {
                    refused += 1;
                    match rate.on_refusal(at(now), at(began), true, asked_for) {
                        Verdict::Pace { until, .. } => {
                            now = until.saturating_since(Timestamp::START).as_secs_f64();
                        }
                        Verdict::Chance => is_chance = true,
                        Verdict::Unknown => {
                            now += asked_for.map_or(0.1, |pause| pause.as_secs_f64());
                        }
                    }
                }
            }
        }
        (now, refused, is_chance)
    }

    #[test]
    fn requests_come_at_about_the_pace_of_the_limit() {
        for (rate, burst, asked_for, most) in [
            (10.0, 1.0, None, 1.35),
            (10.0, 5.0, None, 1.25),
            (3.0, 10.0, None, 1.25),
            (50.0, 1.0, None, 1.35),
            (10.0, 1.0, Some(1), 1.9),
            (10.0, 10.0, Some(1), 1.5),
            (1.0, 1.0, Some(2), 1.5),
        ] {
            let mut server = Server::new(rate, burst, asked_for);
            let asked_for = server.asked_for;
            let answers = |now| if server.answers(now) { Ok(()) } else { Err(asked_for) };
            let (took, refused, is_chance) = run(200, 0.002, answers);
            let floor = (200.0 - burst) / rate;
            assert!(
                took <= floor * most,
                "{rate} {burst} {asked_for:?}: {took} of {floor}, {refused}"
            );
            assert!(refused <= 40 && !is_chance, "{rate} {burst} {asked_for:?}: {refused}");
        }
    }

    #[test]
    fn so_many_in_each_second_are_a_limit_too() {
        for each_second in [2, 5, 20] {
            let (mut second, mut given) = (0.0, 0);
            let answers = |now: f64| {
                if now.floor() > second {
                    (second, given) = (now.floor(), 0);
                }
                given += 1;
                if given <= each_second { Ok(()) } else { Err(None) }
            };
            let (took, refused, is_chance) = run(100, 0.01, answers);
            let floor = 100.0 / f64::from(each_second);
            assert!(took <= floor * 1.6 + 1.0, "{each_second}: {took} of {floor}");
            assert!(refused <= 150 && !is_chance, "{each_second}: {refused}, {is_chance}");
        }
    }

    #[test]
    fn what_is_refused_at_any_pace_is_chance() {
        for each in [2, 3] {
            let mut nth = 0;
            let answers = |_| {
                nth += 1;
                if nth % each == 0 { Err(None) } else { Ok(()) }
            };
            let (.., is_chance) = run(100, 0.01, answers);
            assert!(is_chance, "each {each}");
        }
    }

    #[test]
    fn what_is_mostly_refused_at_any_pace_is_chance() {
        for seed in 0..20 {
            let mut jitter = crate::retries::Jitter::new(seed);
            let answers = |_| if jitter.fraction() < 0.6 { Err(None) } else { Ok(()) };
            let (took, refused, is_chance) = run(60, 0.01, answers);
            assert!(is_chance || took < 30.0, "{seed}: {took}, {refused}");
        }
    }

    #[test]
    fn who_answers_nothing_or_all_has_no_limit() {
        let mut rate = RequestRate::default();
        let at = Timestamp::from_millis;
        for second in 0..20 {
            let verdict = rate.on_refusal(at(second * 1000), at(second * 1000), true, None);
            assert_eq!(verdict, Verdict::Unknown);
        }
        for _ in 0..40 {
            rate.on_answer(at(20_000));
        }
        assert_eq!(rate.on_refusal(at(30_000), at(30_000), true, None), Verdict::Unknown);
        assert_eq!(rate.interval(), None);
    }

    #[test]
    fn many_under_way_together_say_nothing_of_a_pace() {
        let mut rate = RequestRate::default();
        let at = Timestamp::from_millis;
        for second in 0..20 {
            rate.on_answer(at(second * 1000));
            let verdict = rate.on_refusal(at(second * 1000), at(second * 1000), false, None);
            assert_eq!(verdict, Verdict::Unknown);
        }
    }
}
