//! The 802.11 card of papers/003.

use std::time::Duration;

use pelton_algos::units::{BitRate, Watts};

use super::{Idle, Phase, RadioProfile, Slope};

/// A 2.4 GHz `WaveLAN` DSSS card that never sleeps: "1319 mJ/s when idle, 1425 mJ/s when receiving,
/// 1675 mJ/s when transmitting" (papers/003 section IV-A), its bytes at the 20 Mbit/s between access
/// point and client. What it saves asleep, at 177 mW, is told by `pelton_power::sleep`.
pub fn wavelan() -> RadioProfile {
    let idle = Watts::from_milliwatts(1319.0);
    let rate = BitRate::from_mbps(20.0);
    RadioProfile {
        name: "wavelan".to_owned(),
        origin: "papers/003 section IV-A".to_owned(),
        promotion: Phase { duration: Duration::ZERO, power: idle },
        active: idle,
        uplink: Slope::of_airtime(Watts::from_milliwatts(1675.0) - idle, rate),
        downlink: Slope::of_airtime(Watts::from_milliwatts(1425.0) - idle, rate),
        ceiling: None,
        tail: Vec::new(),
        shared: None,
        idle: Idle::constant(idle),
    }
}
