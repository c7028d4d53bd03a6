//! How long answers take.

use std::time::Duration;

use crate::overdue::AnswerTimes;
use crate::silence::PROCESS_TURN;
use crate::turns::Turns;

/// What an answer counts in the mean.
const NEW: f64 = 0.1;

/// A server thinks that has answered no request within so many round trips. Where only some took longer, a
/// queue was on their way.
const THINKS: u32 = 4;

/// A server that has not answered its first request by then thinks about it: less is not worth a further one.
const LONG_THOUGHT: Duration = Duration::from_millis(100);

/// After how long without any answer over a path of `rtt` a server is taken for one that thinks.
pub fn thinks_after(rtt: Duration) -> Duration {
    rtt.saturating_mul(THINKS).max(LONG_THOUGHT)
}

/// The same for the first answer of all, where a further request is of use to nobody else: it costs a connection at most.
pub fn lone_thinks_after(rtt: Duration) -> Duration {
    rtt.saturating_mul(THINKS).max(PROCESS_TURN)
}

/// Whether an answer that took so long over a path of `rtt` is one that a server thought about.
pub fn is_thought_about(answer: Duration, rtt: Duration) -> bool {
    answer > lone_thinks_after(rtt)
}

/// Answers that take so many round trips longer than a server thinks have waited in a deep queue.
const DEEP: u32 = 6;

/// The beginning of what was asked for: a head alone may come before its server has thought.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// From the request on.
    pub took: Duration,
    /// The path's round-trip time.
    pub rtt: Duration,
    /// How long the path needs for what came meanwhile. `None` where what it carries is not known.
    pub busy: Option<Duration>,
    /// How many requests its server had still to answer as this one was made. `None` where it waited for others anyhow.
    pub ahead: Option<u32>,
}

impl Answer {
    /// How long its server has thought where the path had idled for more than half of the wait: there was no queue.
    fn thought(&self) -> Option<Duration> {
        let waited = self.took.saturating_sub(self.rtt);
        self.busy.is_some_and(|busy| busy < waited / 2).then_some(waited)
    }
}

/// So many answers tell how long servers think of late.
const LATELY: usize = 16;

/// How long answers take.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answers {
    count: u32,
    mean: Duration,
    least: Duration,
    times: AnswerTimes,
    turns: Turns,
    /// What servers thought about each of the last ones, in a ring.
    thoughts: [Duration; LATELY],
    /// Their median.
    thought: Duration,
    /// Which part of the files was waited for before they were asked for, and how long at least: for redirects, or for
    /// connections in place of those that servers ended.
    waited: f64,
    waited_before: Duration,
}

impl Answers {
    /// Another one began. Returns what of the time was thought. Where no path that idled tells of it, the shortest one does,
    /// which had the path for itself.
    pub fn add(&mut self, answer: Answer) -> Duration {
        self.least = if self.count == 0 { answer.took } else { self.least.min(answer.took) };
        if let Some(ahead) = answer.ahead {
            // Whatever else came meanwhile, what is there early has not waited.
            let waited = answer.took.saturating_sub(answer.rtt);
            let is_early = self.turns.is_early(ahead, waited);
            if let Some(waited) = answer.thought().or_else(|| is_early.then_some(waited)) {
                self.turns.add(ahead, waited);
            }
        }
        let thought = answer.thought().unwrap_or_else(|| self.always_thought(answer.rtt));
        self.thoughts[self.count as usize % LATELY] = thought;
        self.count = self.count.saturating_add(1);
        let mut lately = self.thoughts;
        let lately = &mut lately[..LATELY.min(self.count as usize)];
        let middle = (lately.len() - 1) / 2;
        self.thought = *lately.select_nth_unstable(middle).1;
        self.times.add(answer.took);
        let new = self.weight();
        self.mean = self.mean.mul_f64(1.0 - new) + answer.took.mul_f64(new);
        thought
    }

    /// A file began that had waited for so long before it was asked for; for no time where it had not.
    pub fn on_file(&mut self, waited_before: Duration) {
        let has_waited = !waited_before.is_zero();
        if has_waited {
            let is_first = self.waited_before.is_zero();
            self.waited_before =
                if is_first { waited_before } else { self.waited_before.min(waited_before) };
        }
        self.waited += (f64::from(u8::from(has_waited)) - self.waited) * self.weight();
    }

    /// How long a file is waited for over a path of `rtt` on the average, where no redirect has to queue.
    pub fn wait_for_file(&self, rtt: Duration) -> Duration {
        rtt + self.waited_before.mul_f64(self.waited.clamp(0.0, 1.0))
    }

    /// What the last answer counts in the mean.
    fn weight(&self) -> f64 {
        NEW.max(1.0 / f64::from(self.count.max(1)))
    }

