//! What is believed of the link, and the filters that build the belief.

mod config;
mod estimate;
mod filters;
mod longer;
mod windows;

use std::time::Duration;

pub use self::config::LinkConfig;
pub use self::estimate::LinkEstimate;
use self::filters::{AtPace, HeldBack, Lately, OUTPACES, Sustained, WindowedMax, WindowedMin};
use self::longer::LongerPath;
use self::windows::{Seen, StreamWindows};
use crate::pace::{FirstPace, Pace};
use crate::time::Timestamp;
use crate::units::{BitRate, Bytes};

/// Goodput is so near at least to the pace of answers that filled the path: requests and queues leave gaps.
const NEAR_PACE: f64 = 0.7;

/// A path that brings this part of the most that it brought lately is full.
const FULL: f64 = 0.7;

/// A round trip that takes so many times as long as the path has met a queue.
const QUEUED: f64 = 1.25;

/// A minimum of the round-trip time counts for so many times as long as a maximum of the bandwidth.
const RTT_MEMORIES: u32 = 3;

/// What the last round trip counts in those of late.
const NEW_ROUND_TRIP: f64 = 0.25;

/// A server that thinks acknowledges a request so late (Linux; RFC 1122 section 4.2.3.2 allows 500 ms): no queue.
const DELAYED_ACK: Duration = Duration::from_millis(50);

/// The pace of the first answers is that of the path within this factor: a few packets tell it.
const BESIDE_PACE: f64 = 2.0;

/// What waited behind a lost segment makes a sample hardly so many times as much as the path brings.
const FAR_BEYOND_PACE: f64 = 8.0;

/// While the rate still grows, the pipe is not full and the true bandwidth is not known: plans are
/// made for this multiple of what was seen, so that a plan made for a slow start does not confirm
/// itself.
const STARTUP_GAIN: f64 = 2.0;

/// A path that has become longer carries so many times at least what it brings with too few streams, or as much as before.
const LONGER_GAIN: f64 = 2.0;

/// No path is longer, so that sums of round trips stay times.
const LONGEST_RTT: Duration = Duration::from_secs(3_600);

/// Within one machine the time of processes is what counts, and a window of such a path holds no whole packet: it would tell
/// nothing of longer round trips.
const LEAST_RTT: Duration = Duration::from_micros(50);

/// Builds a [`LinkEstimate`] from facts. `on_*` take a fact; [`estimate`](Self::estimate) is the
/// present belief.
#[derive(Debug, Clone)]
pub struct LinkEstimator {
    config: LinkConfig,
    rtt: WindowedMin,
    /// What round trips take of late.
    round_trip: Option<Duration>,
    bandwidth: WindowedMax,
    windows: StreamWindows,
    first: FirstPace,
    /// What it was taken for before a faster one was seen.
    slower: Option<BitRate>,
    sample: Sample,
    lately: Lately,
    held_back: HeldBack,
    at_pace: AtPace,
    sustained: Sustained,
    longer: LongerPath,
    /// What the last sample brought.
    rate: BitRate,
    /// The pipe has been full once: the prior has served its purpose.
    was_full: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    since: Timestamp,
    delivered: Bytes,
    /// The most and the fewest streams that were in transfer during the sample.
    fewest_streams: u32,
    most_streams: u32,
}

impl LinkEstimator {
    /// An estimator that has seen nothing.
    pub fn new(config: LinkConfig) -> Self {
        let config = LinkConfig {
            rtt_hint: config.rtt_hint.map(|rtt| rtt.min(LONGEST_RTT)),
            prior_rtt: config.prior_rtt.min(LONGEST_RTT),
            ..config
        };
        Self {
            config,
            rtt: WindowedMin::default(),
            round_trip: None,
            bandwidth: WindowedMax::default(),
            windows: StreamWindows::default(),
            first: FirstPace::default(),
            slower: None,
            sample: Sample::default(),
            lately: Lately::default(),
            held_back: HeldBack::default(),
            at_pace: AtPace::default(),
            sustained: Sustained::default(),
            longer: LongerPath::default(),
            rate: BitRate::ZERO,
            was_full: false,
        }
    }

