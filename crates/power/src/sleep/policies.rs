//! When packets pass and when the card is awake for them, by policy.

use std::time::Duration;

use pelton_algos::time::Timestamp;

use super::{Card, Schedule, SleepPolicy, tracked};
use crate::trace::{Direction, Packet};

/// "The beacon period used by an Orinoco access point" (papers/003 section IV-B).
const BEACON: Duration = Duration::from_millis(100);

/// From a beacon until the first packet that it announces: "less than 1 ms" (section IV-B). A beacon
/// that announces nothing is taken to cost as much.
const LISTEN: Duration = Duration::from_millis(1);

/// Bounded slowdown wakes "at least once every 0.9 seconds" (section IV-E).
const LONGEST_SLEEP: Duration = Duration::from_millis(900);

pub(super) fn schedule(
    packets: &[Packet],
    card: &Card,
    policy: SleepPolicy,
    rtt: Duration,
) -> Schedule {
    let undelayed = |_: Timestamp, at: Timestamp| at;
    match policy {
        SleepPolicy::AlwaysAwake => {
            let end = Replayed::new(packets, card, rtt, undelayed).end;
            Schedule::new(vec![(Timestamp::START, end)], end, 0, card.wake)
        }
        SleepPolicy::Oracle => {
            let replayed = Replayed::new(packets, card, rtt, undelayed);
            Schedule::new(replayed.busy, replayed.end, 0, card.break_even())
        }
        SleepPolicy::ClientCentered => {
            let replayed = Replayed::new(packets, card, rtt, undelayed);
            let (mut awake, missed) = tracked(packets, card);
            awake.extend(replayed.busy);
            Schedule::new(awake, replayed.end, missed, card.wake)
        }
        SleepPolicy::Psm => {
            let replayed = Replayed::new(packets, card, rtt, |_, at| next_beacon(at) + LISTEN);
            let mut awake = replayed.busy;
            let beacons = std::iter::successors(Some(Timestamp::START), |at| Some(*at + BEACON));
            let beacons = beacons.take_while(|at| *at <= replayed.end);
            awake.extend(beacons.map(|at| (at, at + LISTEN)));
            Schedule::new(awake, replayed.end, 0, card.wake)
        }
        SleepPolicy::BoundedSlowdown(share) => bounded_slowdown(packets, card, rtt, share),
    }
}

fn next_beacon(at: Timestamp) -> Timestamp {
    let periods = at.since_start().as_nanos().div_ceil(BEACON.as_nanos());
    Timestamp::new(BEACON * u32::try_from(periods).unwrap_or(u32::MAX))
}

fn bounded_slowdown(packets: &[Packet], card: &Card, rtt: Duration, share: f64) -> Schedule {
    // A share of 50 % keeps the card awake for 200 ms (section II).
    let awake_for = BEACON.div_f64(share);
    let deliver = |sent: Timestamp, at: Timestamp| {
        if at <= sent + awake_for {
            return at;
        }
        listens(sent, awake_for, share).find(|listen| *listen >= at).map_or(at, |l| l + LISTEN)
    };
    let replayed = Replayed::new(packets, card, rtt, deliver);
    let mut awake = replayed.busy;
    for (index, sent) in replayed.sent.iter().enumerate() {
        let next = replayed.sent.get(index + 1).copied().unwrap_or(replayed.end);
        awake.push((*sent, (*sent + awake_for).min(next)));
        let until_next = listens(*sent, awake_for, share).take_while(|listen| *listen < next);
        awake.extend(until_next.map(|listen| (listen, listen + LISTEN)));
    }
    Schedule::new(awake, replayed.end, 0, card.wake)
}

/// The beacons that the card listens to when it sent at `sent` and hears nothing: each sleep is no
/// longer than the share of the time that has passed.
fn listens(sent: Timestamp, awake_for: Duration, share: f64) -> impl Iterator<Item = Timestamp> {
    let first = next_beacon(sent + awake_for);
    std::iter::successors(Some(first), move |listen| {
        let allowed = (*listen - sent).mul_f64(share).clamp(BEACON, LONGEST_SLEEP);
        let beacons = (allowed.as_nanos() / BEACON.as_nanos()).max(1);
        Some(*listen + BEACON * u32::try_from(beacons).unwrap_or(1))
    })
}

/// A trace whose packets pass later than recorded, because the card slept.
struct Replayed {
    /// When packets occupy the card.
    busy: Vec<(Timestamp, Timestamp)>,
    /// When the client sends.
    sent: Vec<Timestamp>,
    end: Timestamp,
}

impl Replayed {
    /// `deliver` says when a packet that reaches the access point at a time (second argument) is
    /// handed over, if the client sent last at the first.
    fn new(
        packets: &[Packet],
        card: &Card,
        rtt: Duration,
        deliver: impl Fn(Timestamp, Timestamp) -> Timestamp,
    ) -> Self {
        let first = packets.first().map_or(Timestamp::START, |packet| packet.at);
        let mut replayed = Self {
            busy: Vec::with_capacity(packets.len()),
            sent: Vec::new(),
            end: Timestamp::START,
        };
        // Recorded and replayed times of what was sent; the last pair of what was received.
        let mut sent: Vec<(Timestamp, Timestamp)> = Vec::new();
        let mut received: Option<(Timestamp, Timestamp)> = None;
        let mut cause = 0;
        let mut free = Timestamp::START;
        for packet in packets {
            let recorded = Timestamp::new(packet.at - first);
            let last_sent = sent.last().map_or(Timestamp::START, |(_, at)| *at);
            let at = match packet.direction {
                Direction::Sent => {
                    let delay = received.map_or(Duration::ZERO, |(then, at)| at - then);
                    let at = (recorded + delay).max(last_sent);
                    sent.push((recorded, at));
                    replayed.sent.push(at);
                    at
                }
                Direction::Received => {
                    // What was sent a round trip ago made the server send this.
                    let server = rtt.mul_f64(0.95);
                    while sent.get(cause).is_some_and(|(then, _)| *then + server <= recorded) {
                        cause += 1;
                    }
                    let caused = cause.checked_sub(1).and_then(|index| sent.get(index));
                    let delay = caused.map_or(Duration::ZERO, |(then, at)| *at - *then);
                    let at = deliver(last_sent, recorded + delay);
                    received = Some((recorded, at));
                    at
                }
            };
            let from = at.max(free);
            free = from + card.airtime(packet);
            replayed.busy.push((from, free));
        }
        replayed.end = free;
        replayed
    }
}