    /// How many there were.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// How long they took on the average, the later ones counting more. Zero before the first.
    pub const fn mean(&self) -> Duration {
        self.mean
    }

    /// What tells which further ones are overdue.
    pub const fn times(&self) -> AnswerTimes {
        self.times
    }

    /// What servers have thought about the shortest one, and so about each, over a path of `rtt`.
    pub fn always_thought(&self, rtt: Duration) -> Duration {
        self.least.saturating_sub(rtt)
    }

    /// How long servers thought about the last ones, the median of them: one that was lost says nothing of that.
    pub fn thought(&self) -> Duration {
        self.turns.wait(0).unwrap_or(self.thought)
    }

    /// How long a further answer would be waited for with so many requests ahead of its own, where they are answered in turns.
    pub fn wait_for_turn(&self, ahead: u32) -> Option<Duration> {
        self.turns.wait(ahead)
    }

    /// Whether they wait in a queue that holds many times what a path of `rtt` does.
    pub fn wait_in_deep_queue(&self, rtt: Duration) -> bool {
        self.mean.saturating_sub(self.thought()) >= (rtt * DEEP).max(PROCESS_TURN)
    }

    /// Whether servers take much longer than a path of `rtt`.
    pub fn are_thought_about(&self, rtt: Duration) -> bool {
        is_thought_about(rtt + self.thought(), rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Over a path of 10 ms that is busy for so long.
    fn answer(took: u64, busy: u64) -> Answer {
        Answer { took: ms(took), rtt: ms(10), busy: Some(ms(busy)), ahead: None }
    }

    fn having_seen(seen: impl IntoIterator<Item = Answer>) -> Answers {
        let mut answers = Answers::default();
        for answer in seen {
            answers.add(answer);
        }
        answers
    }

    #[test]
    fn later_answers_count_more_than_early_ones() {
        assert_eq!(Answers::default().mean(), Duration::ZERO);
        let mut answers = having_seen([answer(100, 0); 10]);
        assert_eq!(answers.mean(), ms(100));
        answers.add(answer(300, 0));
        assert_eq!((answers.mean(), answers.count()), (ms(120), 11));
    }

    #[test]
    fn redirects_are_waited_for_before_answers() {
        let mut answers = Answers::default();
        assert_eq!(answers.wait_for_file(ms(10)), ms(10));
        for waited_before in [ms(400), ms(900)].into_iter().cycle().take(8) {
            answers.add(answer(10, 0));
            answers.on_file(waited_before);
        }
        assert_eq!(answers.wait_for_file(ms(10)), ms(410), "the longer ones have queued");
        (0..100).for_each(|_| answers.on_file(Duration::ZERO));
        assert!(answers.wait_for_file(ms(10)) < ms(11), "no more");
    }

    #[test]
    fn a_path_that_idles_has_no_queue() {
        assert_eq!(answer(110, 40).thought(), Some(ms(100)));
        assert_eq!(answer(110, 60).thought(), None, "of so many bytes");
        assert_eq!(answer(5, 0).thought(), None);
        assert_eq!(Answer { busy: None, ..answer(110, 0) }.thought(), None);
    }

    #[test]
    fn a_server_that_thinks_is_no_deep_queue() {
        let thinking = having_seen([answer(120, 20); 20]);
        assert!(!thinking.wait_in_deep_queue(ms(10)) && thinking.are_thought_about(ms(10)));
        let queued = having_seen([12].into_iter().chain([120; 20]).map(|took| answer(took, 100)));
        assert!(queued.wait_in_deep_queue(ms(10)) && !queued.are_thought_about(ms(10)));
        assert!(!queued.wait_in_deep_queue(ms(40)));
    }

    #[test]
    fn the_shortest_answer_had_the_path_for_itself() {
        let mut answers = having_seen([answer(300, 290), answer(100, 90), answer(150, 140)]);
        assert_eq!(answers.add(answer(200, 190)), ms(90));
        assert!(answers.are_thought_about(ms(10)), "all of them take long");
        answers.add(answer(12, 2));
        (0..16).for_each(|_| assert_eq!(answers.add(answer(200, 190)), ms(2)));
        assert!(!answers.are_thought_about(ms(10)));
    }

    #[test]
    fn servers_think_for_different_times() {
        assert!(!Answers::default().are_thought_about(ms(10)), "none came");
        assert!(having_seen([answer(500, 0)]).are_thought_about(ms(10)));
        let mut answers = having_seen((1..40).map(|i| answer(i * 10, 0)));
        assert_eq!(answers.thought(), ms(300), "of the last sixteen");
        for _ in 0..14 {
            answers.add(answer(12, 0));
        }
        assert!(!answers.are_thought_about(ms(10)), "two were lost");
    }
}
