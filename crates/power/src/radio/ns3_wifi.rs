//! The Wi-Fi of a simulator, to compare with what it computes.

use std::time::Duration;

use pelton_algos::units::{BitRate, Watts};

use super::{Idle, Phase, RadioProfile, Slope};

/// ns-3's `WifiRadioEnergyModel`, always awake: 0.380 A sending, 0.313 A receiving and 0.273 A idle at
/// 3.0 V, the defaults of its documentation. Its 0.033 A asleep are for a radio that is told to sleep.
///
/// Assumed: bytes move at 54 Mbit/s, 802.11a's highest rate; the simulator takes the airtime of each
/// frame from the rate that it is sent with.
pub fn ns3_wifi() -> RadioProfile {
    let volts = 3.0;
    let idle = Watts::new(0.273 * volts);
    let rate = BitRate::from_mbps(54.0);
    RadioProfile {
        name: "ns3-wifi".to_owned(),
        origin: "ns-3 WifiRadioEnergyModel".to_owned(),
        promotion: Phase { duration: Duration::ZERO, power: idle },
        active: idle,
        uplink: Slope::of_airtime(Watts::new(0.380 * volts) - idle, rate),
        downlink: Slope::of_airtime(Watts::new(0.313 * volts) - idle, rate),
        ceiling: None,
        tail: Vec::new(),
        shared: None,
        idle: Idle::constant(idle),
    }
}
