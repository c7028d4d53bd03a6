//! How a transfer finds the radio: what the time since the last traffic says of its state.

use std::time::Duration;

use pelton_algos::units::Bytes;

use super::{RadioProfile, State};
use crate::meter::Traffic;

/// Traffic of others that was seen before a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastTraffic {
    /// How long ago it was, at most.
    pub quiet: Duration,
    /// How much was seen to move; zero where only the time is known, which is taken for little.
    pub bytes: Bytes,
}

impl LastTraffic {
    /// What others have moved, when an interface has moved `all` within `time` and `own` of that was one's
    /// own. None where they have moved nothing.
    pub fn of_others(all: &Traffic, own: &Traffic, time: Duration) -> Option<Self> {
        let received = all.received.saturating_sub(own.received);
        let bytes = received + all.sent.saturating_sub(own.sent);
        (bytes > Bytes::ZERO).then_some(Self { quiet: time, bytes })
    }
}

impl RadioProfile {
    /// Where the radio is after `last`: active or in the tail that its timers then put it in; idle
    /// beyond. What fits a shared channel's buffer is taken not to have left that channel.
    pub fn after(&self, last: LastTraffic) -> State {
        let mut end = Duration::ZERO;
        if !self.fits_shared(last.bytes) {
            for (index, tail) in self.tail.iter().enumerate() {
                end += tail.duration;
                if last.quiet <= end {
                    return State::Tail(index as u8);
                }
            }
        }
        match &self.shared {
            Some(shared) if last.quiet <= end + shared.tail => State::Shared,
            _ => State::Idle,
        }
    }

    /// Whether `bytes` leave the radio on its shared channel.
    pub(super) fn fits_shared(&self, bytes: Bytes) -> bool {
        self.shared.as_ref().is_some_and(|shared| bytes <= shared.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::{lte, n9_3g, wavelan};

    fn last(millis: u64, bytes: u64) -> LastTraffic {
        LastTraffic { quiet: Duration::from_millis(millis), bytes: Bytes(bytes) }
    }

    #[test]
    fn what_is_ones_own_wakes_no_radio_for_oneself() {
        let moved = |received, sent| Traffic {
            received: Bytes(received),
            sent: Bytes(sent),
            ..Traffic::default()
        };
        let time = Duration::from_millis(5);
        let others = |all, own| LastTraffic::of_others(&all, &own, time);
        assert_eq!(others(moved(0, 0), moved(0, 0)), None);
        assert_eq!(others(moved(3_000, 400), moved(3_000, 400)), None);
        assert_eq!(others(moved(3_000, 400), moved(1_500, 400)), Some(last(5, 1_500)));
        // Own bytes that the interface has not counted yet hide nobody else's.
        assert_eq!(others(moved(66, 0), moved(0, 400)), Some(last(5, 66)));
        assert_eq!(lte().after(last(5, 66)), State::Tail(0));
    }

    #[test]
    fn the_tail_timers_say_where_lte_is() {
        let after = |millis| lte().after(last(millis, 1_500));
        assert_eq!([after(0), after(100)], [State::Tail(0); 2]);
        assert_eq!([after(101), after(120)], [State::Tail(1); 2]);
        assert_eq!([after(121), after(10_120)], [State::Tail(2); 2]);
        assert_eq!(after(10_121), State::Idle);
    }

    #[test]
    fn little_traffic_has_left_3g_on_its_shared_channel() {
        let after = |millis, bytes| n9_3g().after(last(millis, bytes));
        assert_eq!([after(0, 490), after(2_000, 490)], [State::Shared; 2]);
        assert_eq!(after(2_001, 490), State::Idle);
        // T1 of 3 s on DCH, then T2 of 2 s on FACH.
        assert_eq!([after(0, 491), after(3_000, 491)], [State::Tail(0); 2]);
        assert_eq!([after(3_001, 491), after(5_000, 491)], [State::Shared; 2]);
        assert_eq!(after(5_001, 491), State::Idle);
    }

    #[test]
    fn a_radio_without_a_tail_is_never_found_waiting() {
        assert_eq!(wavelan().after(last(0, 1_500)), State::Idle);
    }
}
