//! Joules of a run, modelled: a radio over the run's packets, the CPU time of the client, and a device
//! that is awake for as long.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use pelton_power::trace::{Packet, radio_over};
use pelton_power::{ModelledConfig, Radio};
use serde::{Deserialize, Serialize};

use crate::capture::{self, CaptureError};

/// The radios that every run is charged with, whatever its link's own is.
const ALWAYS: [Radio; 2] = [Radio::Wifi, Radio::Lte];

/// What a run drew under one radio, in joules. Modelled, not measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunEnergy {
    /// The radio over the run's packets, its tail included.
    pub radio_j: f64,
    /// The client's CPU seconds.
    pub cpu_j: f64,
    /// Being awake from the start of the client to its end.
    pub base_j: f64,
    /// Whether the run was faster than what the radio's numbers were fitted to.
    pub extrapolated: bool,
}

impl RunEnergy {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.radio_j + self.cpu_j + self.base_j
    }
}

/// Charges a run whose packets lie in the pcap file `log`: with Wi-Fi, with LTE and with `own`, the
/// radio of its link.
///
/// # Errors
/// A log that can't be read.
pub fn charge(
    log: &Path,
    own: Radio,
    cpu: Duration,
    lasted: Duration,
) -> Result<BTreeMap<String, RunEnergy>, CaptureError> {
    let file = File::open(log).map_err(|error| CaptureError::Malformed(error.to_string()))?;
    let packets = capture::read(file, &[])?.packets;
    let mut charged = BTreeMap::new();
    for radio in ALWAYS.into_iter().chain([own]) {
        charged.insert(radio.name().to_owned(), under(radio, &packets, cpu, lasted));
    }
    Ok(charged)
}

/// What the packets, CPU time and time cost a device with `radio`. Power of CPU and device are the
/// defaults of pelton's own model.
fn under(radio: Radio, packets: &[Packet], cpu: Duration, lasted: Duration) -> RunEnergy {
    let device = ModelledConfig::default();
    let machine = radio.profile().map(|profile| radio_over(profile, packets));
    RunEnergy {
        radio_j: machine.as_ref().map_or(0.0, |machine| machine.energy().get()),
        cpu_j: (device.cpu_per_core * cpu).get(),
        base_j: (device.base * lasted).get(),
        extrapolated: machine.is_some_and(|machine| machine.extrapolates()),
    }
}

#[cfg(test)]
mod tests {
    use pelton_algos::time::Timestamp;
    use pelton_algos::units::Bytes;
    use pelton_power::trace::Direction;

    use super::*;

    #[test]
    fn a_megabyte_in_a_second_by_hand() {
        // A thousand packets, one a millisecond: 8 Mbit in 1 s.
        let packets: Vec<Packet> = (0..1000)
            .map(|millis| Packet {
                at: Timestamp::from_millis(millis),
                direction: Direction::Received,
                bytes: Bytes(1_000),
                tcp: None,
            })
            .collect();
        let (cpu, lasted) = (Duration::from_millis(200), Duration::from_secs(2));
        let wifi = under(Radio::Wifi, &packets, cpu, lasted);
        // Huang et al.: 137.01 mW per Mbit/s, 132.86 mW, a promotion of 79.1 ms at 124.4 mW (the
        // active base begins after it), a tail of 238.1 ms at 119.3 mW.
        let radio = 0.137_01 * 8.0 + 0.132_86 * (0.999 - 0.079_1) + 0.079_1 * 0.124_4 + 0.028_405;
        assert!((wifi.radio_j - radio).abs() < 0.01, "{} {radio}", wifi.radio_j);
        assert!((wifi.cpu_j - 0.2).abs() < 1e-9 && (wifi.base_j - 0.3).abs() < 1e-9, "{wifi:?}");
        assert!(!wifi.extrapolated);
        // LTE's tail of ten seconds is what costs.
        let lte = under(Radio::Lte, &packets, cpu, lasted);
        assert!(lte.radio_j > 10.0, "{}", lte.radio_j);
        assert!(under(Radio::None, &packets, cpu, lasted).radio_j.abs() < 1e-9);
    }

    #[test]
    fn a_log_that_is_none_is_said_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let missing = charge(&dir.path().join("none"), Radio::Wifi, Duration::ZERO, Duration::ZERO);
        assert!(missing.unwrap_err().to_string().starts_with("no pcap"), "named");
    }
}