    /// A handshake or the transport measured a round-trip time.
    pub fn on_rtt(&mut self, now: Timestamp, rtt: Duration) {
        // While transfers fill the path they fill its queue, too: it is not the path that has become longer.
        let memory = if self.is_full() {
            Duration::MAX
        } else {
            self.config.memory.saturating_mul(RTT_MEMORIES)
        };
        self.rtt.push(now, rtt.max(LEAST_RTT), memory);
    }

    /// A round trip took so long of late, queues included. Returns whether that shows that the path has become longer: then it
    /// is another one, of which is known what it brings at present, and not yet what it carries.
    pub fn on_round_trip(&mut self, now: Timestamp, took: Duration) -> bool {
        let before = self.round_trip.unwrap_or(took);
        self.round_trip = Some(before.mul_f64(1.0 - NEW_ROUND_TRIP) + took.mul_f64(NEW_ROUND_TRIP));
        let Some(known) = self.rtt.min() else { return false };
        let Some(longer) = self.longer.on_round_trip(now, took, known) else { return false };
        self.rtt = WindowedMin::default();
        self.on_rtt(now, longer.rtt);
        let (before, hoped) = (self.bandwidth.max(), longer.rate * LONGER_GAIN);
        self.bandwidth = WindowedMax::default();
        self.bandwidth.push(now, hoped.min(before), self.config.memory);
        self.windows.on_longer_path();
        // What did not come meanwhile was not asked for in time: none of it is on its way.
        (self.held_back, self.at_pace) = (HeldBack::default(), AtPace::default());
        true
    }

    /// An answer took so long, without what its server thinks.
    pub fn on_answer(&mut self, now: Timestamp, took: Duration) {
        self.longer.on_answer(now, took);
    }

    /// What a round trip takes of late, queues included: no less than without.
    pub fn round_trip(&self) -> Duration {
        self.rtt().max(self.round_trip.unwrap_or_default())
    }

    /// Whether transfers bring much less than the path carried of late.
    pub fn brings_less(&self) -> bool {
        self.was_full && !self.is_full()
    }

    /// Whether transfers bring about all that the path carries.
    fn is_full(&self) -> bool {
        self.full_at().is_some_and(|full| self.rate >= full)
    }

    /// A path that brings so much is full. `None` before it ever was.
    fn full_at(&self) -> Option<BitRate> {
        self.was_full.then(|| self.bandwidth.max() * FULL)
    }

    /// The first answers came at this pace, as the transport sees it: encrypted bodies come in records of
    /// up to 16 KiB, the last byte of which may be a round trip later than the first.
    pub fn on_pace(&mut self, pace: Pace) {
        let slower = self.first.rate().filter(|rate| *rate < pace.rate);
        if slower.is_some_and(|slower| self.held_back.explains(slower, pace.rate, self.rtt())) {
            return;
        }
        self.slower = slower.filter(|_| !self.first.is_of_servers());
        self.first.set(pace);
    }

    /// A faster pace than before may have been what waited behind lost segments and came at once. Where a full path brings what
    /// was seen before it counts again.
    fn doubt_pace(&mut self) {
        let full = self.bandwidth.max().bps();
        let is_told_by =
            |pace: BitRate| full * BESIDE_PACE >= pace.bps() && full <= pace.bps() * BESIDE_PACE;
        let is_wrong = self.was_full && self.first.rate().is_some_and(|pace| !is_told_by(pace));
        if let Some(slower) = self.slower.filter(|slower| is_wrong && is_told_by(*slower)) {
            self.first.set(Pace::of_path(slower));
            self.slower = None;
        }
    }

    /// How long the path is busy with so many bytes. `None` where what it carries is not known, or round trips tell of a queue:
    /// it may carry less than it did.
    pub fn busy_with(&self, bytes: Bytes) -> Option<Duration> {
        match self.best_seen() {
            _ if self.tells_of_queue() => None,
            _ if bytes == Bytes::ZERO || self.first.is_of_servers() => Some(Duration::ZERO),
            best => best.map(|best| bytes / best),
        }
    }

