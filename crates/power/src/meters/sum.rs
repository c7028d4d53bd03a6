//! From samples to energy that only grows.

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Joules, Watts};

/// Power samples summed up by the trapezium rule. A sample that is missing is bridged by the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trapezium {
    before: Option<(Timestamp, Watts)>,
    total: Joules,
}

impl Trapezium {
    /// Takes the power at `at`; a sample that is not later than the last one is dropped.
    pub(crate) fn add(&mut self, at: Timestamp, power: Watts) -> Joules {
        match self.before {
            Some((before, _)) if at <= before => {}
            Some((before, then)) => {
                let mean = Watts::new(f64::midpoint(then.get(), power.get()));
                self.total += mean * (at - before);
                self.before = Some((at, power));
            }
            None => self.before = Some((at, power)),
        }
        self.total
    }

    /// The next sample is a new start: what happened until then is not counted.
    pub(crate) fn interrupt(&mut self) {
        self.before = None;
    }

    pub(crate) fn total(&self) -> Joules {
        self.total
    }

    /// The last sample.
    pub(crate) fn power(&self) -> Option<Watts> {
        self.before.map(|(_, power)| power)
    }

    /// When the last sample was taken.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        self.before.map(|(at, _)| at)
    }
}

/// The rises of a counter, summed up. What falls is taken as a new start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rises {
    before: Option<f64>,
    total: f64,
}

impl Rises {
    /// Takes the counter's value, in joules.
    pub(crate) fn add(&mut self, value: f64) -> Joules {
        self.add_within(value, Joules::new(f64::MAX))
    }

    /// The same of a counter that can't have risen by more than `most`: a higher value is a new start, too.
    pub(crate) fn add_within(&mut self, value: f64, most: Joules) -> Joules {
        if value.is_finite() {
            let step = self.before.map_or(0.0, |before| value - before);
            if (0.0..=most.get()).contains(&step) {
                self.total += step;
            }
            self.before = Some(value);
        }
        self.total()
    }

    /// The next value is a new start: what happened until then is not counted.
    pub(crate) fn interrupt(&mut self) {
        self.before = None;
    }

    pub(crate) fn total(&self) -> Joules {
        Joules::new(self.total)
    }
}
