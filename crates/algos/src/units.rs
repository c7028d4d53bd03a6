//! Bytes, bit rates, joules and watts. Arithmetic goes only where the dimensions agree.
//!
//! Every value is finite and not negative by construction, so that no estimate can be poisoned:
//! a constructor maps `NaN` and negative numbers to zero and infinity to the largest value.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::time::Duration;

/// Durations that a division may yield are cut off here (about 31 years), so that a rate of
/// almost nothing gives a long wait and not an overflow.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

fn sane(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, f64::MAX) }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `count` KiB.
    pub const fn kib(count: u64) -> Self {
        Self(count * 1024)
    }

    /// `count` MiB.
    pub const fn mib(count: u64) -> Self {
        Self(count * 1024 * 1024)
    }

    /// The number as floating point, for ratios.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// `self - other`, or zero.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self` times `factor`, rounded down.
    #[must_use]
    pub fn scale(self, factor: f64) -> Self {
        Self((self.as_f64() * sane(factor)) as u64)
    }

    /// How many pieces of `piece` bytes are needed for `self`; 0 when either is 0.
    pub fn div_ceil(self, piece: Self) -> u64 {
        if piece.0 == 0 { 0 } else { self.0.div_ceil(piece.0) }
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

impl Div<BitRate> for Bytes {
    type Output = Duration;
    /// How long these bytes take at `rate`.
    fn div(self, rate: BitRate) -> Duration {
        if self.0 == 0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(self.as_f64() * 8.0 / rate.bps())
            .unwrap_or(LONGEST)
            .min(LONGEST)
    }
}

impl Div<Duration> for Bytes {
    type Output = BitRate;
    /// The rate that moves these bytes in `time`; zero when `time` is zero.
    fn div(self, time: Duration) -> BitRate {
        if time.is_zero() {
            return BitRate::ZERO;
        }
        BitRate::from_bps(self.as_f64() * 8.0 / time.as_secs_f64())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            n if n < 1_000 => return write!(f, "{n} B"),
            n if n < 1_000_000 => (n as f64 / 1e3, "kB"),
            n if n < 1_000_000_000 => (n as f64 / 1e6, "MB"),
            n if n < 1_000_000_000_000 => (n as f64 / 1e9, "GB"),
            n => (n as f64 / 1e12, "TB"),
        };
        write_three_digits(f, value, unit)
    }
}

/// A data rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct BitRate(f64);

impl BitRate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0.0);

    /// `bps` bits per second; `NaN` and negative values become zero.
    pub fn from_bps(bps: f64) -> Self {
        Self(sane(bps))
    }

    /// `mbps` megabits (10^6 bits) per second.
    pub fn from_mbps(mbps: f64) -> Self {
        Self::from_bps(mbps * 1e6)
    }

    /// `kbps` kilobits (10^3 bits) per second.
    pub const fn from_kbps(kbps: u32) -> Self {
        Self(kbps as f64 * 1e3)
    }

    /// Bits per second.
    pub const fn bps(self) -> f64 {
        self.0
    }

    /// Megabits (10^6 bits) per second.
    pub fn mbps(self) -> f64 {
        self.0 / 1e6
    }

    /// The greater of two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The smaller of two.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}

impl Add for BitRate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::from_bps(self.0 + other.0)
    }
}

impl Mul<Duration> for BitRate {
    type Output = Bytes;
    /// The bytes that this rate moves in `time`, to the nearest byte.
    fn mul(self, time: Duration) -> Bytes {
        Bytes((self.0 * time.as_secs_f64() / 8.0).round() as u64)
    }
}

impl Div for BitRate {
    type Output = f64;
    /// How often `other` fits into this rate; 0 when `other` is zero.
    fn div(self, other: Self) -> f64 {
        if other.0 > 0.0 { self.0 / other.0 } else { 0.0 }
    }
}

