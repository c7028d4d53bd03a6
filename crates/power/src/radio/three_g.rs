//! A smartphone's 3G modem.

use std::time::Duration;

use pelton_algos::units::{BitRate, Watts};

use super::{Idle, Phase, RadioProfile, Slope, Tail};

/// 3G (UMTS) of a 2011 smartphone: from idle straight to the dedicated channel (DCH), back by way of
/// the shared one (FACH).
///
/// Source of every constant but the limits: Huang et al., `MobiSys` 2012, section 5 (in full at
/// [`wifi()`](super::wifi())), written down from memory.
pub fn three_g() -> RadioProfile {
    RadioProfile {
        name: "3g".to_owned(),
        origin: "Huang et al., MobiSys 2012, from memory".to_owned(),
        // 0.5821 s at 659.4 mW.
        promotion: Phase {
            duration: Duration::from_micros(582_100),
            power: Watts::from_milliwatts(659.4),
        },
        // beta = 817.88 mW.
        active: Watts::from_milliwatts(817.88),
        // alpha_u = 868.98, alpha_d = 122.12 mW per Mbit/s. The limits are assumed: what HSPA of
        // those years reached.
        uplink: Slope { milliwatts_per_mbps: 868.98, fitted_up_to: BitRate::from_mbps(1.5) },
        downlink: Slope { milliwatts_per_mbps: 122.12, fitted_up_to: BitRate::from_mbps(4.0) },
        ceiling: None,
        tail: vec![
            // 8.0882 s at 803.9 mW, then 0.8242 s at 601.3 mW.
            Tail {
                name: "DCH".to_owned(),
                duration: Duration::from_micros(8_088_200),
                power: Watts::from_milliwatts(803.9),
            },
            Tail {
                name: "FACH".to_owned(),
                duration: Duration::from_micros(824_200),
                power: Watts::from_milliwatts(601.3),
            },
        ],
        shared: None,
        // 55.4 ms at 374.2 mW in every 5.1124 s.
        idle: Idle {
            awake: Phase {
                duration: Duration::from_micros(55_400),
                power: Watts::from_milliwatts(374.2),
            },
            period: Duration::from_micros(5_112_400),
            sleep: Watts::ZERO,
        },
    }
}
