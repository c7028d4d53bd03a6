//! Packet-delivery traces in mahimahi's format (Netravali et al., "Mahimahi: accurate
//! record-and-replay for HTTP", 2015, section 3.3).

use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes};
use thiserror::Error;

/// What one line of a trace delivers.
pub const OPPORTUNITY: Bytes = Bytes(1500);

/// A recorded link: a line for each chance to deliver [`OPPORTUNITY`] bytes, which is the whole
/// milliseconds since the start of the trace. After its last line it starts anew, that line's
/// time being its period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// In order; not empty; the last is above zero.
    millis: Vec<u64>,
}

/// Why a text is no trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line is no number of milliseconds.
    #[error("line {line}: {text:?} is no whole number of milliseconds")]
    Number {
        /// Its number, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A line goes back in time.
    #[error("line {line}: {millis} ms comes after {before} ms; the lines must be in order")]
    Order {
        /// Its number, from 1.
        line: usize,
        /// Its time.
        millis: u64,
        /// The time of the line above it.
        before: u64,
    },
    /// There is no line, or none later than 0 ms.
    #[error("the trace has no line with a time above 0 ms")]
    Empty,
}

impl Trace {
    /// Parses the text of a trace file.
    ///
    /// # Errors
    /// The first broken line, with its number.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut millis = Vec::new();
        for (index, content) in text.lines().enumerate() {
            let line = index + 1;
            let time: u64 = content
                .trim_end()
                .parse()
                .map_err(|_| TraceError::Number { line, text: content.to_owned() })?;
            match millis.last() {
                Some(&before) if time < before => {
                    return Err(TraceError::Order { line, millis: time, before });
                }
                _ => millis.push(time),
            }
        }
        if millis.last().is_none_or(|&last| last == 0) {
            return Err(TraceError::Empty);
        }
        Ok(Self { millis })
    }

    /// How long it is until it starts anew.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.millis.last().copied().unwrap_or_default())
    }

    /// What it delivers on average.
    pub fn mean_rate(&self) -> BitRate {
        Bytes(OPPORTUNITY.0 * self.millis.len() as u64) / self.period()
    }

    /// When the opportunity `index` comes, counting on over all loops.
    fn time_of(&self, index: u64) -> Duration {
        let count = self.millis.len() as u64;
        let (round, line) = (index / count, index % count);
        let within = Duration::from_millis(self.millis[line as usize]);
        // Rounds beyond any run are cut off, so that nothing overflows.
        self.period()
            .saturating_mul(u32::try_from(round).unwrap_or(u32::MAX))
            .saturating_add(within)
    }

    /// The first opportunity at `at` or later.
    fn first_from(&self, at: Duration) -> u64 {
        let millis = at.as_nanos().div_ceil(1_000_000);
        let period = self.period().as_millis();
        // A round's last line and the next one's line of 0 ms are the same moment.
        let round = (millis.saturating_sub(1) / period) as u64;
        let within = (millis - u128::from(round) * period) as u64;
        let line = self.millis.partition_point(|&time| time < within) as u64;
        round * self.millis.len() as u64 + line
    }
}

/// Where a server stands in a trace. What an opportunity can carry is used byte by byte, so that
/// small packets share one; what no packet waited for is lost, as in mahimahi.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    index: u64,
    used: u64,
}

impl Cursor {
    /// When the last of `bytes`, ready at `now`, leaves.
    pub(super) fn serve(&mut self, trace: &Trace, now: Duration, bytes: Bytes) -> Duration {
        let first = trace.first_from(now);
        if first > self.index {
            *self = Self { index: first, used: 0 };
        }
        let end = self.used + bytes.0;
        // The opportunity that carries the last byte; a full one is left for the next packet.
        let whole = end.saturating_sub(1) / OPPORTUNITY.0;
        *self = Self { index: self.index + whole, used: end - whole * OPPORTUNITY.0 };
        trace.time_of(self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(trace: &str, packets: &[(u64, u64)]) -> Vec<u64> {
        let trace = Trace::parse(trace).unwrap();
        let mut cursor = Cursor::default();
        let mut serve = |&(at, bytes): &(u64, u64)| {
            cursor.serve(&trace, Duration::from_millis(at), Bytes(bytes)).as_millis() as u64
        };
        packets.iter().map(&mut serve).collect()
    }

    #[test]
    fn each_line_carries_a_packet_and_the_trace_loops() {
        let full = [(0, 1500); 7];
        assert_eq!(served("2\n2\n5\n", &full), [2, 2, 5, 7, 7, 10, 12]);
    }

    #[test]
    fn small_packets_share_a_line_and_large_ones_need_several() {
        assert_eq!(served("2\n5\n", &[(0, 700), (0, 700), (0, 700), (0, 3000)]), [2, 2, 5, 10]);
    }

    #[test]
    fn chances_nobody_waits_for_are_lost() {
        assert_eq!(served("1\n2\n3\n10\n", &[(3, 1500), (3, 1500), (21, 1500)]), [3, 10, 21]);
        assert_eq!(served("0\n10\n", &[(10, 1500), (10, 1500), (10, 1500)]), [10, 10, 20]);
    }

    #[test]
    fn a_mean_rate_is_lines_a_period() {
        let rate = Trace::parse("1\n1\n2\n").unwrap().mean_rate();
        assert!((rate.mbps() - 18.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn broken_lines_are_named() {
        let message = |text| Trace::parse(text).unwrap_err().to_string();
        assert_eq!(message("1\n2\nx3\n"), "line 3: \"x3\" is no whole number of milliseconds");
        assert_eq!(message("1\n\n3\n"), "line 2: \"\" is no whole number of milliseconds");
        assert_eq!(message("5\n4\n"), "line 2: 4 ms comes after 5 ms; the lines must be in order");
        assert_eq!(message("0\n0\n"), "the trace has no line with a time above 0 ms");
        assert_eq!(message(""), "the trace has no line with a time above 0 ms");
    }
}
