//! The machine that every profile runs on.

use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{Bytes, Joules, Watts};

use super::{LastTraffic, RadioProfile, State};

/// Bytes that move within this time are taken as one burst into the buffer of a shared channel. Assumed:
/// as often as meters are read, so that a step is one burst.
const BURST: Duration = Duration::from_millis(100);

/// A ceiling holds over so long. Assumed: a server sends some 16 kB at once, and who reads no faster than a limit
/// allows sees that as spread, which takes a radio of 1 Mbit/s 0.13 s.
const CEILING_HOLDS_OVER: Duration = Duration::from_millis(500);

/// Traffic of less time says nothing of a rate: the first packet of a trace passes in none.
const SHORTEST_RATE: Duration = Duration::from_secs(1);

/// A stretch of time in one state, for drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// The state.
    pub state: State,
    /// Where it begins.
    pub from: Timestamp,
    /// Where it ends; a state that bytes passed in no time ends where it begins.
    pub until: Timestamp,
    /// What was drawn.
    pub energy: Joules,
}

/// What one state cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateUse {
    /// The state.
    pub state: State,
    /// Time in it.
    pub duration: Duration,
    /// Energy in it.
    pub energy: Joules,
}

/// A radio that has drawn energy since a moment. It starts idle.
#[derive(Debug, Clone)]
pub struct RadioMachine {
    profile: RadioProfile,
    now: Timestamp,
    session: Option<Session>,
    uses: Vec<StateUse>,
    segments: Option<Vec<Segment>>,
    sent: Bytes,
    received: Bytes,
    busy: Duration,
    /// For how long traffic may add all that the profile's ceiling allows: what has passed and was not
    /// used, at most as long as a ceiling holds over. Thus the same bytes cost the same in one step and packet by packet.
    unused: Duration,
}

/// From the first byte after idle until the end of the tail.
#[derive(Debug, Clone)]
struct Session {
    /// The radio is or becomes active; else it stays on the shared channel.
    active: bool,
    /// Promotions that are under way: until when, at what power.
    promotions: Vec<(Timestamp, Watts)>,
    last_byte: Timestamp,
    /// Bytes that wait on the shared channel, sent and received.
    buffered: [f64; 2],
}

impl Session {
    /// When the radio is where it was promoted to, or `from` when that is past.
    fn promoted_at(&self, from: Timestamp) -> Timestamp {
        self.promotions.last().map_or(from, |(until, _)| from.max(*until))
    }
}

impl RadioMachine {
    /// An idle radio at `start`.
    pub fn new(profile: RadioProfile, start: Timestamp) -> Self {
        Self {
            profile,
            now: start,
            session: None,
            uses: Vec::new(),
            segments: None,
            sent: Bytes::ZERO,
            received: Bytes::ZERO,
            busy: Duration::ZERO,
            unused: CEILING_HOLDS_OVER,
        }
    }

    /// A radio at `start` that others have used before: its promotion and its tail until then are theirs.
    pub fn found(profile: RadioProfile, start: Timestamp, last: LastTraffic) -> Self {
        if profile.after(last) == State::Idle {
            return Self::new(profile, start);
        }
        let active = !profile.fits_shared(last.bytes);
        let last_byte = Timestamp::new(start.since_start().saturating_sub(last.quiet));
        let session = Session { active, promotions: Vec::new(), last_byte, buffered: [0.0; 2] };
        Self { session: Some(session), ..Self::new(profile, start) }
    }

    /// Keeps [`segments`](Self::segments) from now on.
    #[must_use]
    pub fn drawn(mut self) -> Self {
        self.segments = Some(Vec::new());
        self
    }

    /// Takes the bytes that moved since the last call as spread evenly until `now`. Call it
    /// several times a second: one byte makes the whole step an active one. A trace with
    /// longer gaps calls it with no bytes just before each packet.
    pub fn on_traffic(&mut self, now: Timestamp, sent: Bytes, received: Bytes) {
        let step = now.saturating_since(self.now);
        let share = if step > BURST { BURST.as_secs_f64() / step.as_secs_f64() } else { 1.0 };
        let burst = [sent.as_f64() * share, received.as_f64() * share];
        self.step(now, sent, received, burst);
    }

