//! An axis: from values to pixels, and its ticks.

/// A direction of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit.
    pub title: String,
    is_log: bool,
    low: f64,
    high: f64,
    /// Instead of round numbers.
    fixed: Option<Vec<f64>>,
}

/// Ticks that a linear axis has at most.
const MOST_TICKS: f64 = 6.0;

/// A logarithmic axis over more than this many decades has ticks at powers of ten alone.
const DECADES_WITH_STEPS: f64 = 2.0;

impl Axis {
    /// From zero to the greatest of `values`, with room above it.
    pub fn linear(title: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let high = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let high = if high > 0.0 { high * 1.05 } else { 1.0 };
        Self { title: title.to_owned(), is_log: false, low: 0.0, high, fixed: None }
    }

    /// From the least to the greatest of `values`, those that are not positive left out, with room
    /// on both sides.
    pub fn log(title: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = ends(&values.into_iter().collect::<Vec<_>>());
        let (low, high) = if low <= high { (low / 1.15, high * 1.15) } else { (0.1, 10.0) };
        Self { title: title.to_owned(), is_log: true, low, high, fixed: None }
    }

    /// Logarithmic where the values span more than a decade, else linear from zero.
    pub fn fitting(title: &str, values: &[f64]) -> Self {
        let all = values.iter().copied();
        let (low, high) = ends(values);
        if high > 10.0 * low { Self::log(title, all) } else { Self::linear(title, all) }
    }

    /// The same for points of which only the differences matter: where all lie in the upper half, zero
    /// is left out.
    pub fn around(title: &str, values: &[f64]) -> Self {
        let axis = Self::fitting(title, values);
        let (low, high) = ends(values);
        if axis.is_log || !low.is_finite() || low < high / 2.0 {
            return axis;
        }
        let room = ((high - low) * 0.1).max(high * 0.01);
        Self { low: low - room, high: high + room, ..axis }
    }

    /// Logarithmic, with ticks at these values.
    pub fn steps(title: &str, values: &[f64]) -> Self {
        let fixed = Some(values.to_vec());
        Self { fixed, ..Self::log(title, values.iter().copied()) }
    }

    /// Where `value` lies, from 0 to 1; beyond the ends it is at them.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// Where ticks stand.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if let Some(fixed) = &self.fixed {
            return fixed.clone();
        }
        if self.is_log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let narrow = (self.high - self.low) / MOST_TICKS;
        let decade = 10.0_f64.powf(narrow.log10().floor());
        let round = [1.0, 2.0, 5.0].map(|factor| factor * decade);
        let step = round.into_iter().find(|round| *round >= narrow).unwrap_or(10.0 * decade);
        let (first, last) = ((self.low / step).ceil() as i32, (self.high / step) as i32);
        (first..=last).map(|index| f64::from(index) * step).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let factors: &[f64] = if decades > DECADES_WITH_STEPS { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let all = (first..=last)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10.0_f64.powi(power)));
        all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

/// The least and the greatest of those that are above zero.
fn ends(values: &[f64]) -> (f64, f64) {
    let positive = values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
    positive.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)))
}

/// A number with three digits that matter.
pub(super) fn short(value: f64) -> String {
    let digits = match value.abs() {
        zero if zero < 1e-12 => return "0".to_owned(),
        size if !(1e-3..1e6).contains(&size) => return format!("{value:.2e}"),
        size => (2 - size.log10().floor() as i32).clamp(0, 6) as usize,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let near = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
        };
        let linear = Axis::linear("", [87.0]).ticks();
        assert!(near(&linear, &[0.0, 20.0, 40.0, 60.0, 80.0]), "{linear:?}");
        let high = Axis::around("", &[13.9, 14.9]).ticks();
        assert!(near(&high, &[14.0, 14.5, 15.0]), "{high:?}");
        assert_eq!(Axis::around("", &[2.0, 14.9]), Axis::linear("", [2.0, 14.9]));
        let log = Axis::log("", [1.1, 24.0]).ticks();
        assert!(near(&log, &[1.0, 2.0, 5.0, 10.0, 20.0]), "{log:?}");
        let wide = Axis::log("", [0.5, 900.0]).ticks();
        assert!(near(&wide, &[1.0, 10.0, 100.0, 1000.0]), "{wide:?}");
        assert_eq!(Axis::steps("", &[1.0, 4.0]).ticks(), [1.0, 4.0]);
        for nothing in [Axis::linear("", []), Axis::log("", [0.0, -1.0])] {
            assert!(!nothing.ticks().is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn values_lie_where_they_should() {
        let log = Axis::log("", [1.0, 100.0]);
        assert!((log.share(10.0) - 0.5).abs() < 1e-9);
        assert!(log.share(0.0).abs() < 1e-9 && (log.share(1e9) - 1.0).abs() < 1e-9);
        assert!(Axis::fitting("", &[1.0, 5.0]).share(0.0).abs() < 1e-9);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.012_34, 1.5, 20.0, 123.4, 45_678.0, 2.5e7].map(short);
        assert_eq!(shown, ["0", "0.0123", "1.5", "20", "123", "45678", "2.50e7"]);
    }
}
