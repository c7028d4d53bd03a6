//! Recorded packets: pcap and pcapng files, of tcpdump, Wireshark or the lab's own packet log.

use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use etherparse::{
    EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice,
};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use pelton_algos::time::Timestamp;
use pelton_algos::units::Bytes;
use pelton_power::trace::{Direction, Packet, Tcp};
use thiserror::Error;

use self::clients::Clients;

mod clients;

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
    /// Its packets are in blocks without their times.
    #[error(
        "its packets are in simple packet blocks, which have no times: record it with enhanced ones, as tcpdump and dumpcap do"
    )]
    NoTimes,
    /// Its packets are in blocks that pcapng has no more.
    #[error(
        "its packets are in the packet blocks of old pcapng: write it anew, as `editcap -F pcapng OLD NEW` does"
    )]
    OldBlocks,
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
    /// When its first packet passed, since 1970: what the times of packets are counted from.
    pub began: Duration,
    /// The client's addresses: one of each family, or those that were named.
    pub clients: Vec<IpAddr>,
    /// Those of them of which nothing shows that: they are who has sent first.
    pub guessed: Vec<IpAddr>,
    /// How many packets are of none of these addresses, and left out.
    pub others: usize,
    /// How many go from one of these addresses to one of them, as on a loopback interface.
    pub within: usize,
    /// How many of `packets` are segments of TCP whose header was not kept in whole.
    pub headerless: usize,
    /// It ends in the middle of a packet, as one does whose recorder was killed. Those before it are there.
    pub is_cut: bool,
}

/// Reads the packets of a capture. Where no address is `named` the client is, of IPv4 and of IPv6, who has opened the first
/// connection, by its SYN or the answer to that, else who has sent the first packet. What is no IP is left out. Where both
/// ends of a connection have the client's addresses, the client is the one that has opened it, else the one with the higher port.
///
/// # Errors
/// As [`CaptureError`] says.
pub fn read(input: impl Read + Send + 'static, named: &[IpAddr]) -> Result<Capture, CaptureError> {
    let (mut seen, is_cut) = records(input)?;
    seen.sort_by_key(|packet| packet.at);
    let began = seen.first().ok_or(CaptureError::NoPackets)?.at;
    let is_found = named.is_empty();
    let clients = if is_found { Clients::found(&seen) } else { Clients::named(&seen, named)? };
    let (mut flows, mut sites) = (Numbers::default(), Numbers::default());
    let packets: Vec<Packet> = seen
        .iter()
        .filter_map(|packet| {
            let direction = clients.direction(packet)?;
            let (local, server) = match direction {
                Direction::Sent => (packet.from, packet.to),
                Direction::Received => (packet.to, packet.from),
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
    let others = seen.len() - packets.len();
    let is_headerless = |packet: &&Seen| packet.lacks_header && clients.direction(packet).is_some();
    let headerless = seen.iter().filter(is_headerless).count();
    let within = seen.iter().filter(|packet| clients.are_both_ends_of(packet)).count();
    let Clients { addresses: clients, guessed, .. } = clients;
    Ok(Capture { packets, began, clients, guessed, others, within, headerless, is_cut })
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
    opener: Option<SocketAddr>,
    tcp: Option<Tcp>,
    /// It is a segment of TCP, and `tcp` is none because its header was cut.
    lacks_header: bool,
}

impl Seen {
    /// Whether it is a segment or datagram of one host to another.
    fn is_talk(&self) -> bool {
        let to = self.to.ip();
        self.from.port() > 0 && !to.is_multicast() && to != IpAddr::V4(Ipv4Addr::BROADCAST)
    }
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
                seen.extend(parse(legacy.0, at, packet.data, packet.origlen)?);
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
                seen.extend(parse(link, at, packet.packet_data(), packet.origlen)?);
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => return Err(CaptureError::NoTimes),
            PcapBlockOwned::NG(Block::Unknown(block)) if is_old_packet(block.block_type) => {
                return Err(CaptureError::OldBlocks);
            }
            PcapBlockOwned::NG(_) => {}
        }
        reader.consume(offset);
    }
}

/// The type of the obsolete packet block (draft-ietf-opsawg-pcapng, appendix A), in either order of bytes.
fn is_old_packet(block_type: u32) -> bool {
    [2, 2_u32.swap_bytes()].contains(&block_type)
}

/// The packet in `data`, of which a header may be all that was kept of a frame of `original` bytes; none when it is no IP.
fn parse(
    link: Linktype,
    at: Duration,
    data: &[u8],
    original: u32,
) -> Result<Option<Seen>, CaptureError> {
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
    let frame = Frame { data, original };
    Ok(sliced.and_then(|sliced| seen(at, &frame, &sliced)))
}

/// The packet behind a header of `length` bytes that Linux puts in place of each interface's own, which has the type of what
/// follows at `ether_type` (`LINKTYPE_LINUX_SLL` and `LINKTYPE_LINUX_SLL2` of tcpdump.org).
fn of_linux(data: &[u8], ether_type: usize, length: usize) -> Option<LaxSlicedPacket<'_>> {
    let ether_type = data.get(ether_type..ether_type + 2)?.try_into().ok()?;
    let ether_type = EtherType(u16::from_be_bytes(ether_type));
    Some(LaxSlicedPacket::from_ether_type(ether_type, data.get(length..)?))
}