    /// `bytes` of bodies arrived over `streams` streams in transfer. Returns the goodput of a
    /// sample when this completed one, which is when the estimate may have changed.
    pub fn on_delivered(&mut self, now: Timestamp, bytes: Bytes, streams: u32) -> Option<BitRate> {
        self.first.on_bytes(now, bytes, self.rtt());
        self.sample.delivered += bytes;
        self.sample.most_streams = self.sample.most_streams.max(streams);
        self.sample.fewest_streams = self.sample.fewest_streams.min(streams);
        let elapsed = now.saturating_since(self.sample.since);
        if elapsed < self.sample_length() {
            return None;
        }
        let sample = std::mem::replace(&mut self.sample, Sample::starting(now, streams));
        if sample.fewest_streams == 0 {
            return None;
        }
        let without_held = self.held_back.push(sample.delivered, elapsed, self.bandwidth.max());
        // The first bytes come after a silence that says nothing about the rate.
        if sample.delivered == Bytes::ZERO {
            return None;
        }
        let rate = sample.delivered / elapsed;
        self.rate = rate;
        let outpaces = self.first.rate().is_some_and(|pace| rate > pace * OUTPACES);
        let telling = if self.was_full || outpaces { without_held } else { sample.delivered };
        self.sustained.push(now, telling);
        let steady = self.lately.push(telling, elapsed);
        match self.first.rate() {
            Some(pace) if !self.first.is_of_servers() => {
                self.at_pace.push(telling, elapsed, steady, pace);
            }
            _ => self.at_pace = AtPace::default(),
        }
        let told = if self.was_full { steady } else { telling / elapsed };
        self.bandwidth.push(now, told, self.config.memory);
        let (full, trip) = (self.full_at(), self.round_trip());
        self.longer.on_delivered(now, sample.delivered, elapsed, full, trip);
        let seen = Seen {
            began: sample.since,
            rate,
            best: self.bandwidth.max(),
            streams: sample.most_streams.max(1),
            rtt: self.rtt(),
        };
        self.windows.learn(now, seen, self.config.prior_stream_window);
        self.was_full |= !self.is_filling() && !self.waits_for_servers();
        self.doubt_pace();
        Some(rate)
    }

    /// Nothing was in transfer: what was seen until `now` is no sample of the link.
    pub fn on_idle(&mut self, now: Timestamp) {
        self.sample = Sample::starting(now, 0);
        self.lately = Lately::default();
        self.longer = LongerPath::default();
        self.sustained.pause();
    }

    /// The rate that was seen, of the first answers or of a sample. `None` before.
    pub fn seen_bandwidth(&self) -> Option<BitRate> {
        let first = self.first.rate()?;
        let sampled = self.bandwidth.max();
        Some(if self.was_full { sampled } else { sampled.max(first) })
    }

    /// Whether all that is known of the path is what its servers bring, answer by answer.
    pub fn waits_for_servers(&self) -> bool {
        self.first.is_of_servers() && !self.was_full && !self.tells_of_queue()
    }

    /// Whether round trips take longer than the path alone does.
    pub fn has_queue(&self) -> bool {
        self.round_trip() > self.rtt().mul_f64(QUEUED)
    }

    /// Whether round trips take so long that there is a queue, and no server that sends in bursts.
    pub fn tells_of_queue(&self) -> bool {
        self.round_trip() > self.rtt() * 2 + DELAYED_ACK
    }

    /// The most that was seen, of the first answers or over some seconds. `None` before.
    pub fn best_seen(&self) -> Option<BitRate> {
        Some(self.first.rate()?.max(self.sustained.best))
    }

    /// What the path carries by the pace of the first answers, as long as goodput does not contradict: more over some
    /// seconds tells that a server held them back, and less, once it has settled, that servers or losses hold all connections
    /// back. What one sample brought may have waited for a lost segment.
    pub fn paced_bandwidth(&self) -> Option<BitRate> {
        let (pace, sampled) = (self.first.rate()?, self.bandwidth.max());
        let is_held_back = self.was_full && sampled.bps() * BESIDE_PACE < pace.bps();
        if self.waits_for_servers() {
            return None;
        }
        let best = self.best_seen()?;
        let is_outpaced =
            best.bps() > pace.bps() * BESIDE_PACE || sampled.bps() > pace.bps() * FAR_BEYOND_PACE;
        (!is_held_back && !is_outpaced).then_some(best)
    }

    /// Whether `rate` is about what the path carries, by the pace of its first answers: more lanes would soon meet its
    /// queue, be it so short that no response tells of it.
    pub fn keeps_pace(&self, rate: BitRate) -> bool {
        self.paced_bandwidth().is_some_and(|pace| rate.bps() >= pace.bps() * NEAR_PACE)
    }

