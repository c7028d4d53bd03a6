//! A smartphone's LTE modem.

use std::time::Duration;

use pelton_algos::units::{BitRate, Watts};

use super::{Idle, Phase, RadioProfile, Slope, Tail, mean_power};

/// LTE of a 2011 smartphone. Its tail of more than 10 s of discontinuous reception (DRX) is what
/// costs.
///
/// Source of every constant but the two limits: the LTE profile of AT&T's Application Resource
/// Optimizer, which follows Huang et al., `MobiSys` 2012, section 5 (in full at
/// [`wifi()`](super::wifi())). Huang gives 1.28804 W where this rounds the active power to 1.2 W,
/// and one tail of 11.576 s.
pub fn lte() -> RadioProfile {
    // In each DRX period the radio listens for 2 ms at 1.68 W; in between it draws 1.06 W.
    let on = Phase { duration: Duration::from_millis(2), power: Watts::from_milliwatts(1680.0) };
    let drx = |period| mean_power(on, period, Watts::from_milliwatts(1060.0));
    let (short, long) = (Duration::from_millis(20), Duration::from_millis(40));
    let active = Watts::from_milliwatts(1200.0);
    let tail = |name: &str, duration, power| Tail { name: name.to_owned(), duration, power };
    RadioProfile {
        name: "lte".to_owned(),
        origin: "AT&T ARO's LTE profile, after Huang et al., MobiSys 2012".to_owned(),
        // 0.26 s at 1.21 W: from RRC_IDLE to RRC_CONNECTED.
        promotion: Phase {
            duration: Duration::from_millis(260),
            power: Watts::from_milliwatts(1210.0),
        },
        active,
        // 438.39 mW per Mbit/s.
        // The two limits are assumed, at about 1.5 times Huang's median LTE throughput of 6 up
        // and 13 Mbit/s down. They label a reading and do not change it.
        uplink: Slope { milliwatts_per_mbps: 438.39, fitted_up_to: BitRate::from_mbps(10.0) },
        // 51.97 mW per Mbit/s.
        downlink: Slope { milliwatts_per_mbps: 51.97, fitted_up_to: BitRate::from_mbps(20.0) },
        ceiling: None,
        tail: vec![
            // The inactivity timer: 0.1 s of continuous reception.
            tail("continuous reception", Duration::from_millis(100), active),
            // One period of short DRX (Huang: T_is = 20 ms).
            tail("short DRX", short, drx(short)),
            tail("long DRX", Duration::from_secs(10), drx(long)),
        ],
        shared: None,
        // 43 ms at 0.594 W in every 1.28 s: paging in RRC_IDLE.
        idle: Idle {
            awake: Phase {
                duration: Duration::from_millis(43),
                power: Watts::from_milliwatts(594.0),
            },
            period: Duration::from_millis(1_280),
            sleep: Watts::ZERO,
        },
    }
}
