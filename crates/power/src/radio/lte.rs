//! A smartphone's LTE modem.

use std::time::Duration;

use pelton_algos::units::{BitRate, Watts};

use super::{Idle, Phase, RadioProfile, Slope};

/// LTE of a 2011 smartphone. Its tail of more than 11 s is what costs.
///
/// Source of every constant but the two limits: Huang et al., `MobiSys` 2012, section 5 (in full at
/// [`wifi`](super::wifi())). The tail is their mean over continuous reception, short and long DRX.
/// Promotion and slopes are also those of the LTE profile of AT&T's Application Resource
/// Optimizer, which rounds the active power to 1.2 W.
pub fn lte() -> RadioProfile {
    RadioProfile {
        name: "lte".to_owned(),
        // 260.1 ms at 1210.7 mW: from RRC_IDLE to RRC_CONNECTED.
        promotion: Phase {
            duration: Duration::from_micros(260_100),
            power: Watts::from_milliwatts(1210.7),
        },
        // beta = 1288.04 mW.
        active: Watts::from_milliwatts(1288.04),
        // alpha_u = 438.39 mW per Mbit/s.
        // The two limits are assumed, at about 1.5 times the paper's median LTE throughput of 6 up
        // and 13 Mbit/s down. They label a reading and do not change it.
        uplink: Slope { milliwatts_per_mbps: 438.39, fitted_up_to: BitRate::from_mbps(10.0) },
        // alpha_d = 51.97 mW per Mbit/s.
        downlink: Slope { milliwatts_per_mbps: 51.97, fitted_up_to: BitRate::from_mbps(20.0) },
        // 11.576 s at 1060.0 mW.
        tail: Phase {
            duration: Duration::from_millis(11_576),
            power: Watts::from_milliwatts(1060.0),
        },
        // 43.2 ms at 594.3 mW in every 1280.2 ms: paging in RRC_IDLE.
        idle: Idle {
            awake: Phase {
                duration: Duration::from_micros(43_200),
                power: Watts::from_milliwatts(594.3),
            },
            period: Duration::from_micros(1_280_200),
        },
    }
}
