//! How many further connections are worth their handshakes.

use std::iter;
use std::time::Duration;

use crate::connections::FIRST_FLIGHT;
use crate::energy::Forecast;
use crate::link::LinkEstimate;
use crate::units::{Bytes, Joules};

/// Joules are forecast, and time is lost for sure: who takes so many times the least has not to wait for it.
const NEARLY_LEAST: f64 = 1.02;

/// Windows have grown to what a path holds after so many round trips.
const GROWING: u32 = 16;

/// Files that connections are opened for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// How many.
    pub files: u64,
    /// How many bytes they have in all.
    pub bytes: Bytes,
    /// How many of them are under way over each connection at once.
    pub of_each: u32,
    /// The first bytes over a connection that is opened now come so many round trips after the next ones over those
    /// that are there.
    pub behind: u32,
    /// What opening one brings.
    pub handshake: Bytes,
}

impl Work {
    /// How long it takes over a `link` that has `there` connections, and is given `further` ones.
    fn duration(&self, link: &LinkEstimate, there: u32, further: u32) -> Duration {
        let mean = self.bytes.as_f64() / self.files.max(1) as f64;
        let asked = mean * f64::from(self.of_each);
        let held = link.bdp().as_f64();
        let flight = |trip: u32| FIRST_FLIGHT.as_f64() * f64::from(trip).exp2();
        let brought = |trip: u32| {
            let over = |connections: u32, age: u32| f64::from(connections) * flight(age).min(asked);
            let late = trip.checked_sub(self.behind).map_or(0.0, |age| over(further, age));
            (over(there, trip) + late).min(held).max(1.0)
        };
        let mut left = self.bytes.as_f64();
        let mut trips = 0.0;
        for trip in 0..GROWING {
            let part = (left / brought(trip)).min(1.0);
            trips += part;
            left -= brought(trip) * part;
        }
        link.rtt.mul_f64(trips + left / brought(GROWING))
    }

    /// How many connections there should be where `there` are some: those, or twice as many once or several times, and no
    /// more than `most`. The largest number that draws hardly more than the least, as `joules` tells of a forecast.
    pub fn connections(
        &self,
        link: &LinkEstimate,
        there: u32,
        most: u32,
        joules: impl Fn(&Forecast) -> Joules,
    ) -> u32 {
        let of = |connections: u32| {
            let duration = self.duration(link, there, connections - there);
            joules(&Forecast {
                bytes: self.bytes,
                rate: self.bytes / duration,
                duration,
                connections,
                handshake: self.handshake,
                requests: self.files,
                ..Forecast::default()
            })
            .get()
        };
        let doubled = iter::successors(Some(there), |n| n.checked_mul(2));
        let numbers = doubled.take_while(|n| *n < most).chain([most.max(there)]);
        let draws: Vec<_> = numbers.map(|connections| (connections, of(connections))).collect();
        let least = draws.iter().map(|(_, joules)| *joules).fold(f64::INFINITY, f64::min);
        let cheap = draws.into_iter().filter(|(_, joules)| *joules <= least * NEARLY_LEAST);
        cheap.map(|(connections, _)| connections).max().unwrap_or(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    const THERE: u32 = 16;
    const MOST: u32 = 64;

    fn link(mbps: f64) -> LinkEstimate {
        let (rtt, stream_window) = (Duration::from_millis(200), Bytes::kib(64));
        LinkEstimate { rtt, bandwidth: BitRate::from_mbps(mbps), stream_window }
    }

    /// 400 files of 12 kB over TLS, one over each connection at once.
    fn work() -> Work {
        let handshake = Bytes(5_000);
        Work { files: 400, bytes: Bytes(4_800_000), of_each: 1, behind: 3, handshake }
    }

    /// One watt, and so many joules for each handshake.
    fn joules(of_handshake: f64) -> impl Fn(&Forecast) -> Joules {
        move |forecast| {
            let handshakes = of_handshake * f64::from(forecast.connections);
            Joules::new(forecast.duration.as_secs_f64() + handshakes)
        }
    }

    #[test]
    fn handshakes_are_weighed_against_round_trips() {
        let connections =
            |of_handshake| work().connections(&link(100.0), THERE, MOST, joules(of_handshake));
        assert_eq!(connections(0.0), MOST, "time is all that counts");
        assert_eq!(connections(1.0), THERE);
        assert!((THERE..MOST).contains(&connections(0.05)), "{}", connections(0.05));
    }

    #[test]
    fn a_path_that_is_full_needs_no_more() {
        let connections = |mbps| work().connections(&link(mbps), THERE, MOST, joules(0.05));
        assert_eq!(connections(1.0), THERE, "what is left takes as long");
        assert!(connections(100.0) > THERE);
    }

    #[test]
    fn who_draws_hardly_more_does_not_wait() {
        let slow = |of_handshake| {
            let base = |forecast: &Forecast| joules(of_handshake)(forecast) + Joules::new(1_000.0);
            work().connections(&link(100.0), THERE, MOST, base)
        };
        assert_eq!(slow(0.3), MOST, "14 joules of 1 000");
        assert_eq!(slow(1.0), 2 * THERE, "16, and not 48");
    }

    #[test]
    fn no_more_than_may_be_and_no_fewer_than_there_are() {
        assert_eq!(work().connections(&link(100.0), THERE, 20, joules(0.0)), 20);
        assert_eq!(work().connections(&link(100.0), THERE, 8, joules(0.0)), THERE);
    }
}
