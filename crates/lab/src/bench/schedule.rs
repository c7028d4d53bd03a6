//! Which runs go on side by side. Pure.
//!
//! Runs share the machine's cores, so they disturb each other when together they are fast. Each counts
//! with a rate: that of its link, or less where its client won't fill the link. Their sum stays within
//! a budget; a run that is above the budget alone goes on alone.

use pelton_algos::units::BitRate;

/// Of what the emulator was measured to carry, what runs side by side may move together. The
/// rest is for the clients and servers, which the measurement had none of, and for their checks.
const SHARE: f64 = 0.1;

/// What a run takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// How fast it may move bytes.
    pub rate: BitRate,
    /// About how long it takes, in seconds.
    pub seconds: f64,
}

/// Runs that wait and runs that go on. They are numbered by their places in the list of loads.
#[derive(Debug)]
pub struct Schedule<'a> {
    loads: &'a [Load],
    /// In order.
    waiting: Vec<usize>,
    running: Vec<usize>,
    jobs: usize,
    budget: BitRate,
}

/// What runs side by side may move together, where `capacity` is what the emulator carries.
pub fn budget(capacity: BitRate) -> BitRate {
    capacity * SHARE
}

impl<'a> Schedule<'a> {
    /// All wait. At most `jobs` go on at once, at least one; their rates stay within `budget`.
    pub fn new(loads: &'a [Load], jobs: usize, budget: BitRate) -> Self {
        let waiting = (0..loads.len()).collect();
        Self { loads, waiting, running: Vec::new(), jobs: jobs.max(1), budget }
    }

    /// Starts the first run that may begin now, if there is one.
    pub fn start(&mut self) -> Option<usize> {
        if self.running.len() >= self.jobs {
            return None;
        }
        let used: f64 = self.running.iter().map(|&run| self.loads[run].rate.bps()).sum();
        let fits = |run: &usize| {
            self.running.is_empty() || used + self.loads[*run].rate.bps() <= self.budget.bps()
        };
        let place = self.waiting.iter().position(fits)?;
        let run = self.waiting.remove(place);
        self.running.push(run);
        Some(run)
    }

    /// `run` is over.
    pub fn finish(&mut self, run: usize) {
        self.running.retain(|&other| other != run);
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// About how long all of it takes, in seconds: the schedule played with the times of the loads.
pub fn duration(loads: &[Load], jobs: usize, budget: BitRate) -> f64 {
    let mut schedule = Schedule::new(loads, jobs, budget);
    let (mut now, mut ends): (f64, Vec<(f64, usize)>) = (0.0, Vec::new());
    loop {
        while let Some(run) = schedule.start() {
            ends.push((now + loads[run].seconds, run));
        }
        let next = ends.iter().enumerate().min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
        let Some((place, &(end, run))) = next else { return now };
        ends.swap_remove(place);
        now = end;
        schedule.finish(run);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loads(list: &[(f64, f64)]) -> Vec<Load> {
        let load = |&(mbps, seconds)| Load { rate: BitRate::from_mbps(mbps), seconds };
        list.iter().map(load).collect()
    }

    #[test]
    fn slow_links_share_and_a_fast_one_goes_alone() {
        let loads = loads(&[(20.0, 1.0), (400.0, 1.0), (30.0, 1.0), (60.0, 1.0)]);
        let mut schedule = Schedule::new(&loads, 3, BitRate::from_mbps(100.0));
        // 20 + 30 fit, 60 more do not.
        assert_eq!(
            [schedule.start(), schedule.start(), schedule.start()],
            [Some(0), Some(2), None]
        );
        schedule.finish(0);
        assert_eq!(schedule.start(), Some(3));
        schedule.finish(2);
        assert_eq!(schedule.start(), None);
        schedule.finish(3);
        assert_eq!(schedule.start(), Some(1));
        assert!(schedule.is_empty() && schedule.start().is_none());
    }

    #[test]
    fn one_job_keeps_the_order_and_takes_the_sum() {
        let loads = loads(&[(20.0, 1.0), (400.0, 2.0), (30.0, 4.0)]);
        assert!((duration(&loads, 1, BitRate::from_mbps(1e6)) - 7.0).abs() < 1e-9);
        // The first and the last together, then the fast one.
        assert!((duration(&loads, 2, BitRate::from_mbps(100.0)) - 6.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn every_run_is_started_once_within_the_bounds(
            list in prop::collection::vec((1.0..300.0, 0.1..5.0), 0..30),
            jobs in 1_usize..6,
        ) {
            let loads = loads(&list);
            let budget = BitRate::from_mbps(100.0);
            let mut schedule = Schedule::new(&loads, jobs, budget);
            let (mut running, mut seen) = (Vec::new(), 0);
            while !(schedule.is_empty() && running.is_empty()) {
                match schedule.start() {
                    Some(run) => {
                        seen += 1;
                        running.push(run);
                        let sum: f64 = running.iter().map(|&run: &usize| loads[run].rate.bps()).sum();
                        prop_assert!(running.len() <= jobs);
                        prop_assert!(running.len() == 1 || sum <= budget.bps());
                    }
                    None => schedule.finish(running.remove(0)),
                }
            }
            prop_assert_eq!(seen, loads.len());
            let total: f64 = loads.iter().map(|load| load.seconds).sum();
            prop_assert!(duration(&loads, jobs, budget) <= total + 1e-9);
        }
    }
}