    /// Whether transfers bring what the first answers told of the path, and no more. What waits behind a lost segment is soon
    /// there.
    pub const fn is_at_pace(&self) -> bool {
        self.at_pace.is_kept()
    }

    /// Two round trips, so that bursts of one window do not look like a rate; at least 100 ms.
    fn sample_length(&self) -> Duration {
        (self.rtt() * 2).clamp(Duration::from_millis(100), Duration::from_secs(1))
    }

    /// Whether the rate was still growing when last seen.
    pub fn is_filling(&self) -> bool {
        self.windows.is_filling()
    }

    /// Whether the pipe has been full at least once, so that the bandwidth is measured.
    pub const fn was_full(&self) -> bool {
        self.was_full
    }

    /// The bandwidth, where it was measured.
    pub fn measured_bandwidth(&self) -> Option<BitRate> {
        Some(self.bandwidth.max()).filter(|rate| self.was_full && *rate > BitRate::ZERO)
    }

    /// The round-trip time, where it was measured.
    pub fn measured_rtt(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// Whether the bandwidth is what the host has said, and nothing measured since.
    pub const fn rests_on_hint(&self) -> bool {
        self.config.bandwidth_hint.is_some() && !self.was_full
    }

    fn rtt(&self) -> Duration {
        self.rtt.min().or(self.config.rtt_hint).unwrap_or(self.config.prior_rtt)
    }

    fn bandwidth(&self) -> BitRate {
        let measured = self.bandwidth.max();
        if !self.is_filling() {
            return measured;
        }
        match self.config.bandwidth_hint {
            // A hint is the host's knowledge of the link: exceed it only on evidence.
            Some(hint) if !self.was_full => BitRate::from_bps(measured.bps().max(hint.bps())),
            Some(_) => measured,
            None if self.was_full => measured * STARTUP_GAIN,
            None => {
                let hoped = measured.bps() * STARTUP_GAIN;
                BitRate::from_bps(hoped.max(self.config.prior_bandwidth.bps()))
            }
        }
    }

    /// The present belief.
    pub fn estimate(&self) -> LinkEstimate {
        LinkEstimate {
            rtt: self.rtt(),
            bandwidth: self.bandwidth(),
            stream_window: self.windows.window().unwrap_or(self.config.prior_stream_window),
        }
    }
}

impl Sample {
    fn starting(now: Timestamp, streams: u32) -> Self {
        Self { since: now, delivered: Bytes::ZERO, fewest_streams: streams, most_streams: streams }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds `seconds` of a steady rate in 10 ms steps.
    fn steady(
        estimator: &mut LinkEstimator,
        from: u64,
        seconds: u64,
        rate: BitRate,
        streams: u32,
    ) -> u64 {
        let step = Duration::from_millis(10);
        for i in 0..seconds * 100 {
            estimator.on_delivered(Timestamp::from_millis(from + i * 10), rate * step, streams);
        }
        from + seconds * 1000
    }

    #[test]
    fn a_path_that_becomes_longer_is_another_one() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(40));
        let now = steady(&mut link, 0, 4, BitRate::from_mbps(40.0), 4);
        assert!(!link.brings_less());
        let now = steady(&mut link, now, 1, BitRate::from_mbps(6.0), 4);
        assert!(link.brings_less());
        let took = Duration::from_millis(300);
        let times = (0..16).map(|index| Timestamp::from_millis(now + index * 50));
        let found = times.filter(|at| link.on_round_trip(*at, took)).count();
        assert_eq!(found, 1);
        let estimate = link.estimate();
        assert_eq!(estimate.rtt, Duration::from_millis(300));
        let mbps = estimate.bandwidth.bps() / 1e6;
        assert!((20.0..=40.0).contains(&mbps), "four times what comes, {mbps}");
    }

