//! Recorded packets: pcap and pcapng files, of tcpdump, Wireshark or the lab's own packet log.

use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;
use pelton_power::trace::{Direction, Packet, Tcp};
use thiserror::Error;

/// Larger than any block of a capture of packets.
const BUFFER: usize = 1 << 20;

/// What `tcpdump -i any` records; the crate `pcap-parser` (0.17) has no name for it.
const LINUX_SLL2: i32 = 276;

/// A capture that can't be read.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// It is no pcap or pcapng file, or ends before its first packet does.
    #[error("no pcap or pcapng file, or a damaged one: {0}")]
    Malformed(String),
    /// Its link layer is not one that is understood.
    #[error(
        "link type {0} is not understood: capture Ethernet, raw IP, or all interfaces of Linux (tcpdump -i any)"
    )]
    LinkType(i32),
    /// It holds none of IP.
    #[error("it holds no packets of IP")]
    NoPackets,
    /// It holds none of this client.
    #[error("none of its {packets} packets is of {client}: name another address")]
    NotThere {
        /// Who was named.
        client: IpAddr,
        /// How many it holds.
        packets: usize,
    },
}

/// What a capture holds.
#[derive(Debug)]
pub struct Capture {
    /// Packets of the client, in the order of time.
    pub packets: Vec<Packet>,
    /// Who the client is.
    pub client: IpAddr,
    /// Nothing shows that: it is who has sent the first packet.
    pub is_guess: bool,
    /// It ends in the middle of a packet, as one does whose recorder was killed. Those before it are there.
    pub is_cut: bool,
}

/// Reads the packets of a capture. Without `client`, that is who has opened the first connection, by its SYN or the
/// answer to that, else who has sent the first packet. What is no IP is left out.
///
/// # Errors
/// As [`CaptureError`] says.
pub fn read(
    input: impl Read + Send + 'static,
    client: Option<IpAddr>,
) -> Result<Capture, CaptureError> {
    let (mut seen, is_cut) = records(input)?;
    seen.sort_by_key(|packet| packet.at);
    let opener = client.or_else(|| seen.iter().find_map(|packet| packet.opener));
    let is_guess = opener.is_none();
    let client = opener.or_else(|| seen.first().map(|packet| packet.from.ip()));
    let client = client.ok_or(CaptureError::NoPackets)?;
    let began = seen.first().map_or(Duration::ZERO, |packet| packet.at);
    let (mut flows, mut sites) = (Numbers::default(), Numbers::default());
    let packets: Vec<Packet> = seen
        .iter()
        .filter_map(|packet| {
            let (direction, local, server) = if packet.from.ip() == client {
                (Direction::Sent, packet.from, packet.to)
            } else if packet.to.ip() == client {
                (Direction::Received, packet.to, packet.from)
            } else {
                return None;
            };
            let tcp = packet.tcp.map(|tcp| Tcp {
                flow: flows.of((local, server)),
                site: sites.of((server, server)),
                ..tcp
            });
            let at = Timestamp::new(packet.at.saturating_sub(began));
            Some(Packet { at, direction, bytes: Bytes(packet.length), tcp })
        })
        .collect();
    if packets.is_empty() {
        return Err(CaptureError::NotThere { client, packets: seen.len() });
    }
    Ok(Capture { packets, client, is_guess, is_cut })
}

/// Numbers things in the order in which they are met.
#[derive(Default)]
struct Numbers(HashMap<(SocketAddr, SocketAddr), u32>);

impl Numbers {
    fn of(&mut self, ends: (SocketAddr, SocketAddr)) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(ends).or_insert(next)
    }
}

/// A packet as the capture has it.
struct Seen {
    at: Duration,
    from: SocketAddr,
    to: SocketAddr,
    length: u64,
    /// Who has opened its connection, where it shows that.
    opener: Option<IpAddr>,
    tcp: Option<Tcp>,
}

/// What is wrong with a file, in words.
fn malformed<I>(error: &PcapError<I>) -> CaptureError {
    let words = match error {
        PcapError::Eof | PcapError::UnexpectedEof | PcapError::Incomplete(_) => "it ends too soon",
        PcapError::BufferTooSmall => "a block is longer than a mebibyte",
        PcapError::HeaderNotRecognized => "it begins otherwise",
        PcapError::ReadError => "it can't be read",
        _ => "a block is not as it should be",
    };
    CaptureError::Malformed(words.to_owned())
}

