//! Means of goodput, and how far they are from each other by chance.

use crate::units::BitRate;

/// Samples of which a mean consists at most: what was long ago counts less and less.
const MOST: f64 = 8.0;

/// What the last difference counts in the noise.
const NEW: f64 = 0.125;

/// So many standard errors are no chance.
const BEYOND_CHANCE: f64 = 2.0;

/// The mean of some samples.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    bps: f64,
    samples: f64,
}

impl Mean {
    pub(super) fn add(&mut self, rate: BitRate) {
        if self.samples >= MOST {
            (self.bps, self.samples) = (self.bps / 2.0, self.samples / 2.0);
        }
        self.bps += rate.bps();
        self.samples += 1.0;
    }

    pub(super) fn rate(&self) -> BitRate {
        BitRate::from_bps(self.bps / self.samples.max(1.0))
    }
}

/// By how much samples differ from each other where nothing was changed.
///
/// Packets that waited behind a lost one come at once, and over a slow path a sample holds few packets. A rate that grows or
/// shrinks steadily is no noise: it is seen in second differences.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Noise {
    last: [Option<BitRate>; 2],
    /// Of a sample, in squares of the mean.
    variance: Option<f64>,
}

impl Noise {
    pub(super) fn add(&mut self, rate: BitRate) {
        if let [Some(before), Some(last)] = self.last {
            let mean = (before.bps() + last.bps() + rate.bps()) / 3.0;
            let differs = (rate.bps() - 2.0 * last.bps() + before.bps()) / mean.max(1.0);
            // Of three independent samples with weights 1, -2 and 1.
            let new = differs * differs / 6.0;
            self.variance = Some(self.variance.map_or(new, |old| old + (new - old) * NEW));
        }
        self.last = [self.last[1], Some(rate)];
    }

    /// What comes now is of other lanes.
    pub(super) fn restart(&mut self) {
        self.last = [None; 2];
    }

    /// The least part by which one of these means has to exceed the other, if that shall be no chance.
    pub(super) fn between(&self, one: &Mean, other: &Mean) -> f64 {
        let samples = 1.0 / one.samples.max(1.0) + 1.0 / other.samples.max(1.0);
        BEYOND_CHANCE * (self.variance.unwrap_or(0.0) * samples).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise_of(mbps: &[f64]) -> f64 {
        let (mut noise, mut mean) = (Noise::default(), Mean::default());
        for rate in mbps.iter().map(|mbps| BitRate::from_mbps(*mbps)) {
            noise.add(rate);
            mean.add(rate);
        }
        noise.between(&mean, &mean)
    }

    #[test]
    fn samples_that_jump_are_noise_and_a_steady_slope_is_none() {
        assert!(noise_of(&[5.0, 10.0]) < 0.001, "nothing is known yet");
        assert!(noise_of(&[5.0, 10.0, 15.0, 20.0]) < 0.001);
        assert!(noise_of(&[10.0, 10.1, 9.9, 10.0, 10.1, 9.9]) < 0.05);
        assert!(noise_of(&[1.0, 6.0, 0.5, 5.0, 1.0, 4.0]) > 0.5);
    }

    #[test]
    fn a_mean_forgets() {
        let mut mean = Mean::default();
        (0..20).for_each(|_| mean.add(BitRate::from_mbps(1.0)));
        (0..20).for_each(|_| mean.add(BitRate::from_mbps(9.0)));
        assert!(mean.rate().mbps() > 8.0, "{mean:?}");
    }
}