impl Mul<f64> for BitRate {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self::from_bps(self.0 * factor)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            n if n < 1e3 => (n, "bit/s"),
            n if n < 1e6 => (n / 1e3, "kbit/s"),
            n if n < 1e9 => (n / 1e6, "Mbit/s"),
            n => (n / 1e9, "Gbit/s"),
        };
        write_three_digits(f, value, unit)
    }
}

/// An amount of energy in joules.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Joules(f64);

impl Joules {
    /// No energy.
    pub const ZERO: Self = Self(0.0);

    /// `joules` joules; `NaN` and negative values become zero.
    pub fn new(joules: f64) -> Self {
        Self(sane(joules))
    }

    /// The number of joules.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// `self - other`, or zero.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self::new(self.0 - other.0)
    }
}

impl Add for Joules {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.0 + other.0)
    }
}

impl AddAssign for Joules {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Joules {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

impl Div<Duration> for Joules {
    type Output = Watts;
    /// The mean power over `time`; zero when `time` is zero.
    fn div(self, time: Duration) -> Watts {
        if time.is_zero() { Watts::ZERO } else { Watts::new(self.0 / time.as_secs_f64()) }
    }
}

impl fmt::Display for Joules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_three_digits(f, self.0, "J")
    }
}

/// Power in watts.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Watts(f64);

impl Watts {
    /// No power.
    pub const ZERO: Self = Self(0.0);

    /// `watts` watts; `NaN` and negative values become zero.
    pub fn new(watts: f64) -> Self {
        Self(sane(watts))
    }

    /// `milliwatts` mW: the unit in which the literature gives radio constants.
    pub fn from_milliwatts(milliwatts: f64) -> Self {
        Self::new(milliwatts / 1e3)
    }

    /// The number of watts.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Add for Watts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.0 + other.0)
    }
}

impl Sub for Watts {
    type Output = Self;
    /// `self - other`, or zero.
    fn sub(self, other: Self) -> Self {
        Self::new(self.0 - other.0)
    }
}

impl Mul<Duration> for Watts {
    type Output = Joules;
    fn mul(self, time: Duration) -> Joules {
        Joules::new(self.0 * time.as_secs_f64())
    }
}

impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_three_digits(f, self.0, "W")
    }
}

/// Three significant digits where they say something, so that columns of mixed sizes stay short.
fn write_three_digits(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    f.pad(&format!("{value:.decimals$} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_agree() {
        let rate = BitRate::from_mbps(50.0);
        assert_eq!(rate * Duration::from_millis(200), Bytes(1_250_000));
        assert_eq!(Bytes(1_250_000) / rate, Duration::from_millis(200));
        assert_eq!(Bytes(1_250_000) / Duration::from_millis(200), rate);
        assert_eq!(Watts::new(2.0) * Duration::from_secs(3), Joules::new(6.0));
        assert_eq!(Joules::new(6.0) / Duration::from_secs(3), Watts::new(2.0));
    }

    #[test]
    fn nothing_becomes_infinite_or_negative() {
        assert_eq!(Bytes(1) / BitRate::ZERO, LONGEST);
        assert_eq!(Bytes::ZERO / BitRate::ZERO, Duration::ZERO);
        assert_eq!(Bytes(1) / Duration::ZERO, BitRate::ZERO);
        assert_eq!(BitRate::from_bps(f64::NAN), BitRate::ZERO);
        assert_eq!(Joules::new(-1.0), Joules::ZERO);
        assert!(BitRate::from_bps(f64::INFINITY).bps().is_finite());
        assert!((Joules::new(f64::MAX) + Joules::new(f64::MAX)).get().is_finite());
    }

    #[test]
    fn people_read_three_digits() {
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes(24_000_000).to_string(), "24.0 MB");
        assert_eq!(BitRate::from_mbps(50.0).to_string(), "50.0 Mbit/s");
        assert_eq!(Joules::new(1.234).to_string(), "1.23 J");
    }
}