    /// As [`on_traffic`](Self::on_traffic), for bytes that come in bursts of at most `burst` a
    /// direction.
    pub fn on_bursts(&mut self, now: Timestamp, sent: Bytes, received: Bytes, burst: Bytes) {
        let burst = [sent.min(burst).as_f64(), received.min(burst).as_f64()];
        self.step(now, sent, received, burst);
    }

    /// Counts the rest of the tail, which belongs to the transfer, and leaves the radio idle.
    pub fn finish(&mut self, now: Timestamp) {
        self.on_traffic(now, Bytes::ZERO, Bytes::ZERO);
        if let Some(end) = self.tail_end() {
            let from = self.now;
            self.now = end;
            self.quiet(from, end);
        }
    }

    /// What the radio has drawn since the start.
    pub fn energy(&self) -> Joules {
        self.uses.iter().map(|used| used.energy).sum()
    }

    /// Time and energy by state, in the order in which states were first entered.
    pub fn uses(&self) -> &[StateUse] {
        &self.uses
    }

    /// What was drawn when, if it is kept.
    pub fn segments(&self) -> &[Segment] {
        self.segments.as_deref().unwrap_or_default()
    }

    /// Whether the mean throughput while busy lies above what the profile was fitted to, so that
    /// the joules are an extrapolation, and more has moved than it was fitted to in a second.
    pub fn extrapolates(&self) -> bool {
        let busy = self.busy.max(SHORTEST_RATE);
        self.sent / busy > self.profile.uplink.fitted_up_to
            || self.received / busy > self.profile.downlink.fitted_up_to
    }

    /// Whether traffic now would find the radio awake.
    pub fn is_awake(&self) -> bool {
        self.tail_end().is_some_and(|end| end > self.now)
    }

    /// The profile.
    pub fn profile(&self) -> &RadioProfile {
        &self.profile
    }

    fn step(&mut self, now: Timestamp, sent: Bytes, received: Bytes, burst: [f64; 2]) {
        let from = self.now;
        self.now = from.max(now);
        let passed = self.now - from;
        self.unused = (self.unused + passed).min(CEILING_HOLDS_OVER.max(passed));
        let moved = sent + received;
        if moved == Bytes::ZERO {
            self.quiet(from, self.now);
            return;
        }
        self.sent += sent;
        self.received += received;
        self.busy += self.now - from;
        self.wake(from, [sent.as_f64(), received.as_f64()], burst);
        self.busy(from, self.now, sent, received);
    }

    /// Begins a session for traffic that starts at `from`, or goes on with the present one; the
    /// buffer of a shared channel decides whether the radio becomes active.
    fn wake(&mut self, from: Timestamp, bytes: [f64; 2], burst: [f64; 2]) {
        let asleep = self.tail_end().is_none_or(|end| from > end);
        let on_shared = self.on_shared(from);
        let mut session = match self.session.take() {
            Some(session) if !asleep => session,
            _ => Session {
                active: self.profile.shared.is_none(),
                promotions: self
                    .profile
                    .shared
                    .as_ref()
                    .map_or(vec![self.profile.promotion], |shared| vec![shared.promotion])
                    .iter()
                    .map(|phase| (from + phase.duration, phase.power))
                    .collect(),
                last_byte: from,
                buffered: [0.0; 2],
            },
        };
        if let Some(shared) = &self.profile.shared
            && (asleep || on_shared)
        {
            session.active = false;
            let drained = |since: Duration| shared.rate.bps() / 8.0 * since.as_secs_f64();
            let quiet = drained(from.saturating_since(session.last_byte));
            let step = drained(self.now - from);
            let mut peak: f64 = 0.0;
            for ((buffered, bytes), burst) in session.buffered.iter_mut().zip(bytes).zip(burst) {
                *buffered = (*buffered - quiet).max(0.0);
                let after = (*buffered + bytes - step).max(0.0);
                let waiting = buffered.max(after) + burst;
                peak = peak.max(waiting.min(*buffered + bytes));
                *buffered = after;
            }
            if peak > shared.threshold.as_f64() {
                session.active = true;
                let start = session.promoted_at(from);
                let promotion = self.profile.promotion;
                session.promotions.push((start + promotion.duration, promotion.power));
            }
        }
        session.last_byte = self.now;
        self.session = Some(session);
    }

