//! A smartphone's Wi-Fi with power save.

use std::time::Duration;

use pelton_algos::units::{BitRate, Watts};

use super::{Idle, Phase, RadioProfile, Slope, Tail};

/// Wi-Fi of a 2011 smartphone.
///
/// Source of every constant but the two limits: Huang, Qian, Gerber, Mao, Sen, Spatscheck, "A Close
/// Examination of Performance and Power Characteristics of 4G LTE Networks", `MobiSys` 2012, section
/// 5, the tables of state powers and of throughput slopes. Later radios move a bit for less.
pub fn wifi() -> RadioProfile {
    RadioProfile {
        name: "wifi".to_owned(),
        origin: "Huang et al., MobiSys 2012".to_owned(),
        // 79.1 ms at 124.4 mW: from power save to constantly awake.
        promotion: Phase {
            duration: Duration::from_micros(79_100),
            power: Watts::from_milliwatts(124.4),
        },
        // beta = 132.86 mW.
        active: Watts::from_milliwatts(132.86),
        // alpha_u = 283.17 mW per Mbit/s.
        // The two limits are assumed, at about 1.5 times the paper's median LTE throughput of 6 up
        // and 13 Mbit/s down. They label a reading and do not change it.
        uplink: Slope { milliwatts_per_mbps: 283.17, fitted_up_to: BitRate::from_mbps(10.0) },
        // alpha_d = 137.01 mW per Mbit/s.
        downlink: Slope { milliwatts_per_mbps: 137.01, fitted_up_to: BitRate::from_mbps(20.0) },
        ceiling: None,
        // 238.1 ms at 119.3 mW: awake in case that more comes.
        tail: vec![Tail {
            name: "tail".to_owned(),
            duration: Duration::from_micros(238_100),
            power: Watts::from_milliwatts(119.3),
        }],
        shared: None,
        // 7.6 ms at 77.2 mW in every 308.2 ms: listening to beacons.
        idle: Idle {
            awake: Phase {
                duration: Duration::from_micros(7_600),
                power: Watts::from_milliwatts(77.2),
            },
            period: Duration::from_micros(308_200),
            sleep: Watts::ZERO,
        },
    }
}
