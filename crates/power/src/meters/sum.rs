//! From samples to energy that only grows, and never by what can't be true.

use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Joules, Watts};

/// What any meter may tell, watts. A bench meter of the WT210 class measures 20 A at 600 V at most, which leaves room; what
/// is beyond is a glitch or a driver's "unknown", as SCPI's "not a number" (9.91E37) and infinity (9.9E37; SCPI 1999.0
/// volume 1, 7.2.1.5). Meters that know of less have their own limit below it.
const MOST_WATTS: f64 = 100e3;

/// Power samples summed up by the trapezium rule. A sample that is missing is bridged by the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trapezium {
    before: Option<(Timestamp, Watts)>,
    total: Joules,
}

impl Trapezium {
    /// Takes the power at `at`; a sample that is not later than the last one is dropped. The reason, where the number is of
    /// no use: then it is as if there were no sample.
    pub(crate) fn add(&mut self, at: Timestamp, watts: f64) -> Result<(), &'static str> {
        let power = usable(watts)?;
        match self.before {
            Some((before, _)) if at <= before => {}
            Some((before, then)) => {
                let mean = Watts::new(f64::midpoint(then.get(), power.get()));
                self.total += mean * (at - before);
                self.before = Some((at, power));
            }
            None => self.before = Some((at, power)),
        }
        Ok(())
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

/// The power that a meter told, or why it is none.
fn usable(watts: f64) -> Result<Watts, &'static str> {
    if watts.is_nan() {
        Err("which is no number")
    } else if !watts.is_finite() || watts > MOST_WATTS {
        Err("which is no reading: none is beyond 100 kW")
    } else if watts < 0.0 {
        Err("which is less than nothing: are its leads reversed?")
    } else {
        Ok(Watts::new(watts))
    }
}

/// The rises of a counter, summed up. What falls is taken as a new start, and so is what rises faster than it can.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rises {
    most: Watts,
    lag: Duration,
    before: Option<(Timestamp, f64)>,
    total: f64,
}

impl Rises {
    /// Of a counter that is up to `lag` behind.
    pub(crate) fn new(lag: Duration) -> Self {
        Self::within(Watts::new(MOST_WATTS), lag)
    }

    /// The same where no more than `most` can be drawn.
    pub(crate) fn within(most: Watts, lag: Duration) -> Self {
        Self { most, lag, before: None, total: 0.0 }
    }

    /// Takes the counter's value at `at`, in joules.
    pub(crate) fn add(&mut self, at: Timestamp, value: f64) {
        if !value.is_finite() {
            return;
        }
        if let Some((then, before)) = self.before {
            let most = self.most * at.saturating_since(then).saturating_add(self.lag);
            let step = value - before;
            if (0.0..=most.get()).contains(&step) {
                self.total += step;
            }
        }
        self.before = Some((at, value));
    }

    /// The next value is a new start: what happened until then is not counted.
    pub(crate) fn interrupt(&mut self) {
        self.before = None;
    }

    pub(crate) fn total(&self) -> Joules {
        Joules::new(self.total)
    }
}
