//! The two radios of a Nokia N9, as papers/000 measured them (section 3.2).

use std::time::Duration;

use pelton_algos::units::{BitRate, Bytes, Watts};

use super::{Idle, Phase, RadioProfile, Shared, Slope, Tail};

/// Wi-Fi of a Nokia N9: "around 310 mW when it stays in active mode without sending/receiving",
/// "above 1380 mW when sending/receiving data at full-speed rates, which is around 12 Mbps on
/// downlink and 5 Mbps on uplink"; asleep 200 ms after the end of the traffic.
///
/// The slopes are the line between the two powers. What listening to a beacon costs is not stated;
/// 2 ms of awake power in each interval of 100 ms are assumed.
pub fn n9_wlan() -> RadioProfile {
    let awake = Watts::from_milliwatts(310.0);
    let moving = Watts::from_milliwatts(1380.0) - awake;
    RadioProfile {
        name: "n9-wlan".to_owned(),
        origin: "papers/000 section 3.2".to_owned(),
        promotion: Phase { duration: Duration::ZERO, power: awake },
        active: awake,
        uplink: Slope::of_airtime(moving, BitRate::from_mbps(5.0)),
        downlink: Slope::of_airtime(moving, BitRate::from_mbps(12.0)),
        ceiling: None,
        tail: vec![Tail {
            name: "tail".to_owned(),
            duration: Duration::from_millis(200),
            power: awake,
        }],
        shared: None,
        idle: Idle {
            awake: Phase { duration: Duration::from_millis(2), power: awake },
            period: Duration::from_millis(100),
            sleep: Watts::ZERO,
        },
    }
}

/// The inactivity timers of a 3G network, which its operator sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// T1: from the dedicated channel (DCH) to the shared one (FACH).
    pub t1: Duration,
    /// T2: from the shared channel to sleep (PCH).
    pub t2: Duration,
}

impl Default for Timers {
    /// 3 s and 2 s: "the timers are 3 s and 2 s for T1 and T2" (section 5.3).
    fn default() -> Self {
        Self { t1: Duration::from_secs(3), t2: Duration::from_secs(2) }
    }
}

/// 3G of a Nokia N9 with the default timers: [`n9_3g_with`].
pub fn n9_3g() -> RadioProfile {
    n9_3g_with(Timers::default())
}

/// IPv4 without options (RFC 791 section 3.1): what waits is counted with it.
const IP_HEADER: u64 = 20;

/// 3G of a Nokia N9: DCH "around 1085 mW" without traffic and "1470 mW when data are transmitted",
/// FACH "around 489 mW", PCH "about 1-2 %" of DCH; 1 s to FACH and 0.5 s from there to DCH; DCH when
/// the buffer passes "470 +- 12 bytes" of IP payload, which are 20 more of an IP packet.
///
/// Assumed, because not stated: during a promotion the radio draws the power of the state that it
/// leads to; PCH is 1.5 % of DCH; FACH carries 32 kbit/s, as in 3GPP's common channels; traffic adds
/// its power as if it came at the 1 Mbit/s of the paper's subscription, and never more than that.
pub fn n9_3g_with(timers: Timers) -> RadioProfile {
    let dch = Watts::from_milliwatts(1085.0);
    let fach = Watts::from_milliwatts(489.0);
    let moving = Watts::from_milliwatts(1470.0) - dch;
    let slope = Slope::of_airtime(moving, BitRate::from_mbps(1.0));
    RadioProfile {
        name: "n9-3g".to_owned(),
        origin: "papers/000 section 3.2".to_owned(),
        promotion: Phase { duration: Duration::from_millis(500), power: dch },
        active: dch,
        uplink: slope,
        downlink: slope,
        ceiling: Some(moving),
        tail: vec![Tail { name: "DCH".to_owned(), duration: timers.t1, power: dch }],
        shared: Some(Shared {
            name: "FACH".to_owned(),
            promotion: Phase { duration: Duration::from_secs(1), power: fach },
            power: fach,
            threshold: Bytes(470 + IP_HEADER),
            rate: BitRate::from_bps(32_000.0),
            tail: timers.t2,
        }),
        idle: Idle::constant(Watts::from_milliwatts(1085.0 * 0.015)),
    }
}