    #[test]
    fn the_first_pace_is_believed_until_goodput_contradicts() {
        let paced = |mbps: f64, streams: u32| {
            let mut estimator = LinkEstimator::new(LinkConfig::default());
            estimator.on_rtt(Timestamp::START, Duration::from_millis(50));
            estimator.on_pace(Pace::of_path(BitRate::from_mbps(10.0)));
            steady(&mut estimator, 0, 3, BitRate::from_mbps(mbps), streams);
            estimator.paced_bandwidth().map(|rate| rate.bps().round() / 1e6)
        };
        assert_eq!(paced(9.0, 2), Some(10.0));
        assert_eq!(paced(12.0, 2).map(f64::round), Some(12.0));
        assert_eq!(paced(3.0, 6), None, "servers hold six connections back");
        assert_eq!(paced(30.0, 2), None, "a server held its first answers back");
        assert_eq!(LinkEstimator::new(LinkConfig::default()).paced_bandwidth(), None);
        // Behind a lost segment half a second's bytes have waited, at 1 Mbit/s.
        let mut estimator = LinkEstimator::new(LinkConfig::default());
        estimator.on_pace(Pace::of_path(BitRate::from_mbps(1.0)));
        let steady_until = steady(&mut estimator, 0, 3, BitRate::from_mbps(1.0), 1);
        let released = Timestamp::from_millis(steady_until + 500);
        estimator.on_delivered(released, Bytes(62_500), 1);
        let paced = estimator.paced_bandwidth().map(BitRate::mbps);
        assert!(paced.is_some_and(|mbps| (1.0..1.5).contains(&mbps)), "{paced:?}");
    }

