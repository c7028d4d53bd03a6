//! This machine's way out: what `pelton meter` watches, and whether it is wireless, the default of
//! `--radio`.

use std::fs;
use std::path::Path;

/// Whether the default route goes over a wireless interface. Where that can't be told (another
/// system than Linux, no IPv4 route) the answer is no.
pub(crate) fn is_wireless() -> bool {
    interface().is_some_and(|name| Path::new("/sys/class/net").join(name).join("phy80211").exists())
}

/// The interface that the default route goes over.
pub(crate) fn interface() -> Option<String> {
    let table = fs::read_to_string("/proc/net/route").unwrap_or_default();
    default_interface(&table).map(str::to_owned)
}

/// The interface of the default route with the lowest metric in `table`, which has the form of
/// `/proc/net/route`: interface, destination and gateway in hexadecimal, flags, references, use,
/// metric, mask.
fn default_interface(table: &str) -> Option<&str> {
    let defaults = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [name, "00000000", _, _, _, _, metric, "00000000", ..] => {
                Some((metric.parse::<u32>().ok()?, name))
            }
            _ => None,
        }
    });
    defaults.min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n";

    #[test]
    fn the_default_route_with_the_lowest_metric_counts() {
        let table = format!(
            "{HEAD}eth0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\n\
             wlan0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\n\
             lo\t0000007F\t00000000\t0001\t0\t0\t0\t000000FF\t0\n"
        );
        assert_eq!(default_interface(&table), Some("wlan0"));
    }

    #[test]
    fn no_default_route_is_no_interface() {
        assert_eq!(default_interface(""), None);
        let table = format!("{HEAD}eth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\nshort\n");
        assert_eq!(default_interface(&table), None);
    }
}
