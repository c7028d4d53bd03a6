//! Whether a server answers requests one after another.

use std::time::Duration;

/// So many answers tell.
const TELLING: u32 = 5;

/// What an answer counts in the means.
const NEW: f64 = 1.0 / 16.0;

/// Where as many are always ahead nothing tells what one more costs. Variance, in requests squared.
const LEAST_SPREAD: f64 = 1.5;

/// Waits that so well follow from how many were ahead, as correlation squared, are waits for a turn.
const FOLLOWS: f64 = 0.8;
/// The same where they are known to be.
const STILL_FOLLOWS: f64 = 0.5;

/// An answer that comes later than so many times what was expected counts as if it came then: it may be one that was lost.
const LATEST: f64 = 1.5;

/// No turn is waited for longer, whatever follows from those before.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// So large a part of the wait is that for others.
const MOST_OF_WAIT: f64 = 0.5;

/// What the waits of answers have to do with how many requests were ahead of theirs.
///
/// Who thinks about each for as long answers 16 as soon as one; one that has a single thread or a lock, or holds requests
/// back to a rate, answers the 16th after sixteen times as long, and more requests at once bring nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turns {
    count: u32,
    ahead: f64,
    waited: f64,
    spread_of_ahead: f64,
    spread_of_waited: f64,
    common: f64,
    /// Seconds that each request ahead costs, as was last told.
    each: Option<f64>,
    /// So many in a row came long before their turn.
    early: u32,
}

impl Turns {
    /// An answer has waited for so long, beyond the path's round trip and for nothing else that came, with so many requests
    /// ahead of its own.
    pub fn add(&mut self, ahead: u32, waited: Duration) {
        self.count = self.count.saturating_add(1);
        self.early = if self.is_early(ahead, waited) { self.early + 1 } else { 0 };
        if self.early >= TELLING {
            *self = Self::default();
        }
        let new = NEW.max(1.0 / f64::from(self.count));
        let by_ahead = f64::from(ahead) - self.ahead;
        let turn = self.each.unwrap_or_default();
        let latest = |wait: Duration| (wait.as_secs_f64() + turn) * LATEST;
        let waited = waited.as_secs_f64().min(self.wait(ahead).map_or(f64::MAX, latest));
        let by_waited = waited - self.waited;
        self.ahead += by_ahead * new;
        self.waited += by_waited * new;
        let add =
            |spread: &mut f64, product: f64| *spread = (1.0 - new) * (*spread + new * product);
        add(&mut self.spread_of_ahead, by_ahead * by_ahead);
        add(&mut self.spread_of_waited, by_waited * by_waited);
        add(&mut self.common, by_ahead * by_waited);
        if self.count >= TELLING && self.spread_of_ahead >= LEAST_SPREAD {
            let each = self.common / self.spread_of_ahead;
            let least = if self.each.is_some() { STILL_FOLLOWS } else { FOLLOWS };
            let follows =
                self.common * self.common >= least * self.spread_of_ahead * self.spread_of_waited;
            let is_most = each * self.ahead >= self.waited * MOST_OF_WAIT;
            self.each = (self.common > 0.0 && follows && is_most).then_some(each);
        }
    }

    /// Whether an answer that has waited no longer came long before the turn of its request.
    pub fn is_early(&self, ahead: u32, waited: Duration) -> bool {
        self.wait(ahead).is_some_and(|wait| waited < wait / 2)
    }

    /// How long an answer takes with so many requests ahead of its own, where they are answered in turns.
    pub fn wait(&self, ahead: u32) -> Option<Duration> {
        let each = self.each?;
        let alone = (self.waited - each * self.ahead).max(0.0);
        let wait = Duration::try_from_secs_f64(alone + each * f64::from(ahead));
        Some(wait.unwrap_or(LONGEST).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Of requests that are made at once, each with those of before ahead of it.
    fn having_seen(waits: impl IntoIterator<Item = u64>) -> Turns {
        let mut turns = Turns::default();
        (0..).zip(waits).for_each(|(ahead, wait)| turns.add(ahead, ms(wait)));
        turns
    }

    fn wait_of(turns: &Turns, ahead: u32) -> Option<u128> {
        turns.wait(ahead).map(|wait| wait.as_millis())
    }

    #[test]
    fn answers_in_turns_tell_what_each_takes() {
        let turns = having_seen((1..=16).map(|turn| turn * 100));
        assert_eq!((wait_of(&turns, 0), wait_of(&turns, 20)), (Some(100), Some(2_100)));
        assert_eq!(having_seen([100, 200, 300, 400]).wait(0), None, "too few");
        // Two at a time.
        let turns = having_seen((2..18).map(|turn| turn / 2 * 100));
        assert!(wait_of(&turns, 15).is_some_and(|wait| (760..=860).contains(&wait)));
    }

    #[test]
    fn thoughts_are_no_turns() {
        assert_eq!(having_seen([300; 16]).wait(0), None);
        assert_eq!(having_seen([0].into_iter().chain([300; 15])).wait(0), None, "one is cached");
        let uneven = [120, 430, 30, 250, 480, 90, 310, 200, 20, 390, 150, 60, 440, 270, 350, 10];
        assert_eq!(having_seen(uneven).wait(0), None);
        // A little longer each time, as their requests go out one after another.
        assert_eq!(having_seen((0..16).map(|turn| 300 + turn)).wait(0), None);
    }

    #[test]
    fn where_as_many_are_always_ahead_what_was_seen_before_counts() {
        let mut turns = having_seen((1..=16).map(|turn| turn * 100));
        (0..100).for_each(|_| turns.add(15, ms(1_600)));
        assert_eq!(wait_of(&turns, 3), Some(400));
        turns.add(3, ms(1_500));
        assert!(turns.wait(0).is_some(), "one was late");
        (0..40).for_each(|ahead| turns.add(ahead % 16, ms(50)));
        assert_eq!(turns.wait(0), None, "they are answered at once by now");
        // A server that has caught up, with one request at a time.
        let mut turns = having_seen((1..=16).map(|turn| turn * 100));
        (0..4).for_each(|_| turns.add(0, ms(1)));
        assert!(turns.wait(0).is_some());
        turns.add(0, ms(1));
        assert_eq!(turns.wait(0), None);
    }
}