    /// Whether the radio is on the shared channel at `at`, with traffic or in the tail.
    fn on_shared(&self, at: Timestamp) -> bool {
        let (Some(session), Some(_)) = (&self.session, &self.profile.shared) else { return false };
        let dedicated: Duration = self.profile.tail.iter().map(|tail| tail.duration).sum();
        !session.active || at > session.promoted_at(session.last_byte) + dedicated
    }

    fn tail_end(&self) -> Option<Timestamp> {
        let session = self.session.as_ref()?;
        let tail = match &self.profile.shared {
            Some(shared) if !session.active => shared.tail,
            _ => self.profile.tail_duration(),
        };
        Some(session.promoted_at(session.last_byte) + tail)
    }

    /// From `from` until `until` with traffic all along: first what is left of the promotions.
    fn busy(&mut self, from: Timestamp, until: Timestamp, sent: Bytes, received: Bytes) {
        let at = self.promote(from, until);
        let active = self.session.as_ref().is_none_or(|session| session.active);
        let (state, base) = match &self.profile.shared {
            Some(shared) if !active => (State::Shared, shared.power),
            _ => (State::Active, self.profile.active),
        };
        let step = until - at;
        let mut added = Joules::ZERO;
        if state == State::Active {
            added = self.profile.uplink.energy(sent) + self.profile.downlink.energy(received);
            added = self.under_ceiling(added);
        }
        self.spend(state, at, until, base * step + added);
    }

    /// What of `added` the profile's ceiling allows.
    fn under_ceiling(&mut self, added: Joules) -> Joules {
        let Some(ceiling) = self.profile.ceiling else { return added };
        let at_ceiling = Duration::try_from_secs_f64(added.get() / ceiling.get());
        let used = at_ceiling.unwrap_or(Duration::MAX).min(self.unused);
        self.unused -= used;
        ceiling * used
    }

    /// From `from` until `until` without traffic: promotions, tails, shared channel, idle.
    fn quiet(&mut self, from: Timestamp, until: Timestamp) {
        let mut at = self.promote(from, until);
        if let Some(session) = &self.session {
            let mut end = session.promoted_at(session.last_byte);
            let mut phases = Vec::new();
            if session.active {
                for (index, tail) in self.profile.tail.iter().enumerate() {
                    phases.push((State::Tail(index as u8), tail.duration, tail.power));
                }
            }
            if let Some(shared) = &self.profile.shared {
                phases.push((State::Shared, shared.tail, shared.power));
            }
            for (state, duration, power) in phases {
                end = end + duration;
                let stop = until.min(end).max(at);
                self.spend(state, at, stop, power * (stop - at));
                at = stop;
            }
        }
        self.spend(State::Idle, at, until, self.profile.idle.mean_power() * (until - at));
    }

    /// Spends what is left of the promotions, and says where they end.
    fn promote(&mut self, from: Timestamp, until: Timestamp) -> Timestamp {
        let promotions =
            self.session.as_ref().map(|session| session.promotions.clone()).unwrap_or_default();
        let mut at = from;
        for (end, power) in promotions {
            let stop = end.min(until).max(at);
            self.spend(State::Promotion, at, stop, power * (stop - at));
            at = stop;
        }
        at
    }

    fn spend(&mut self, state: State, from: Timestamp, until: Timestamp, energy: Joules) {
        let duration = until - from;
        if duration.is_zero() && energy == Joules::ZERO {
            return;
        }
        match self.uses.iter_mut().find(|used| used.state == state) {
            Some(used) => {
                used.duration += duration;
                used.energy += energy;
            }
            None => self.uses.push(StateUse { state, duration, energy }),
        }
        let Some(segments) = &mut self.segments else { return };
        match segments.last_mut() {
            Some(last) if last.state == state && last.until == from && state != State::Active => {
                last.until = until;
                last.energy += energy;
            }
            _ => segments.push(Segment { state, from, until, energy }),
        }
    }
}
