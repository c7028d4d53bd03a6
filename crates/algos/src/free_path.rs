//! Whether a path carries more than is known of it.

use std::time::Duration;

use crate::growth::Response;
use crate::time::Timestamp;
use crate::units::BitRate;

/// A path that is full of what was asked for has a queue after fewer round trips, or by then.
const TRIPS: u32 = 8;
const AT_LEAST: Duration = Duration::from_millis(250);

/// After so many times what was asked for did not bring more the path is as full as it was for as long as anybody cares.
const MOST_TRIPS: u32 = 1024;

/// In front of a full path there is always a queue. Where one answer of so many and one is prompt, it is empty now and then: others
/// have waited for each other, as they were asked for at once.
const PROMPT_TO_OTHERS: u32 = 3;
const MOST_PROMPT: u32 = 32;

/// So many times as much is asked for, and so many times that when it has been free for as long once more: files of several
/// flights take several round trips each, and then it takes that many times what the path holds to fill it.
const MORE: f64 = 1.5;
const MOST_STEPS: i32 = 6;

/// Who asks for more, and was brought so many times as much, has found out something.
const GAINS: f64 = 1.1;

/// Tells by the answers to requests for short files that a path carries more than it was seen to.
#[derive(Debug, Clone, Copy)]
pub struct FreePath {
    /// Since when enough answers have waited in no queue to speak of, and by how many more than that.
    since: Option<Timestamp>,
    prompt: u32,
    /// For how many round trips it has to be so.
    trips: u32,
    /// What the path brought when more began to be asked for.
    before: Option<BitRate>,
    /// How often more was asked for since, and when it last was.
    steps: i32,
    stepped_at: Timestamp,
}

impl Default for FreePath {
    fn default() -> Self {
        Self {
            since: None,
            prompt: 0,
            trips: TRIPS,
            before: None,
            steps: 0,
            stepped_at: Timestamp::START,
        }
    }
}

impl FreePath {
    /// Whether more is asked for than the path was seen to carry.
    pub const fn is_free(&self) -> bool {
        self.before.is_some()
    }

    /// How many times what the path was seen to carry is asked for.
    pub fn times(&self) -> f64 {
        MORE.powi(self.steps)
    }

    /// An answer took so long over a path of `rtt` that was seen to bring so much. Only where it `may_be` free do answers tell
    /// of it. Returns whether [that](Self::times) has changed.
    pub fn on_response(
        &mut self,
        now: Timestamp,
        response: Response,
        rtt: Duration,
        seen: BitRate,
        may_be: bool,
    ) -> bool {
        self.prompt = if response.is_prompt() {
            (self.prompt + PROMPT_TO_OTHERS).min(MOST_PROMPT)
        } else {
            self.prompt.saturating_sub(1)
        };
        self.since = (self.prompt > 0).then(|| self.since.unwrap_or(now));
        let enough = rtt.saturating_mul(self.trips).max(AT_LEAST);
        let is_free = may_be && self.since.is_some_and(|at| now.saturating_since(at) >= enough);
        let is_next = self.steps < MOST_STEPS && now.saturating_since(self.stepped_at) >= enough;
        match self.before {
            None if is_free => self.before = Some(seen),
            Some(_) if is_free && is_next => {}
            Some(before) if !is_free => {
                let has_gained = seen > before * GAINS;
                self.trips = if has_gained { TRIPS } else { (self.trips * 2).min(MOST_TRIPS) };
                (self.before, self.steps) = (None, 0);
                return true;
            }
            _ => return false,
        }
        (self.steps, self.stepped_at) = (self.steps + 1, now);
        true
    }

    /// It is another path, or its server has had enough.
    pub fn end(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    /// Answers of one that took so long, each millisecond from one moment to another, and whether it is free by then.
    fn answers(path: &mut FreePath, from: u64, to: u64, took: impl Fn(u64) -> u64) -> bool {
        seen(path, 10.0, from, to, took)
    }

    fn seen(path: &mut FreePath, mbps: f64, from: u64, to: u64, took: impl Fn(u64) -> u64) -> bool {
        for millis in from..=to {
            let took = Duration::from_millis(took(millis));
            let (now, seen) = (Timestamp::from_millis(millis), BitRate::from_mbps(mbps));
            path.on_response(now, Response { took, at_least: RTT }, RTT, seen, true);
        }
        path.is_free()
    }

    #[test]
    fn a_path_that_answers_promptly_for_a_while_is_free() {
        let mut path = FreePath::default();
        assert!(!answers(&mut path, 0, 399, |_| 55));
        assert!(answers(&mut path, 400, 400, |_| 50));
        assert!(path.times() > 1.4 && path.times() < 1.6, "{}", path.times());
        assert!(answers(&mut path, 401, 431, |_| 60), "they wait for each other");
        assert!(!answers(&mut path, 432, 432, |_| 60), "a fifth of a round trip is a queue");
        path.end();
        assert!(!answers(&mut path, 500, 899, |_| 50) && answers(&mut path, 900, 900, |_| 50));
        path.end();
        assert!(!path.is_free() && path.times() < 1.1);
    }

    #[test]
    fn who_still_leaves_it_free_asks_for_still_more() {
        let mut path = FreePath::default();
        answers(&mut path, 0, 1_100, |_| 50);
        assert!(path.times() < 2.3, "{}", path.times());
        answers(&mut path, 1_101, 10_000, |_| 50);
        assert!((8.0..16.0).contains(&path.times()), "{}", path.times());
        answers(&mut path, 10_001, 10_100, |_| 90);
        assert!(path.times() < 1.1);
    }

    #[test]
    fn a_queue_that_is_empty_now_and_then_is_none() {
        let each = |nth: u64| move |millis: u64| if millis.is_multiple_of(nth) { 50 } else { 60 };
        assert!(answers(&mut FreePath::default(), 0, 500, each(3)));
        assert!(!answers(&mut FreePath::default(), 0, 5_000, each(5)));
    }

    #[test]
    fn who_was_brought_no_more_asks_for_it_ever_later() {
        let mut path = FreePath::default();
        assert!(answers(&mut path, 0, 400, |_| 50) && !answers(&mut path, 401, 450, |_| 90));
        assert!(!answers(&mut path, 451, 1_250, |_| 50), "eight hundred milliseconds");
        assert!(answers(&mut path, 1_251, 1_251, |_| 50));
        assert!(!seen(&mut path, 20.0, 1_252, 1_300, |_| 90));
        assert!(seen(&mut path, 20.0, 1_301, 1_701, |_| 50), "that brought twice as much");
    }

    #[test]
    fn answers_that_wait_for_their_servers_tell_nothing() {
        let mut path = FreePath::default();
        let response = Response { took: RTT, at_least: RTT };
        let mut told = (0..1_000).map(|millis| {
            path.on_response(Timestamp::from_millis(millis), response, RTT, BitRate::ZERO, false)
        });
        assert!(told.all(|told| !told));
    }
}
