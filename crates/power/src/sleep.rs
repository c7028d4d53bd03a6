//! What a card that can sleep draws for a trace, under the policies of papers/003.

use std::time::Duration;

use pelton_algos::time::Timestamp;
use pelton_algos::units::{BitRate, Joules, Watts};

use crate::trace::{Direction, Packet};
use crate::track::Tracker;

mod policies;

/// A card with a sleep mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Card {
    /// Awake without traffic.
    pub idle: Watts,
    /// While a packet comes in.
    pub receive: Watts,
    /// While a packet goes out.
    pub transmit: Watts,
    /// Asleep.
    pub sleep: Watts,
    /// Waking takes so long, at idle power.
    pub wake: Duration,
    /// How fast packets pass.
    pub rate: BitRate,
}

impl Card {
    /// The 2.4 GHz `WaveLAN` DSSS card: "1319 mJ/s when idle, 1425 mJ/s when receiving, 1675 mJ/s when
    /// transmitting, and 177 mJ/s when in sleep mode"; "the energy cost of transitioning the WNIC
    /// from sleep to idle mode as 2 ms in idle time"; 20 Mbit/s between access point and client
    /// (papers/003 section IV-A).
    pub fn wavelan() -> Self {
        Self {
            idle: Watts::from_milliwatts(1319.0),
            receive: Watts::from_milliwatts(1425.0),
            transmit: Watts::from_milliwatts(1675.0),
            sleep: Watts::from_milliwatts(177.0),
            wake: Duration::from_millis(2),
            rate: BitRate::from_mbps(20.0),
        }
    }

    /// The shortest gap in which sleeping saves what waking costs.
    pub fn break_even(&self) -> Duration {
        let saved_each_second = (self.idle - self.sleep).get();
        let cost = (self.idle * self.wake).get();
        Duration::try_from_secs_f64(cost / saved_each_second).unwrap_or(Duration::MAX)
    }

    fn airtime(&self, packet: &Packet) -> Duration {
        packet.bytes / self.rate
    }
}

/// When a card sleeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SleepPolicy {
    /// Never: the baseline.
    AlwaysAwake,
    /// 802.11 power-saving mode, at its best: asleep but for beacons every 100 ms with what waits at
    /// the access point, and for what the client sends.
    Psm,
    /// Bounded slowdown (Krashinsky, Balakrishnan, `MobiCom` 2002) by at most this share: awake for
    /// 100 ms over the share after each packet that the client sends, then at growing intervals.
    BoundedSlowdown(f64),
    /// Between the stages of its connections, as [`Tracker`] predicts them.
    ClientCentered,
    /// In every gap that pays, as if the future were known.
    Oracle,
}

impl SleepPolicy {
    /// Every policy that the paper compares.
    pub const ALL: [Self; 8] = [
        Self::AlwaysAwake,
        Self::Psm,
        Self::BoundedSlowdown(0.1),
        Self::BoundedSlowdown(0.2),
        Self::BoundedSlowdown(0.5),
        Self::BoundedSlowdown(1.0),
        Self::ClientCentered,
        Self::Oracle,
    ];

    /// The name that people read.
    pub fn name(&self) -> String {
        match self {
            Self::AlwaysAwake => "always awake".to_owned(),
            Self::Psm => "PSM".to_owned(),
            Self::BoundedSlowdown(share) => format!("BSD-{:.0}", share * 100.0),
            Self::ClientCentered => "client-centered".to_owned(),
            Self::Oracle => "oracle".to_owned(),
        }
    }
}

/// Time and energy in one state.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Time in it.
    pub duration: Duration,
    /// Energy in it.
    pub energy: Joules,
}

/// What a trace cost under one policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// From the first packet to the end of the last.
    pub duration: Duration,
    /// Awake without traffic.
    pub idle: Spent,
    /// Receiving.
    pub receive: Spent,
    /// Sending.
    pub transmit: Spent,
    /// Asleep.
    pub sleep: Spent,
    /// Waking up.
    pub wake: Spent,
    /// Packets that came while the card slept and the policy had not foreseen it. They are counted
    /// as received on time; in truth the server would have to send them again.
    pub missed: u64,
}

