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
        listen_at(sent, awake_for, share, at) + LISTEN
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
        Some(*listen + sleep_after(*listen - sent, share))
    })
}

/// How long it sleeps when nothing came for `silent`: whole beacons.
fn sleep_after(silent: Duration, share: f64) -> Duration {
    let allowed = silent.mul_f64(share).clamp(BEACON, LONGEST_SLEEP);
    let beacons = (allowed.as_nanos() / BEACON.as_nanos()).max(1);
    BEACON * u32::try_from(beacons).unwrap_or(1)
}

/// The first of [`listens`] at `at` or later. Once sleeps are as long as they get the rest is counted at once: a client that
/// sends nothing for an hour would have each packet go through all beacons of the hour.
fn listen_at(sent: Timestamp, awake_for: Duration, share: f64, at: Timestamp) -> Timestamp {
    let is_settled = |listen: Timestamp| sleep_after(listen - sent, share) == LONGEST_SLEEP;
    let reached = listens(sent, awake_for, share).find(|it| *it >= at || is_settled(*it));
    let listen = reached.unwrap_or(at);
    let sleeps = at.saturating_since(listen).as_nanos().div_ceil(LONGEST_SLEEP.as_nanos());
    listen + LONGEST_SLEEP * u32::try_from(sleeps).unwrap_or(u32::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beacons_that_are_counted_are_those_that_are_gone_through() {
        let sent = Timestamp::from_millis(30);
        for share in [0.1, 0.2, 0.5, 1.0] {
            let awake_for = BEACON.div_f64(share);
            for at in (0..60_000).step_by(70).map(Timestamp::from_millis) {
                let found = listens(sent, awake_for, share).find(|listen| *listen >= at);
                assert_eq!(Some(listen_at(sent, awake_for, share, at)), found, "{share} {at:?}");
            }
        }
    }

    #[test]
    fn the_beacons_of_ten_silent_years_are_counted() {
        // Ten years: going through each beacon would take longer than anybody waits.
        let at = Timestamp::new(Duration::from_secs(10 * 365 * 24 * 3600));
        for _ in 0..1_000 {
            let listen = listen_at(Timestamp::START, BEACON, 1.0, at);
            assert!(listen >= at && listen - at < LONGEST_SLEEP);
        }
    }
}
