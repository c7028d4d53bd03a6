//! How long answers take.

use std::time::Duration;

use crate::silence::PROCESS_TURN;

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

/// Whether an answer that took so long over a path of `rtt` is one that a server thought about.
pub fn is_thought_about(answer: Duration, rtt: Duration) -> bool {
    answer > rtt.saturating_mul(THINKS).max(PROCESS_TURN)
}

/// Answers that take so many round trips longer than a server thinks have waited in a deep queue.
const DEEP: u32 = 6;

/// Times from a request to the beginning of what was asked for: a head alone may come before its server has thought.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answers {
    count: u32,
    mean: Duration,
    least: Duration,
    /// Which part of the files redirects led to, and how long those took at least.
    led: f64,
    led_for: Duration,
}

impl Answers {
    /// Another one took so long.
    pub fn add(&mut self, took: Duration) {
        self.least = if self.count == 0 { took } else { self.least.min(took) };
        self.count = self.count.saturating_add(1);
        let new = self.weight();
        self.mean = self.mean.mul_f64(1.0 - new) + took.mul_f64(new);
    }

    /// A file began, to which redirects had led for so long; for no time where there were none.
    pub fn on_file(&mut self, led_for: Duration) {
        let is_led = !led_for.is_zero();
        if is_led {
            let is_first = self.led_for.is_zero();
            self.led_for = if is_first { led_for } else { self.led_for.min(led_for) };
        }
        self.led += (f64::from(u8::from(is_led)) - self.led) * self.weight();
    }

    /// How long a file is waited for over a path of `rtt` on the average, where no redirect has to queue.
    pub fn wait_for_file(&self, rtt: Duration) -> Duration {
        rtt + self.led_for.mul_f64(self.led.clamp(0.0, 1.0))
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

    /// How long the shortest took. Zero before the first.
    pub const fn least(&self) -> Duration {
        self.least
    }

    /// Whether they wait in a queue that holds many times what a path of `rtt` does. The shortest one had the path for itself.
    pub fn wait_in_deep_queue(&self, rtt: Duration) -> bool {
        let thought = self.least.saturating_sub(rtt);
        self.mean.saturating_sub(thought) >= (rtt * DEEP).max(PROCESS_TURN)
    }

    /// Whether the server takes much longer than a path of `rtt`.
    pub fn are_thought_about(&self, rtt: Duration) -> bool {
        is_thought_about(self.least, rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn later_answers_count_more_than_early_ones() {
        let mut answers = Answers::default();
        assert_eq!(answers.mean(), Duration::ZERO);
        for _ in 0..10 {
            answers.add(ms(100));
        }
        assert_eq!(answers.mean(), ms(100));
        answers.add(ms(300));
        assert_eq!((answers.mean(), answers.count()), (ms(120), 11));
    }

    #[test]
    fn redirects_are_waited_for_before_answers() {
        let mut answers = Answers::default();
        assert_eq!(answers.wait_for_file(ms(10)), ms(10));
        for led_for in [ms(400), ms(900)].into_iter().cycle().take(8) {
            answers.add(ms(10));
            answers.on_file(led_for);
        }
        assert_eq!(answers.wait_for_file(ms(10)), ms(410), "the longer ones have queued");
        (0..100).for_each(|_| answers.on_file(Duration::ZERO));
        assert!(answers.wait_for_file(ms(10)) < ms(11), "no more");
    }

    #[test]
    fn a_server_that_thinks_is_no_deep_queue() {
        let mut answers = Answers::default();
        answers.add(ms(100));
        (0..20).for_each(|_| answers.add(ms(120)));
        assert!(!answers.wait_in_deep_queue(ms(10)));
        (0..20).for_each(|_| answers.add(ms(200)));
        assert!(answers.wait_in_deep_queue(ms(10)) && !answers.wait_in_deep_queue(ms(40)));
        let mut answers = Answers::default();
        (30..50).for_each(|millis| answers.add(ms(millis)));
        assert!(!answers.wait_in_deep_queue(ms(1)), "next door");
    }

    #[test]
    fn a_queue_does_not_think() {
        let mut answers = Answers::default();
        assert!(!answers.are_thought_about(ms(1)), "none came");
        answers.add(ms(500));
        assert!(answers.are_thought_about(ms(100)));
        answers.add(ms(120));
        assert!(!answers.are_thought_about(ms(100)) && answers.are_thought_about(ms(20)));
        answers.add(ms(15));
        assert!(!answers.are_thought_about(ms(1)), "next door");
    }
}