/// Units of an interface's time in a second (`if_tsresol` of pcapng): a power of two where the highest bit is set, else of
/// ten. The crate `pcap-parser` (0.17) takes no powers of two.
fn parts_of_second(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let parts = if resolution & 0x80 == 0 {
        10_u64.checked_pow(exponent)
    } else {
        2_u64.checked_pow(exponent)
    };
    parts.unwrap_or(u64::MAX)
}

/// All packets of IP that are whole, and whether the file ends within another one.
fn records(input: impl Read + Send + 'static) -> Result<(Vec<Seen>, bool), CaptureError> {
    let mut reader = create_reader(BUFFER, input).map_err(|error| malformed(&error))?;
    let mut seen = Vec::new();
    // Of a pcap file, and of each interface of a pcapng file.
    let (mut legacy, mut interfaces) = ((Linktype(1), 1), Vec::new());
    loop {
        let (offset, block) = match reader.next() {
            Ok(block) => block,
            Err(PcapError::Eof) => return Ok((seen, false)),
            Err(PcapError::UnexpectedEof) if !seen.is_empty() => return Ok((seen, true)),
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|error| malformed(&error))?;
                continue;
            }
            Err(error) => return Err(malformed(&error)),
        };
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                // The field counts microseconds, or nanoseconds where the header says so.
                let nanos = if header.is_nanosecond_precision() { 1 } else { 1_000 };
                legacy = (header.network, nanos);
            }
            PcapBlockOwned::Legacy(packet) => {
                let nanos = u64::from(packet.ts_usec) * legacy.1;
                let at = Duration::from_secs(packet.ts_sec.into()) + Duration::from_nanos(nanos);
                seen.extend(parse(legacy.0, at, packet.data)?);
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                interfaces.push((interface.linktype, parts_of_second(interface.if_tsresol)));
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = interfaces.get(packet.if_id as usize);
                let unknown =
                    || CaptureError::Malformed("a packet of an unknown interface".to_owned());
                let (link, resolution) = *interface.ok_or_else(unknown)?;
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let nanos = u128::from(units % resolution) * 1_000_000_000 / u128::from(resolution);
                let at = Duration::new(units / resolution, nanos as u32);
                seen.extend(parse(link, at, packet.packet_data())?);
            }
            PcapBlockOwned::NG(_) => {}
        }
        reader.consume(offset);
    }
}

/// The packet in `data`, of which a header may be all that was kept; none when it is no IP.
fn parse(link: Linktype, at: Duration, data: &[u8]) -> Result<Option<Seen>, CaptureError> {
    let sliced = match link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        // 12 and 14 are how DLT_RAW was numbered before.
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => {
            LaxSlicedPacket::from_ip(data).ok()
        }
        Linktype::LINUX_SLL => of_linux(data, 14, 16),
        Linktype(LINUX_SLL2) => of_linux(data, 0, 20),
        Linktype(other) => return Err(CaptureError::LinkType(other)),
    };
    Ok(sliced.and_then(|sliced| seen(at, &sliced)))
}

/// The packet behind a header of `length` bytes that Linux puts in place of each interface's own, which has the type of what
/// follows at `ether_type` (`LINKTYPE_LINUX_SLL` and `LINKTYPE_LINUX_SLL2` of tcpdump.org).
fn of_linux(data: &[u8], ether_type: usize, length: usize) -> Option<LaxSlicedPacket<'_>> {
    let ether_type = data.get(ether_type..ether_type + 2)?.try_into().ok()?;
    let ether_type = EtherType(u16::from_be_bytes(ether_type));
    Some(LaxSlicedPacket::from_ether_type(ether_type, data.get(length..)?))
}