/// What was kept of a frame, and how long it was.
struct Frame<'a> {
    data: &'a [u8],
    original: u32,
}

impl Frame<'_> {
    /// Bytes of the frame from `header` on, which is a part of what was kept.
    fn length_from(&self, header: &[u8]) -> u64 {
        let before = header.as_ptr().addr().saturating_sub(self.data.as_ptr().addr());
        u64::from(self.original).saturating_sub(before as u64)
    }
}

fn seen(at: Duration, frame: &Frame<'_>, sliced: &LaxSlicedPacket<'_>) -> Option<Seen> {
    // What is longer than 64 KiB, or cut into packets by the card (TSO, BIG TCP), has no length in its header.
    let told = |length: u16, header: &[u8], rest: u64| match length {
        0 => frame.length_from(header),
        length => rest + u64::from(length),
    };
    let (from, to, length, header) = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let (from, to) = (header.source_addr().into(), header.destination_addr().into());
            let length = told(header.total_len(), header.slice(), 0);
            (from, to, length, header.slice().len() as u64)
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let (from, to): (IpAddr, IpAddr) =
                (header.source_addr().into(), header.destination_addr().into());
            (from, to, told(header.payload_length(), header.slice(), 40), 40)
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let tcp = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => tcp,
        other => {
            let ports = match other {
                Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
                _ => (0, 0),
            };
            let payload = sliced.net.as_ref()?.ip_payload_ref()?;
            // What follows the first of the fragments of a packet has no header.
            let lacks_header = payload.ip_number == IpNumber::TCP && !payload.fragmented;
            let (from, to) = (SocketAddr::new(from, ports.0), SocketAddr::new(to, ports.1));
            return Some(Seen { at, from, to, length, opener: None, tcp: None, lacks_header });
        }
    };
    let timestamps = tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::Timestamp(value, echo)) => Some((value, echo)),
        _ => None,
    });
    let payload = length.saturating_sub(header + tcp.header_len() as u64) as u32;
    let facts =
        Tcp { payload, syn: tcp.syn(), end: tcp.fin() || tcp.rst(), timestamps, ..Tcp::default() };
    let (from, to) =
        (SocketAddr::new(from, tcp.source_port()), SocketAddr::new(to, tcp.destination_port()));
    let opener = tcp.syn().then_some(if tcp.ack() { to } else { from });
    Some(Seen { at, from, to, length, opener, tcp: Some(facts), lacks_header: false })
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
        let packets = read(Cursor::new(file), &[]).unwrap().packets;
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
        let packets = read(Cursor::new(file.clone()), &[SERVER.into()]).unwrap().packets;
        assert_eq!(packets[0].direction, Direction::Received);
        assert_eq!(packets[1].at, Timestamp::from_millis(500));
        assert_eq!(packets[1].bytes, Bytes(72));
        let error = read(Cursor::new(file), &[[1, 1, 1, 1].into()]).unwrap_err().to_string();
        assert!(error.contains("none of its 2 packets is of 1.1.1.1"), "{error}");
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = 12 + body.len() as u32;
        let mut block = Vec::new();
        block.extend(kind.to_le_bytes());
        block.extend(length.to_le_bytes());
        block.extend(body);
        block.extend(length.to_le_bytes());
        block
    }

    /// How a pcapng file begins.
    fn section() -> Vec<u8> {
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend([0xff; 8]);
        block(0x0a0d_0d0a, &section)
    }

    #[test]
    fn pcapng_blocks_without_a_time_or_of_old_are_said() {
        for (kind, why) in [(3, "which have no times"), (2, "old pcapng")] {
            let mut file = section();
            file.extend(block(1, &[101, 0, 0, 0, 0, 0, 0, 0]));
            file.extend(block(kind, &[0; 60]));
            let error = read(Cursor::new(file), &[]).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn pcapng_with_its_own_resolution() {
        let mut file = section();
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
        let packets = read(Cursor::new(file), &[]).unwrap().packets;
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
            let capture = read(Cursor::new(file), &[]).unwrap();
            assert_eq!(capture.clients, [IpAddr::from(client)]);
            assert_eq!(capture.guessed.len(), usize::from(guessed));
        }
    }

    #[test]
    fn what_is_whole_counts_where_the_last_packet_is_not() {
        let records =
            [(0, 0, packet(true, true, 0, false)), (1, 0, packet(false, false, 9, false))];
        let file = pcap(0xa1b2_c3d4, 101, 99, &records);
        let parts = [0, 1, 40, 77].map(|less| {
            let capture = read(Cursor::new(file[..file.len() - less].to_vec()), &[]).unwrap();
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
            let capture = read(Cursor::new(file), &[]).unwrap();
            assert_eq!((capture.packets.len(), capture.packets[0].bytes), (1, Bytes(52)), "{link}");
            assert_eq!(capture.clients, [IpAddr::from(CLIENT)]);
        }
    }

    /// A TCP segment over IPv6 of the client with that last part of its address.
    fn packet6(host: u16, sent: bool, syn: bool, payload: usize) -> Vec<u8> {
        let address = |last| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).octets();
        let (from, to, source, target) =
            if sent { (host, 1, 40_000, 80) } else { (1, host, 80, 40_000) };
        let tcp = PacketBuilder::ipv6(address(from), address(to), 64);
        let tcp = tcp.tcp(source, target, 1, 1_000);
        let tcp = if syn { tcp.syn() } else { tcp.ack(1) };
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, &vec![0; payload]).unwrap();
        bytes
    }

    #[test]
    fn a_client_has_an_address_of_each_family() {
        let records = [
            (0, 0, packet(true, true, 0, false)),
            (1, 0, packet6(2, true, true, 0)),
            (2, 0, packet6(2, false, false, 1_000)),
            (3, 0, packet6(3, false, false, 1_000)),
        ];
        let file = pcap(0xa1b2_c3d4, 101, 99, &records);
        let capture = read(Cursor::new(file.clone()), &[]).unwrap();
        assert_eq!((capture.packets.len(), capture.others), (3, 1));
        assert_eq!((capture.clients.len(), capture.guessed.len()), (2, 0));
        let named = ["fd00::2", "fd00::3"].map(|address| address.parse().unwrap());
        let capture = read(Cursor::new(file.clone()), &named).unwrap();
        assert_eq!((capture.packets.len(), capture.others), (3, 1));
        let absent = [named[0], [10, 0, 0, 9].into()];
        let error = read(Cursor::new(file), &absent).unwrap_err().to_string();
        assert!(error.contains("is of 10.0.0.9"), "{error}");
    }

    #[test]
    fn who_tells_all_hosts_something_is_no_client() {
        let datagram = |from: [u8; 4], to: [u8; 4]| {
            let mut bytes = Vec::new();
            let udp = PacketBuilder::ipv4(from, to, 64).udp(5_353, 5_353);
            udp.write(&mut bytes, &[0; 9]).unwrap();
            bytes
        };
        let everybody = datagram([10, 0, 0, 7], [224, 0, 0, 251]);
        let records = [(0, 0, everybody), (1, 0, datagram(CLIENT, SERVER))];
        let capture = read(Cursor::new(pcap(0xa1b2_c3d4, 101, 99, &records)), &[]).unwrap();
        assert_eq!(capture.guessed, [IpAddr::from(CLIENT)]);
        assert_eq!((capture.packets.len(), capture.others), (1, 1));
    }

    #[test]
    fn on_loopback_who_opens_a_connection_is_the_client() {
        let segment = |source, target, syn| {
            let mut bytes = Vec::new();
            let tcp = PacketBuilder::ipv4([127, 0, 0, 1], [127, 0, 0, 1], 64);
            let tcp = tcp.tcp(source, target, 1, 1_000);
            let tcp = if syn { tcp.syn() } else { tcp.ack(1) };
            tcp.write(&mut bytes, &[]).unwrap();
            bytes
        };
        // The server has the higher port; the second connection was opened before.
        let segments = [
            (30_000, 50_000, true),
            (50_000, 30_000, false),
            (60_000, 8_080, false),
            (8_080, 60_000, false),
        ];
        let records = segments.map(|(source, target, syn)| (0, 0, segment(source, target, syn)));
        let capture = read(Cursor::new(pcap(0xa1b2_c3d4, 101, 99, &records)), &[]).unwrap();
        let directions: Vec<_> = capture.packets.iter().map(|packet| packet.direction).collect();
        let (sent, received) = (Direction::Sent, Direction::Received);
        assert_eq!(directions, [sent, received, sent, received]);
        assert_eq!((capture.within, capture.others), (4, 0));
    }

    #[test]
    fn what_has_no_length_in_its_header_is_as_long_as_its_frame() {
        for (offset, ethernet) in [(2, false), (16, true)] {
            let mut tso = packet(true, true, 60_000, ethernet);
            tso[offset..offset + 2].fill(0);
            let link = if ethernet { 1 } else { 101 };
            let file = pcap(0xa1b2_c3d4, link, 99, &[(0, 0, tso)]);
            let capture = read(Cursor::new(file), &[]).unwrap();
            assert_eq!(capture.packets[0].bytes, Bytes(60_052));
            assert_eq!(capture.packets[0].tcp.unwrap().payload, 60_000);
        }
        let mut jumbo = packet6(2, true, true, 60_000);
        jumbo[4..6].fill(0);
        let file = pcap(0xa1b2_c3d4, 101, 99, &[(0, 0, jumbo)]);
        let capture = read(Cursor::new(file), &[]).unwrap();
        assert_eq!(capture.packets[0].bytes, Bytes(60_060));
    }

    #[test]
    fn what_is_no_capture_is_refused() {
        let error = read(Cursor::new(b"GET / HTTP/1.1".to_vec()), &[]).unwrap_err();
        assert!(error.to_string().starts_with("no pcap or pcapng file"), "{error}");
        let bluetooth = pcap(0xa1b2_c3d4, 187, 9, &[(0, 0, vec![1; 9])]);
        let error = read(Cursor::new(bluetooth), &[]).unwrap_err().to_string();
        assert!(error.starts_with("link type 187"), "{error}");
        let cut = &pcap(0xa1b2_c3d4, 101, 99, &[(0, 0, packet(true, true, 0, false))])[..70];
        let error = read(Cursor::new(cut.to_vec()), &[]).unwrap_err().to_string();
        assert!(error.ends_with("it ends too soon"), "{error}");
        let empty = pcap(0xa1b2_c3d4, 101, 99, &[]);
        let error = read(Cursor::new(empty), &[]).unwrap_err().to_string();
        assert!(error.contains("no packets of IP"), "{error}");
    }
}
