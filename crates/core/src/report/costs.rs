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
        let files: u64 = self.by_class.values().map(|cost| cost.files).sum();
        let of_class = |(class, cost): (&SizeClass, &Cost)| {
            // Files that are all empty take the run's joules, too.
            let share = match bytes {
                Bytes::ZERO => cost.files as f64 / files as f64,
                bytes => cost.bytes.as_f64() / bytes.as_f64(),
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_run_have_all_of_its_joules_although_its_files_are_empty() {
        for bytes in [0, 700] {
            let mut costs = Costs::default();
            let at = Timestamp::from_millis;
            for class in [SizeClass::Small, SizeClass::Small, SizeClass::Large] {
                costs.add(class, at(0), at(100), Bytes(bytes), Some(Joules::new(1.0)));
            }
            let of_each: Vec<f64> =
                costs.clusters(Some(9.0)).into_iter().filter_map(|cost| cost.energy_j).collect();
            assert_eq!(
                of_each.iter().map(|joules| joules.round() as u32).collect::<Vec<_>>(),
                [6, 3]
            );
        }
    }
}
