//! How often a failed request is made again, and after what pause.

use std::time::Duration;

/// A small random number generator (`SplitMix64`) whose seed is an argument. It spreads retries;
/// nothing secret depends on it.
#[derive(Debug, Clone)]
pub struct Jitter(u64);

impl Jitter {
    /// A generator that yields the same numbers for the same seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 (included) to 1 (excluded).
    pub fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How often and after what pause a failed request is made again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryConfig {
    /// Attempts at one file without progress, the first included. Progress starts the count anew.
    pub attempts: u32,
    /// The pause after the first failure; it doubles with each further one.
    pub first_delay: Duration,
    /// The longest pause that pelton chooses itself.
    pub longest_delay: Duration,
    /// The longest `Retry-After` that is obeyed; a server that asks for more has failed.
    pub longest_retry_after: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_delay: Duration::from_millis(250),
            longest_delay: Duration::from_secs(30),
            longest_retry_after: Duration::from_secs(600),
        }
    }
}

impl RetryConfig {
    /// The pause after `failures` failures in a row (at least one): exponential, with jitter over
    /// its upper half, so that streams that failed together do not return together.
    pub fn delay(&self, failures: u32, jitter: &mut Jitter) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let full = self.first_delay.saturating_mul(1 << doublings).min(self.longest_delay);
        full.mul_f64(0.5 + jitter.fraction() / 2.0)
    }

    /// The same where the server has `asked_for` a pause: no shorter than that, and no more than
    /// four times as long.
    pub fn pause(
        &self,
        failures: u32,
        asked_for: Option<Duration>,
        jitter: &mut Jitter,
    ) -> Duration {
        let least = asked_for.unwrap_or_default().max(self.delay(1, jitter));
        let most = asked_for.map_or(Duration::MAX, |pause| pause.saturating_mul(OBEYED));
        self.delay(failures, jitter).min(most).max(least)
    }
}

/// A server knows best when it will be back. If it is not, it is asked ever more rarely, within this
/// multiple of what it asked for.
const OBEYED: u32 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pause_that_is_asked_for_is_kept_and_grows_to_a_few_of_it() {
        let (config, mut jitter) = (RetryConfig::default(), Jitter::new(1));
        let mut pause = |failures, secs: u64| {
            config.pause(failures, Some(Duration::from_secs(secs)), &mut jitter).as_secs_f64()
        };
        assert!((pause(1, 3) - 3.0).abs() < 1e-9);
        assert!((pause(20, 3) - 12.0).abs() < 1e-9);
        assert!((pause(20, 60) - 60.0).abs() < 1e-9);
        assert!(pause(20, 0) >= 0.125, "no pause at all is none");
    }

    proptest! {
        #[test]
        fn delays_grow_and_stay_within_bounds(seed in any::<u64>(), failures in 1u32..1000) {
            let config = RetryConfig::default();
            let delay = config.delay(failures, &mut Jitter::new(seed));
            prop_assert!(delay >= config.first_delay / 2);
            prop_assert!(delay <= config.longest_delay);
        }
    }
}
