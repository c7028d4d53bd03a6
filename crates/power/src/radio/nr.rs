//! 5G phones of 2020. Provisional: the numbers are from memory and await a look at the paper.

use std::time::Duration;

use pelton_algos::units::{BitRate, Watts};

use super::{Idle, Phase, RadioProfile, Slope, Tail};

/// 5G NSA in a low band.
///
/// Source of the slopes and of the tail's power: Narayanan et al., "A Variegated Look at 5G in the
/// Wild", SIGCOMM 2021, from memory and so provisional. Not known and assumed: an active radio
/// without throughput draws what its tail does, promotion and tail last as long as LTE's (0.26 s and
/// 10 s), paging is LTE's, and the slopes hold up to what the networks of the paper reached.
pub fn nr_low_band() -> RadioProfile {
    nr("nr-low-band", [13.52, 29.15], 260.0, [200.0, 50.0])
}

/// 5G NSA on millimetre waves; source and assumptions as for [`nr_low_band`].
pub fn nr_mmwave() -> RadioProfile {
    nr("nr-mmwave", [1.81, 9.42], 1092.0, [2000.0, 200.0])
}

/// LTE of the same phones; source and assumptions as for [`nr_low_band`].
pub fn nr_lte() -> RadioProfile {
    nr("nr-lte", [14.55, 80.21], 66.0, [150.0, 50.0])
}

/// `slopes` are mW per Mbit/s and `limits` Mbit/s, down and up; `tail` is mW.
fn nr(name: &str, slopes: [f64; 2], tail: f64, limits: [f64; 2]) -> RadioProfile {
    let awake = Watts::from_milliwatts(tail);
    let slope = |index: usize| Slope {
        milliwatts_per_mbps: slopes[index],
        fitted_up_to: BitRate::from_mbps(limits[index]),
    };
    RadioProfile {
        name: name.to_owned(),
        origin: "Narayanan et al., SIGCOMM 2021, provisional".to_owned(),
        promotion: Phase { duration: Duration::from_millis(260), power: awake },
        active: awake,
        uplink: slope(1),
        downlink: slope(0),
        ceiling: None,
        tail: vec![Tail {
            name: "tail".to_owned(),
            duration: Duration::from_secs(10),
            power: awake,
        }],
        shared: None,
        idle: Idle {
            awake: Phase {
                duration: Duration::from_millis(43),
                power: Watts::from_milliwatts(tail.min(594.0)),
            },
            period: Duration::from_millis(1_280),
            sleep: Watts::ZERO,
        },
    }
}
