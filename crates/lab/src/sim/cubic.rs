//! The congestion window as Linux runs it: CUBIC (RFC 9438) with `HyStart` (Ha and Rhee, "Taming the
//! elephants", 2011), counted in segments.

use std::time::Duration;

use pelton_algos::time::Timestamp;

/// RFC 6928 section 2.
pub(super) const INITIAL_WINDOW: f64 = 10.0;
/// RFC 9438 section 4.6.
const BETA: f64 = 0.7;
/// RFC 9438 section 5.1, segments per second cubed.
const C: f64 = 0.4;
/// The least growth a round trip before the first loss: Linux lets `cnt` be 20 at most.
const EARLY_GROWTH: f64 = 1.0 / 20.0;
/// The most growth a round trip: Linux lets `cnt` be 2 at least.
const MOST_GROWTH: f64 = 0.5;
/// `HyStart` does not look at smaller windows (`hystart_low_window`).
const HYSTART_LEAST_WINDOW: f64 = 16.0;
/// ACKs closer than this are one train (`hystart_ack_delta_us`).
const HYSTART_TRAIN_GAP: Duration = Duration::from_millis(2);
/// ACKs whose delay is looked at in each round (`HYSTART_MIN_SAMPLES`).
const HYSTART_SAMPLES: u32 = 8;

/// What an acknowledgement told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acked {
    pub(super) segments: f64,
    /// The sample that it gave.
    pub(super) rtt: Option<Duration>,
    pub(super) min_rtt: Duration,
    /// Everything before this byte is there.
    pub(super) cumulative: u64,
    /// The next byte to send.
    pub(super) next_byte: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Cubic {
    window: f64,
    threshold: f64,
    /// The window before the last reduction; none was before it is zero.
    last_max: f64,
    epoch: Option<Epoch>,
    round: Round,
}

/// Since the last reduction.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Timestamp,
    /// Seconds until the window is back at `origin`.
    k: f64,
    origin: f64,
    /// What Reno would have by now (RFC 9438 section 4.3).
    reno: f64,
}

/// One round trip of slow start.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    start: Timestamp,
    last_ack: Timestamp,
    ends_at_byte: u64,
    least_rtt: Option<Duration>,
    samples: u32,
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            last_max: 0.0,
            epoch: None,
            round: Round::default(),
        }
    }
}

impl Cubic {
    /// Segments that may be in flight.
    pub(super) const fn window(&self) -> f64 {
        self.window
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// The window was in use and segments were acknowledged outside of recovery.
    pub(super) fn on_ack(&mut self, now: Timestamp, acked: Acked) {
        if self.in_slow_start() {
            self.look_for_the_knee(now, &acked);
        }
        if self.in_slow_start() {
            self.window += acked.segments;
            return;
        }
        let growth = self.growth(now, acked);
        self.window += growth * acked.segments / self.window;
    }

    /// Segments by which the window grows in this round trip.
    fn growth(&mut self, now: Timestamp, acked: Acked) -> f64 {
        let window = self.window;
        let last_max = self.last_max;
        let epoch = self.epoch.get_or_insert_with(|| {
            let below = (last_max - window).max(0.0);
            Epoch { start: now, k: (below / C).cbrt(), origin: window + below, reno: window }
        });
        let t = (now.saturating_since(epoch.start) + acked.min_rtt).as_secs_f64() - epoch.k;
        let mut growth = (epoch.origin + C * t * t * t - window).max(0.01);
        if last_max == 0.0 {
            growth = growth.max(window * EARLY_GROWTH);
        }
        let alpha = 3.0 * (1.0 - BETA) / (1.0 + BETA);
        epoch.reno += alpha * acked.segments / window;
        growth.max(epoch.reno - window).min(window * MOST_GROWTH)
    }

    /// Slow start ends where a round's ACKs spread over half a round trip, or arrive later than
    /// the least round trip by more than an eighth (4 to 16 ms).
    fn look_for_the_knee(&mut self, now: Timestamp, acked: &Acked) {
        if acked.cumulative >= self.round.ends_at_byte {
            self.round = Round {
                start: now,
                last_ack: now,
                ends_at_byte: acked.next_byte,
                least_rtt: None,
                samples: 0,
            };
        }
        let round = &mut self.round;
        let in_train = now.saturating_since(round.last_ack) <= HYSTART_TRAIN_GAP;
        if in_train {
            round.last_ack = now;
        }
        let train_is_long = in_train && now.saturating_since(round.start) > acked.min_rtt / 2;
        if round.samples < HYSTART_SAMPLES
            && let Some(rtt) = acked.rtt
        {
            round.samples += (acked.segments / 2.0).ceil() as u32;
            round.least_rtt = Some(round.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        let slack = (acked.min_rtt / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        let is_late = round.samples >= HYSTART_SAMPLES
            && round.least_rtt.is_some_and(|rtt| rtt > acked.min_rtt + slack);
        if self.window >= HYSTART_LEAST_WINDOW && (train_is_long || is_late) {
            self.threshold = self.window;
        }
    }

    /// Segments were lost: once for all of one round trip.
    pub(super) fn on_loss(&mut self) {
        // Fast convergence: RFC 9438 section 4.7.
        let shrinks = self.window < self.last_max;
        self.last_max = if shrinks { self.window * f64::midpoint(1.0, BETA) } else { self.window };
        self.window = (self.window * BETA).max(2.0);
        self.threshold = self.window;
        self.epoch = None;
    }

    /// Nothing was acknowledged for a whole time-out (RFC 5681 section 3.1).
    pub(super) fn on_timeout(&mut self) {
        self.on_loss();
        self.window = 1.0;
    }

    /// Nothing was sent for `timeouts` retransmission time-outs (RFC 2861).
    pub(super) fn on_idle(&mut self, timeouts: u32) {
        let floor = self.window.min(INITIAL_WINDOW);
        self.threshold = self.threshold.max(self.window * 0.75);
        self.window = (self.window / f64::from(timeouts.min(30)).exp2()).max(floor);
        self.epoch = None;
    }
}
