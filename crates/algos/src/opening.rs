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
        let flight = |trip: u32| FIRST_FLIGHT.as_f64() * 2_f64.powi(trip as i32);
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
