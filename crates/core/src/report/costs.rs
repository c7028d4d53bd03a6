//! What each size class took of a run.

use std::collections::BTreeMap;

use pelton_algos::cluster::SizeClass;
use pelton_algos::time::Timestamp;
use pelton_algos::units::{Bytes, Joules};

use super::throughput_per_joule;
use crate::events::ClusterCost;

/// What each size class took.
#[derive(Debug, Default)]
pub(super) struct Costs {
    by_class: BTreeMap<SizeClass, Cost>,
}

#[derive(Debug)]
struct Cost {
    files: u64,
    bytes: Bytes,
    from: Timestamp,
    until: Timestamp,
    energy: Option<Joules>,
}

impl Costs {
    pub(super) fn add(
        &mut self,
        class: SizeClass,
        from: Timestamp,
        until: Timestamp,
        bytes: Bytes,
        energy: Option<Joules>,
    ) {
        let nothing = Cost { files: 0, bytes: Bytes::ZERO, from, until, energy: None };
        let cost = self.by_class.entry(class).or_insert(nothing);
        cost.files += 1;
        cost.bytes += bytes;
        cost.from = cost.from.min(from);
        cost.until = cost.until.max(until);
        cost.energy = energy.map(|energy| energy + cost.energy.unwrap_or_default()).or(cost.energy);
    }

    /// The classes, where the run has drawn `total` joules in all. Without them none of its parts has any.
    pub(super) fn clusters(&self, total: Option<f64>) -> Vec<ClusterCost> {
        let dealt: f64 = self.by_class.values().filter_map(|c| c.energy).map(Joules::get).sum();
        let rest = total.map_or(0.0, |total| (total - dealt).max(0.0));
        let bytes: Bytes = self.by_class.values().map(|cost| cost.bytes).sum();
        let of_class = |(class, cost): (&SizeClass, &Cost)| {
            let share =
                if bytes == Bytes::ZERO { 0.0 } else { cost.bytes.as_f64() / bytes.as_f64() };
            let energy = total.and(cost.energy).map(|energy| energy + Joules::new(rest * share));
            let took = cost.until - cost.from;
            ClusterCost {
                cluster: class.name().to_owned(),
                files: cost.files,
                bytes: cost.bytes.0,
                seconds: took.as_secs_f64(),
                energy_j: energy.map(Joules::get),
                throughput_per_joule: energy
                    .and_then(|energy| throughput_per_joule(cost.bytes, took, energy)),
            }
        };
        self.by_class.iter().map(of_class).collect()
    }
}