    #[test]
    fn a_burst_behind_the_first_loss_is_neither_a_rate_nor_a_pace() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(100));
        let path = BitRate::from_mbps(10.0);
        link.on_pace(Pace::of_path(path));
        // Two samples, which are too few to tell that the path is full.
        for millis in (0..=400).step_by(10) {
            link.on_delivered(Timestamp::from_millis(millis), path * Duration::from_millis(10), 1);
        }
        assert!(!link.was_full());
        // Nothing can be read for 400 ms, and then all of it.
        link.on_delivered(Timestamp::from_millis(800), Bytes(16_384), 1);
        link.on_delivered(Timestamp::from_millis(810), Bytes(490_000), 1);
        link.on_pace(Pace::of_path(BitRate::from_mbps(30.0)));
        for millis in (820..=1_100).step_by(10) {
            link.on_delivered(Timestamp::from_millis(millis), path * Duration::from_millis(10), 1);
        }
        let believed = link.seen_bandwidth().map(BitRate::mbps);
        assert!(believed.is_some_and(|mbps| (9.0..12.0).contains(&mbps)), "{believed:?}");
        assert!(link.is_at_pace(), "{link:?}");
    }

    #[test]
    fn what_was_held_back_for_long_is_no_bandwidth_but_more_than_that_is() {
        let after = |millis: u64, mbps: f64| {
            let mut link = LinkEstimator::new(LinkConfig::default());
            link.on_rtt(Timestamp::START, Duration::from_millis(100));
            let at = steady(&mut link, 0, 3, BitRate::from_mbps(10.0), 8);
            // For a second nothing but 1 Mbit/s, as all streams wait for what they have lost.
            let at = steady(&mut link, at, 1, BitRate::from_mbps(1.0), 8);
            let step = Duration::from_millis(10);
            for i in 0..millis / 10 {
                let now = Timestamp::from_millis(at + i * 10);
                link.on_delivered(now, BitRate::from_mbps(mbps) * step, 8);
            }
            (link.measured_bandwidth().unwrap().mbps(), link.best_seen().unwrap().mbps())
        };
        let (measured, best) = after(400, 30.0);
        assert!(measured < 11.0 && best < 11.0, "{measured} and {best}: it was under way before");
        let (measured, _) = after(3_000, 30.0);
        assert!(measured > 29.0, "{measured}: the path has become faster");
    }

    #[test]
    fn a_stream_that_its_server_limits_is_found_out_by_fewer_of_them() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_micros(50));
        let at = steady(&mut link, 0, 1, BitRate::from_mbps(320.0), 16);
        let alone = |link: &LinkEstimator| link.estimate().stream_window / link.estimate().rtt;
        assert!(alone(&link).mbps() > 300.0, "who knows");
        steady(&mut link, at, 1, BitRate::from_mbps(20.0), 1);
        assert!(link.estimate().bandwidth.mbps() > 300.0, "as was seen lately");
        assert!((alone(&link).mbps() - 20.0).abs() < 2.0, "{:?}", link.estimate());
    }

    #[test]
    fn fewer_streams_that_hardly_bring_anything_are_not_limited_by_themselves() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(20));
        let at = steady(&mut link, 0, 1, BitRate::from_mbps(32.0), 16);
        let before = link.estimate().stream_window;
        steady(&mut link, at, 1, BitRate::from_mbps(0.2), 1);
        assert_eq!(link.estimate().stream_window, before);
    }

    #[test]
    fn hints_hold_until_measured() {
        let config = LinkConfig {
            bandwidth_hint: Some(BitRate::from_mbps(50.0)),
            rtt_hint: Some(Duration::from_millis(200)),
            ..LinkConfig::default()
        };
        let mut link = LinkEstimator::new(config);
        assert_eq!(link.estimate().bdp(), Bytes(1_250_000));
        link.on_rtt(Timestamp::START, Duration::from_millis(100));
        assert_eq!(link.estimate().rtt, Duration::from_millis(100));
        steady(&mut link, 0, 5, BitRate::from_mbps(10.0), 4);
        assert!((link.estimate().bandwidth.mbps() - 10.0).abs() < 0.5, "{:?}", link.estimate());
    }

    #[test]
    fn the_estimate_rises_within_the_first_second() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(20));
        steady(&mut link, 0, 1, BitRate::from_mbps(400.0), 8);
        assert!(link.estimate().bandwidth.mbps() > 390.0);
    }

    #[test]
    fn a_window_limited_start_does_not_confirm_itself() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(200));
        // Each stream carries 2 Mbit/s; plans keep asking for more while more streams bring more.
        let mut now = 0;
        let mut streams = 1;
        for _ in 0..5 {
            now = steady(&mut link, now, 1, BitRate::from_mbps(2.0 * f64::from(streams)), streams);
            assert!(link.estimate().bandwidth.mbps() > 2.0 * f64::from(streams) * 1.5);
            streams *= 2;
        }
        let window = link.estimate().stream_window;
        assert!(
            window < Bytes(60_000) && window > Bytes(40_000),
            "{window:?} should be near 50 000"
        );
    }

    #[test]
    fn streams_that_share_a_full_link_do_not_shrink_the_window() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(100));
        let now = steady(&mut link, 0, 3, BitRate::from_mbps(20.0), 4);
        let before = link.estimate().stream_window;
        steady(&mut link, now, 5, BitRate::from_mbps(20.0), 40);
        assert_eq!(link.estimate().stream_window, before);
    }

    #[test]
    fn streams_that_end_on_a_lossy_path_show_their_window() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(500));
        // Losses keep each stream at 0.2 Mbit/s, 12.5 kB in flight.
        let now = steady(&mut link, 0, 10, BitRate::from_mbps(12.0), 60);
        let before = link.estimate();
        steady(&mut link, now, 15, BitRate::from_mbps(6.0), 30);
        let after = link.estimate();
        assert!(before.stream_window > Bytes(60_000), "{before:?}");
        assert!(after.stream_window < Bytes(15_000), "{after:?}");
        let wanted = after.bdp().div_ceil(after.stream_window);
        assert!(wanted >= 28, "the formulas ask for the streams that are left: {wanted}");
    }

    #[test]
    fn a_queue_that_transfers_fill_is_no_longer_path() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(30));
        let now = steady(&mut link, 0, 40, BitRate::from_mbps(1.0), 8);
        link.on_rtt(Timestamp::from_millis(now), Duration::from_millis(450));
        assert_eq!(link.estimate().rtt, Duration::from_millis(30));
        let now = steady(&mut link, now, 40, BitRate::from_mbps(0.2), 8);
        link.on_rtt(Timestamp::from_millis(now - 35_000), Duration::from_millis(450));
        steady(&mut link, now, 3, BitRate::from_mbps(0.02), 8);
        link.on_rtt(Timestamp::from_millis(now + 3_000), Duration::from_millis(450));
        assert_eq!(link.estimate().rtt, Duration::from_millis(450), "it has become longer");
    }

    #[test]
    fn drift_is_followed() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(50));
        let now = steady(&mut link, 0, 5, BitRate::from_mbps(50.0), 8);
        let now = steady(&mut link, now, 12, BitRate::from_mbps(5.0), 8);
        assert!(link.estimate().bandwidth.mbps() < 6.0);
        steady(&mut link, now, 2, BitRate::from_mbps(80.0), 8);
        assert!(link.estimate().bandwidth.mbps() > 75.0);
    }

    #[test]
    fn the_pace_of_the_first_answers_is_seen_before_any_sample() {
        let mut estimator = LinkEstimator::new(LinkConfig::default());
        assert_eq!(estimator.seen_bandwidth(), None);
        estimator.on_pace(Pace::of_path(BitRate::from_mbps(50.0)));
        assert_eq!(estimator.seen_bandwidth(), Some(BitRate::from_mbps(50.0)));
        let planned = estimator.estimate().bandwidth;
        assert_eq!(planned, BitRate::from_mbps(20.0), "plans rest on samples");
    }

    #[test]
    fn a_rate_near_the_first_pace_is_all_that_the_path_carries() {
        let mut estimator = LinkEstimator::new(LinkConfig::default());
        assert!(!estimator.keeps_pace(BitRate::from_mbps(40.0)), "there is none yet");
        estimator.on_pace(Pace::of_path(BitRate::from_mbps(50.0)));
        assert!(estimator.keeps_pace(BitRate::from_mbps(36.0)));
        assert!(!estimator.keeps_pace(BitRate::from_mbps(34.0)));
    }

    #[test]
    fn a_path_is_busy_with_what_comes_as_far_as_its_pace_tells() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(40));
        let megabyte = Bytes(1_000_000);
        assert_eq!(
            (link.busy_with(Bytes::ZERO), link.busy_with(megabyte)),
            (Some(Duration::ZERO), None)
        );
        link.on_pace(Pace { rate: BitRate::from_mbps(8.0), of_servers: true });
        assert_eq!(link.busy_with(megabyte), Some(Duration::ZERO), "servers held it back");
        link.on_pace(Pace::of_path(BitRate::from_mbps(8.0)));
        assert_eq!(link.busy_with(megabyte), Some(Duration::from_secs(1)));
        link.on_round_trip(Timestamp::from_millis(500), Duration::from_millis(150));
        assert_eq!(link.busy_with(megabyte), None, "a queue: it may carry less by now");
    }

    #[test]
    fn a_stretched_link_holds_more_and_needs_as_many_streams() {
        let link = LinkEstimator::new(LinkConfig::default()).estimate();
        let long = link.stretched_to(link.rtt * 10);
        assert_eq!(
            (long.bandwidth, long.bdp()),
            (link.bandwidth, link.bandwidth * (link.rtt * 10))
        );
        let streams = |link: LinkEstimate| link.bdp().div_ceil(link.stream_window);
        assert_eq!(streams(long), streams(link));
    }

    #[test]
    fn a_round_trip_of_late_has_the_queue_in_it() {
        let mut link = LinkEstimator::new(LinkConfig::default());
        link.on_rtt(Timestamp::START, Duration::from_millis(40));
        assert_eq!(link.round_trip(), Duration::from_millis(40));
        (1..40).for_each(|second| {
            link.on_round_trip(Timestamp::from_millis(second * 1_000), Duration::from_millis(400));
        });
        assert_eq!(link.round_trip(), Duration::from_millis(400));
        link.on_round_trip(Timestamp::from_millis(40_000), Duration::from_millis(40));
        assert_eq!(link.round_trip(), Duration::from_millis(310));
        assert_eq!(link.estimate().rtt, Duration::from_millis(40));
    }

    proptest! {
        #[test]
        fn estimates_stay_finite(
            facts in proptest::collection::vec((any::<u32>(), any::<u64>(), any::<u16>(), any::<u64>()), 0..200)
        ) {
            let mut link = LinkEstimator::new(LinkConfig::default());
            let mut now = Timestamp::START;
            for (gap, bytes, streams, rtt) in facts {
                now = now + Duration::from_micros(u64::from(gap));
                link.on_rtt(now, Duration::from_nanos(rtt));
                link.on_delivered(now, Bytes(bytes), u32::from(streams));
                let estimate = link.estimate();
                prop_assert!(estimate.bandwidth.bps().is_finite());
                prop_assert!(estimate.rtt > Duration::ZERO);
                prop_assert!(estimate.stream_window > Bytes::ZERO);
                let _ = estimate.bdp();
            }
        }
    }
}
