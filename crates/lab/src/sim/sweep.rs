//! The constants of the schedulers, each over a few values, all others as they are.

use std::time::Duration;

use super::regret::{Adaptive, Variant};

/// A constant that can be swept.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    /// Its name.
    pub name: &'static str,
    /// What it is tried with.
    pub values: &'static [f64],
    /// Whom it concerns.
    pub policies: &'static [Adaptive],
    set: fn(&mut Variant, f64),
}

impl Constant {
    /// The default constants, but for this one.
    pub fn variant(&self, value: f64) -> Variant {
        let mut variant = Variant::default();
        (self.set)(&mut variant, value);
        variant
    }
}

const EHT: &[Adaptive] = &[Adaptive::Eht];

/// All of them. Units are in the names where they have one.
pub const CONSTANTS: [Constant; 12] = [
    Constant {
        name: "small_below_bdp",
        values: &[0.025, 0.05, 0.1, 0.2, 0.4],
        policies: &Adaptive::ALL,
        set: |variant, value| variant.clusters.small_below_bdp = value,
    },
    Constant {
        name: "large_from_bdp",
        values: &[1.0, 2.0, 4.0, 8.0, 16.0],
        policies: &Adaptive::ALL,
        set: |variant, value| variant.clusters.large_from_bdp = value,
    },
    Constant {
        name: "max_connections_per_origin",
        values: &[16.0, 32.0, 64.0, 128.0],
        policies: &Adaptive::ALL,
        set: |variant, value| variant.limits.max_connections_per_origin = value as u32,
    },
    Constant {
        name: "eht.as_good",
        values: &[0.9, 0.95, 0.99, 1.0],
        policies: EHT,
        set: |variant, value| variant.eht.as_good = value,
    },
    Constant {
        name: "eht.step",
        values: &[1.0, 2.0, 3.0, 5.0, 8.0],
        policies: EHT,
        set: |variant, value| variant.eht.step = value as u32,
    },
    Constant {
        name: "eht.ramp_rtts",
        values: &[1.0, 2.0, 4.0, 8.0],
        policies: EHT,
        set: |variant, value| variant.eht.ramp_rtts = value as u32,
    },
    Constant {
        name: "eht.window_rtts",
        values: &[4.0, 8.0, 16.0, 32.0],
        policies: EHT,
        set: |variant, value| variant.eht.window_rtts = value as u32,
    },
    Constant {
        name: "eht.shortest_window_s",
        values: &[0.4, 0.8, 1.6, 3.2],
        policies: EHT,
        set: |variant, value| variant.eht.shortest_window = Duration::from_secs_f64(value),
    },
    Constant {
        name: "eht.search_share",
        values: &[0.0, 0.05, 0.1, 0.15, 0.3],
        policies: EHT,
        set: |variant, value| variant.eht.search_share = value,
    },
    Constant {
        name: "eht.patience",
        values: &[1.0, 2.0, 3.0, 5.0],
        policies: EHT,
        set: |variant, value| variant.eht.patience = value as u32,
    },
    Constant {
        name: "eht.clearly_worse",
        values: &[0.8, 0.9, 0.95, 1.0],
        policies: EHT,
        set: |variant, value| variant.eht.clearly_worse = value,
    },
    Constant {
        name: "eht.link_change",
        values: &[1.25, 1.5, 2.0, 4.0],
        policies: EHT,
        set: |variant, value| variant.eht.link_change = value,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a sweep would compare a constant with itself, and never with what it is.
    #[test]
    fn each_constant_is_tried_with_its_default_and_changes_something() {
        for constant in CONSTANTS {
            let variants = constant.values.iter().map(|value| constant.variant(*value));
            let defaults = variants.filter(|variant| *variant == Variant::default()).count();
            assert_eq!(defaults, 1, "{}", constant.name);
        }
    }
}