fn seen(at: Duration, sliced: &LaxSlicedPacket<'_>) -> Option<Seen> {
    let (from, to, length, header) = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let (from, to) = (header.source_addr().into(), header.destination_addr().into());
            (from, to, u64::from(header.total_len()), header.slice().len() as u64)
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let (from, to): (IpAddr, IpAddr) =
                (header.source_addr().into(), header.destination_addr().into());
            (from, to, 40 + u64::from(header.payload_length()), 40)
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else {
        let end = |ip| SocketAddr::new(ip, 0);
        return Some(Seen { at, from: end(from), to: end(to), length, opener: None, tcp: None });
    };
    let timestamps = tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::Timestamp(value, echo)) => Some((value, echo)),
        _ => None,
    });
    let payload = length.saturating_sub(header + tcp.header_len() as u64) as u32;
    let facts =
        Tcp { payload, syn: tcp.syn(), end: tcp.fin() || tcp.rst(), timestamps, ..Tcp::default() };
    Some(Seen {
        at,
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        length,
        opener: tcp.syn().then_some(if tcp.ack() { to } else { from }),
        tcp: Some(facts),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use etherparse::PacketBuilder;

    use super::*;

    const CLIENT: [u8; 4] = [10, 0, 0, 2];
    const SERVER: [u8; 4] = [10, 0, 0, 1];

    /// An IP packet with a TCP segment; `ethernet` puts a frame around it.
    fn packet(sent: bool, syn: bool, payload: usize, ethernet: bool) -> Vec<u8> {
        let (from, to) = if sent { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let (source, target) = if sent { (40_000, 80) } else { (80, 40_000) };
        let options = [TcpOptionElement::Timestamp(7, 3)];
        let mut bytes = Vec::new();
        let data = vec![0; payload];
        if ethernet {
            let tcp = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64);
            let tcp = tcp.tcp(source, target, 1, 1_000).options(&options).unwrap();
            let tcp = if syn { tcp.syn() } else { tcp.ack(1) };
            tcp.write(&mut bytes, &data).unwrap();
        } else {
            let tcp = PacketBuilder::ipv4(from, to, 64);
            let tcp = tcp.tcp(source, target, 1, 1_000).options(&options).unwrap();
            let tcp = if syn { tcp.syn() } else { tcp.ack(1) };
            tcp.write(&mut bytes, &data).unwrap();
        }
        bytes
    }

    /// A classic file: magic, version 2.4, no offset, link type, then records cut off after `keep`.
    fn pcap(magic: u32, link: u32, keep: usize, records: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
        let mut file = Vec::new();
        file.extend(magic.to_le_bytes());
        file.extend(2_u16.to_le_bytes());
        file.extend(4_u16.to_le_bytes());
        for word in [0, 0, 65_535, link] {
            file.extend(u32::to_le_bytes(word));
        }
        for (seconds, part, data) in records {
            let kept = data.len().min(keep);
            for word in [*seconds, *part, kept as u32, data.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(&data[..kept]);
        }
        file
    }

    #[test]
    fn a_log_of_headers_alone_tells_lengths_and_directions() {
        let records = [
            (5, 0, packet(true, true, 0, false)),
            (5, 60_000_000, packet(false, false, 1_400, false)),
        ];
        // Nanosecond magic and raw IP, as the lab's own packet log is.
        let file = pcap(0xa1b2_3c4d, 101, 60, &records);
        let packets = read(Cursor::new(file), None).unwrap().packets;
        let told: Vec<_> = packets
            .iter()
            .map(|p| (p.at.since_start().as_millis(), p.direction, p.bytes.0))
            .collect();
        // 20 of IPv4, 20 of TCP and 12 of options: ten of timestamps and two to fill up.
        assert_eq!(told, [(0, Direction::Sent, 52), (60, Direction::Received, 1_452)]);
        let tcp = packets[1].tcp.unwrap();
        assert_eq!((tcp.payload, tcp.timestamps), (1_400, Some((7, 3))));
        assert_eq!(packets[0].tcp.unwrap().flow, tcp.flow);
    }

    #[test]
    fn ethernet_in_microseconds_and_a_named_client() {
        let records =
            [(9, 0, packet(true, false, 10, true)), (9, 500_000, packet(false, false, 20, true))];
        let file = pcap(0xa1b2_c3d4, 1, 65_535, &records);
        let packets = read(Cursor::new(file.clone()), Some(SERVER.into())).unwrap().packets;
        assert_eq!(packets[0].direction, Direction::Received);
        assert_eq!(packets[1].at, Timestamp::from_millis(500));
        assert_eq!(packets[1].bytes, Bytes(72));
        let error = read(Cursor::new(file), Some([1, 1, 1, 1].into())).unwrap_err().to_string();
        assert!(error.contains("none of its 2 packets is of 1.1.1.1"), "{error}");
    }

    #[test]
    fn pcapng_with_its_own_resolution() {
        let block = |kind: u32, body: &[u8]| {
            let length = 12 + body.len() as u32;
            let mut block = Vec::new();
            block.extend(kind.to_le_bytes());
            block.extend(length.to_le_bytes());
            block.extend(body);
            block.extend(length.to_le_bytes());
            block
        };
        let mut file = Vec::new();
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend([0xff; 8]);
        file.extend(block(0x0a0d_0d0a, &section));
        // Link type 101, and milliseconds: if_tsresol (9), one byte, 10^-3.
        let mut interface = vec![101, 0, 0, 0, 0, 0, 0, 0];
        interface.extend([9, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        file.extend(block(1, &interface));
        for (at, sent) in [(1_000_u32, true), (1_250, false)] {
            let mut data = packet(sent, sent, 0, false);
            let length = data.len() as u32;
            data.resize(data.len().next_multiple_of(4), 0);
            let mut body = Vec::new();
            for word in [0, 0, at, length, length] {
                body.extend(word.to_le_bytes());
            }
            body.extend(data);
            file.extend(block(6, &body));
        }
        let packets = read(Cursor::new(file), None).unwrap().packets;
        assert_eq!(packets.len(), 2);
        assert_eq!(packets[1].at, Timestamp::from_millis(250));
        assert_eq!(packets[1].direction, Direction::Received);
    }

    #[test]
    fn times_count_in_powers_of_two_and_ten() {
        assert_eq!([6, 9, 0x94].map(parts_of_second), [1_000_000, 1_000_000_000, 1 << 20]);
        assert_eq!([99, 0xff].map(parts_of_second), [u64::MAX; 2]);
    }

    #[test]
    fn who_answers_a_syn_is_the_server() {
        let bytes = |syn, ack| {
            let mut bytes = Vec::new();
            let tcp = PacketBuilder::ipv4(SERVER, CLIENT, 64).tcp(80, 40_000, 1, 1_000);
            let tcp = if syn { tcp.syn() } else { tcp };
            let tcp = if ack { tcp.ack(1) } else { tcp };
            tcp.write(&mut bytes, &[]).unwrap();
            bytes
        };
        for (syn, client, guessed) in [(true, CLIENT, false), (false, SERVER, true)] {
            let file = pcap(0xa1b2_c3d4, 101, 99, &[(0, 0, bytes(syn, true))]);
            let capture = read(Cursor::new(file), None).unwrap();
            assert_eq!((capture.client, capture.is_guess), (client.into(), guessed));
        }
    }

    #[test]
    fn what_is_whole_counts_where_the_last_packet_is_not() {
        let records =
            [(0, 0, packet(true, true, 0, false)), (1, 0, packet(false, false, 9, false))];
        let file = pcap(0xa1b2_c3d4, 101, 99, &records);
        let parts = [0, 1, 40, 77].map(|less| {
            let capture = read(Cursor::new(file[..file.len() - less].to_vec()), None).unwrap();
            (capture.packets.len(), capture.is_cut)
        });
        assert_eq!(parts, [(2, false), (1, true), (1, true), (1, false)]);
    }

    #[test]
    fn all_interfaces_of_linux_are_understood() {
        // Sent, of Ethernet, an address of six bytes, and IPv4; the other has the type first.
        let mut cooked = vec![0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0];
        cooked.extend(packet(true, true, 0, false));
        let mut cooked2 = vec![8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 2, 2, 2, 2, 2, 2, 0, 0];
        cooked2.extend(packet(true, true, 0, false));
        for (link, data) in [(113, cooked), (276, cooked2)] {
            let file = pcap(0xa1b2_c3d4, link, 99, &[(0, 0, data), (1, 0, vec![0; 3])]);
            let capture = read(Cursor::new(file), None).unwrap();
            assert_eq!((capture.packets.len(), capture.packets[0].bytes), (1, Bytes(52)), "{link}");
            assert_eq!(capture.client, IpAddr::from(CLIENT));
        }
    }

    #[test]
    fn what_is_no_capture_is_refused() {
        let error = read(Cursor::new(b"GET / HTTP/1.1".to_vec()), None).unwrap_err();
        assert!(error.to_string().starts_with("no pcap or pcapng file"), "{error}");
        let bluetooth = pcap(0xa1b2_c3d4, 187, 9, &[(0, 0, vec![1; 9])]);
        let error = read(Cursor::new(bluetooth), None).unwrap_err().to_string();
        assert!(error.starts_with("link type 187"), "{error}");
        let cut = &pcap(0xa1b2_c3d4, 101, 99, &[(0, 0, packet(true, true, 0, false))])[..70];
        let error = read(Cursor::new(cut.to_vec()), None).unwrap_err().to_string();
        assert!(error.ends_with("it ends too soon"), "{error}");
        let empty = pcap(0xa1b2_c3d4, 101, 99, &[]);
        let error = read(Cursor::new(empty), None).unwrap_err().to_string();
        assert!(error.contains("no packets of IP"), "{error}");
    }
}
