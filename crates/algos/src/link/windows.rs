//! The window of a stream, and whether the rate still grows by itself.

use std::time::Duration;

use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// Growth below this over [`FULL_AFTER`] samples means that the pipe is full.
const GROWTH: f64 = 1.05;
const FULL_AFTER: u32 = 3;

/// A rate without growth over this many samples is past slow start.
const SETTLED_AFTER: u32 = 1;

/// Growth of the rate is put down to more streams when their number grew at least this much.
const MORE_STREAMS: f64 = 1.25;

/// What fewer streams brought counts at once where it is the best of late; where more streams brought
/// more just before, after so many round trips: a few may be a wait for an answer, or a slow start.
const FEWER_FOR: u32 = 20;

/// Fewer streams each of which brings less than this part of what each brought before are not limited by themselves:
/// all of them are held up.
const HELD_UP: f64 = 0.25;

/// The least window that a stream is believed to have: a third of the initial window of RFC 6928,
/// as after a loss.
const LEAST_STREAM_WINDOW: Bytes = Bytes(4 * 1_460);

/// On a short path it is the server that limits a stream, and hardly one gives less than this.
const LEAST_STREAM_RATE: BitRate = BitRate::from_kbps(1_000);

/// What samples of goodput tell of the window of each stream.
///
/// A stream's goodput x RTT is a lower bound of its window, so seeing more always raises the estimate. It says nothing
/// about an upper bound while streams share a full link (N of them measure BDP / N each): the estimate is lowered only
/// when more streams brought a higher rate, or fewer a lower one, which shows that each was limited by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamWindows {
    window: Option<Bytes>,
    growth: Option<Growth>,
    /// Since when fewer streams have brought less in proportion.
    fewer_since: Option<Timestamp>,
}

/// The last time that the rate grew.
#[derive(Debug, Clone, Copy)]
struct Growth {
    /// The best rate then.
    rate: BitRate,
    /// Streams that carried it.
    streams: u32,
    /// Samples without growth since then.
    quiet: u32,
}

/// A sample of goodput, and what is known beside it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) began: Timestamp,
    pub(super) rate: BitRate,
    /// The best rate of late.
    pub(super) best: BitRate,
    pub(super) streams: u32,
    pub(super) rtt: Duration,
}

impl StreamWindows {
    /// The window of a stream. `None` before anything was seen.
    pub(super) const fn window(&self) -> Option<Bytes> {
        self.window
    }

    /// Whether the rate was still growing when last seen.
    pub(super) fn is_filling(&self) -> bool {
        self.growth.is_none_or(|growth| growth.quiet < FULL_AFTER)
    }

    /// The path is another one: what it carries is to be seen.
    pub(super) const fn on_longer_path(&mut self) {
        self.growth = None;
    }

    /// Takes note of a sample, where a stream is believed to have a window of `prior` before the first one.
    pub(super) fn learn(&mut self, now: Timestamp, seen: Seen, prior: Bytes) {
        let Seen { began, rate, best, streams, rtt } = seen;
        let in_flight = (rate * (1.0 / f64::from(streams))) * rtt;
        // It follows a path that becomes longer, as windows do.
        let floor = LEAST_STREAM_WINDOW.min(LEAST_STREAM_RATE * rtt);
        let mut window = self.window.unwrap_or(prior).max(in_flight).max(floor);
        let is_slower = self.is_in_proportion(rate, streams);
        let fewer_since = self.fewer_since.unwrap_or(began);
        self.fewer_since = is_slower.then_some(fewer_since);
        let is_lasting = is_slower && now.saturating_since(fewer_since) >= rtt * FEWER_FOR;
        let is_limited = is_lasting || self.is_in_proportion(best, streams);
        self.growth = Some(match self.growth {
            Some(last) if is_limited => {
                window = in_flight.max(floor);
                Growth { rate: best, streams, quiet: last.quiet }
            }
            Some(last) if best.bps() < last.rate.bps() * GROWTH => {
                Growth { quiet: last.quiet.saturating_add(1), ..last }
            }
            last => {
                // Only after a rate that had settled: in slow start it grows by itself.
                let more = last.is_some_and(|l| {
                    l.quiet >= SETTLED_AFTER
                        && f64::from(streams) >= f64::from(l.streams) * MORE_STREAMS
                });
                if more {
                    window = in_flight.max(floor);
                }
                Growth { rate: best, streams, quiet: 0 }
            }
        });
        self.window = Some(window);
    }

    /// Whether so many `streams`, fewer than before, bring less in proportion: as many on the same link would each have
    /// carried more.
    fn is_in_proportion(&self, rate: BitRate, streams: u32) -> bool {
        self.growth.is_some_and(|last| {
            let of_each = rate.bps() * f64::from(last.streams);
            let of_each_before = last.rate.bps() * f64::from(streams);
            f64::from(streams) * MORE_STREAMS <= f64::from(last.streams)
                && of_each <= of_each_before * MORE_STREAMS
                && of_each >= of_each_before * HELD_UP
        })
    }
}
