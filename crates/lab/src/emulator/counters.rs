//! What the kernel counts of TCP inside a namespace.

use std::fs;
use std::io;

use super::{EmulatorError, Namespace};

/// Segments that TCP in `namespace` has sent again: RFC 4022's tcpRetransSegs, which holds SYNs and
/// tail probes too.
pub(super) fn retransmitted(namespace: &Namespace) -> Result<u64, EmulatorError> {
    // `net` of the whole process would be that of its first thread.
    let text = namespace.run(|| fs::read_to_string("/proc/thread-self/net/snmp"))?;
    let text = text.map_err(EmulatorError::io("read TCP's counters"))?;
    counter(&text, "RetransSegs").ok_or_else(|| {
        EmulatorError::io("read TCP's counters")(io::Error::other("there is no RetransSegs"))
    })
}

/// The counter of TCP called `name`: its names stand on one line, its values on the next.
fn counter(snmp: &str, name: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let column = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_below_its_name() {
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 42\n";
        assert_eq!(counter(snmp, "RetransSegs"), Some(42));
        assert_eq!(counter(snmp, "MaxConn"), None);
        assert_eq!(counter("Tcp: RetransSegs\n", "RetransSegs"), None);
    }
}
