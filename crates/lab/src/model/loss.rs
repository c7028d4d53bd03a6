//! Which packets the link loses.

use crate::content::next_random;

/// How a direction loses packets; both kinds may act together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Loss {
    /// The share of packets lost, each by itself: 0 to 1.
    pub random: f64,
    /// Losses that come in bursts.
    pub bursts: Option<GilbertElliott>,
}

/// The two-state channel of Gilbert ("Capacity of a burst-noise channel", 1960) and Elliott
/// ("Estimates of error rates for codes on burst-noise channels", 1963). The state is drawn anew
/// before each packet. The good state loses nothing: [`Loss::random`] is there for that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GilbertElliott {
    /// How likely it goes from good to bad: above 0, at most 1.
    pub enter: f64,
    /// How likely it goes from bad to good: above 0, at most 1. A bad spell lasts 1 / `leave` packets.
    pub leave: f64,
    /// The share of packets lost in the bad state: 0 to 1.
    pub loss: f64,
}

impl Loss {
    /// The share of packets lost in the long run.
    pub fn share(&self) -> f64 {
        let bursts = self
            .bursts
            .map_or(0.0, |bursts| bursts.loss * bursts.enter / (bursts.enter + bursts.leave));
        1.0 - (1.0 - self.random) * (1.0 - bursts)
    }
}

/// [`Loss`] with its state.
#[derive(Debug, Clone)]
pub(super) struct LossProcess {
    loss: Loss,
    bad: bool,
    random: u64,
}

impl LossProcess {
    pub(super) fn new(loss: Loss, seed: u64) -> Self {
        Self { loss, bad: false, random: seed }
    }

    /// Whether the next packet is lost.
    pub(super) fn loses_next(&mut self) -> bool {
        let mut lost = self.draw(self.loss.random);
        if let Some(bursts) = self.loss.bursts {
            let turn = if self.bad { bursts.leave } else { bursts.enter };
            self.bad ^= self.draw(turn);
            lost |= self.bad && self.draw(bursts.loss);
        }
        lost
    }

    /// True with `probability`.
    fn draw(&mut self, probability: f64) -> bool {
        unit(next_random(&mut self.random)) < probability
    }
}

/// A number from 0 up to 1 (not included) from 53 random bits.
pub(super) fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}