impl Outcome {
    /// All states together.
    pub fn energy(&self) -> Joules {
        let parts = [self.idle, self.receive, self.transmit, self.sleep, self.wake];
        parts.iter().map(|spent| spent.energy).sum()
    }
}

/// What `card` draws for `packets`, which are in the order of time, under `policy`. A policy that
/// delays packets delays what the client and the server do next, too: what answers a packet comes as
/// long after it as in the trace, where `rtt` is the server's part of it.
pub fn evaluate(packets: &[Packet], card: &Card, policy: SleepPolicy, rtt: Duration) -> Outcome {
    let schedule = policies::schedule(packets, card, policy, rtt);
    let mut receive = Duration::ZERO;
    let mut transmit = Duration::ZERO;
    for packet in packets {
        match packet.direction {
            Direction::Received => receive += card.airtime(packet),
            Direction::Sent => transmit += card.airtime(packet),
        }
    }
    let duration = schedule.end.since_start();
    let awake: Duration = schedule.awake.iter().map(|(from, until)| *until - *from).sum();
    let wakes = card.wake * schedule.wakes(card);
    let sleep = duration.saturating_sub(awake).saturating_sub(wakes);
    let idle = awake.saturating_sub(receive + transmit);
    let spent = |duration, power: Watts| Spent { duration, energy: power * duration };
    Outcome {
        duration,
        idle: spent(idle, card.idle),
        receive: spent(receive, card.receive),
        transmit: spent(transmit, card.transmit),
        sleep: spent(sleep, card.sleep),
        wake: spent(wakes, card.idle),
        missed: schedule.missed,
    }
}

/// Stretches of time in which the card is awake, in order and apart from each other.
struct Schedule {
    awake: Vec<(Timestamp, Timestamp)>,
    end: Timestamp,
    missed: u64,
}

impl Schedule {
    /// Joins stretches with gaps too short to sleep in.
    fn new(
        mut awake: Vec<(Timestamp, Timestamp)>,
        end: Timestamp,
        missed: u64,
        shortest_sleep: Duration,
    ) -> Self {
        awake.sort_unstable();
        let mut joined: Vec<(Timestamp, Timestamp)> = Vec::new();
        for (from, until) in awake {
            let until = until.min(end);
            match joined.last_mut() {
                Some((_, last)) if from.saturating_since(*last) <= shortest_sleep => {
                    *last = until.max(*last);
                }
                _ if from <= end => joined.push((from, until.max(from))),
                _ => {}
            }
        }
        Self { awake: joined, end, missed }
    }

    /// How often the card wakes. It is awake at the start.
    fn wakes(&self, card: &Card) -> u32 {
        let first = self.awake.first().map_or(Timestamp::START, |(from, _)| *from);
        let early = u32::from(first.since_start() > card.wake);
        self.awake.len().saturating_sub(1) as u32 + early
    }
}

/// The stretches in which connection tracking keeps the card awake, and the packets that it missed.
fn tracked(packets: &[Packet], card: &Card) -> (Vec<(Timestamp, Timestamp)>, u64) {
    let mut tracker = Tracker::new(card.rate);
    let (mut awake, mut missed) = (Vec::new(), 0);
    let mut now = packets.first().map_or(Timestamp::START, |packet| packet.at);
    let first = now;
    for packet in packets {
        // What happens by itself until the packet comes.
        loop {
            let stop = tracker.next_timeout().filter(|at| *at > now && *at < packet.at);
            let until = stop.unwrap_or(packet.at);
            if tracker.may_sleep_until().is_none_or(|wakes| wakes <= now) {
                awake.push((Timestamp::new(now - first), Timestamp::new(until - first)));
            }
            now = until;
            if stop.is_none() {
                break;
            }
            tracker.on_time(now);
        }
        let asleep = tracker.may_sleep_until().is_some_and(|wakes| wakes > packet.at);
        missed += u64::from(asleep && packet.at > first && packet.direction == Direction::Received);
        tracker.on_packet(packet);
    }
    (awake, missed)
}

#[cfg(test)]
mod tests;
