//! The little that the emulator reads of packets.

/// TCP's SYN and ACK flags (RFC 9293, section 3.1).
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// The source port, if `packet` opens a TCP connection over IPv4: SYN without ACK.
pub(super) fn opening_port(packet: &[u8]) -> Option<u16> {
    const TCP: u8 = 6;
    let header = 4 * usize::from(packet.first()? & 0x0f);
    if packet[0] >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    let tcp = packet.get(header..)?;
    let flags = *tcp.get(13)?;
    (flags & (SYN | ACK) == SYN).then(|| u16::from_be_bytes([tcp[0], tcp[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_syn_opens() {
        let mut packet = [0_u8; 44];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[20..22].copy_from_slice(&40_000_u16.to_be_bytes());
        packet[33] = SYN;
        assert_eq!(opening_port(&packet), Some(40_000));
        packet[33] = SYN | ACK;
        assert_eq!(opening_port(&packet), None);
        packet[33] = SYN;
        packet[9] = 17;
        assert_eq!(opening_port(&packet), None);
        assert_eq!(opening_port(&[0x4f; 30]), None);
        assert_eq!(opening_port(&[]), None);
    }
}
