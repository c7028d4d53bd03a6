//! What a network interface moved, as Linux counts it: `/sys/class/net/NAME/statistics`.

use std::path::{Path, PathBuf};

use pelton_algos::units::Bytes;

use crate::meter::{Counted, MeterError, Traffic};
use crate::meters::sysfs;

/// The byte counters of one interface, from when it was opened. They hold link-layer headers and the
/// traffic of every process, as the radio does.
#[derive(Debug, Clone)]
pub struct Interface {
    name: String,
    statistics: PathBuf,
    before: [u64; 2],
    moved: [u64; 2],
}

impl Interface {
    /// The interface `name` under `root`, `/sys/class/net` on a real machine.
    ///
    /// # Errors
    /// There is none, or its counters can't be read.
    pub fn open(root: &Path, name: &str) -> Result<Self, MeterError> {
        let statistics = root.join(name).join("statistics");
        let mut interface =
            Self { name: name.to_owned(), statistics, before: [0; 2], moved: [0; 2] };
        interface.before = interface.counters()?;
        Ok(interface)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes since it was opened. A counter that started anew is followed from there.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn traffic(&mut self) -> Result<Traffic, MeterError> {
        let now = self.counters()?;
        for ((moved, before), now) in self.moved.iter_mut().zip(&mut self.before).zip(now) {
            *moved = moved.saturating_add(now.saturating_sub(*before));
            *before = now;
        }
        let [received, sent] = self.moved.map(Bytes);
        // Headers are in these bytes: nothing is left to estimate.
        let counted = Counted { received, sent, ..Counted::default() };
        Ok(Traffic { received, sent, counted, ..Traffic::default() })
    }

    fn counters(&self) -> Result<[u64; 2], MeterError> {
        let counter = |name: &str| {
            let value = sysfs::number(&self.statistics.join(name));
            let value = value.map_err(|reason| MeterError::unreadable(&self.name, reason))?;
            Ok(u64::try_from(value).unwrap_or_default())
        };
        Ok([counter("rx_bytes")?, counter("tx_bytes")?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meters::tests::Tree;

    #[test]
    fn bytes_are_counted_from_the_opening_and_through_a_restart() {
        let tree = Tree::new(&[
            ("wlan0/statistics/rx_bytes", "1000"),
            ("wlan0/statistics/tx_bytes", "500"),
        ]);
        let mut interface = Interface::open(tree.path(), "wlan0").unwrap();
        tree.write("wlan0/statistics/rx_bytes", "1600");
        tree.write("wlan0/statistics/tx_bytes", "520");
        let moved = |traffic: Traffic| (traffic.received.0, traffic.sent.0);
        assert_eq!(moved(interface.traffic().unwrap()), (600, 20));
        tree.write("wlan0/statistics/rx_bytes", "10");
        assert_eq!(moved(interface.traffic().unwrap()), (600, 20));
        tree.write("wlan0/statistics/rx_bytes", "30");
        assert_eq!(moved(interface.traffic().unwrap()), (620, 20));
        assert!(Interface::open(tree.path(), "eth9").is_err());
    }
}
