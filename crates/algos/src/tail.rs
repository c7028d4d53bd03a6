//! Streams that are far slower than others of their server: the last percent waits for them.

use std::time::Duration;

use crate::ranges::StreamId;
use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// The least time over which a stream is judged.
const LOOK: Duration = Duration::from_secs(1);
/// On a long path a rate shows after so many round trips, and so many more pass until a new stream
/// has one: TCP reaches the rates of access links in fewer.
const LOOK_RTTS: u32 = 8;
/// A stream below this part of its siblings' rate stands out. Streams that share a link fairly differ
/// by less, also where their round-trip times do.
const OUTLIER: f64 = 0.2;
/// Replacing one must promise to bring its bytes so many times sooner: what is promised rests on
/// other streams.
const SOONER: f64 = 3.0;
/// Round trips until a new stream brings bytes: TCP, TLS, the request, and its slow start.
const SETUP_RTTS: u32 = 6;
/// At one time no more than this part of the streams is replaced.
const AT_ONCE: usize = 4;
/// After a replacement none for so long; each further one doubles it.
const COOL_DOWN: Duration = Duration::from_secs(2);
const LONGEST_COOL_DOWN: Duration = Duration::from_secs(64);

/// How long streams are watched between two looks at them.
pub fn look_interval(rtt: Duration) -> Duration {
    LOOK.max(rtt * LOOK_RTTS)
}

/// A stream as it was between two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Watched {
    /// The stream.
    pub stream: StreamId,
    /// What it brought.
    pub rate: BitRate,
    /// What it still has to bring. `None` where that is not known, or where another stream could
    /// not go on with it: such a stream is compared with and not replaced.
    pub remaining: Option<Bytes>,
}

/// What is known of siblings fades by so much from look to look: one crawling stream after another can
/// be told from a link that has become slow.
const FADES: f64 = 0.9;

/// What a stream brought while there were so many of them.
#[derive(Debug, Clone, Copy)]
struct Share {
    rate: BitRate,
    streams: f64,
}

impl Share {
    fn new(rate: BitRate, streams: usize) -> Self {
        Self { rate, streams: streams.max(1) as f64 }
    }

    /// What one of `streams` would bring: no more, and less where more of them share the link.
    fn of(self, streams: usize) -> BitRate {
        self.rate * (self.streams / streams.max(1) as f64).min(1.0)
    }

    fn fade(&mut self) {
        self.rate = self.rate * FADES;
    }
}

/// Watches the streams of one origin.
#[derive(Debug, Clone)]
pub struct Tail {
    /// What a stream there brings: the upper median of several, or what is left of an earlier one.
    typical: Option<Share>,
    /// What those brought that have ended, or had just begun: lately more than before. Streams that end
    /// soon, or crawl soon, are never seen at their best in a look.
    told: Option<Share>,
    cool_until: Timestamp,
    cool_down: Duration,
}

impl Default for Tail {
    fn default() -> Self {
        let (typical, told) = (None, None);
        Self { typical, told, cool_until: Timestamp::START, cool_down: COOL_DOWN }
    }
}

impl Tail {
    /// One of `streams` has brought `rate`: from its first byte to its last, or before it was watched.
    pub fn on_rate(&mut self, rate: BitRate, streams: u32) {
        let now = Share::new(rate, streams as usize);
        self.told = Some(self.told.map_or(now, |before| Share {
            rate: (before.rate + now.rate) * 0.5,
            streams: f64::midpoint(before.streams, now.streams),
        }));
    }

    /// Looks at all `streams` of the origin that have had a rate since the last look. Returns those
    /// that are to be ended, so that other connections bring the rest of their ranges.
    pub fn on_look(&mut self, now: Timestamp, rtt: Duration, streams: &[Watched]) -> Vec<StreamId> {
        // While nothing arrives at all it is the link.
        if streams.iter().all(|watched| watched.rate == BitRate::ZERO) {
            return Vec::new();
        }
        let Some(typical) = self.typical_of(streams) else { return Vec::new() };
        let mut outliers: Vec<(Duration, StreamId)> = streams
            .iter()
            .filter(|watched| watched.rate < typical * OUTLIER)
            .filter_map(|watched| Some((late(watched, typical, rtt)?, watched.stream)))
            .collect();
        if now < self.cool_until {
            return Vec::new();
        }
        if !outliers.is_empty() {
            self.cool_until = now + self.cool_down;
            self.cool_down = (self.cool_down * 2).min(LONGEST_COOL_DOWN);
        } else if now.saturating_since(self.cool_until) > LONGEST_COOL_DOWN {
            self.cool_down = COOL_DOWN;
        }
        // The latest first.
        outliers.sort_unstable_by(|one, other| other.cmp(one));
        outliers.truncate(streams.len().div_ceil(AT_ONCE));
        outliers.into_iter().map(|(_, stream)| stream).collect()
    }

    /// What streams bring here, also where all that are left crawl: then it is what others brought before
    /// them.
    fn typical_of(&mut self, streams: &[Watched]) -> Option<BitRate> {
        let count = streams.len();
        for known in [&mut self.typical, &mut self.told].into_iter().flatten() {
            known.fade();
        }
        if count > 1 {
            let mut rates: Vec<f64> = streams.iter().map(|watched| watched.rate.bps()).collect();
            rates.sort_unstable_by(f64::total_cmp);
            let median = BitRate::from_bps(rates[count / 2]);
            if self.typical.is_none_or(|before| before.of(count) <= median) {
                self.typical = Some(Share::new(median, count));
            }
        }
        let known = self.typical.into_iter().chain(self.told).map(|share| share.of(count));
        known.reduce(BitRate::max)
    }
}

/// How long `watched` will take, if a new stream would be so much sooner that it is worth it.
fn late(watched: &Watched, typical: BitRate, rtt: Duration) -> Option<Duration> {
    let remaining = watched.remaining?;
    let left = remaining / watched.rate;
    let anew = rtt * SETUP_RTTS + remaining / typical;
    (left > anew.mul_f64(SOONER)).then_some(left)
}

#[cfg(test)]
mod tests;
